package children

import (
	"net/netip"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cldmnky/oooi/api/v1alpha1"
	ac "github.com/cldmnky/oooi/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/apps"
	"github.com/cldmnky/oooi/internal/plan/desired"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/valid"
)

func dns(in apps.Published) []runtime.ApplyConfiguration {
	c, child := in.Infra.Spec.InfraComponents.DNS, names.DNSServer(in.Infra.Name)
	attachment, objects := attachments(in, component.DNS, child)
	objects = append(objects, ac.DNSServer(child, in.Infra.Namespace).WithLabels(desired.Labels(in.Infra)).WithAnnotations(in.WithNodes(c.Placement)).WithOwnerReferences(owner(in)).
		WithSpec(desired.As[ac.DNSServerSpecApplyConfiguration](dnsSpec(in, attachment))))
	return objects
}

func dnsSpec(in apps.Published, attachment v1alpha1.Attachment) v1alpha1.DNSServerSpec {
	n, c := in.Infra.Spec.NetworkConfig, in.Infra.Spec.InfraComponents.DNS
	spec := v1alpha1.DNSServerSpec{
		NetworkConfig:       v1alpha1.DNSNetworkConfig{Attachment: attachment, ServerIP: desired.IP(in.Address(component.DNS)), AdditionalServerIPs: further(in, component.DNS, desired.IP), SecondaryNetworkCIDR: n.CIDR, ClientCIDRs: n.ClientCIDRs},
		HostedClusterDomain: v1alpha1.DNSName(in.Domain()), DeniedZones: deniedZones(in.Settings), UpstreamDNS: n.DNSServers,
		CacheTTL: metav1.Duration{Duration: valid.DefaultCacheTTL}, Image: c.Image, Placement: c.Placement,
	}
	if !input.Enabled(in.Infra.Spec.InfraComponents.Proxy.Enabled) {
		spec.StaticEntries = withWritten(in, in.Table.Records())
		return spec
	}
	spec.StaticEntries, spec.HealthChecks = withWritten(in, in.Table.Records(answering(in)...)), healthChecks(in)
	if proxy := in.Children.Proxy(); proxy != nil {
		if service, err := netip.ParseAddr(proxy.Status.ServiceIP); err == nil {
			spec.InternalEntries = entries(onPods(in).Records(service))
		}
	}
	return spec
}

// answering are the proxies' addresses for names: a second one's once it has been ready and each DNS instance checks it, and from then on, for a
// DNS daemon of an older release would answer with it for ever. Of two the one is left out that says that it does not serve: an Envoy that
// stands still accepts connections as long as its kernel has room for them.
func answering(in apps.Published) []netip.Addr {
	all, proxy, dns := in.Addresses(component.Proxy), in.Children.Proxy(), in.Children.DNS()
	if len(all) < 2 || proxy == nil || dns == nil {
		return all[:1]
	}
	second := desired.IP(all[1])
	written := in.Infra.Spec.InfraComponents.DNS.StaticEntries
	if slices.ContainsFunc(dns.Spec.StaticEntries, func(e v1alpha1.DNSEntry) bool { return e.IP == second && !slices.Contains(written, e) }) {
		return serving(proxy, all)
	}
	unchecked := func(i v1alpha1.Instance) bool { return i.HealthAt(second) == "" }
	if !v1alpha1.InstanceAt(proxy.Status.Instances, second).Ready || len(dns.Status.Instances) == 0 || slices.ContainsFunc(dns.Status.Instances, unchecked) {
		return all[:1]
	}
	return all
}

// serving are those of a proxy's addresses whose daemon does not say that it does not serve, or all if each says so.
func serving(proxy *v1alpha1.ProxyServer, all []netip.Addr) []netip.Addr {
	some := slices.DeleteFunc(slices.Clone(all), func(at netip.Addr) bool {
		said := v1alpha1.InstanceAt(proxy.Status.Instances, desired.IP(at))
		return !said.Ready && said.Message != ""
	})
	if len(some) == 0 {
		return all
	}
	return some
}

// healthChecks are of all proxies, on their lowest port for TLS, where a connection without a ClientHello leads to no backend. Without one, no
// port is connected to that leads to one.
func healthChecks(in apps.Published) (all []v1alpha1.DNSHealthCheck) {
	var port v1alpha1.Port
	for _, e := range in.Table.Endpoints {
		if e.Protocol == v1alpha1.ProtocolTLS && (port == 0 || e.Port < int32(port)) {
			port = v1alpha1.Port(e.Port)
		}
	}
	for _, at := range in.Addresses(component.Proxy) {
		all = append(all, v1alpha1.DNSHealthCheck{IP: desired.IP(at), Port: port})
	}
	return all
}

// onPods are the endpoints that DNS also answers on the pod network, each with the proxy's address.
func onPods(in apps.Published) endpoint.Table {
	table := endpoint.Table{}
	for _, e := range in.Table.Endpoints {
		if e.Views == v1alpha1.ViewVLANAndPods {
			e.Answers = nil
			table.Endpoints = append(table.Endpoints, e)
		}
	}
	return table
}

// withWritten adds the entries that the Infra writes, except those of names that are answered already.
func withWritten(in apps.Published, records []endpoint.Record) []v1alpha1.DNSEntry {
	return append(entries(records), in.Table.Unnamed(in.Infra.Spec.InfraComponents.DNS.StaticEntries, input.Enabled(in.Infra.Spec.InfraComponents.Proxy.Enabled))...)
}

func entries(records []endpoint.Record) []v1alpha1.DNSEntry {
	var all []v1alpha1.DNSEntry
	for _, r := range records {
		all = append(all, v1alpha1.DNSEntry{Hostname: v1alpha1.DNSNameOrWildcard(r.Hostname), IP: desired.IP(r.IP)})
	}
	return all
}
