// Package ipam assigns the addresses of a VLAN: what was assigned stays, new addresses come from the low end, the pool follows, and what
// belongs to others is left alone.
package ipam

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
)

// Range is a range of addresses of one family, both ends included.
type Range struct{ First, Last netip.Addr }

// Single is a range of one address.
func Single(a netip.Addr) Range { return Range{a, a} }

// Usable is what hosts of a network may use: in IPv4 all but the network and broadcast addresses, in IPv6 all but the subnet-router anycast
// address (RFC 4291 §2.6.1); all of a /31, /32, /127 and /128 (RFC 3021, RFC 6164).
func Usable(p netip.Prefix) Range {
	if !p.IsValid() {
		return Range{}
	}
	p = p.Masked()
	r := Range{p.Addr(), lastOf(p)}
	if p.Addr().BitLen()-p.Bits() < 2 {
		return r
	}
	r.First = r.First.Next()
	if p.Addr().Is4() {
		r.Last = r.Last.Prev()
	}
	return r
}

// Whole is every address of a network.
func Whole(p netip.Prefix) Range { return Range{p.Masked().Addr(), lastOf(p.Masked())} }

func lastOf(p netip.Prefix) netip.Addr {
	bytes := p.Addr().AsSlice()
	for bit := p.Bits(); bit < len(bytes)*8; bit++ {
		bytes[bit/8] |= 0x80 >> (bit % 8)
	}
	last, _ := netip.AddrFromSlice(bytes)
	return last
}

// IsValid says whether the range has an address in it.
func (r Range) IsValid() bool {
	return r.First.IsValid() && r.Last.IsValid() && r.First.BitLen() == r.Last.BitLen() && r.First.Compare(r.Last) <= 0
}

// Contains says whether a is in the range.
func (r Range) Contains(a netip.Addr) bool {
	return r.IsValid() && a.BitLen() == r.First.BitLen() && r.First.Compare(a) <= 0 && a.Compare(r.Last) <= 0
}

// Overlaps says whether the two have an address in common.
func (r Range) Overlaps(o Range) bool {
	return r.IsValid() && o.IsValid() && r.First.BitLen() == o.First.BitLen() && r.First.Compare(o.Last) <= 0 && o.First.Compare(r.Last) <= 0
}

// Intersect is what the two have in common; not valid if they have nothing.
func (r Range) Intersect(o Range) Range {
	if !r.Overlaps(o) {
		return Range{}
	}
	return Range{latest(r.First, o.First), earliest(r.Last, o.Last)}
}

// String is first–last, or the one address.
func (r Range) String() string {
	if r.First == r.Last {
		return r.First.String()
	}
	return fmt.Sprintf("%s–%s", r.First, r.Last)
}

// Merge joins ranges that touch or overlap and sorts them, so that equal sets are equal lists.
func Merge(ranges []Range) []Range {
	sorted := slices.DeleteFunc(slices.Clone(ranges), func(r Range) bool { return !r.IsValid() })
	slices.SortFunc(sorted, func(a, b Range) int {
		return cmp.Or(a.First.Compare(b.First), a.Last.Compare(b.Last))
	})
	var merged []Range
	for _, r := range sorted {
		if n := len(merged); n > 0 && touches(merged[n-1], r) {
			merged[n-1].Last = latest(merged[n-1].Last, r.Last)
			continue
		}
		merged = append(merged, r)
	}
	return merged
}

// Set is a list of ranges as Merge returns them: sorted, and no two touch.
type Set []Range

// Add adds a range to the set.
func (s *Set) Add(r Range) {
	if !r.IsValid() {
		return
	}
	from, _ := slices.BinarySearchFunc(*s, r, func(e, r Range) int {
		if e.Last.Less(r.First) && !touches(e, r) {
			return -1
		}
		return 1
	})
	to := from
	for ; to < len(*s) && (touches((*s)[to], r) || touches(r, (*s)[to])); to++ {
		r = Range{earliest(r.First, (*s)[to].First), latest(r.Last, (*s)[to].Last)}
	}
	*s = slices.Replace(*s, from, to, r)
}

// past is the first address at or after the given one that is not in the set; not valid after the last address of the family.
func (s Set) past(at netip.Addr) netip.Addr {
	i, _ := slices.BinarySearchFunc(s, at, func(r Range, at netip.Addr) int { return r.Last.Compare(at) })
	if i < len(s) && s[i].Contains(at) {
		return s[i].Last.Next()
	}
	return at
}

// Without is what is left of a range after cutting others out.
func Without(r Range, cut []Range) []Range {
	var left []Range
	for _, c := range Merge(cut) {
		if !c.Overlaps(r) {
			continue
		}
		if r.First.Less(c.First) {
			left = append(left, Range{r.First, c.First.Prev()})
		}
		r.First = c.Last.Next()
	}
	if r.IsValid() {
		left = append(left, r)
	}
	return left
}

func touches(a, b Range) bool { return a.Overlaps(b) || a.Last.Next() == b.First }

func latest(a, b netip.Addr) netip.Addr {
	if a.Less(b) {
		return b
	}
	return a
}

func earliest(a, b netip.Addr) netip.Addr {
	if b.Less(a) {
		return b
	}
	return a
}

// FreeNetwork is the first private network (RFC 1918, RFC 4193) of this length, and of the address family of the first one taken, that
// overlaps none of those taken.
func FreeNetwork(bits int, taken ...netip.Prefix) (netip.Prefix, bool) {
	private := []string{"192.168.0.0/16", "172.16.0.0/12", "10.0.0.0/8"}
	if taken[0].Addr().Is6() {
		private = []string{"fd00::/8"}
	}
	for _, text := range private {
		within := netip.MustParsePrefix(text)
		if free, ok := freeIn(within, bits, taken); ok {
			return free, true
		}
	}
	return netip.Prefix{}, false
}

func freeIn(within netip.Prefix, bits int, taken []netip.Prefix) (netip.Prefix, bool) {
	if bits < within.Bits() {
		return netip.Prefix{}, false
	}
	for at := within.Addr(); within.Contains(at); {
		candidate := netip.PrefixFrom(at, bits)
		inTheWay := slices.IndexFunc(taken, candidate.Overlaps)
		if inTheWay < 0 {
			return candidate, true
		}
		next := latest(lastOf(candidate), lastOf(taken[inTheWay])).Next()
		if at = netip.PrefixFrom(next, bits).Masked().Addr(); at.Less(next) {
			at = lastOf(netip.PrefixFrom(at, bits)).Next()
		}
	}
	return netip.Prefix{}, false
}

// Rebase is the address with the same host part in another network.
func Rebase(a netip.Addr, to netip.Prefix) netip.Addr {
	bytes, network := a.AsSlice(), to.Masked().Addr().AsSlice()
	for bit := range to.Bits() {
		mask := byte(0x80) >> (bit % 8)
		bytes[bit/8] = bytes[bit/8]&^mask | network[bit/8]&mask
	}
	moved, _ := netip.AddrFromSlice(bytes)
	return moved
}
