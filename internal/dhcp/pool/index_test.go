package pool

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/wire"
)

// twoMachines have the hardware addresses 0 and 1; the second machine is gone while gone is true.
type twoMachines struct{ gone *bool }

func machineOf(n int) lease.VM { return lease.VM{Name: fmt.Sprint(n), UID: fmt.Sprint(n)} }

func (m twoMachines) Owner(mac string) Owner {
	if mac == "0" || mac == "1" {
		return Owner{VM: lease.VM{Name: mac, UID: mac}}
	}
	return Owner{}
}
func (m twoMachines) InUse(string) bool { return false }
func (m twoMachines) Exists(vm lease.VM) (bool, lease.VM) {
	return vm.UID != "1" || !*m.gone, lease.VM{}
}

// walked is a table with some history. It finds by a walk what the table finds by its indexes.
type walked struct {
	*Table
	now     time.Time
	gone    bool
	version uint64
}

var served = []netip.Addr{netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.3")}

func someHistory(t *rapid.T) *walked {
	w := &walked{now: time.Unix(1_000_000, 0)}
	w.Table = NewTable(twoMachines{&w.gone})
	subnet := netip.MustParsePrefix("10.0.0.0/24")
	addr := rapid.Custom(func(t *rapid.T) netip.Addr {
		return addrOf(number(subnet.Addr()) + rapid.Uint64Range(8, 90).Draw(t, "host"))
	})
	client := rapid.Custom(func(t *rapid.T) lease.Client {
		return lease.Client{MAC: fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "client"))}
	})
	configure := func(t *rapid.T) {
		c := Config{
			Server: served[0], Instances: served[:rapid.IntRange(1, 2).Draw(t, "instances")], First: addrOf(number(subnet.Addr()) + 10), LeaseTime: time.Hour,
			Last: addrOf(number(subnet.Addr()) + rapid.Uint64Range(12, 80).Draw(t, "last")), Network: wire.Network{Subnet: subnet}, LooksUpVMs: rapid.Bool().Draw(t, "looks up"),
			Born: w.now,
		}
		if rapid.Bool().Draw(t, "reserves") {
			c.Reservations = []Reservation{{IP: addr.Draw(t, "reserved"), Client: client.Draw(t, "for")}}
		}
		w.Configure(c)
	}
	configure(t)
	t.Repeat(map[string]func(*rapid.T){
		"learn": func(t *rapid.T) {
			w.version++
			r := lease.Record{
				IP: addr.Draw(t, "ip"), Client: client.Draw(t, "of"), Version: w.version,
				State:   rapid.SampledFrom([]lease.State{lease.Bound, lease.Bound, lease.Released, lease.Declined}).Draw(t, "state"),
				Horizon: w.now.Add(time.Duration(rapid.IntRange(-200, 100).Draw(t, "minutes")) * time.Minute),
				Dropped: served[:rapid.IntRange(0, 2).Draw(t, "dropped")],
			}
			if n := rapid.IntRange(0, 4).Draw(t, "machine"); n < 2 {
				r.VM = machineOf(n)
			}
			w.Learn(r)
		},
		"ask": func(t *rapid.T) { w.Decide(w.ask(client.Draw(t, "asks"), addr.Draw(t, "wanted"))) },
		"probe ahead": func(t *rapid.T) {
			for _, ip := range w.Ahead(w.now) {
				if answers := rapid.IntRange(0, 9).Draw(t, "answers"); answers < 9 {
					w.ProbedAhead(ip, answers == 0, w.now)
				}
			}
		},
		"in use":    func(t *rapid.T) { w.InUse(addr.Draw(t, "ip"), w.now) },
		"lose":      func(t *rapid.T) { w.Lost(lease.Record{IP: addr.Draw(t, "ip"), Version: w.version}) },
		"expire":    func(*rapid.T) { w.Expire(w.now) },
		"configure": configure,
		"time passes": func(t *rapid.T) {
			w.now = w.now.Add(time.Duration(rapid.IntRange(-60, 600).Draw(t, "s")) * time.Second)
		},
		"machine": func(t *rapid.T) { w.gone = rapid.Bool().Draw(t, "gone") },
		"":        func(t *rapid.T) { w.compare(t, w.ask(client.Draw(t, "who"), netip.Addr{})) },
	})
	return w
}

func (w *walked) ask(c lease.Client, wanted netip.Addr) Ask {
	return Ask{Message: wire.Message{Kind: wire.Discover, Client: c, Wanted: wanted}, Now: w.now, Steady: true}
}

func TestWhatIsIndexedIsWhatAWalkFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { someHistory(t) })
}

func (w *walked) compare(t *rapid.T, a Ask) {
	if got, _ := w.unused(a); got != w.walkUnused(a) {
		t.Fatalf("never used: %v, a walk finds %v", got, w.walkUnused(a))
	}
	if got, _ := w.longestOver(a); got != w.walkOver(a) {
		t.Fatalf("over: %v, a walk finds %v", got, w.walkOver(a))
	}
	active := 0
	inherited := map[netip.Addr]bool{{}: true}
	for ip, r := range w.records {
		if r.State == lease.Bound && !w.now.After(r.Horizon) {
			active++
		}
		if w.inherits(r, a) && w.free(ip, a) {
			inherited[ip] = true
		}
	}
	if got, _, _ := w.Counts(w.now); got != active {
		t.Fatalf("%d leases stand, a walk finds %d", got, active)
	}
	if got, any := w.inheritance(a); !inherited[got.IP] || any != (len(inherited) > 1) {
		t.Fatalf("%v is inherited, a walk finds %v", got.IP, inherited)
	}
}

// walkUnused looks at one address after the other, from the client's own on: first for one that was found vacant ahead, then for one of our half
// that is not being probed.
func (w *walked) walkUnused(a Ask) netip.Addr {
	first, start := number(w.config.First), spread(a.Client.MAC, a.Client.ID)
	span := number(w.config.Last) - first + 1
	for _, suits := range []func(netip.Addr, ahead, bool) bool{
		func(_ netip.Addr, h ahead, _ bool) bool { return h.ready(a.Now) },
		func(ip netip.Addr, _ ahead, asked bool) bool { return !asked && w.own(ip) },
		func(_ netip.Addr, _ ahead, asked bool) bool { return !asked },
		func(netip.Addr, ahead, bool) bool { return true },
	} {
		for i := range span {
			at := addrOf(first + (start+i)%span)
			_, offered := w.offers[at]
			_, avoided := w.avoided[at]
			h, asked := w.ahead[at]
			if w.records[at].IP != at && !offered && !avoided && w.config.open(at) && suits(at, h, asked) && w.free(at, a) && w.mayEnter(at, a) {
				return at
			}
		}
	}
	return netip.Addr{}
}

func (w *walked) walkOver(a Ask) (longest netip.Addr) {
	for ip, r := range w.records {
		_, offered := w.offers[ip]
		_, avoided := w.avoided[ip]
		byTime := w.ended(r, a) && (r.State != lease.Bound || r.VM.UID == "")
		if offered || avoided || !w.config.open(ip) || !byTime && !w.dropped(r) || !w.free(ip, a) || !w.mayEnter(ip, a) {
			continue
		}
		last := w.records[longest].Horizon
		if !longest.IsValid() || r.Horizon.Before(last) || r.Horizon.Equal(last) && ip.Less(longest) {
			longest = ip
		}
	}
	return longest
}

func TestAFullPoolIsToldFromItsIndex(t *testing.T) {
	g, now := NewWithT(t), time.Unix(1_000_000, 0)
	table := fullPool(everybodysMachine{}, now)
	start := time.Now()
	for n := range 200 {
		g.Expect(table.Decide(discovers(fmt.Sprint(n), now)).Why).To(Equal("pool-exhausted"))
		table.Counts(now)
	}
	g.Expect(time.Since(start)).To(BeNumerically("<", 4*time.Second), "a walk for each takes a minute")
}

func TestAClockThatGoesBackCountsALeaseAgain(t *testing.T) {
	g, now := NewWithT(t), time.Unix(1_000_000, 0)
	table := NewTable(noMachines{})
	table.Learn(lease.Record{IP: served[0], State: lease.Bound, Horizon: now, Version: 1})
	for _, at := range []struct {
		since time.Duration
		stand int
	}{{0, 1}, {time.Second, 0}, {365 * 24 * time.Hour, 0}, {0, 1}} {
		active, total, _ := table.Counts(now.Add(at.since))
		g.Expect([]int{active, total}).To(Equal([]int{at.stand, 1}))
	}
}
