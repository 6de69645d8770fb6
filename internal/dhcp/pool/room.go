package pool

import (
	"time"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
)

// Room is how full the pool is for a new machine.
type Room struct {
	// None: a new machine would be offered no address. Reserved: it would not either, since the pool has reservations only; that is meant.
	None, Reserved bool
	// Addresses: Leased to clients, Resting because a probe or a client found them in use, Closed by reservations and exclusions.
	Leased, Resting, Closed int
}

// Room walks the records only if they may take up all addresses. An offered address counts as free, because it is free again in seconds. A pool
// of reservations only is never full: it is for them.
func (t *Table) Room(now time.Time, steady bool) Room {
	room, open := t.outline()
	if open <= 0 {
		return room
	}
	free, stranger := false, Ask{Now: now, Steady: steady}
	t.walk(func(r lease.Record) bool {
		_, avoided := t.avoided[r.IP]
		switch {
		case !t.config.open(r.IP):
		case avoided || r.State == lease.Declined && !t.reusable(r, stranger):
			room.Resting++
		case !t.reusable(r, stranger):
			room.Leased++
		default:
			free = true
		}
		return !free
	})
	if free {
		return Room{Closed: room.Closed}
	}
	room.None = room.Leased+room.Resting >= open
	return room
}

// outline is the room without a walk. Open is how many addresses must be leased or rest before the pool is full; 0 means that it is not.
func (t *Table) outline() (room Room, open int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.config.First.IsValid() { // nothing is served yet
		return Room{}, 0
	}
	open = t.size - len(t.config.Reservations)
	room.Reserved = open <= 0
	room.Closed = int(number(t.config.Last)-number(t.config.First)) + 1 - open
	if len(t.records)+len(t.avoided) < open {
		return room, 0
	}
	for ip := range t.avoided {
		if _, known := t.records[ip]; !known && t.config.open(ip) {
			room.Resting++
		}
	}
	return room, open
}
