package plan

import (
	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/ipam"
	"github.com/cldmnky/oooi/internal/plan/check"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/permission"
)

// Outlook is what is known of an Infra before its control plane exists.
type Outlook struct {
	// Domain of the hosted cluster; empty if it is unknown or no DNS name.
	Domain string
	// Addresses of the enabled components' instances.
	Addresses []v1alpha1.AssignedAddress
	// Pool that DHCP leases from; invalid if DHCP is disabled or has no address.
	Pool ipam.Range
	// Dials are what workers dial, host:port, or the host alone while its port is not known.
	Dials []string
	// Anywhere are the components whose pods may run on any node, because nothing says which nodes have the VLAN. That is usual, and
	// correct if all nodes have it. So only preflight reports it, and not as a finding, which every simple cluster would have.
	Anywhere []string
}

// OutlookOf returns an Infra's Outlook; false if the Infra lacks a permission or a valid subnet.
func OutlookOf(in input.Input) (Outlook, bool) {
	if len(permission.Check(in)) > 0 || len(check.Subnet(in)) > 0 {
		return Outlook{}, false
	}
	v := stages(in)
	o := Outlook{Dials: v.Table.Dials()}
	if len(check.Misnamed(v)) == 0 {
		o.Domain = v.Domain()
	}
	if len(v.Selecting()) == 0 {
		o.Anywhere = v.PlacedAnywhere()
	}
	for _, c := range component.All {
		if v.Address(c.Name).IsValid() && c.Wanted(in.Infra.Spec.InfraComponents).Enabled {
			o.Addresses = append(o.Addresses, v.Told(c.Name)...)
		}
	}
	if input.Enabled(in.Infra.Spec.InfraComponents.DHCP.Enabled) && v.Address(component.DHCP).IsValid() {
		o.Pool = v.Assigned.Pool
	}
	return o, true
}
