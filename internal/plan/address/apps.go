package address

import (
	"net/netip"
	"slices"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/ipam"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/unroutable"
)

// Holder names what already uses an address, so that *.apps must not; empty if nothing does. Before addresses are assigned, the previous
// ones count as ours.
func (a Addressed) Holder(at netip.Addr) string {
	ours := []map[component.Name]netip.Addr{input.Written(a.Infra), input.Given(a.Infra, a.Children), a.Assigned.Addresses}
	switch {
	case unroutable.Is(at):
		return "a loopback, link-local, multicast or metadata address"
	case at == a.Gateway:
		return "networkConfig.gateway"
	case slices.ContainsFunc(a.Table.Endpoints, func(e endpoint.Endpoint) bool { return slices.Contains(e.PublishedIPs, at) }):
		return "an endpoint of the control plane"
	case slices.Contains(a.Assigned.Spare, at), slices.ContainsFunc(ours, func(all map[component.Name]netip.Addr) bool { return has(all, at) }):
		return "this Infra's"
	case slices.ContainsFunc(a.Others, func(n Neighbour) bool { return n.Has(at) }) && !a.answers(at):
		return "another Infra's on this VLAN"
	}
	return ""
}

// answers says whether our DNS already answers *.apps with an address. It was free when DNS began to, so a neighbour that has or claims
// it was created or edited later.
func (a Addressed) answers(at netip.Addr) bool {
	return slices.Contains(a.Children.Apps(a.Infra, a.AppsHostname()).Answers, at)
}

// Refusal is why *.apps may not use an address. The zero Refusal means that it may.
type Refusal struct {
	Holder     string // what already uses it
	Outside    bool   // it is neither a host address of the VLAN nor in --extra-endpoint-cidrs
	BeyondPool bool   // it is not in metallb.ipAddressPoolRange
}

// Refuses says why *.apps may not use an external IP. The administrator of the hosted cluster chooses it, and must not direct the proxy
// beyond the VLAN.
func (a Addressed) Refuses(at netip.Addr) Refusal {
	pool := input.AppsSpec(a.Infra).MetalLB.IPAddressPoolRange
	if holder := a.Holder(at); holder != "" {
		return Refusal{Holder: holder}
	}
	if !a.Host(at) && !endpoint.Allows(a.Settings.ExtraEndpointCIDRs, at) {
		return Refusal{Outside: true}
	}
	return Refusal{BeyondPool: len(pool) > 0 && !slices.ContainsFunc(pool, func(r v1alpha1.AddressOrRange) bool { return input.RangeOf(string(r)).Contains(at) })}
}

// Host says whether an address is a host address of the VLAN.
func (a Addressed) Host(at netip.Addr) bool {
	return ipam.Usable(a.CIDR).Contains(at)
}
