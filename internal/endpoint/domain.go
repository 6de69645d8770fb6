package endpoint

import (
	"cmp"
	"net/netip"
	"strings"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
)

// Domain of the hosted cluster, e.g. c1.example.com: that of its leases, of their search list and of our zone. Published names are answered
// whatever it is.
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

// BaseSources lists where Base looks, in order.
const BaseSources = "infraComponents.dns.baseDomain of the Infra, and spec.dns.baseDomain, spec.configuration.ingress.appsDomain and the hostnames in spec.services of the HostedCluster"

// Base is the parent of the cluster's domain; empty where nothing says it. A value written for us wins, then the one from which the hosted
// cluster makes its own DNS configuration (hypershift: support/globalconfig/dns.go). Then the domain of its applications, which the hosted
// cluster has too, before the hostnames, which it need not have.
func (cp ControlPlane) Base() string {
	if cp.HostedCluster == nil {
		return cp.BaseDomain
	}
	return cmp.Or(cp.BaseDomain, cp.HostedCluster.Spec.DNS.BaseDomain, cp.above(cp.aboveApps()), cp.above(commonParent(cp.hostnames())))
}

// above removes the cluster's own label from a domain. A domain without that label may be shared with other clusters, and the cluster's is
// below it: a shared zone is never ours.
func (cp ControlPlane) above(domain string) string {
	return strings.TrimPrefix(domain, cp.prefix()+".")
}

// aboveApps is the domain below which OpenShift puts apps.
func (cp ControlPlane) aboveApps() string {
	domain, is := strings.CutPrefix(cp.writtenApps(), "apps.")
	if !is {
		return ""
	}
	return domain
}

// writtenApps is the domain of *.apps in the HostedCluster (hypershift: support/globalconfig/ingress.go).
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

// hostnames are those written for the control plane. Those that HyperShift chooses are below the management cluster's *.apps, and a node
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

// services are published as the HostedCluster says, or else as the HostedControlPlane does: HyperShift may fill in there what a
// HostedCluster omits (openshift/enhancements: hypershift, service publishing).
func (cp ControlPlane) services() []hyperv1.ServicePublishingStrategyMapping {
	if written := cp.HostedCluster.Spec.Services; len(written) > 0 || cp.HostedControlPlane == nil {
		return written
	}
	return cp.HostedControlPlane.Spec.Services
}

// commonParent is the longest domain that contains all hosts; empty for a top-level domain, which belongs to a registry.
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

// Below says whether a name is this domain, or in it.
func Below(name, domain string) bool { return name == domain || strings.HasSuffix(name, "."+domain) }

// OwnApps says whether the domain of the cluster's applications was written, and is outside its base domain. A base domain that nobody
// wrote is the management cluster's *.apps (hypershift: hostedcluster_webhook.go).
func (cp ControlPlane) OwnApps() bool {
	apps, base := cp.writtenApps(), cp.HostedCluster.Spec.DNS.BaseDomain
	return apps != "" && (base == "" || !Below(apps, base))
}
