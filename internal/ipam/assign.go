package ipam

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/finding"
)

// Request is what is known before addresses are assigned.
type Request struct {
	CIDR    netip.Prefix
	Gateway netip.Addr
	// Enabled components. One that is switched off keeps its address if there is room.
	Enabled map[component.Name]bool
	// Written by the user; these win.
	Written map[component.Name]netip.Addr
	// Given earlier; these never move.
	Given map[component.Name]netip.Addr
	// WrittenPool and GivenPool likewise.
	WrittenPool, GivenPool Range
	// Taken are addresses that are neither allocated nor leased.
	Taken []Taken
}

// Taken are addresses that belong to others: reservations, excluded ranges, the NAD's own IPAM, neighbours.
type Taken struct {
	Range
	// By says whose they are, in words for a message. Empty: no new address is taken from them, but what the user wrote or was given
	// earlier may be among them.
	By string
	// But is a component that may have them nevertheless.
	But component.Name
	// Reserved: the DHCP server leases them to their clients, so they are not excluded from its pool.
	Reserved bool
	// Neighbour: another Infra has them; nothing that the user writes in this one frees them.
	Neighbour bool
}

// Assignment is every address of one Infra.
type Assignment struct {
	Addresses map[component.Name]netip.Addr
	// Spare addresses are kept free for second instances, where there are none.
	Spare []netip.Addr
	// Pool is what DHCP leases from, except Excluded.
	Pool Range
	// Excluded are the parts of the pool that are never leased.
	Excluded []Range
	// Findings say what is wrong with what the user wrote.
	Findings []finding.Finding
}

// spares are for one more instance of each component.
const spares = 3

// Assign chooses addresses: the written ones, or else those given earlier, or else the lowest free. The pool follows the last.
func Assign(r Request) Assignment {
	a := begin(r)
	a.checkPool()
	a.place()
	a.allocate(spares)
	a.pool()
	return a.out
}

// Spare is what Assign would keep free if others had addresses too. These can be many, so they come sorted, as a Set.
func Spare(r Request, others Set) []netip.Addr {
	a := begin(r, others)
	a.place()
	a.allocate(spares)
	for _, c := range component.Seconds() { // one that is about to be given
		if at, given := a.out.Addresses[c]; given && at != r.Given[c] {
			a.out.Spare = append(a.out.Spare, at)
		}
	}
	return a.out.Spare
}

// instances are all that may have an address. A second one that is not wanted has none.
func (r Request) instances() []component.Name {
	return append(component.Names(), slices.DeleteFunc(component.Seconds(), func(c component.Name) bool { return !r.Enabled[c] })...)
}

type assigner struct {
	Request
	usable Range
	taken  []Set      // Request.Taken, and others'
	last   netip.Addr // highest address that was allocated
	// offered are the free addresses that findings suggest, each only once: a user may follow several findings together.
	offered []netip.Addr
	out     Assignment
}

func begin(r Request, others ...Set) *assigner {
	return &assigner{Request: r, usable: Usable(r.CIDR), taken: append(others, r.taken()), out: Assignment{Addresses: map[component.Name]netip.Addr{}}}
}

func (r Request) taken() Set {
	var all []Range
	for _, t := range r.Taken {
		all = append(all, t.Range)
	}
	return Merge(all)
}

func (a *assigner) find(f finding.Finding) { a.out.Findings = append(a.out.Findings, f) }

func refuse(reason, field string) finding.Builder {
	return finding.Refuse("Accepted", reason).At(field)
}

// The fields of an Infra that determine addresses.
const (
	FieldCIDR  = "spec.networkConfig.cidr"
	FieldStart = "spec.infraComponents.dhcp.rangeStart"
	FieldEnd   = "spec.infraComponents.dhcp.rangeEnd"
)

// derived removes the pool from the spec, so that it is derived.
var derived = finding.Values{FieldStart: nil, FieldEnd: nil}

// place takes the addresses that were written or given earlier.
func (a *assigner) place() {
	for _, c := range a.instances() {
		at, written := a.Written[c], true
		if !at.IsValid() {
			at, written = a.Given[c], false
		}
		if !at.IsValid() {
			continue
		}
		if why := a.unfit(c, at); why != "" && a.Enabled[c] {
			field, _ := serverIP(c, nil)
			whose := field
			if !written {
				whose = "the address of " + titled(c)
			}
			a.find(a.moved(c, written).Say("%s %s %s; %s", whose, at, why, a.remedy(field, written)))
			if free, ok := a.free(); ok {
				a.offered = append(a.offered, free)
			}
		}
		a.out.Addresses[c] = at
	}
}

// moved begins a finding: this component needs another address.
func (a *assigner) moved(c component.Name, written bool) finding.Builder {
	free, ok := a.free()
	field, value := serverIP(c, free.String())
	path := "spec.infraComponents." + field
	if !ok && !written {
		return refuse("AddressInUse", path)
	}
	if !ok {
		return refuse("AddressInUse", path).Set(finding.Values{path: nil})
	}
	return refuse("AddressInUse", path).Set(finding.Values{path: value})
}

// unfit says why a component cannot have an address.
func (a *assigner) unfit(who component.Name, at netip.Addr) string {
	if !a.usable.Contains(at) {
		return fmt.Sprintf("is not usable in %s, which has %s", a.CIDR, a.usable)
	}
	for _, c := range a.instances() {
		if a.out.Addresses[c] == at {
			return "is also the address of " + titled(c)
		}
	}
	if at == a.Gateway {
		return "is networkConfig.gateway"
	}
	for _, t := range a.Taken {
		if t.By != "" && t.But != who && t.Contains(at) {
			return "is already used by " + t.By
		}
	}
	return ""
}

// allocate assigns the lowest free addresses to components without one, then keeps spares free. In a small network, spares and the
// addresses of disabled components give way if otherwise no pool would be left.
func (a *assigner) allocate(spare int) {
	var optional []component.Name
	for _, c := range component.Names() {
		switch {
		case a.out.Addresses[c].IsValid():
		case a.Enabled[c]:
			a.give(c)
		default:
			optional = append(optional, c)
		}
	}
	for _, c := range component.Names() {
		if !a.Enabled[c.Second()] {
			continue
		}
		a.giveSecond(c)
		if a.out.Addresses[c.Second()].IsValid() {
			spare--
		}
	}
	for _, c := range optional {
		if free, ok := a.roomy(); ok {
			a.take(free)
			a.out.Addresses[c] = free
		}
	}
	for range spare {
		if free, ok := a.roomy(); ok {
			a.take(free)
			a.out.Spare = append(a.out.Spare, free)
		}
	}
}

func (a *assigner) give(c component.Name) {
	free, ok := a.free()
	if !ok {
		a.find(a.crowded("NoFreeAddress").Say("networkConfig.cidr %s has no free address for %s; %s", a.CIDR, c, a.roomFor()))
		return
	}
	a.take(free)
	a.out.Addresses[c] = free
}

// giveSecond gives a component's second instance an address, if there is room. Beside a first one that was chosen by users or earlier, that is
// if possible the next above: nobody chose this one, and the lowest addresses are often those of routers that nothing here tells of.
func (a *assigner) giveSecond(c component.Name) {
	if a.out.Addresses[c.Second()].IsValid() {
		return
	}
	if first := cmp.Or(a.Written[c], a.Given[c]); first.IsValid() {
		if free, ok := a.roomy(Range{a.usable.First, first}); ok {
			a.out.Addresses[c.Second()] = free
			return
		}
	}
	if free, ok := a.roomy(); ok {
		a.take(free)
		a.out.Addresses[c.Second()] = free
	}
}

// roomFor says how to get an address for another component.
func (a *assigner) roomFor() string {
	alone := *a
	alone.Taken = slices.DeleteFunc(slices.Clone(a.Taken), func(t Taken) bool { return t.Neighbour })
	alone.taken = []Set{alone.Request.taken()}
	if _, ok := alone.free(); ok {
		return "another Infra on this VLAN leases or uses the rest; widen this one beyond it, or shrink the range from dhcp.rangeStart to rangeEnd of the other"
	}
	return "widen it, or shrink the range from dhcp.rangeStart to rangeEnd or dhcp.excludeRanges"
}

// crowded begins a finding: the network has too little room. A written pool could instead be left to be derived.
func (a *assigner) crowded(reason string) finding.Builder {
	if a.WrittenPool.First.IsValid() {
		return refuse(reason, FieldStart).Set(derived)
	}
	return refuse(reason, FieldCIDR)
}

func (a *assigner) take(at netip.Addr) {
	if !a.last.IsValid() || a.last.Less(at) {
		a.last = at
	}
}

// roomy is a free address outside these ranges that leaves another one for the pool.
func (a *assigner) roomy(but ...Range) (netip.Addr, bool) {
	free, ok := a.beside(append(but, a.grownPool())...)
	if !ok || a.fixedPool().IsValid() {
		return free, ok
	}
	_, another := a.beside(a.grownPool(), Single(free))
	return free, another
}

func (a *assigner) free() (netip.Addr, bool) { return a.beside() }

// beside is the lowest address that a component can get outside these further ranges. It is never in a fixed pool.
func (a *assigner) beside(more ...Range) (netip.Addr, bool) {
	blocked := append(append(a.ours(), a.fixedPool()), more...)
	for _, offered := range a.offered {
		blocked = append(blocked, Single(offered))
	}
	at := a.usable.First
	for from := (netip.Addr{}); from != at; {
		from = at
		for _, s := range a.taken {
			at = s.past(at)
		}
		for _, r := range blocked {
			at = Set{r}.past(at)
		}
	}
	return at, a.usable.Contains(at)
}

// ours are the gateway, and every component's and spare address.
func (a *assigner) ours() []Range {
	ours := []Range{Single(a.Gateway)}
	for _, c := range a.instances() {
		ours = append(ours, Single(a.out.Addresses[c]))
	}
	for _, s := range a.out.Spare {
		ours = append(ours, Single(s))
	}
	return ours
}
