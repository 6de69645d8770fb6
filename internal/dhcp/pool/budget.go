package pool

import "time"

// Budgets of writes. Each is an object of the management cluster, where leases are kept there, and whoever is on the VLAN can bind and
// release, in turn and under any hardware address. Renewals are not counted: they write when half of a horizon is over.
const (
	// writesOfOne are what a client may cause at once, and writeEach is when it may cause one more: a machine that boots needs two.
	writesOfOne = 12
	writeEach   = 5 * time.Second
	// writesOfGuests are what all guests may cause at once, and guestEach is when they may cause one more.
	writesOfGuests = 256
	guestEach      = 100 * time.Millisecond
)

// budget is what is left of a number that grows with time.
type budget struct {
	left int
	at   time.Time
}

// spend takes one, if there is one.
func (b *budget) spend(now time.Time, most int, each time.Duration) bool {
	if b.refill(now, most, each); b.left == 0 {
		return false
	}
	b.left--
	return true
}

// refill adds what time has brought; a budget that was never used is full.
func (b *budget) refill(now time.Time, most int, each time.Duration) {
	if since := now.Sub(b.at); b.at.IsZero() || since >= time.Duration(most)*each {
		b.left, b.at = most, now
	} else if more := int(since / each); more > 0 {
		b.left, b.at = min(most, b.left+more), b.at.Add(time.Duration(more)*each)
	}
}

// mayWrite says whether the client's budget, and that of all guests, has room for what was decided.
func (t *Table) mayWrite(d Decision, a Ask) bool {
	if d.Do != Create && d.Do != Update || d.Why == extended {
		return true
	}
	own := t.budgets[a.Client]
	allowed := own.spend(a.Now, writesOfOne, writeEach) && (!t.isGuest(a) || t.guests.spend(a.Now, writesOfGuests, guestEach))
	t.budgets[a.Client] = own
	return allowed
}

// sweepBudgets forgets those that are full.
func (t *Table) sweepBudgets(now time.Time) {
	for client, b := range t.budgets {
		if b.refill(now, writesOfOne, writeEach); b.left == writesOfOne {
			delete(t.budgets, client)
		}
	}
}
