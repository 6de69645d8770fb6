package picture

import (
	"net/netip"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/diagnose"
)

// mostAddresses is up to how many addresses of a pool are drawn one by one.
const mostAddresses = 1024

// Use is what an address is used for.
type Use string

// The uses of an address of the pool. One that was given back, or ran out, is free.
const (
	Free     Use = "free"
	Leased   Use = "leased"
	Declined Use = "declined" // its client found another host there
	Reserved Use = "reserved" // for a client that has not leased it
)

// Pool is what DHCP leases from.
type Pool struct {
	// Off is why there is none.
	Off         string
	First, Last string
	// Size is how many addresses can be leased.
	Size  int
	Count map[Use]int
	// Addresses one by one; none if there are more than can be drawn.
	Addresses []Address
	// Ends counts the leases by the time that is left until they end, if they are not renewed.
	Ends []Span
}

// Address of a pool, with the name of who has it.
type Address struct {
	IP, Of string
	Use    Use
}

// Span is a part of the lease time, with the leases that end in it.
type Span struct {
	Until time.Duration
	Count int
}

// spans is into how many parts the lease time is divided.
const spans = 8

// Bar of a Span, whose length is relative to the longest.
type Bar struct {
	Until          string
	Count, Percent int
}

// Bars of the spans; none if no lease ends.
func (p Pool) Bars() (all []Bar) {
	most := 0
	for _, s := range p.Ends {
		most = max(most, s.Count)
	}
	for _, s := range p.Ends {
		if most > 0 {
			all = append(all, Bar{duration.HumanDuration(s.Until), s.Count, 100 * s.Count / most})
		}
	}
	return all
}

func pool(f diagnose.Facts) Pool {
	switch {
	case f.DHCP.Unread != "":
		return Pool{Off: f.DHCP.Unread}
	case f.DHCP.Is == nil:
		return Pool{Off: "there is no DHCPServer"}
	case f.Leases.Unread != "":
		return Pool{Off: f.Leases.Unread}
	}
	d := f.DHCP.Is
	p := Pool{First: string(d.Spec.LeaseConfig.RangeStart), Last: string(d.Spec.LeaseConfig.RangeEnd), Size: int(d.Status.PoolSize), Count: map[Use]int{}}
	of := map[string]Address{}
	for _, r := range d.Spec.Reservations {
		of[string(r.IP)] = Address{string(r.IP), r.Hostname, Reserved}
	}
	for i := range f.Leases.Is {
		l := f.Leases.Is[i].Spec
		switch {
		case !f.Now.Before(l.DurableUntilTime.Time):
		case l.State == v1alpha1.LeaseBound:
			of[string(l.IP)] = Address{string(l.IP), l.HolderName(), Leased}
		case l.State == v1alpha1.LeaseDeclined:
			of[string(l.IP)] = Address{string(l.IP), l.HolderName(), Declined}
		}
	}
	within := roomOf(d.Spec)
	for ip, a := range of {
		if at, err := netip.ParseAddr(ip); err == nil && within.has(at) {
			p.Count[a.Use]++
		}
	}
	p.Addresses, p.Ends = within.addresses(of), ends(d.Spec.LeaseConfig.LeaseTime.Duration, f)
	return p
}

// stretch of addresses; that of what is no address has none.
type stretch struct{ first, last netip.Addr }

func stretchOf(start, end v1alpha1.IPv4Address) stretch {
	first, err := netip.ParseAddr(string(start))
	last, err2 := netip.ParseAddr(string(end))
	if err != nil || err2 != nil {
		return stretch{}
	}
	return stretch{first, last}
}

func (s stretch) has(at netip.Addr) bool {
	return s.first.IsValid() && s.first.Compare(at) <= 0 && at.Compare(s.last) <= 0
}

// room is what a pool has, but for what is excluded.
type room struct {
	of       stretch
	excluded []stretch
}

func roomOf(spec v1alpha1.DHCPServerSpec) room {
	r := room{of: stretchOf(spec.LeaseConfig.RangeStart, spec.LeaseConfig.RangeEnd)}
	for _, e := range spec.ExcludeRanges {
		r.excluded = append(r.excluded, stretchOf(e.Start, e.End))
	}
	return r
}

func (r room) has(at netip.Addr) bool {
	return r.of.has(at) && !slices.ContainsFunc(r.excluded, func(s stretch) bool { return s.has(at) })
}

// addresses are all of the pool, or none.
func (r room) addresses(of map[string]Address) (all []Address) {
	for at := r.of.first; r.of.has(at); at = at.Next() {
		if len(all) == mostAddresses {
			return nil
		}
		if !r.has(at) {
			continue
		}
		a, is := of[at.String()]
		if !is {
			a = Address{IP: at.String(), Use: Free}
		}
		all = append(all, a)
	}
	return all
}

// ends counts what is bound; a lease that was imported may end after more than the lease time, and is in the last span.
func ends(lease time.Duration, f diagnose.Facts) []Span {
	if lease <= 0 {
		return nil
	}
	all := make([]Span, spans)
	for i := range all {
		all[i].Until = lease * time.Duration(i+1) / spans
	}
	for i := range f.Leases.Is {
		l := f.Leases.Is[i].Spec
		if left := diagnose.LeaseEnd(l, f.Now).Sub(f.Now); l.State == v1alpha1.LeaseBound && left > 0 {
			all[int(min(left, lease-1)*spans/lease)].Count++
		}
	}
	return all
}
