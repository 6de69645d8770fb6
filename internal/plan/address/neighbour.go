package address

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/ipam"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/vlan"
)

// Neighbour is another Infra on the VLAN, with the addresses that it takes from ours.
type Neighbour struct {
	vlan.Neighbour
	Taken []ipam.Taken
}

// Leases are the ranges that a neighbour leases from, or will lease from once it has a DHCPServer.
func (n Neighbour) Leases() []ipam.Range {
	dhcp := n.Infra.Spec.InfraComponents.DHCP
	if n.Children.DHCP() != nil {
		return n.Children.Leased()
	}
	if w := input.Span(dhcp.RangeStart, dhcp.RangeEnd); w.IsValid() && input.Enabled(dhcp.Enabled) {
		return []ipam.Range{w}
	}
	return []ipam.Range{input.GivenPool(n.Infra, n.Children)}
}

// Has says whether an address was given to a neighbour, or is leased by an older one.
func (n Neighbour) Has(at netip.Addr) bool {
	leased := func(r ipam.Range) bool { return r.Contains(at) }
	return has(input.Given(n.Infra, n.Children), at) || n.Older && slices.ContainsFunc(n.Children.Leased(), leased)
}

func has(all map[component.Name]netip.Addr, at netip.Addr) bool {
	return slices.Contains(slices.Collect(maps.Values(all)), at)
}
