package check

import (
	"net/url"
	"slices"
	"strings"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"golang.org/x/net/http/httpproxy"
	"k8s.io/utils/ptr"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/plan/apps"
)

// external says whether the workers' VirtualMachines run on another cluster, and so on a VLAN there.
func external(in apps.Published) bool {
	if p := in.Platform(); p != nil && p.Credentials != nil {
		return true
	}
	return slices.ContainsFunc(in.Machines(), func(p *hyperv1.NodePool) bool {
		s := p.Status.Platform
		return s != nil && s.KubeVirt != nil && s.KubeVirt.Credentials != nil
	})
}

// passthrough: with it, applications are under the management cluster's *.apps, whose router would have to reach the workers. HyperShift
// sets it for each HostedCluster without a base domain, whatever was written; it has no effect if applications have a domain of their own.
func passthrough(in apps.Published) []finding.Finding {
	const field = "spec.platform.kubevirt.baseDomainPassthrough"
	p, cp := in.Platform(), in.ControlPlane()
	if p == nil || cp.OwnApps() {
		return nil
	}
	says := "has"
	begin, based := finding.Fail, in.HostedCluster.Spec.DNS.BaseDomain != ""
	if !ptr.Deref(p.BaseDomainPassthrough, false) {
		if based || cp.Base() == "" { // Misnamed reports that there is no domain at all
			return nil
		}
		begin, says = finding.Warn, "has no dns.baseDomain, so HyperShift sets"
	}
	found := begin(v1alpha1.ConditionEndpointsResolved, "BaseDomainPassthrough").In(endpoint.Object(in.HostedCluster)).At(field)
	if based {
		found = found.Set(finding.Values{field: false})
	}
	return []finding.Finding{found.
		Say("HostedCluster %s/%s %s baseDomainPassthrough: the management cluster's router cannot reach its workers on the isolated VLAN, so *.apps does not work; recreate it with its own base domain", in.HostedCluster.Namespace, in.HostedCluster.Name, says)}
}

// throughProxy: HyperShift has Ignition fetch its configuration through the hosted cluster's own proxy, with that proxy's DNS and routes,
// unless noProxy names the host (hypershift 3ee9615, hypershift-operator/controllers/nodepool/token.go ignConfig).
func throughProxy(in apps.Published) []finding.Finding {
	const field = "spec.configuration.proxy.noProxy"
	hc := in.HostedCluster
	if hc == nil || hc.Spec.Configuration == nil || hc.Spec.Configuration.Proxy == nil {
		return nil
	}
	written := hc.Spec.Configuration.Proxy
	chosen := (&httpproxy.Config{HTTPProxy: written.HTTPProxy, HTTPSProxy: written.HTTPSProxy, NoProxy: noProxy(hc)}).ProxyFunc()
	host := in.ControlPlane().IgnitionHost()
	through, err := chosen(&url.URL{Scheme: "https", Host: host})
	if host == "" || err != nil || through == nil {
		return nil
	}
	bypassed := strings.Trim(written.NoProxy+","+host, ",")
	return []finding.Finding{finding.Warn(v1alpha1.ConditionEndpointsResolved, "IgnitionThroughProxy").
		In(endpoint.Object(hc)).At(field).Set(finding.Values{field: bypassed}).
		Say("Ignition of HostedCluster %s/%s requests %s through the proxy %s, bypassing the VLAN's DNS and our proxy: workers join only if they can reach that proxy from the VLAN and it can reach the ignition server; set configuration.proxy.noProxy: %s",
			hc.Namespace, hc.Name, host, through.Host, bypassed)}
}

// noProxy is what HyperShift makes of spec's noProxy (support/globalconfig/proxy.go defaultProxyStatus).
func noProxy(hc *hyperv1.HostedCluster) string {
	all := []string{"127.0.0.1", "localhost", ".svc", ".cluster.local", ".local", hc.Spec.Configuration.Proxy.NoProxy}
	for _, n := range endpoint.NetworksOf(hc) {
		all = append(all, n.CIDRs...)
	}
	return strings.Join(all, ",")
}
