// Package address is the stage that assigns addresses of the VLAN.
package address

import (
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/ipam"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/vlan"
)

// Assign gives an Infra free addresses of its VLAN. Addresses that were given earlier do not change.
func Assign(j vlan.Joined, table endpoint.Table) Addressed {
	a := Addressed{Joined: j, Table: table, Others: othersOf(j)}
	a.Assigned = ipam.Assign(a.request())
	if input.Enabled(j.Infra.Spec.InfraComponents.Proxy.Enabled) {
		a.CapturedAddresses, a.NotCaptured = table.CapturedAddresses(endpoint.VLAN{CIDR: a.CIDR, VIP: a.Address(component.Proxy), Cluster: j.Settings.ClusterNetworks()})
	}
	return a
}
