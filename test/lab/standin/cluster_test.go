package standin

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStatusSaysWhereEachStrategyPublishes(t *testing.T) {
	type endpoints struct{ API, Ignition, OAuth string }
	nodePorts := map[string]int32{kubeAPIServer: 30643, ignitionServerProxy: 30443, oauthServer: 30644}
	for strategy, want := range map[Strategy]endpoints{
		LoadBalancer:         {"203.0.113.10:6443", "ignition-server-clusters-c1.apps.mgmt.example.com", "oauth-clusters-c1.apps.mgmt.example.com:443"},
		LoadBalancerHostname: {"api.c1.hosted.example.com:6443", "ignition-server-clusters-c1.apps.mgmt.example.com", "oauth-clusters-c1.apps.mgmt.example.com:443"},
		NodePort:             {"192.0.2.7:30643", "192.0.2.7:30443", "192.0.2.7:30644"},
		Route:                {"api.c1.hosted.example.com:443", "ignition-server-c1.hosted.example.com", "oauth-c1.hosted.example.com:443"},
	} {
		s := published(strategy).status(nodePorts, true, nil)
		host, _, _ := strings.Cut(strings.TrimPrefix(s.OAuthCallbackURLTemplate, "https://"), "/")
		got := endpoints{hostPort(s.ControlPlaneEndpoint.Host, s.ControlPlaneEndpoint.Port), s.IgnitionEndpoint, host}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", strategy, diff)
		}
	}
}

func TestTwoClustersShareNothing(t *testing.T) {
	other := testCluster
	other.Name, other.LBAddress = "c2", "203.0.113.20"
	seen := map[string]bool{}
	for _, c := range []Cluster{testCluster, other} {
		for _, service := range []string{kubeAPIServer, ignitionServerProxy, oauthServer, konnectivityServer, "namespace"} {
			host := c.host(service)
			if service == "namespace" {
				host = c.Namespace()
			}
			if seen[host] {
				t.Errorf("%s of %s is %s, as another's is", service, c.Name, host)
			}
			seen[host] = true
		}
	}
}

func TestWrongChoicesAreNamed(t *testing.T) {
	for want, change := range map[string]func(*Cluster){
		"--strategy":   func(c *Cluster) { c.Strategy = "magic" },
		"--lb-address": func(c *Cluster) { c.LBAddress = "balancer" },
	} {
		c := testCluster
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want an error that names %s", c, err, want)
		}
	}
}
