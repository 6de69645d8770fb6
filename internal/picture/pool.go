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
			of[string(l.IP)] = Address{string(l.IP), nameOf(l), Leased}
		case l.State == v1alpha1.LeaseDeclined:
			of[string(l.IP)] = Address{string(l.IP), nameOf(l), Declined}
		}
	}
	for ip, a := range of {
		if at, err := netip.ParseAddr(ip); err == nil && inPool(d.Spec, at) {
			p.Count[a.Use]++
		}
	}
	p.Addresses, p.Ends = addresses(d.Spec, of), ends(d.Spec.LeaseConfig.LeaseTime.Duration, f)
	return p
}

func nameOf(l v1alpha1.DHCPLeaseSpec) string {
	if l.VMRef != nil {
		return string(l.VMRef.Name)
	}
	return l.Hostname
}

// addresses are all of the pool, or none.
func addresses(spec v1alpha1.DHCPServerSpec, of map[string]Address) (all []Address) {
	first, last, are := limits(spec.LeaseConfig.RangeStart, spec.LeaseConfig.RangeEnd)
	for at := first; are && at.Compare(last) <= 0; at = at.Next() {
		if len(all) == mostAddresses {
			return nil
		}
		if !inPool(spec, at) {
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

func inPool(spec v1alpha1.DHCPServerSpec, at netip.Addr) bool {
	return within(spec.LeaseConfig.RangeStart, spec.LeaseConfig.RangeEnd, at) &&
		!slices.ContainsFunc(spec.ExcludeRanges, func(r v1alpha1.AddressRange) bool { return within(r.Start, r.End, at) })
}

func within(start, end v1alpha1.IPv4Address, at netip.Addr) bool {
	first, last, are := limits(start, end)
	return are && first.Compare(at) <= 0 && at.Compare(last) <= 0
}

func limits(start, end v1alpha1.IPv4Address) (first, last netip.Addr, are bool) {
	first, err := netip.ParseAddr(string(start))
	last, err2 := netip.ParseAddr(string(end))
	return first, last, err == nil && err2 == nil
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
		end, err := time.Parse(time.RFC3339, l.ExpirationTime)
		if left := end.Sub(f.Now); err == nil && l.State == v1alpha1.LeaseBound && left > 0 {
			all[int(min(left, lease-1)*spans/lease)].Count++
		}
	}
	return all
}
