package pool

import (
	"time"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
)

// Room is how full the pool is for a new machine.
type Room struct {
	// None: a new machine would be offered no address.
	None bool
	// Addresses: Leased to clients, Resting because a probe or a client found them in use, Closed by reservations and exclusions.
	Leased, Resting, Closed int
}

// Room walks the records only if they may take up all addresses. An offered address counts as free, because it is free again in seconds. A pool
// of reservations only is never full, because it is meant for them.
func (t *Table) Room(now time.Time, steady bool) Room {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.config.First.IsValid() { // nothing is served yet
		return Room{}
	}
	open := t.size - len(t.config.Reservations)
	room := Room{Closed: int(number(t.config.Last)-number(t.config.First)) + 1 - open}
	if open <= 0 || len(t.records)+len(t.avoided) < open {
		return room
	}
	stranger := Ask{Now: now, Steady: steady}
	for ip := range t.avoided {
		if _, known := t.records[ip]; !known && t.config.open(ip) {
			room.Resting++
		}
	}
	for ip, r := range t.records {
		if !t.config.open(ip) {
			continue
		}
		switch _, avoided := t.avoided[ip]; {
		case avoided || r.State == lease.Declined && !t.reusable(r, stranger):
			room.Resting++
		case !t.reusable(r, stranger):
			room.Leased++
		default:
			return Room{Closed: room.Closed}
		}
	}
	room.None = room.Leased+room.Resting >= open
	return room
}
