package endpoint

import (
	"cmp"
	"net/netip"
	"strings"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// Domain of the hosted cluster, e.g. c1.example.com: of its leases, their search list and our zone. What is published is answered whatever
// this is.
func (cp ControlPlane) Domain() string {
	return strings.TrimPrefix(cp.prefix()+"."+cp.Base(), ".")
}

// prefix is the cluster's own label in its domain; empty where it has none.
func (cp ControlPlane) prefix() string {
	hc := cp.HostedCluster
	switch {
	case cp.ClusterName != "" || hc == nil:
		return cp.ClusterName
	case hc.Spec.DNS.BaseDomainPrefix != nil:
		return *hc.Spec.DNS.BaseDomainPrefix // "" means none
	}
	return hc.Name
}

// BaseSources are where Base looks, in its order.
const BaseSources = "infraComponents.dns.baseDomain of the Infra, and spec.dns.baseDomain, spec.configuration.ingress.appsDomain and the hostnames in spec.services of the HostedCluster"

// Base is the domain that the cluster's is below; empty where nothing says it. What was written for us wins, then that of which the
// hosted cluster makes its own DNS configuration (hypershift: support/globalconfig/dns.go). Then the domain of its applications, which
// the hosted cluster has too, before the hostnames, which it need not have.
func (cp ControlPlane) Base() string {
	if cp.HostedCluster == nil {
		return cp.BaseDomain
	}
	return cmp.Or(cp.BaseDomain, cp.HostedCluster.Spec.DNS.BaseDomain, cp.above(cp.aboveApps()), cp.above(commonParent(cp.hostnames())))
}

// above is what is left of a domain without the cluster's own label. Where that label is missing the domain may be other clusters' too,
// and the cluster's is below it: a zone that is shared is never ours.
func (cp ControlPlane) above(domain string) string {
	return strings.TrimPrefix(domain, cp.prefix()+".")
}

// aboveApps is what OpenShift puts apps. before.
func (cp ControlPlane) aboveApps() string {
	domain, is := strings.CutPrefix(cp.writtenApps(), "apps.")
	if !is {
		return ""
	}
	return domain
}

// writtenApps is the domain of *.apps as the HostedCluster has it (hypershift: support/globalconfig/ingress.go).
func (cp ControlPlane) writtenApps() string {
	if cp.HostedCluster == nil {
		return ""
	}
	c := cp.HostedCluster.Spec.Configuration
	if c == nil || c.Ingress == nil {
		return ""
	}
	return cmp.Or(c.Ingress.AppsDomain, c.Ingress.Domain)
}

// hostnames that were written for the control plane. Those that HyperShift gives lie below the management cluster's *.apps, and a node
// port's are its nodes'.
func (cp ControlPlane) hostnames() []string {
	var all []string
	add := func(host string) {
		if _, err := netip.ParseAddr(host); host != "" && err != nil {
			all = append(all, strings.ToLower(strings.TrimSuffix(host, ".")))
		}
	}
	add(cp.HostedCluster.Spec.KubeAPIServerDNSName)
	for _, s := range cp.services() {
		if s.LoadBalancer != nil {
			add(s.LoadBalancer.Hostname)
		}
		if s.Route != nil {
			add(s.Route.Hostname)
		}
	}
	return all
}

// services are as the HostedCluster publishes them, else as the HostedControlPlane does: HyperShift may fill in there what a
// HostedCluster leaves to it (openshift/enhancements: hypershift, service publishing).
func (cp ControlPlane) services() []hyperv1.ServicePublishingStrategyMapping {
	if written := cp.HostedCluster.Spec.Services; len(written) > 0 || cp.HostedControlPlane == nil {
		return written
	}
	return cp.HostedControlPlane.Spec.Services
}

// commonParent is the longest domain that all hosts lie in; none at the top, which is a registry's.
func commonParent(hosts []string) string {
	parent := ""
	for i, host := range hosts {
		_, domain, _ := strings.Cut(host, ".")
		if i == 0 {
			parent = domain
		}
		for parent != "" && !Below(domain, parent) {
			_, parent, _ = strings.Cut(parent, ".")
		}
	}
	if !strings.Contains(parent, ".") {
		return ""
	}
	return parent
}

// Below says whether a name is a domain or lies in it.
func Below(name, domain string) bool { return name == domain || strings.HasSuffix(name, "."+domain) }

// OwnApps says whether the cluster's applications have a domain that was written for them and is not of its base domain: that base
// domain is the management cluster's *.apps where nobody wrote one (hypershift: hostedcluster_webhook.go).
func (cp ControlPlane) OwnApps() bool {
	apps, base := cp.writtenApps(), cp.HostedCluster.Spec.DNS.BaseDomain
	return apps != "" && (base == "" || !Below(apps, base))
}
