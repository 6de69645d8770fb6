package address

import (
	"net/netip"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/ipam"
	"github.com/cldmnky/oooi/internal/plan/vlan"
)

// Addressed is an Infra on its VLAN with the addresses of its components, its pool, and the captured addresses of its proxy.
type Addressed struct {
	vlan.Joined
	Table endpoint.Table
	// Others are the neighbours on the VLAN, oldest first, with the addresses that they take from ours.
	Others            []Neighbour
	Assigned          ipam.Assignment
	CapturedAddresses []endpoint.CapturedAddress
	// NotCaptured are the findings on IP endpoints that the proxy cannot capture.
	NotCaptured []finding.Finding
}

// Address of a component; invalid if it has none.
func (a Addressed) Address(c component.Name) netip.Addr { return a.Assigned.Addresses[c] }

// Addresses of a component's instances, in their order.
func (a Addressed) Addresses(c component.Name) []netip.Addr {
	all := []netip.Addr{a.Address(c)}
	if second := a.Address(c.Second()); second.IsValid() {
		all = append(all, second)
	}
	return all
}

// Told are the addresses of a component's instances, as a status lists them.
func (a Addressed) Told(c component.Name) (all []v1alpha1.AssignedAddress) {
	for number, at := range a.Addresses(c) {
		all = append(all, v1alpha1.AssignedAddress{Component: string(c), Instance: int32(number), IP: v1alpha1.IPAddress(at.String())})
	}
	return all
}
