package pool

import (
	"net/netip"
	"slices"
	"time"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
)

// release ends a binding that its holder gives back, without a reply (dhcp-rules.md#wire-7).
func (t *Table) release(a Ask) Decision {
	r, ok := t.records[a.Wanted]
	if !ok || !r.BoundTo(a.Client) || a.ServerID.IsValid() && a.ServerID != t.config.Server {
		return silent("nothing-to-release")
	}
	if a.Away {
		return silent("store-away")
	}
	return t.released(r, a.Now)
}

func (t *Table) released(r lease.Record, now time.Time) Decision {
	r.State, r.Dropped, r.Since = lease.Released, []netip.Addr{t.config.Server}, lease.SecondsOf(now)
	d := write(r, "released")
	d.Final = true
	return d
}

// decline rests an address that its holder found in use. Only the holder can decline it: three times an hour, a tenth of the pool
// (dhcp-rules.md#lease-8). Beyond that the address rests for this client alone.
func (t *Table) decline(a Ask) Decision {
	r, ok := t.records[a.Wanted]
	switch {
	case !ok || !r.BoundTo(a.Client) || a.ServerID.IsValid() && a.ServerID != t.config.Server:
		return silent("nothing-to-decline")
	case a.Away:
		return silent("store-away")
	case t.resting(a.Now) >= max(1, t.size/10) || t.declinedLately(a) >= declinesPerHour:
		t.spurned[a.Client] = spurned{r.IP, a.Now.Add(quarantine)}
		return silent("too-many-declines")
	}
	t.declines[a.Client] = append(t.declines[a.Client], a.Now)
	r.State, r.Expires, r.Since = lease.Declined, time.Time{}, lease.SecondsOf(a.Now)
	if rest := a.Now.Add(quarantine); rest.After(r.Horizon) {
		r.Horizon = rest
	}
	d := write(r, "declined")
	d.Final = true
	return d
}

// Declined counts the addresses that rest.
func (t *Table) Declined(now time.Time) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.resting(now)
}

// resting counts the addresses that a decline keeps from all clients. After its time an address is free, though the record stays.
func (t *Table) resting(now time.Time) (n int) {
	for ip := range t.declined {
		if !now.After(t.records[ip].Horizon.Add(t.config.Grace())) {
			n++
		}
	}
	return n
}

// isSpurned says whether an address rests for this client alone.
func (t *Table) isSpurned(ip netip.Addr, a Ask) bool {
	s, any := t.spurned[a.Client]
	return any && s.ip == ip && a.Now.Before(s.until)
}

func (t *Table) declinedLately(a Ask) int {
	recent := slices.DeleteFunc(t.declines[a.Client], func(at time.Time) bool { return a.Now.Sub(at) > time.Hour })
	if len(recent) > 0 {
		t.declines[a.Client] = recent
	}
	return len(recent)
}
