package pool

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
)

// Learn takes in a record that the store holds and says whether it was news; an older version than the known one is none.
func (t *Table) Learn(r lease.Record) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if was, known := t.records[r.IP]; known && was.Version >= r.Version {
		mark(t.suspect, r.IP, was.Version > r.Version) // a watch that is late, or etcd went back
		return false
	}
	t.learn(r)
	return true
}

func (t *Table) learn(r lease.Record) {
	was := t.records[r.IP]
	t.unindex(was)
	delete(t.doubted, r.IP) // a write that was made for the older version cannot take place any more
	delete(t.suspect, r.IP)
	delete(t.undone, r.IP)
	t.records[r.IP] = r
	t.index(r)
}

// Version is the newest that is known of an address; 0 if the store has none.
func (t *Table) Version(ip netip.Addr) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.records[ip].Version
}

// Confirm takes in what an uncached read found that began when the version since was known. False: more was learned meanwhile. An older
// one than since says that the store went back: etcd was restored to an older revision.
func (t *Table) Confirm(r lease.Record, since uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	was, known := t.records[r.IP]
	switch {
	case !known || was.Version < r.Version:
		t.learn(r)
	case was.Version == r.Version:
		delete(t.suspect, r.IP)
	case was.Version != since:
		return false
	default:
		t.goBack(was, r)
	}
	return true
}

// goBack takes in what a store has that went back. Of two promises the later one stands (dhcp-rules.md#lease-12): ours is written again,
// in place of what the store has.
func (t *Table) goBack(was, r lease.Record) {
	ours := was.State == lease.Bound && (r.State != lease.Bound || r.Horizon.Before(was.Horizon))
	if !ours {
		t.learn(r)
		return
	}
	was.Version = r.Version
	t.learn(was)
	t.doubted[r.IP], t.undone[r.IP] = true, true
}

// Suspects are the addresses that have to be read to know whether the store went back.
func (t *Table) Suspects() []netip.Addr {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.SortedFunc(maps.Keys(t.suspect), netip.Addr.Compare)
}

// Attempt hears of a write before it is made. One that ends a binding puts it in doubt: until a newer version is known, the
// holder is renewed only by a write of its own, which such a late one cannot survive.
func (t *Table) Attempt(r lease.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if was, known := t.records[r.IP]; known && was.State == lease.Bound && !r.BoundTo(was.Client) {
		t.doubted[r.IP] = true
	}
}

// Stands says whether a record has the newest version that is known, and no write of ours may have ended the binding.
func (t *Table) Stands(r lease.Record) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.records[r.IP].Version == r.Version && !t.doubted[r.IP]
}

// Lost hears that the store has no record any more. A promise that has not passed is kept, and written again by Expire.
func (t *Table) Lost(r lease.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, ok := t.records[r.IP]; ok && known.Version <= r.Version {
		known.Version = 0
		t.learn(known)
	}
}

// Synced takes in a whole list of the store: what is not in it is lost.
func (t *Table) Synced(all []lease.Record) {
	listed := map[netip.Addr]bool{}
	for _, r := range all {
		listed[r.IP] = true
		t.Learn(r)
	}
	for _, r := range t.Records() {
		if !listed[r.IP] {
			t.Lost(r)
		}
	}
}
