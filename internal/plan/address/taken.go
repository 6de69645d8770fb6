package address

import (
	"net/netip"
	"slices"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/ipam"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// takenHere are the addresses that the spec names, those that machines lease, that of the API on each worker, those of the network's own IPAM,
// and those of our pods, also of such as are to go.
func (a Addressed) takenHere() []ipam.Taken {
	n, dhcp := a.Infra.Spec.NetworkConfig, a.Infra.Spec.InfraComponents.DHCP
	var taken []ipam.Taken
	for _, leased := range a.Leased {
		taken = append(taken, ipam.Taken{Range: leased, Reserved: true})
	}
	for _, r := range dhcp.Reservations {
		taken = append(taken, ipam.Taken{Range: input.Span(r.IP, r.IP), By: "a reservation", Reserved: true})
	}
	keepFree := func(r ipam.Range) { taken = append(taken, ipam.Taken{Range: r}) }
	if at := endpoint.Advertised(a.HostedCluster); at.IsValid() {
		keepFree(ipam.Single(at))
	}
	for _, r := range input.Spans(dhcp.ExcludeRanges) {
		keepFree(r)
	}
	for _, server := range n.DNSServers {
		keepFree(input.Span(server, server))
	}
	for _, server := range n.NTPServers {
		keepFree(input.Span(server, server))
	}
	for _, r := range n.Routes {
		keepFree(input.Span(r.Gateway, r.Gateway))
	}
	if a.VLAN.Broken == "" && a.VLAN.Source != nil {
		for _, r := range a.VLAN.Config.Addresses() {
			keepFree(r)
		}
	}
	for _, at := range a.Children.Reporting() {
		keepFree(ipam.Single(at))
	}
	return append(taken, a.takenByEntries()...)
}

// takenByEntries are the addresses of the VLAN with which DNS answers names that the Infra writes: an appliance has them, unless it is
// reserved. Our own stay where they are, and a machine that leases one keeps it.
func (a Addressed) takenByEntries() []ipam.Taken {
	dhcp := a.Infra.Spec.InfraComponents.DHCP
	var taken []ipam.Taken
	for _, e := range a.Infra.Spec.InfraComponents.DNS.StaticEntries {
		at, err := netip.ParseAddr(string(e.IP))
		reserved := slices.ContainsFunc(dhcp.Reservations, func(r v1alpha1.Reservation) bool { return string(r.IP) == string(e.IP) })
		if err == nil && a.CIDR.Contains(at) && !reserved {
			taken = append(taken, ipam.Taken{Range: ipam.Single(at)})
		}
	}
	return taken
}

// takenByEndpoints are the addresses that workers dial, which the proxy may have, and those that the proxy dials.
func (a Addressed) takenByEndpoints() []ipam.Taken {
	var taken []ipam.Taken
	for _, e := range append(slices.Clone(a.Table.Endpoints), a.Table.Announced()...) {
		for _, published := range e.PublishedIPs {
			taken = append(taken, ipam.Taken{Range: ipam.Single(published), By: "endpoint " + e.Name, But: component.Proxy})
		}
		for _, target := range e.Backend.Addresses {
			taken = append(taken, ipam.Taken{Range: ipam.Single(target.Addr()), By: "the target of endpoint " + e.Name})
		}
	}
	return taken
}

// takenByNeighbours are the addresses that neighbours take.
func (a Addressed) takenByNeighbours() []ipam.Taken {
	var taken []ipam.Taken
	for _, n := range a.Others {
		taken = append(taken, n.Taken...)
	}
	return taken
}

// takenByApps are the addresses of *.apps, including an external IP that *.apps may use but DNS does not answer yet.
func (a Addressed) takenByApps() []ipam.Taken {
	var taken []ipam.Taken
	pool, seen := keptForApps(a.Infra, a.Children, a.AppsHostname())
	for _, r := range pool {
		taken = append(taken, ipam.Taken{Range: r, By: "appsIngress.metallb.ipAddressPoolRange"})
	}
	if a.Guest != nil && input.Publishes(a.Infra) {
		for _, at := range input.ExternalIPs(a.Guest.Service) {
			if a.Refuses(at) == (Refusal{}) {
				seen = append(seen, ipam.Single(at))
			}
		}
	}
	for _, r := range seen {
		taken = append(taken, ipam.Taken{Range: r})
	}
	return taken
}

// keptForApps are the addresses that MetalLB may give *.apps, and those with which DNS answers it, by its host name if that is known. DHCP leases
// none of them.
func keptForApps(infra *v1alpha1.Infra, children input.Children, hostname string) (pool, seen []ipam.Range) {
	if !input.Publishes(infra) {
		return nil, nil
	}
	for _, text := range input.AppsSpec(infra).MetalLB.IPAddressPoolRange {
		pool = append(pool, input.RangeOf(string(text)))
	}
	for _, a := range children.Apps(infra, hostname).Answers {
		seen = append(seen, ipam.Single(a))
	}
	return pool, seen
}
