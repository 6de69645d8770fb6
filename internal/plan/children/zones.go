package children

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/valid"
)

// mostDeniedZones leaves room for the cluster's own domain.
const mostDeniedZones = valid.MostDeniedZones - 4

// deniedZones are the management cluster's domain and the reverse zones of its networks. DNS hides them from the VLAN.
func deniedZones(s input.Settings) []v1alpha1.DNSName {
	var reverse []string
	for _, p := range s.ClusterNetworks() {
		reverse = append(reverse, reverseZones(p)...)
	}
	var zones []v1alpha1.DNSName
	if s.ClusterDomain != "" {
		zones = append(zones, v1alpha1.DNSName(s.ClusterDomain))
	}
	for _, z := range fitting(reverse) {
		zones = append(zones, v1alpha1.DNSName(z))
	}
	slices.Sort(zones)
	return zones
}

// fitting reduces zones to mostDeniedZones by replacing them with the parents that they share. There is one per node if the pod networks
// are read from the Nodes.
func fitting(zones []string) []string {
	for zones = outermost(zones); len(zones) > mostDeniedZones; {
		zones = outermost(append(zones, sharedParent(zones)))
	}
	return zones
}

// outermost drops every zone that lies in another.
func outermost(zones []string) []string {
	known := map[string]bool{}
	for _, z := range zones {
		known[z] = true
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(known)), func(z string) bool {
		for z = parent(z); z != "" && !known[z]; z = parent(z) {
		}
		return z != ""
	})
}

// sharedParent is, in the address family with more zones, the parent with the most labels; of several, that of the most zones.
func sharedParent(zones []string) string {
	inFamily, below := map[bool]int{}, map[string]int{}
	for _, z := range zones {
		inFamily[ofIPv4(z)]++
		below[parent(z)]++
	}
	return slices.MaxFunc(slices.Sorted(maps.Keys(below)), func(a, b string) int {
		return cmp.Or(cmp.Compare(inFamily[ofIPv4(a)], inFamily[ofIPv4(b)]), cmp.Compare(strings.Count(a, "."), strings.Count(b, ".")), cmp.Compare(below[a], below[b]))
	})
}

func ofIPv4(zone string) bool { return strings.HasSuffix(zone, "in-addr.arpa") }

func parent(zone string) string {
	_, above, _ := strings.Cut(zone, ".")
	return above
}

// mostReverseZones bounds the zones of one network; a network that needs more is denied with its whole parent.
const mostReverseZones = 16

// reverseZones cover a network: reverse DNS is cut at octets (RFC 1035 §3.5) or, in IPv6, at nibbles (RFC 3596 §2.5), so
// a prefix in between becomes several zones.
func reverseZones(p netip.Prefix) []string {
	width, p := 4, p.Masked()
	if p.Addr().Is4() {
		width = 8
	}
	bits := (p.Bits() + width - 1) / width * width
	if bits-p.Bits() > 4 {
		bits -= width
		p = netip.PrefixFrom(p.Addr(), bits).Masked()
	}
	var zones []string
	for at := p.Addr(); p.Contains(at) && len(zones) < mostReverseZones; at = following(at, bits) {
		zones = append(zones, reverseZone(at, bits))
		if bits == 0 {
			break
		}
	}
	return zones
}

// following is the first address of the next network of the same length; invalid after the last.
func following(a netip.Addr, bits int) netip.Addr {
	b := a.AsSlice()
	for i, add := (bits-1)/8, byte(1)<<((8-bits%8)%8); i >= 0; i, add = i-1, 1 {
		if b[i] += add; b[i] >= add {
			next, _ := netip.AddrFromSlice(b)
			return next
		}
	}
	return netip.Addr{}
}

func reverseZone(a netip.Addr, bits int) string {
	format, suffix, width := "%d", "in-addr.arpa", 8
	if a.Is6() {
		format, suffix, width = "%x", "ip6.arpa", 4
	}
	labels := []string{suffix}
	for bit := 0; bit < bits; bit += width {
		octet := a.AsSlice()[bit/8]
		if width == 4 && bit%8 == 0 {
			octet >>= 4
		}
		if width == 4 {
			octet &= 0xf
		}
		labels = append([]string{fmt.Sprintf(format, octet)}, labels...)
	}
	return strings.Join(labels, ".")
}
