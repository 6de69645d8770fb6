// Package vlan is the stage that reads the network of an Infra's workers: how our pods join it, and which machines and other Infras are on
// it.
package vlan

import (
	"net/netip"

	"github.com/cldmnky/oooi/internal/plan/input"
)

// Joined is an Infra with the network that its workers are on.
type Joined struct {
	input.Input
	CIDR    netip.Prefix
	Gateway netip.Addr // invalid if the VLAN has none
	VLAN    Network
	// OnVLAN are the other Infras on it, the oldest first.
	OnVLAN []Neighbour
}

// Join reads the network of an Infra's workers, and finds who else is on it.
func Join(in input.Input) Joined {
	j := Joined{Input: in, VLAN: networkOf(in)}
	j.CIDR, j.Gateway = input.Network(in.Infra)
	j.OnVLAN = onSameLayer2(in, j.VLAN.Config)
	return j
}

// Side is a neighbour's own view of the VLAN; nothing of its control plane is read.
func (n Neighbour) Side() Joined {
	j := Joined{Input: input.Input{Infra: n.Infra, NAD: n.NAD, Children: n.Children}, VLAN: *n.VLAN}
	j.CIDR, j.Gateway = input.Network(n.Infra)
	return j
}

// MTU is the one that DHCP announces: the Infra's, or else the network's; 0 if neither has one.
func (j Joined) MTU() int32 {
	if written := j.Infra.Spec.NetworkConfig.MTU; written != 0 {
		return written
	}
	return j.VLAN.Config.MTU()
}
