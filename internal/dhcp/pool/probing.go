package pool

import (
	"maps"
	"net/netip"
	"time"
)

// Addresses are probed ahead so that a new client does not wait for a probe.
const (
	// aheadMost bounds the addresses that are probed ahead: a thousand machines that start within one second find their probes done
	// (test/bench/run storm).
	aheadMost = 1280
	// aheadAtOnce bounds the probes under way: each takes an entry of the node's neighbour table for three seconds, and Linux has 1,024 by
	// default.
	aheadAtOnce = 256
	// aheadLasts bounds how long an address counts as vacant: by address from half of it up, so that not all run out together. It also bounds
	// how long a host stays unnoticed that is too slow for the short probe before the OFFER, or
	// that has none because too many are under way (link.Socket.Answers).
	aheadLasts = 4 * time.Minute
	// aheadSettles is how long the kernel's three ARP requests, a second apart, and a probe take; until then it sends no others for us.
	aheadSettles = 5 * time.Second
	// aheadLooks bounds the addresses that one search looks at, because all messages wait for it.
	aheadLooks = 4096
)

// ahead is the probe of an address for which there is no client yet.
type ahead struct {
	asked  time.Time
	lasts  time.Duration
	vacant bool // nobody answered
}

// ready says whether the probe heard nobody, and that still counts.
func (h ahead) ready(now time.Time) bool {
	age := now.Sub(h.asked)
	return h.vacant && age >= aheadSettles && age < h.lasts
}

// over says whether the result no longer counts, or the probe had none.
func (h ahead) over(now time.Time) bool {
	age := now.Sub(h.asked)
	return age < 0 || age >= h.lasts || !h.vacant && age >= aheadSettles
}

// young says whether the server may have forgotten who has an address (dhcp-rules.md#lease-12).
func (t *Table) young(now time.Time) bool { return now.Sub(t.config.Born) < 2*t.config.LeaseTime }

// Ahead returns the addresses to probe now, before there are clients for them. ProbedAhead takes the results.
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

// ProbedAhead notes whether a host answers at an address of Ahead. It may be a client of an earlier server: a client that requests this very
// address gets it after a probe of its own, and no other client does.
func (t *Table) ProbedAhead(ip netip.Addr, answers bool, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	h, waited := t.ahead[ip] // and the address is still free
	switch {
	case waited && answers:
		t.avoided[ip] = avoidance{until: now.Add(avoidTime), ahead: true}
		t.refresh(ip)
	case waited:
		h.vacant = true
		t.ahead[ip] = h
	}
}

// nearestReady is the first address, from index start on, that was found vacant ahead.
func (t *Table) nearestReady(start uint64, now time.Time) (nearest netip.Addr, ok bool) {
	least := t.untaken.size
	for ip, h := range t.ahead {
		if away := (t.untaken.place(ip) + t.untaken.size - start) % t.untaken.size; away < least && h.ready(now) {
			nearest, least, ok = ip, away, true
		}
	}
	return nearest, ok
}

// mustProbe says whether an address that was not found vacant must be probed (dhcp-rules.md#lease-12): it changes hands, its last holder found
// somebody there, or it has no record and the server is young or heard a host there ahead.
func (t *Table) mustProbe(ip netip.Addr, a Ask) bool {
	r, known := t.records[ip]
	changesHands := known && !mine(r, a)
	return (!known && (t.young(a.Now) || t.avoided[ip].ahead) || changesHands) && !t.offers[ip].vacant
}

// probe has an address probed. After a probe without a result it is silent, and the client has to ask again.
func (t *Table) probe(ip netip.Addr, a Ask) Decision {
	if a.Undecided[ip] {
		return silent("probe-undecided")
	}
	return Decision{Do: Probe, IP: ip, Record: t.records[ip], Again: t.offers[ip].ahead, Why: "fresh"}
}
