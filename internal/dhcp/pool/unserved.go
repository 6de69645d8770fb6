package pool

import (
	"cmp"
	"slices"
	"time"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
)

// Unserved is a reservation that a binding keeps from being served: another client's at its address, or its own client's at another.
type Unserved struct {
	Reservation
	Bound lease.Record
}

// Unserved returns those that wait. No address is taken from a running client (dhcp-rules.md#wire-4): they wait until it boots again.
func (t *Table) Unserved(now time.Time, steady bool) []Unserved {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.config.Reservations) == 0 {
		return nil
	}
	var all []Unserved
	for ip, r := range t.records {
		if r.State != lease.Bound || t.reusable(r, Ask{Now: now, Steady: steady}) {
			continue
		}
		mine, reserved := t.config.reservation(r.Client, r.ClientID)
		if reserved && mine.IP != ip {
			all = append(all, Unserved{mine, r})
		}
		if theirs, reserved := t.config.reservedIP(ip); reserved && theirs != mine {
			all = append(all, Unserved{theirs, r})
		}
	}
	slices.SortFunc(all, func(a, b Unserved) int { return cmp.Or(a.IP.Compare(b.IP), a.Bound.IP.Compare(b.Bound.IP)) })
	return all
}
