package pool

import (
	"net/netip"
	"slices"
	"time"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
)

// Expire returns the writes that are due without a message.
func (t *Table) Expire(now time.Time) []Decision {
	var due []Decision
	t.walk(func(r lease.Record) bool {
		if d, ok := t.expiry(r, now); ok {
			due = append(due, d)
		} else if r.Version == 0 {
			t.unindex(r)
		}
		return true
	})
	slices.SortFunc(due, func(a, b Decision) int { return a.IP.Compare(b.IP) })
	return due
}

func (t *Table) expiry(r lease.Record, now time.Time) (Decision, bool) {
	if r.Version == 0 { // deleted by hand: written again until its horizon has passed (dhcp-rules.md#lease-12)
		return write(r, "restored"), r.State != lease.Released && !now.After(r.Horizon)
	}
	if t.undone[r.IP] && !now.After(r.Horizon) {
		return write(r, "restored"), true
	}
	if r.State == lease.Released && !slices.Contains(r.Dropped, t.config.Server) {
		former := func(a netip.Addr) bool { return !slices.Contains(t.config.Instances, a) }
		r.Dropped = append(slices.DeleteFunc(slices.Clone(r.Dropped), former), t.config.Server) // we dropped it when we learned of it (dhcp-rules.md#lease-7)
		return write(r, "dropped"), true
	}
	if d, ok := t.machineExpiry(r, now); ok {
		return d, true
	}
	stale := r.Owner != t.config.Owner // a restored backup names an owner that is gone
	r.Owner = t.config.Owner
	return write(r, "relabelled"), stale
}

// machineExpiry ends a lease with its machine (dhcp-rules.md#lease-7). A machine of the same name takes it over: after a restore
// from a backup every UID is new.
func (t *Table) machineExpiry(r lease.Record, now time.Time) (Decision, bool) {
	if r.State != lease.Bound || r.VM.UID == "" {
		return Decision{}, false
	}
	alive, namesake := t.exists(r.VM)
	since, missed := t.missing[r.VM.UID]
	switch {
	case alive:
		delete(t.missing, r.VM.UID)
	case namesake.UID != "":
		r.VM = namesake
		return write(r, "machine-renamed"), true
	case !missed:
		t.missing[r.VM.UID] = now
	case now.Sub(since) >= goneTime:
		delete(t.missing, r.VM.UID)
		return t.released(r, now), true
	}
	return Decision{}, false
}

// Surplus returns the releases of all other leases of a client that was just given one (dhcp-rules.md#lease-11), as far as it may cause writes; the
// others wait for its next, or end by time.
func (t *Table) Surplus(a Ask, kept netip.Addr) []Decision {
	t.mu.Lock()
	defer t.mu.Unlock()
	var surplus []Decision
	for _, ip := range t.byClient[a.Client] {
		if r := t.records[ip]; ip == kept || !r.BoundTo(a.Client) {
			continue
		}
		if d := t.released(t.records[ip], a.Now); t.mayWrite(d, a) {
			surplus = append(surplus, d)
		}
	}
	return surplus
}
