package valid

import (
	"net/netip"
	"slices"
)

// noSubnet are networks whose addresses no client accepts (RFC 6890).
var noSubnet = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("224.0.0.0/3"),
	netip.MustParsePrefix("::/8"), netip.MustParsePrefix("fe80::/10"), netip.MustParsePrefix("ff00::/8"),
}

// Subnet says whether a daemon can serve a network. The loopback network counts: it is for trying a daemon out.
func Subnet(p netip.Prefix) bool {
	return p.IsValid() && p.Bits() >= 8 && !slices.ContainsFunc(noSubnet, p.Overlaps)
}

// VLAN says whether a VLAN can have this network.
func VLAN(p netip.Prefix) bool { return Subnet(p) && !p.Addr().IsLoopback() }

// Address parses an address of either family, without a zone: that means nothing to another machine.
func Address(text string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(text)
	if err != nil || a.Zone() != "" {
		return netip.Addr{}, false
	}
	return a.Unmap(), true
}

// Canonical parses an address in the one form that a schema takes, so that addresses can be compared as texts.
func Canonical(text string) (netip.Addr, bool) {
	a, ok := Address(text)
	return a, ok && a.String() == text
}

// Target parses an address and port that a proxy can connect to.
func Target(text string) (netip.AddrPort, bool) {
	at, err := netip.ParseAddrPort(text)
	if err != nil || at.Port() == 0 || at.Addr().Zone() != "" {
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port()), true
}

// Server says whether a resolver or time server can have this address.
func Server(a netip.Addr) bool { return a.IsGlobalUnicast() || a.IsLinkLocalUnicast() }
