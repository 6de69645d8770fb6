package plan

import (
	"net/url"
	"strings"

	"github.com/openshift/hypershift/api/hypershift/v1beta1"
	"golang.org/x/net/http/httpproxy"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/finding"
)

// throughProxy: HyperShift has Ignition fetch its configuration through the hosted cluster's own proxy, which resolves and routes as it
// does, unless noProxy names the host (hypershift 3ee9615, hypershift-operator/controllers/nodepool/token.go ignConfig).
func (v *view) throughProxy() []finding.Finding {
	const field = "spec.configuration.proxy.noProxy"
	hc := v.HostedCluster
	if hc == nil || hc.Spec.Configuration == nil || hc.Spec.Configuration.Proxy == nil {
		return nil
	}
	written := hc.Spec.Configuration.Proxy
	chosen := (&httpproxy.Config{HTTPProxy: written.HTTPProxy, HTTPSProxy: written.HTTPSProxy, NoProxy: noProxy(hc)}).ProxyFunc()
	host := v.controlPlane().IgnitionHost()
	through, err := chosen(&url.URL{Scheme: "https", Host: host})
	if host == "" || err != nil || through == nil {
		return nil
	}
	bypassed := strings.Trim(written.NoProxy+","+host, ",")
	return []finding.Finding{finding.Note(v1alpha1.ConditionEndpointsResolved, "IgnitionThroughProxy").
		In(endpoint.Object(hc)).At(field).Set(finding.Values{field: bypassed}).
		Say("Ignition of HostedCluster %s/%s asks for %s through the proxy %s, past the VLAN's DNS and our proxy: a worker does not join unless that proxy is reached from the VLAN and leads to the ignition server; set configuration.proxy.noProxy: %s",
			hc.Namespace, hc.Name, host, through.Host, bypassed)}
}

// noProxy is what HyperShift makes of the one that is written (support/globalconfig/proxy.go defaultProxyStatus).
func noProxy(hc *v1beta1.HostedCluster) string {
	all := []string{"127.0.0.1", "localhost", ".svc", ".cluster.local", ".local", hc.Spec.Configuration.Proxy.NoProxy}
	for _, n := range endpoint.NetworksOf(hc) {
		all = append(all, n.CIDRs...)
	}
	return strings.Join(all, ",")
}
