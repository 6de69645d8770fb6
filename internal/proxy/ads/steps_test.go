package ads

import (
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/proxy/translate"
)

// leading is a configuration with one listener, and the clusters that it uses.
func leading(listener string, clusters ...string) translate.Config {
	c := translate.Config{Listeners: []*listenerv3.Listener{{Name: listener}}}
	for _, name := range clusters {
		c.Clusters = append(c.Clusters, &clusterv3.Cluster{Name: name})
		c.Endpoints = append(c.Endpoints, &endpointv3.ClusterLoadAssignment{ClusterName: name})
	}
	return c
}

func TestClustersComeBeforeTheirListenerAndGoAfterIt(t *testing.T) {
	for name, c := range map[string]struct {
		was, is translate.Config
		path    []string
	}{
		"nothing comes or goes": {leading("1", "a"), leading("2", "a"), []string{"2:a"}},
		"a cluster comes":       {leading("1", "a"), leading("2", "a", "b"), []string{"1:ab", "2:ab"}},
		"a cluster goes":        {leading("1", "a", "b"), leading("2", "a"), []string{"2:ab", "2:a"}},
		"a cluster is renamed":  {leading("1", "a"), leading("2", "b"), []string{"1:ba", "2:ba", "2:b"}},
		"one that goes is back": {leading("2", "b", "a"), leading("1", "a"), []string{"1:ab", "1:a"}},
	} {
		t.Run(name, func(t *testing.T) {
			var path []string
			for _, s := range steps(&c.was, c.is) {
				at := s.config.Listeners[0].Name + ":"
				for n, c := range s.config.Clusters {
					at += c.Name
					NewWithT(t).Expect(s.config.Endpoints[n].ClusterName).To(Equal(c.Name))
				}
				path = append(path, at)
			}
			NewWithT(t).Expect(path).To(Equal(c.path))
		})
	}
	NewWithT(t).Expect(steps(nil, leading("1", "a"))).To(HaveLen(1), "Envoy asks for clusters first")
}
