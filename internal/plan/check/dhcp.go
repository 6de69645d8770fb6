package check

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/ipam"
	"github.com/cldmnky/oooi/internal/plan/apps"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/subject"
)

// handedOut checks what DHCP announces to workers.
func handedOut(in apps.Published) []finding.Finding {
	if !input.Enabled(in.Infra.Spec.InfraComponents.DHCP.Enabled) {
		return nil
	}
	return slices.Concat(clock(in), upstreams(in))
}

// clock: Ignition's certificates and CSRs fail if a clock is minutes off.
func clock(in apps.Published) []finding.Finding {
	servers := in.Infra.Spec.NetworkConfig.NTPServers
	if in.Gateway.IsValid() || len(beyond(in, servers)) < len(servers) {
		return nil
	}
	why := "no time server is handed out"
	if len(servers) > 0 {
		why = fmt.Sprintf("networkConfig.ntpServers %v lie outside %s", servers, in.CIDR)
	}
	return []finding.Finding{finding.Warn(v1alpha1.ConditionNetworkReady, "NoTimeSource").
		At(subject.FieldNTP). // without a change, because no time server is known here
		Say("%s and the VLAN has no gateway: workers cannot synchronise their clocks, and certificates fail once a clock is minutes off; set networkConfig.ntpServers to the address of a time server on the VLAN", why)}
}

// upstreams: without our DNS, workers query dnsServers; with it, our pods do, over the nodes' network.
func upstreams(in apps.Published) []finding.Finding {
	outside := beyond(in, in.Infra.Spec.NetworkConfig.DNSServers)
	switch {
	case len(outside) == 0:
		return nil
	case !input.Enabled(in.Infra.Spec.InfraComponents.DNS.Enabled):
		return []finding.Finding{finding.Fail(v1alpha1.ConditionNetworkReady, "DNSServersUnreachable").
			At(subject.FieldResolvers).Set(finding.Values{subject.FieldDNS: true}).
			Say("networkConfig.dnsServers %v lie outside %s, which has no gateway, and DNS is off: workers cannot reach them; enable infraComponents.dns, or set networkConfig.gateway", outside, in.CIDR)}
	}
	return []finding.Finding{finding.Warn(v1alpha1.ConditionNetworkReady, "DNSServersOutsideVLAN").
		At(subject.FieldResolvers).
		Say("networkConfig.dnsServers %v lie outside %s, which has no gateway: our DNS queries them over the nodes' network; if the nodes cannot reach them, omit them to use the nodes' own resolvers", outside, in.CIDR)}
}

// reachable says whether workers on the VLAN have a route to an address.
func reachable(in apps.Published, a netip.Addr) bool {
	return in.CIDR.Contains(a) || in.Gateway.IsValid() || slices.ContainsFunc(in.Infra.Spec.NetworkConfig.Routes, func(r v1alpha1.Route) bool {
		to, err := netip.ParsePrefix(string(r.Destination))
		return err == nil && to.Contains(a)
	})
}

// beyond are those of a list of addresses that workers cannot reach.
func beyond[T ~string](in apps.Published, addresses []T) []string {
	var all []string
	for _, text := range addresses {
		if a, err := netip.ParseAddr(string(text)); err == nil && !reachable(in, a) {
			all = append(all, string(text))
		}
	}
	return all
}

// reservations finds those that would never be served, or not to the client that they are for.
func reservations(in apps.Published) []finding.Finding {
	var all []finding.Finding
	usable, holds := ipam.Usable(in.CIDR), map[v1alpha1.MACAddress]v1alpha1.IPv4Address{}
	refuse := func(format string, args ...any) {
		all = append(all, wrongAt("InvalidReservation", "spec.infraComponents.dhcp.reservations").Say(format, args...))
	}
	dhcp := in.Infra.Spec.InfraComponents.DHCP
	if in.LeasesByReservation() && input.Enabled(dhcp.Enabled) && dhcp.UnknownClients == v1alpha1.UnknownClientsIgnore && len(dhcp.Reservations) == 0 {
		all = append(all, wrongAt("NoClientsServed", subject.FieldUnknownClients).Set(finding.Values{subject.FieldUnknownClients: string(v1alpha1.UnknownClientsPool)}).
			Say("dhcp.unknownClients: Ignore serves only reservations and KubeVirt's machines, and there are neither: the platform of HostedCluster %s is %s; reserve an address for each worker, or omit unknownClients", in.HostedCluster.Name, in.HostedCluster.Spec.Platform.Type))
	}
	for _, r := range dhcp.Reservations {
		at, _ := netip.ParseAddr(string(r.IP))
		if first := holds[r.MAC.Address()]; first != "" {
			refuse("dhcp.reservations has %s twice, for %s and %s; a client gets one address: remove one of them", r.MAC.Address(), first, r.IP)
		}
		if r.MAC != "" {
			holds[r.MAC.Address()] = r.IP
		}
		switch {
		case at.IsValid() && at == in.Gateway:
			refuse("dhcp.reservations has %s, which is networkConfig.gateway; reserve another address", at)
		case !usable.Contains(at):
			refuse("dhcp.reservations has %s, which is not a host address in %s; reserve one of %s", r.IP, in.CIDR, usable)
		}
	}
	return all
}
