package pool

import (
	"hash/fnv"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
)

// Limits (dhcp-rules.md#limits).
const (
	// offerTime is how long an offer is kept for its client. Offers are never stored.
	offerTime = 10 * time.Second
	// shortest is the least lease that is worth an ACK.
	shortest = time.Minute
	// anonymousTerm bounds the leases of guests: clients that are no virtual machine, where those are looked up.
	anonymousTerm = time.Hour
	// quarantine is how long a declined address rests.
	quarantine = time.Hour
	// declinesPerHour bounds what one client may decline; all clients together may decline a tenth of the pool.
	declinesPerHour = 3
	// avoidTime is how long an address that answered a probe is left alone.
	avoidTime = 10 * time.Minute
	// resolveTime is how long a client waits for its virtual machine to be known: an ACK without its hostname would last
	// until T1.
	resolveTime = 5 * time.Second
	// waitKnown is how long we remember that a client has waited: by RFC 2131 §4.1 it retries after 4, 12 and 28 s, and later every 64 s.
	waitKnown = 2 * time.Minute
	// goneTime is how long a machine must be missed before its lease is released: a list of machines may be incomplete
	// while a cluster is being restored.
	goneTime = 30 * time.Second
	// maxWaiting bounds how many waiting clients are remembered.
	maxWaiting = 4096
	// walkAtOnce is how many records are looked at while the table is locked: every client waits meanwhile.
	walkAtOnce = 512
)

// Owner is what is known of a hardware address.
type Owner struct {
	VM lease.VM
	// Unresolved: a virtual machine is starting whose hardware address is not known yet.
	Unresolved bool
	// Duplicate: two running virtual machines have this hardware address.
	Duplicate bool
}

// Known says whether a virtual machine was found.
func (o Owner) Known() bool { return o.VM.UID != "" }

// Machines looks up virtual machines, in memory. A machine of which nothing is known yet counts as existing.
type Machines interface {
	// Owner finds the machine of a hardware address.
	Owner(mac string) Owner
	// InUse says whether a running machine has the hardware address.
	InUse(mac string) bool
	// Exists says whether the machine exists, and finds the one that has its name now.
	Exists(lease.VM) (exists bool, namesake lease.VM)
}

// Table is all that is known of the pool.
type Table struct {
	mu       sync.Mutex
	config   Config
	size     int
	machines Machines
	records  map[netip.Addr]lease.Record
	// Addresses by the client of their record, and by the UID of the virtual machine that they are bound to: nearly always one.
	byClient  map[lease.Client][]netip.Addr
	byMachine map[string][]netip.Addr
	// Addresses that a client without a claim may get: those without a record, those released, and those whose lease ends by time, by horizon.
	untaken          *untaken
	returned, ending *byTime
	standing         standing
	// anonymous are the addresses bound to clients that are no virtual machine.
	anonymous map[netip.Addr]bool
	declined  map[netip.Addr]bool
	// doubted are bindings that a write of ours may have ended: its outcome is not known, or it may still arrive.
	doubted map[netip.Addr]bool
	// suspect are addresses for which the store told an older version than we know; undone are those for which it has no newer one.
	suspect, undone map[netip.Addr]bool
	offers          map[netip.Addr]offer
	offered         map[lease.Client]netip.Addr
	strangers       int // offers to guests
	avoided         map[netip.Addr]avoidance
	ahead           map[netip.Addr]ahead
	nextAhead       uint64 // the index from which to look for addresses to probe ahead
	declines        map[lease.Client][]time.Time
	spurned         map[lease.Client]spurned
	budgets         map[lease.Client]budget
	guests          budget // of all guests together
	waiting         map[lease.Client]time.Time
	missing         map[string]time.Time // machines (by UID) that are gone, and since when
	swept           time.Time
}

// spurned is an address that rests only for the client that declined it.
type spurned struct {
	ip    netip.Addr
	until time.Time
}

// avoidance keeps an address that answered a probe from being offered.
type avoidance struct {
	until time.Time
	ahead bool // probed ahead: a client that requests the address may be the host that answered
}

type offer struct {
	client lease.Client
	until  time.Time
	vacant bool // a probe heard nobody
	ahead  bool // a probe ahead heard nobody
	// anonymous offers count against the guests' share, because their records may be about to be written.
	anonymous bool
}

// NewTable returns an empty table.
func NewTable(machines Machines) *Table {
	return &Table{
		machines: machines, records: map[netip.Addr]lease.Record{}, byClient: map[lease.Client][]netip.Addr{},
		byMachine: map[string][]netip.Addr{}, returned: newByTime(false), ending: newByTime(false), standing: newStanding(),
		anonymous: map[netip.Addr]bool{}, declined: map[netip.Addr]bool{}, doubted: map[netip.Addr]bool{}, suspect: map[netip.Addr]bool{}, undone: map[netip.Addr]bool{}, offers: map[netip.Addr]offer{}, offered: map[lease.Client]netip.Addr{},
		avoided: map[netip.Addr]avoidance{}, ahead: map[netip.Addr]ahead{}, declines: map[lease.Client][]time.Time{}, spurned: map[lease.Client]spurned{}, budgets: map[lease.Client]budget{}, waiting: map[lease.Client]time.Time{}, missing: map[string]time.Time{},
	}
}

// Configure changes what is served. Records stay: a promise outlives the configuration that it was made under.
func (t *Table) Configure(c Config) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c.remember()
	t.config, t.size = c, c.Size()
	t.reindex()
	maps.DeleteFunc(t.ahead, func(ip netip.Addr, _ ahead) bool { return !t.own(ip) || !t.config.open(ip) })
}

// Records returns all known records, sorted by address.
func (t *Table) Records() []lease.Record {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]lease.Record, 0, len(t.records))
	for _, r := range t.records {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b lease.Record) int { return a.IP.Compare(b.IP) })
	return all
}

// walk calls look for all records, until it returns false. Look runs with the table locked; between records it is unlocked now and then, and a
// binding that moves then may be missed, or looked at twice.
func (t *Table) walk(look func(lease.Record) bool) {
	t.mu.Lock()
	all := slices.AppendSeq(make([]netip.Addr, 0, len(t.records)), maps.Keys(t.records))
	t.mu.Unlock()
	for some := range slices.Chunk(all, walkAtOnce) {
		if !t.walkOver(some, look) {
			return
		}
	}
}

func (t *Table) walkOver(some []netip.Addr, look func(lease.Record) bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, ip := range some {
		if r, there := t.records[ip]; there && !look(r) {
			return false
		}
	}
	return true
}

// InUse notes that a probe found an address in use, or could not rule it out.
func (t *Table) InUse(a netip.Addr, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.avoided[a] = avoidance{until: now.Add(avoidTime)}
	t.drop(t.offers[a].client)
	t.refresh(a)
}

// Vacant notes that nobody answered the probe of an offered address.
func (t *Table) Vacant(a netip.Addr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if h, offered := t.offers[a]; offered {
		h.vacant = true
		t.offers[a] = h
	}
}

// Rank is a client's priority.
type Rank int

// Strangers come in any number, and holders are as many as addresses; known clients were set up by an admin.
const (
	Stranger Rank = iota // none of the others
	Offered              // was offered an address a moment ago
	Holder               // has a lease
	Known                // has a reservation for its hardware address, or a machine
)

// Rank returns a client's rank.
func (t *Table) Rank(client lease.Client) Rank {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, reserved := t.config.ReservationOf(client)
	_, offered := t.offered[client]
	switch {
	case reserved || t.machines.Owner(client.MAC).Known():
		return Known
	case len(t.byClient[client]) > 0:
		return Holder
	case offered:
		return Offered
	}
	return Stranger
}

// Counts returns the numbers for status: leases whose promise stands, all records, and addresses to lease.
func (t *Table) Counts(now time.Time) (active, total, size int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.standing.count(now), len(t.records), t.size
}

// sweep forgets, once a second, what has run out.
func (t *Table) sweep(now time.Time) {
	if !now.After(t.swept) {
		return
	}
	t.swept = now
	for _, h := range t.offers {
		if now.After(h.until) {
			t.drop(h.client)
		}
	}
	for a, avoided := range t.avoided {
		if now.After(avoided.until) {
			delete(t.avoided, a)
			t.refresh(a)
		}
	}
	t.sweepBudgets(now)
	for c, s := range t.spurned {
		if !now.Before(s.until) {
			delete(t.spurned, c)
		}
	}
	for c, since := range t.waiting {
		if now.Sub(since) > waitKnown {
			delete(t.waiting, c)
		}
	}
	for c, times := range t.declines {
		if now.Sub(times[len(times)-1]) > time.Hour {
			delete(t.declines, c)
		}
	}
}

func (t *Table) keepOffer(ip netip.Addr, a Ask) {
	was, asked := t.offers[ip], t.ahead[ip] // before drop and refresh delete them
	t.drop(a.Client)
	h := offer{a.Client, a.Now.Add(offerTime), was.vacant, was.ahead || asked.ready(a.Now), t.isAnonymous(ip, a)}
	if h.anonymous {
		t.strangers++
	}
	t.offers[ip], t.offered[a.Client] = h, ip
	t.refresh(ip)
}

func (t *Table) drop(client lease.Client) {
	ip, ok := t.offered[client]
	if !ok {
		return
	}
	if t.offers[ip].anonymous {
		t.strangers--
	}
	delete(t.offers, ip)
	delete(t.offered, client)
	t.refresh(ip)
}

// spread hashes a client, or an address, so that two instances rarely choose the same.
func spread(parts ...string) uint64 {
	h := fnv.New64a()
	for _, p := range parts {
		_, _ = h.Write([]byte(p)) // a hash never fails
	}
	return h.Sum64()
}
