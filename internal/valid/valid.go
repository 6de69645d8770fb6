// Package valid has the checks that admission, planning and daemons share.
package valid

import (
	"net/netip"
)

// Subnet says whether a VLAN can have a network, as the schema of v1alpha1.Subnet does.
func Subnet(cidr netip.Prefix) bool {
	at := cidr.Addr()
	return cidr.Bits() >= 8 && at.IsGlobalUnicast() && !at.Is4In6() && (at.Is6() || at.As4()[0] < 240)
}
