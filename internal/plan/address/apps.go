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

// Holder says who has an address that *.apps must therefore not use; empty: nobody. Before addresses are assigned, our own are the
// previous ones.
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

// answers says whether our DNS gives an address for *.apps by now: it was nobody's when it was taken up, and whoever stands there, or
// says so, came or edited later.
func (a Addressed) answers(at netip.Addr) bool {
	return slices.Contains(a.Children.Apps().Answers, at)
}

// Refusal is why *.apps may not use an address. The zero Refusal: it may.
type Refusal struct {
	Holder     string // who has it
	Outside    bool   // it is no host address of the VLAN, and not in --extra-endpoint-cidrs
	BeyondPool bool   // it is not in metallb.ipAddressPoolRange
}

// Refuses says why *.apps may not use an external IP. The guest's administrator chooses it, and must not direct the proxy beyond the
// VLAN.
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

// Host says whether a host of the VLAN may have an address.
func (a Addressed) Host(at netip.Addr) bool {
	return ipam.Usable(a.CIDR).Contains(at)
}
