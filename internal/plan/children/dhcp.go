package children

import (
	"cmp"
	"net/netip"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/cldmnky/oooi/api/v1alpha1"
	ac "github.com/cldmnky/oooi/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/apps"
	"github.com/cldmnky/oooi/internal/plan/desired"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/valid"
)

func dhcp(in apps.Published) []runtime.ApplyConfiguration {
	c, child := in.Infra.Spec.InfraComponents.DHCP, names.DHCPServer(in.Infra.Name)
	attachment, objects := attachments(in, component.DHCP, child)
	objects = append(objects, ac.DHCPServer(child, in.Infra.Namespace).WithLabels(desired.Labels(in.Infra)).WithAnnotations(in.WithNodes(c.Placement)).WithOwnerReferences(owner(in)).
		WithSpec(desired.As[ac.DHCPServerSpecApplyConfiguration](dhcpSpec(in, attachment))))
	return append(objects, dhcpAccess(in, child)...)
}

func dhcpSpec(in apps.Published, attachment v1alpha1.Attachment) v1alpha1.DHCPServerSpec {
	n, c := in.Infra.Spec.NetworkConfig, in.Infra.Spec.InfraComponents.DHCP
	return v1alpha1.DHCPServerSpec{
		NetworkConfig: v1alpha1.DHCPNetworkConfig{
			Attachment: attachment, CIDR: n.CIDR, ServerIP: desired.IPv4(in.Address(component.DHCP)), AdditionalServerIPs: further(in, component.DHCP, desired.IPv4), Gateway: v1alpha1.IPv4Address(n.Gateway),
			DNSServers: resolvers(in), NTPServers: n.NTPServers, MTU: in.MTU(), Domain: v1alpha1.DNSName(in.Domain()), SearchDomains: searchDomains(in), Routes: routes(in),
		},
		LeaseConfig: v1alpha1.DHCPLeaseConfig{
			RangeStart: desired.IPv4(in.Assigned.Pool.First), RangeEnd: desired.IPv4(in.Assigned.Pool.Last), LeaseTime: ptr.Deref(c.LeaseTime, metav1.Duration{Duration: valid.DefaultLease}), // a metav1.Duration is never omitted
		},
		ExcludeRanges: excludeRanges(in), Reservations: reservations(c.Reservations), UnknownClients: cmp.Or(c.UnknownClients, v1alpha1.UnknownClientsPool),
		Options: c.Options, Relays: c.Relays, VMNamespace: v1alpha1.ObjectName(in.VMNamespace()), Image: c.Image, Placement: c.Placement,
	}
}

// reservations have their clients in the form that every DHCP daemon takes, also one of an older release.
func reservations(all []v1alpha1.Reservation) []v1alpha1.Reservation {
	all = slices.Clone(all)
	for i := range all {
		all[i].MAC, all[i].ClientID = v1alpha1.ClientMAC(all[i].MAC.Address()), all[i].Identifier()
	}
	return all
}

// resolvers are our DNS, or those of the spec if it is disabled.
func resolvers(in apps.Published) (all []v1alpha1.IPv4Address) {
	if input.Enabled(in.Infra.Spec.InfraComponents.DNS.Enabled) {
		for _, at := range in.Addresses(component.DNS) {
			all = append(all, desired.IPv4(at))
		}
		return all
	}
	for _, text := range in.Infra.Spec.NetworkConfig.DNSServers {
		if a, err := netip.ParseAddr(string(text)); err == nil && a.Is4() {
			all = append(all, desired.IPv4(a))
		}
	}
	return all
}

func searchDomains(in apps.Published) []v1alpha1.DNSName {
	if written := in.Infra.Spec.NetworkConfig.SearchDomains; len(written) > 0 {
		return written
	}
	return []v1alpha1.DNSName{v1alpha1.DNSName(in.Domain())}
}

// routes are those of the spec, and one through the proxy for each captured address.
func routes(in apps.Published) []v1alpha1.Route {
	all := slices.Clone(in.Infra.Spec.NetworkConfig.Routes)
	for _, c := range in.CapturedAddresses {
		all = append(all, v1alpha1.Route{Destination: v1alpha1.CIDR(desired.HostRoute(c.IP)), Gateway: desired.IPv4(in.Address(component.Proxy))})
	}
	return all
}

func excludeRanges(in apps.Published) []v1alpha1.AddressRange {
	var all []v1alpha1.AddressRange
	for _, r := range in.Assigned.Excluded {
		all = append(all, v1alpha1.AddressRange{Start: desired.IPv4(r.First), End: desired.IPv4(r.Last)})
	}
	return all
}
