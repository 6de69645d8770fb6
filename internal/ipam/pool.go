package ipam

import (
	"fmt"
	"math/big"
	"net/netip"

	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/finding"
)

func (a *assigner) fixedPool() Range {
	if a.WrittenPool.First.IsValid() {
		return a.WrittenPool
	}
	return a.GivenPool
}

// grownPool is the fixed pool; a derived one extends to the end of a network that was widened. Its first address stays: the servers are
// below it.
func (a *assigner) grownPool() Range {
	pool := a.fixedPool()
	if pool.First.IsValid() && !a.WrittenPool.First.IsValid() {
		pool.Last = a.usable.Last
	}
	return pool
}

func (a *assigner) checkPool() {
	p := a.WrittenPool
	if p.First.IsValid() != p.Last.IsValid() {
		a.find(refuse("RangeOutsideCIDR", FieldStart).Set(derived).Say("only one of dhcp.rangeStart and rangeEnd is set; set both, or neither"))
		return
	}
	if !p.First.IsValid() {
		return
	}
	found := len(a.out.Findings)
	for _, end := range []struct {
		field, path string
		at          netip.Addr
	}{{"rangeStart", FieldStart, p.First}, {"rangeEnd", FieldEnd, p.Last}} {
		if !a.usable.Contains(end.at) {
			a.find(refuse("RangeOutsideCIDR", end.path).Set(derived).Say("dhcp.%s %s lies outside %s; use an address from %s to %s", end.field, end.at, a.CIDR, a.usable.First, a.usable.Last))
		}
	}
	if p.Last.Less(p.First) && len(a.out.Findings) == found { // if they are swapped, an address outside stays outside
		a.find(refuse("RangeReversed", FieldEnd).Set(finding.Values{FieldStart: p.Last.String(), FieldEnd: p.First.String()}).
			Say("dhcp.rangeEnd %s lies before rangeStart %s; swap them", p.Last, p.First))
	}
}

// pool is the written one, or else the one given earlier, grown, or else everything above the allocated addresses.
func (a *assigner) pool() {
	if !a.Enabled[component.DHCP] {
		return
	}
	pool := a.grownPool()
	if !pool.First.IsValid() {
		pool = a.usable
		if a.last.IsValid() {
			pool.First = a.last.Next()
		} else if first := Set(Merge(a.kept())).past(pool.First); pool.Contains(first) { // it begins as it did when these were allocated
			pool.First = first
		}
	}
	var excluded []Range
	for _, r := range a.kept() {
		excluded = append(excluded, r.Intersect(pool))
	}
	a.out.Excluded = Merge(excluded)
	if len(a.out.Findings) > 0 {
		return
	}
	if !pool.Contains(Set(a.out.Excluded).past(pool.First)) {
		a.find(a.crowded("PoolEmpty").Say("%s", a.emptyPool(pool)))
		return
	}
	a.out.Pool = pool
}

func (a *assigner) emptyPool(pool Range) string {
	if a.WrittenPool.First.IsValid() {
		return fmt.Sprintf("the range from dhcp.rangeStart to rangeEnd (%s) has no address left to lease; extend it, or exclude fewer addresses (dhcp.excludeRanges)", pool)
	}
	return fmt.Sprintf("no address of networkConfig.cidr %s is left for DHCP to lease; widen it, set dhcp.rangeStart and rangeEnd, or exclude fewer addresses (dhcp.excludeRanges)", a.CIDR)
}

// kept is everything that must not be leased.
func (a *assigner) kept() []Range {
	kept := a.ours()
	for _, t := range a.Taken {
		if !t.Reserved {
			kept = append(kept, t.Range)
		}
	}
	return kept
}

// Size is how many addresses of the pool can be leased, at most what the status field can hold.
func (a Assignment) Size() int32 {
	const most = 1<<31 - 1
	size := count(a.Pool)
	for _, r := range a.Excluded {
		size.Sub(size, count(r))
	}
	if !size.IsInt64() || size.Int64() > most {
		return most
	}
	return int32(size.Int64())
}

func count(r Range) *big.Int {
	if !r.IsValid() {
		return new(big.Int)
	}
	n := new(big.Int).Sub(number(r.Last), number(r.First))
	return n.Add(n, big.NewInt(1))
}

func number(a netip.Addr) *big.Int { return new(big.Int).SetBytes(a.AsSlice()) }
