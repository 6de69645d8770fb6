// Package unroutable knows the addresses of a process's own machine, its link, and a cloud's metadata service. No hosted cluster, no Node
// and no target of our proxies may have one of these.
package unroutable

import (
	"net/netip"
	"slices"
)

// metadata are services outside the link-local networks: Alibaba's, Azure's, Oracle's, Amazon's two (EC2, EKS Pod Identity), Google's,
// Scaleway's.
var metadata = []netip.Addr{
	netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("168.63.129.16"),
	netip.MustParseAddr("192.0.0.192"), netip.MustParseAddr("fd00:ec2::254"),
	netip.MustParseAddr("fd00:ec2::23"), netip.MustParseAddr("fd20:ce::254"), netip.MustParseAddr("fd00:42::42"),
}

// carriers are IPv6 networks whose addresses embed an IPv4 address after some bytes: IPv4-compatible (RFC 4291 §2.5.5.1), IPv4-translated
// (RFC 2765 §2.1), NAT64 (RFC 6052 §2.1), 6to4 (RFC 3056 §2). Is unmaps IPv4-mapped ones before.
var carriers = []struct {
	netip.Prefix
	after int
}{
	{netip.MustParsePrefix("::/96"), 12}, {netip.MustParsePrefix("::ffff:0:0:0/96"), 12}, {netip.MustParsePrefix("64:ff9b::/96"), 12}, {netip.MustParsePrefix("2002::/16"), 2},
}

// Is says whether an address is this machine, something on its link, or a cloud's metadata service.
func Is(ip netip.Addr) bool {
	if ip.Zone() != "" {
		return true
	}
	ip = ip.Unmap()
	for _, c := range carriers {
		if c.Contains(ip) {
			bytes := ip.As16()
			if Is(netip.AddrFrom4([4]byte(bytes[c.after : c.after+4]))) {
				return true
			}
		}
	}
	return ip.IsLoopback() || ip.IsUnspecified() || ip.IsMulticast() || ip.IsLinkLocalUnicast() ||
		ip.Is4() && (ip.As4()[0] == 0 || ip.As4()[0] >= 240) || slices.Contains(metadata, ip)
}
