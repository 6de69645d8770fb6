package pool

import (
	"time"

	"github.com/cldmnky/oooi/internal/dhcp/wire"
)

// Budgets of writes: in a cluster each write changes an object of the management cluster, and anybody on the VLAN can bind and release in turn,
// under any hardware address. Renewals are not counted: they write when half of a horizon is over. A holder that boots is: of two instances
// each confirms its record by a write (mayBeStale). Once its writes are used up, as by a neighbour that sends its REQUEST again and again, a read
// does: then only a release that is on its way in another instance at that moment would go unnoticed.
const (
	// writesOfOne are the writes that a client may cause at once (a booting machine needs two), and writeEach is the time until one more.
	writesOfOne = 12
	writeEach   = 2 * time.Second
	// writesOfGuests are the writes that all guests may cause at once, and guestEach is the time until one more: of each instance, for as many as there
	// are share it. Where no virtual machines are looked up, any client may be a machine: of those writesOfStrangers boot at once.
	writesOfGuests    = 256
	writesOfStrangers = 2048
	guestEach         = 100 * time.Millisecond
)

// budget is a token bucket.
type budget struct {
	left int
	at   time.Time
}

// refill adds the tokens that are due; a bucket that was never used is full.
func (b *budget) refill(now time.Time, most int, each time.Duration) {
	if since := now.Sub(b.at); b.at.IsZero() || since >= time.Duration(most)*each {
		b.left, b.at = most, now
	} else if more := int(since / each); more > 0 {
		b.left, b.at = min(most, b.left+more), b.at.Add(time.Duration(more)*each)
	}
}

// mayWrite says whether the budgets of the client and of all clients without a reservation or a virtual machine have room for a decision. Where
// leases are in a file, no API server has to bear what all write.
func (t *Table) mayWrite(d Decision, a Ask) bool {
	if d.Do != Create && d.Do != Update || d.Why == extended && a.Kind == wire.Renewing {
		return true
	}
	own, all := t.budgets[a.Client], &t.guests
	own.refill(a.Now, writesOfOne, writeEach)
	all.refill(a.Now, t.writesOfAll(), guestEach*time.Duration(len(t.config.Instances)))
	limited := !t.config.InFile && !t.privileged(a)
	allowed := own.left > 0 && (!limited || all.left > 0)
	if allowed {
		own.left--
	}
	if allowed && limited {
		all.left--
	}
	t.budgets[a.Client] = own
	return allowed
}

func (t *Table) writesOfAll() int {
	if t.config.LooksUpVMs {
		return writesOfGuests
	}
	return writesOfStrangers
}

func (t *Table) sweepBudgets(now time.Time) {
	for client, b := range t.budgets {
		if b.refill(now, writesOfOne, writeEach); b.left == writesOfOne {
			delete(t.budgets, client)
		}
	}
}
