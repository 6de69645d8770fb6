package children

import (
	"cmp"
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
		spec.StaticEntries = entries(in.Table.Records())
		return spec
	}
	proxies := answering(in)
	spec.StaticEntries, spec.HealthChecks = entries(in.Table.Records(proxies...)), healthChecks(in, proxies)
	if proxy := in.Children.Proxy(); proxy != nil {
		if service, err := netip.ParseAddr(proxy.Status.ServiceIP); err == nil {
			spec.InternalEntries = entries(onPods(in).Records(service))
		}
	}
	return spec
}

// answering are the proxies' addresses for names: a second one's once it has been ready, and from then on.
func answering(in apps.Published) []netip.Addr {
	all := in.Addresses(component.Proxy)
	if len(all) < 2 || in.Children.Proxy() == nil {
		return all[:1]
	}
	second := desired.IP(all[1])
	ready := slices.ContainsFunc(in.Children.Proxy().Status.Instances, func(i v1alpha1.Instance) bool { return i.IP == second && i.Ready })
	answered := in.Children.DNS() != nil && slices.ContainsFunc(in.Children.DNS().Spec.StaticEntries, func(e v1alpha1.DNSEntry) bool { return e.IP == second })
	if !ready && !answered {
		return all[:1]
	}
	return all
}

// healthChecks are of proxies where there are several, on a port that all have: if possible one for TLS, where a connection without a
// ClientHello leads to no backend.
func healthChecks(in apps.Published, proxies []netip.Addr) (all []v1alpha1.DNSHealthCheck) {
	if len(proxies) < 2 || len(in.Table.Endpoints) == 0 {
		return nil
	}
	best := slices.MinFunc(in.Table.Endpoints, func(a, b endpoint.Endpoint) int {
		plain := func(e endpoint.Endpoint) int32 {
			return map[bool]int32{true: 1 << 16}[e.Protocol == v1alpha1.ProtocolTCP]
		}
		return cmp.Compare(plain(a)+a.Port, plain(b)+b.Port)
	})
	for _, at := range proxies {
		all = append(all, v1alpha1.DNSHealthCheck{IP: desired.IP(at), Port: v1alpha1.Port(best.Port)})
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

func entries(records []endpoint.Record) []v1alpha1.DNSEntry {
	var all []v1alpha1.DNSEntry
	for _, r := range records {
		all = append(all, v1alpha1.DNSEntry{Hostname: v1alpha1.DNSNameOrWildcard(r.Hostname), IP: desired.IP(r.IP)})
	}
	return all
}
