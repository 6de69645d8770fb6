package pool

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
)

// Learn takes in a record that the store has, and says whether it is newer than the known version.
func (t *Table) Learn(r lease.Record) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if was, known := t.records[r.IP]; known && was.Version >= r.Version {
		mark(t.suspect, r.IP, was.Version > r.Version) // a late watch, or an etcd that was restored to an older revision
		return false
	}
	t.learn(r)
	return true
}

func (t *Table) learn(r lease.Record) {
	was := t.records[r.IP]
	t.unindex(was)
	delete(t.doubted, r.IP) // a write that carries the older version can no longer succeed
	delete(t.suspect, r.IP)
	delete(t.undone, r.IP)
	t.records[r.IP] = r
	t.index(r)
}

// Addresses are those of all known records.
func (t *Table) Addresses() []netip.Addr {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Keys(t.records))
}

// Record is the newest known record of an address.
func (t *Table) Record(ip netip.Addr) (r lease.Record, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, known = t.records[ip]
	return r, known
}

// Version is the newest known version of an address's record; 0 if the store has none.
func (t *Table) Version(ip netip.Addr) uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.records[ip].Version
}

// Confirm takes in the result of an uncached read, at whose beginning the version since was known. False: a newer one was learned meanwhile. A
// version older than since says that the store went back: etcd was restored to an older revision.
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

// goBack takes in a record of a store that went back. Of two promises the later one stands (dhcp-rules.md#lease-12): if it is ours, it is
// written again over the store's.
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

// Suspects are the addresses that must be read to know whether the store went back.
func (t *Table) Suspects() []netip.Addr {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.SortedFunc(maps.Keys(t.suspect), netip.Addr.Compare)
}

// Attempt notes a write before it is made. A write that ends a binding puts the binding in doubt: until a newer version is known, the holder is
// renewed only by another write, after which a late arrival of the first one fails.
func (t *Table) Attempt(r lease.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if was, known := t.records[r.IP]; known && was.State == lease.Bound && !r.BoundTo(was.Client) {
		t.doubted[r.IP] = true
	}
}

// Stands says whether a record is the newest known version, and no write of ours may have ended its binding.
func (t *Table) Stands(r lease.Record) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.records[r.IP].Version == r.Version && !t.doubted[r.IP]
}

// Lost notes that the store has no record any more. A promise whose horizon has not passed is kept, and Expire writes it again.
func (t *Table) Lost(r lease.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, ok := t.records[r.IP]; ok && known.Version <= r.Version {
		t.lose(known)
	}
}

func (t *Table) lose(r lease.Record) {
	r.Version = 0
	t.learn(r)
}

// Listed takes in which addresses a list of the store had, of which everything was learned: a record that it lacks is lost. One that is newer than
// the list was written meanwhile, or the store went back, and must be read.
func (t *Table) Listed(listed map[netip.Addr]bool, version uint64) {
	t.walk(func(r lease.Record) bool {
		switch {
		case listed[r.IP] || r.Version == 0:
		case r.Version > version:
			t.suspect[r.IP] = true
		default:
			t.lose(r)
		}
		return true
	})
}
