package plan

import (
	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/ipam"
)

// Outlook is what an Infra will be, as far as that is known before its control plane is there.
type Outlook struct {
	// Domain of the hosted cluster; empty where it is not known, or is none.
	Domain string
	// Addresses of what is switched on.
	Addresses []v1alpha1.AssignedAddress
	// Pool that DHCP leases from; not valid where it does not.
	Pool ipam.Range
	// Dials are what workers dial, host:port, or the host alone while its port is not known.
	Dials []string
	// Anywhere are the components of which nothing says on which nodes their VLAN is, so that their pods go to any. That is usual,
	// and well where it is on all of them: it is told by preflight alone, and is no finding, which every simple cluster would have.
	Anywhere []string
}

// OutlookOf an Infra; false where it may not be, or has no network.
func OutlookOf(in Input) (Outlook, bool) {
	if len(Permitted(in)) > 0 || len(in.network()) > 0 {
		return Outlook{}, false
	}
	v := viewOf(in)
	o := Outlook{Dials: v.table.Dials()}
	if len(v.misnamed()) == 0 {
		o.Domain = v.domain
	}
	if len(v.selecting()) == 0 {
		o.Anywhere = v.placedAnywhere()
	}
	for _, component := range []ipam.Component{ipam.DHCP, ipam.DNS, ipam.Proxy} {
		if at := v.address(component); at.IsValid() && switchedOn(in.Infra.Spec.InfraComponents)[component] {
			o.Addresses = append(o.Addresses, v1alpha1.AssignedAddress{Component: string(component), IP: ip(at)})
		}
	}
	if enabled(in.Infra.Spec.InfraComponents.DHCP.Enabled) && v.address(ipam.DHCP).IsValid() {
		o.Pool = v.assigned.Pool
	}
	return o, true
}
