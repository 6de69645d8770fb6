package dhcp

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/pool"
)

// In TestNoTwoClientsEverHoldOneAddress chance chooses what happens. Here each of some steps happens, in each order, for as many steps as there
// is time for, in the smallest worlds: two instances, two clients, one or two addresses. Declines, machines, writes whose answer is lost and
// the copy on the emptyDir are not among them.

// small is such a world. Its leases last ten minutes, so promises stand for up to twenty and are over ten later.
type small struct {
	*world
	behind time.Duration         // how far the second instance's clock is
	cut    []bool                // the instances that do not reach the API server
	last   map[string]netip.Addr // what each client remembers
	// before is what the store had before its last change: an etcd that is restored goes back to that.
	before, had map[netip.Addr]lease.Record
	broken      string // what no client may ever see
}

func newSmall(t *testing.T, addresses byte, behind time.Duration) *small {
	s := &small{world: newWorld(t, 2), behind: behind, cut: make([]bool, 2), last: map[string]netip.Addr{}, had: map[netip.Addr]lease.Record{}}
	s.clients = s.clients[:2]
	for _, l := range s.instances {
		l.reconfigure(func(c *pool.Config) { c.Last = at(9 + addresses) })
	}
	late := s.instances[1]
	late.server.Clock.Observe(epoch.Add(-behind), late.boot, late.boot)
	return s
}

// by is an instance that is about to act: it has the store as it reaches it.
func (s *small) by(i int) *lab {
	s.store.away = s.cut[i]
	return s.instances[i]
}

// step is one thing that may happen. It returns false, and does nothing, where it makes no difference.
type step struct {
	name string
	do   func(*small) bool
}

// steps are all that may happen.
func steps() (all []step) {
	add := func(name string, do func(*small) bool) { all = append(all, step{name, do}) }
	for i := range 2 {
		for c := range 2 {
			add(fmt.Sprintf("a%d asks, and takes what %d offers", c, i), func(s *small) bool { return s.exchanges(i, s.clients[c]) })
			add(fmt.Sprintf("a%d boots, and %d answers first", c, i), func(s *small) bool { return s.boots(i, s.clients[c]) })
			add(fmt.Sprintf("a%d renews with %d", c, i), func(s *small) bool { return s.renews(i, s.clients[c]) })
			add(fmt.Sprintf("%d hears that a%d releases", i, c), func(s *small) bool { return s.releases(i, s.clients[c]) })
		}
		add(fmt.Sprintf("%d dies and starts", i), func(s *small) bool { s.restarts(s.by(i)); return true })
		add(fmt.Sprintf("the watch tells %d", i), func(s *small) bool { return s.by(i).server.Sync(context.Background()) == nil })
		add(fmt.Sprintf("%d sees what is due", i), func(s *small) bool { s.by(i).server.Expire(context.Background()); return true })
		add(fmt.Sprintf("%d is cut off from the API, or no more", i), func(s *small) bool { s.cut[i] = !s.cut[i]; return true })
		add(fmt.Sprintf("somebody deletes the lease of .%d", 10+i), func(s *small) bool { return s.loses(at(byte(10 + i))) })
	}
	for i := range 2 {
		add(fmt.Sprintf("a stage is written to the lease of .%d", 10+i), func(s *small) bool { return s.store.notes(at(byte(10 + i))) })
	}
	add("etcd is restored", (*small).goesBack)
	add("two minutes pass", func(s *small) bool { return s.waits(2 * time.Minute) })
	add("five minutes pass", func(s *small) bool { return s.waits(5 * time.Minute) })
	add("all promises are over", func(s *small) bool { return s.waits(31 * time.Minute) })
	return all
}

func (s *small) exchanges(i int, mac string) bool {
	var taken *dhcpv4.DHCPv4
	for j := range s.instances {
		if offer := s.by(j).hears(mac, dhcpv4.MessageTypeDiscover); j == i {
			taken = offer
		}
	}
	if taken != nil {
		s.isTold(mac, i, dhcpv4.MessageTypeRequest, wants(yours(taken)), chose(s.instances[i].config.Server))
	}
	for j := range s.instances { // offers would lapse in seconds
		s.by(j).hears(mac, dhcpv4.MessageTypeRequest, wants(at(10)), chose(at(77)))
	}
	return true
}

func (s *small) boots(i int, mac string) bool {
	ip, remembers := s.last[mac]
	if remembers {
		_, holds := s.holds(mac)
		s.isTold(mac, i, dhcpv4.MessageTypeRequest, wants(ip))
		s.mustHoldStill(mac, holds)
	}
	return remembers
}

// isTold has all instances hear a message. The client believes the first answer, and the instance with that number is the fastest.
func (s *small) isTold(mac string, first int, kind dhcpv4.MessageType, with ...dhcpv4.Modifier) {
	believes := s.by(first).hears(mac, kind, with...)
	if other := s.by(1-first).hears(mac, kind, with...); believes == nil {
		believes = other
	}
	s.believes(mac, believes)
}

func (s *small) believes(mac string, reply *dhcpv4.DHCPv4) {
	s.world.believes(mac, reply)
	switch {
	case reply == nil:
	case reply.MessageType() == dhcpv4.MessageTypeAck:
		s.last[mac] = yours(reply)
	case reply.MessageType() == dhcpv4.MessageTypeNak:
		delete(s.last, mac)
	}
}

// mustHoldStill: who boots or renews is not refused what he was promised. Who asks anew has given it up.
func (s *small) mustHoldStill(mac string, promised bool) {
	if _, holds := s.holds(mac); promised && !holds {
		s.broken = mac + " was refused what it holds"
	}
}

func (s *small) renews(i int, mac string) bool {
	p, holds := s.holds(mac)
	if holds {
		s.believes(mac, s.by(i).hears(mac, dhcpv4.MessageTypeRequest, has(p.ip)))
		s.mustHoldStill(mac, holds)
	}
	return holds
}

func (s *small) releases(i int, mac string) bool {
	p, holds := s.holds(mac)
	if holds {
		s.by(i).hears(mac, dhcpv4.MessageTypeRelease, has(p.ip))
		delete(s.told, mac)
	}
	return holds
}

// loses deletes a lease. Nothing can be done where nobody is left who knew of it, so both instances know and reach the store.
func (s *small) loses(ip netip.Addr) bool {
	if _, there := s.store.records[ip]; !there || s.cut[0] || s.cut[1] {
		return false
	}
	s.allLearn()
	delete(s.store.records, ip)
	s.allLearn()
	return true
}

func (s *small) goesBack() bool {
	if s.before == nil || s.cut[0] || s.cut[1] {
		return false
	}
	s.allLearn()
	s.store.records = maps.Clone(s.before)
	s.store.last = 0
	for _, r := range s.store.records {
		s.store.last = max(s.store.last, r.Version)
	}
	s.allLearn()
	return true
}

// allLearn lets the second pass after which each instance has heard, and has written what is due.
func (s *small) allLearn() {
	for i := range s.instances {
		l := s.by(i)
		_ = l.server.Sync(context.Background())
		l.server.Expire(context.Background())
	}
}

func (s *small) waits(d time.Duration) bool {
	for _, l := range s.instances {
		l.passes(d)
	}
	return true
}

// happens does a step and looks whether a promise was broken.
func (s *small) happens(next step) bool {
	if !next.do(s) {
		return false
	}
	if !maps.EqualFunc(s.had, s.store.records, func(a, b lease.Record) bool { return a.Version == b.Version }) {
		s.before, s.had = s.had, maps.Clone(s.store.records)
	}
	a, aHolds := s.holds(s.clients[0])
	b, bHolds := s.holds(s.clients[1])
	if aHolds && bHolds && a.ip == b.ip {
		s.broken = fmt.Sprintf("%s is promised to both clients", a.ip)
	}
	for _, mac := range s.clients {
		p, holds := s.holds(mac)
		switch stored := s.store.records[p.ip]; {
		case !holds:
		case stored.State != lease.Bound || !strings.HasSuffix(stored.Client.MAC, mac):
			s.broken = fmt.Sprintf("%s was told %s, which is not stored", mac, p.ip)
		case stored.Horizon.Add(s.behind).Before(p.until):
			s.broken = fmt.Sprintf("%s was told %s beyond the horizon", mac, p.ip)
		}
	}
	return true
}

// seen is what a world looks like. Of worlds that look alike only the first is gone on with.
func (s *small) seen() string {
	var b strings.Builder
	records := func(all []lease.Record, stands func(lease.Record) bool) {
		for _, r := range all {
			age := cmp.Compare(r.Version, s.store.records[r.IP].Version)
			fmt.Fprintf(&b, "%s %s %s %s %v %d %t;", r.IP, r.Client.MAC, r.State, r.Horizon.Sub(s.now()), r.Dropped, age, stands(r))
		}
		b.WriteByte('|')
	}
	stored := func(lease.Record) bool { return true }
	for i, l := range s.instances {
		records(l.server.Table.Records(), l.server.Table.Stands)
		fmt.Fprint(&b, s.cut[i], l.server.synced.Load(), l.server.Table.Suspects(), "|")
	}
	byAddress := func(a, b lease.Record) int { return a.IP.Compare(b.IP) }
	records(slices.SortedFunc(maps.Values(s.store.records), byAddress), stored)
	records(slices.SortedFunc(maps.Values(s.before), byAddress), stored)
	for _, mac := range s.clients {
		p, holds := s.holds(mac)
		fmt.Fprint(&b, p.ip, holds, p.until.Sub(s.now()), s.last[mac], "|")
	}
	return b.String()
}

// TestNoScheduleBreaksAPromise goes through all schedules of a few steps after the first client was given an address; of OOOI_STEPS more, if that
// is set, each of which takes six times as long.
func TestNoScheduleBreaksAPromise(t *testing.T) {
	more, _ := strconv.Atoi(os.Getenv("OOOI_STEPS"))
	const taken = "a0 asks, and takes what 0 offers"
	for name, c := range map[string]struct {
		addresses byte
		steps     int
		behind    time.Duration
		after     []string
	}{
		"one address":                        {1, 4, 0, []string{taken}},
		"one address, known to both":         {1, 4, 0, []string{taken, "the watch tells 1"}},
		"two addresses":                      {2, 4, 0, []string{taken}},
		"a stage that nobody has seen yet":   {1, 4, 0, []string{taken, "the watch tells 1", "a stage is written to the lease of .10"}},
		"an instance that may write no more": {1, 3, 0, slices.Concat([]string{taken}, slices.Repeat([]string{"a0 boots, and 0 answers first"}, 12), []string{"1 dies and starts", "the watch tells 1"})},
		// Half the grace is five minutes. The promise is over after seventeen; the late instance has renewed it.
		"a clock that is late": {1, 4, 4 * time.Minute, []string{taken, "the watch tells 1", "five minutes pass", "five minutes pass", "a0 renews with 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			goThrough(t, c.after, c.steps+more, func() *small { return newSmall(t, c.addresses, c.behind) })
		})
	}
}

// goThrough follows each schedule that begins with some steps to each world that looks new, and from there on.
func goThrough(t *testing.T, after []string, depth int, begin func() *small) {
	all, met, schedules := steps(), map[string]bool{}, 0
	var prefix []int
	for _, name := range after {
		prefix = append(prefix, slices.IndexFunc(all, func(s step) bool { return s.name == name }))
	}
	for reached := [][]int{prefix}; depth > 0; depth-- {
		var further [][]int
		for _, schedule := range reached {
			var s *small
			for n := range all {
				if s == nil {
					s = begin()
					s.follows(all, schedule)
				}
				if !s.happens(all[n]) {
					continue
				}
				next := append(slices.Clone(schedule), n)
				s.mustHaveKeptItsPromises(t, all, next)
				if state := s.seen(); !met[state] {
					met[state] = true
					further = append(further, next)
				}
				schedules++
				s = nil
			}
		}
		reached = further
	}
	t.Logf("%d schedules, %d worlds", schedules, len(met))
}

func (s *small) follows(all []step, schedule []int) {
	for _, n := range schedule {
		s.happens(all[n])
	}
}

func (s *small) mustHaveKeptItsPromises(t *testing.T, all []step, schedule []int) {
	if s.broken == "" {
		return
	}
	for _, n := range schedule {
		t.Log(all[n].name)
	}
	t.Fatal(s.broken)
}
