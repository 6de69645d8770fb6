package pool

import (
	"maps"
	"net/netip"
	"time"
)

// Addresses are probed ahead so that a new client does not wait for a probe.
const (
	// aheadMost are known to be free at a time: a thousand machines that start in one second find half of it done.
	aheadMost = 512
	// aheadAtOnce are asked for at a time: for three seconds each takes a place in the neighbour table of the node, where Linux has 1,024 as
	// it comes.
	aheadAtOnce = 256
	// aheadLasts is how long that nobody answered is remembered, half of it for some so that not all run out together. It bounds how old
	// the silence of a host may be that is too slow for the short probe, which every address gets before it is offered.
	aheadLasts = 2 * time.Minute
	// aheadSettles is how long the kernel goes on asking, three times, a second apart, and a probe listens. Until then the kernel asks nothing
	// else on our behalf.
	aheadSettles = 5 * time.Second
	// aheadLooks bounds a look for addresses that nobody asked for yet: everybody waits for it.
	aheadLooks = 4096
)

// ahead is an address that is being probed, or was, before there is a client for it.
type ahead struct {
	asked  time.Time
	lasts  time.Duration
	vacant bool // nobody answered
}

// ready says whether the probe tells something.
func (h ahead) ready(now time.Time) bool {
	age := now.Sub(h.asked)
	return h.vacant && age >= aheadSettles && age < h.lasts
}

// over says whether it tells nothing any more, or came to nothing.
func (h ahead) over(now time.Time) bool {
	age := now.Sub(h.asked)
	return age < 0 || age >= h.lasts || !h.vacant && age >= aheadSettles
}

// young says whether the server may have forgotten who has an address (dhcp-rules.md#lease-12).
func (t *Table) young(now time.Time) bool { return now.Sub(t.config.Born) < 2*t.config.LeaseTime }

// Ahead are the addresses to probe now, before there are clients for them. What is found is told by ProbedAhead.
func (t *Table) Ahead(now time.Time) (next []netip.Addr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.untaken == nil || now.IsZero() || !t.young(now) {
		clear(t.ahead)
		return nil
	}
	maps.DeleteFunc(t.ahead, func(_ netip.Addr, h ahead) bool { return h.over(now) })
	asking := 0
	for _, h := range t.ahead {
		if !h.vacant {
			asking++
		}
	}
	room, looks := min(aheadAtOnce-asking, aheadMost-len(t.ahead)), 0
	for ip := range t.untaken.from(t.nextAhead) {
		if looks++; len(next) >= room || looks > aheadLooks {
			break
		}
		at := t.untaken.place(ip)
		t.nextAhead = (at + 1) % t.untaken.size
		if _, known := t.ahead[ip]; !known && t.own(ip) {
			t.ahead[ip] = ahead{asked: now, lasts: aheadLasts/2 + time.Duration(spread(ip.String())%uint64(aheadLasts/2))}
			next = append(next, ip)
		}
	}
	return next
}

// ProbedAhead hears whether somebody answers at an address of Ahead. That may be a client of an earlier server: who comes for this very
// address is let in by a probe of its own, and all others are kept away.
func (t *Table) ProbedAhead(ip netip.Addr, answers bool, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h, waited := t.ahead[ip] // and nobody has the address by now
	switch {
	case waited && answers:
		t.avoided[ip] = avoidance{until: now.Add(avoidTime), ahead: true}
		t.refresh(ip)
	case waited:
		h.vacant = true
		t.ahead[ip] = h
	}
}

// nearestReady is the first address, from a place on, that was probed ahead.
func (t *Table) nearestReady(start uint64, now time.Time) (nearest netip.Addr, ok bool) {
	least := t.untaken.size
	for ip, h := range t.ahead {
		if away := (t.untaken.place(ip) + t.untaken.size - start) % t.untaken.size; away < least && h.ready(now) {
			nearest, least, ok = ip, away, true
		}
	}
	return nearest, ok
}

// mustProbe: who does not remember who may sit on an address asks (dhcp-rules.md#lease-12): a young server, and anyone before an
// address changes hands or that answered before somebody came for it.
func (t *Table) mustProbe(ip netip.Addr, a Ask) bool {
	r, known := t.records[ip]
	changesHands := known && r.Client != a.Client
	return (!known && (t.young(a.Now) || t.avoided[ip].ahead) || changesHands) && !t.offers[ip].vacant
}

// probe asks who answers at an address, and says nothing where it was asked in vain: the client has to ask again.
func (t *Table) probe(ip netip.Addr, a Ask) Decision {
	if a.Undecided[ip] {
		return silent("probe-undecided")
	}
	return Decision{Do: Probe, IP: ip, Record: t.records[ip], Again: t.offers[ip].ahead, Why: "fresh"}
}
