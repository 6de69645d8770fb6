package dhcp

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	"github.com/cldmnky/oooi/internal/dhcp/clock"
	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/link"
	"github.com/cldmnky/oooi/internal/dhcp/pool"
	"github.com/cldmnky/oooi/internal/dhcp/wire"
)

const day = 24 * time.Hour

func TestAClientKeepsItsAddress(t *testing.T) {
	l, g := newLab(t, 20), NewWithT(t)
	ip := l.binds("aa")
	g.Expect(yours(l.discover("aa"))).To(Equal(ip), "asked again")
	g.Expect(yours(acked(t, l.reboots("aa", ip)))).To(Equal(ip))
	g.Expect(leaseOf(acked(t, l.renews("aa", ip)))).To(Equal(day))
	g.Expect(l.binds("bb")).NotTo(Equal(ip))
	g.Expect(l.store.records).To(HaveLen(2), "one record an address")
}

func TestARepeatedDiscoverGetsTheSameOffer(t *testing.T) {
	l := newLab(t, 100)
	first := yours(l.discover("aa"))
	NewWithT(t).Expect(yours(l.discover("aa", wants(at(99))))).To(Equal(first))
	NewWithT(t).Expect(l.store.records).To(BeEmpty(), "an offer is not stored")
}

func TestNothingIsPromisedThatIsNotDurable(t *testing.T) {
	t.Run("a store that is away: silence, and no address lost by it", func(t *testing.T) {
		l := newLab(t, 1)
		ip := yours(l.discover("aa"))
		l.store.away = true
		ignored(t, l.selects("aa", ip))
		ignored(t, l.discover("bb"))
		l.store.away = false
		acked(t, l.selects("aa", ip))
	})
	t.Run("an answer that was lost is read back", func(t *testing.T) {
		l := newLab(t, 1)
		ip := yours(l.discover("aa"))
		l.store.deaf = true
		acked(t, l.selects("aa", ip))
		NewWithT(t).Expect(l.store.writes).To(Equal(1))
	})
	t.Run("another was first: refused", func(t *testing.T) {
		l := newLab(t, 1)
		ip := yours(l.discover("aa"))
		l.store.before = func() { l.anotherBinds("bb", ip) }
		refused(t, l.selects("aa", ip))
		NewWithT(t).Expect(l.store.records[ip].Client.MAC).To(HaveSuffix("bb"))
	})
	t.Run("the same client, through another instance, was first: acknowledged", func(t *testing.T) {
		l := newLab(t, 1)
		ip := yours(l.discover("aa"))
		l.store.before = func() { l.anotherBinds("aa", ip) }
		acked(t, l.selects("aa", ip))
	})
}

// anotherBinds writes as another instance would, behind our back.
func (l *lab) anotherBinds(mac string, ip netip.Addr) {
	_, err := l.store.Create(l.t.Context(), lease.Record{
		IP: ip, Client: lease.Client{MAC: "52:54:00:00:00:" + mac}, State: lease.Bound, Horizon: l.now().Add(2 * day),
	})
	NewWithT(l.t).Expect(err).NotTo(HaveOccurred())
}

func TestTheHorizonIsTheOnlyFence(t *testing.T) {
	t.Run("is written two leases ahead, so that most renewals need no write", func(t *testing.T) {
		l, g := newLab(t, 1), NewWithT(t)
		ip := l.binds("aa")
		g.Expect(l.store.records[ip].Horizon).To(Equal(epoch.Add(2 * day)))
		for range 2 {
			l.passes(day / 2)
			g.Expect(leaseOf(acked(t, l.renews("aa", ip)))).To(Equal(day))
		}
		g.Expect(l.store.writes).To(Equal(1))
		l.passes(day / 2)
		acked(t, l.renews("aa", ip))
		g.Expect(l.store.writes).To(Equal(2))
		g.Expect(l.store.records[ip].Horizon).To(Equal(epoch.Add(3*day + day/2)))
	})
	t.Run("no lease reaches beyond it while the store is away", func(t *testing.T) {
		l := newLab(t, 1)
		ip := l.binds("aa")
		l.store.away = true
		for left, told := range map[time.Duration]time.Duration{day + time.Hour: day, 5 * time.Hour: 5 * time.Hour, time.Minute: time.Minute} {
			l.boot = time.Hour + 2*day - left
			NewWithT(t).Expect(leaseOf(acked(t, l.renews("aa", ip)))).To(Equal(told))
		}
		l.boot = time.Hour + 2*day - 59*time.Second
		ignored(t, l.renews("aa", ip))
		ignored(t, l.selects("aa", ip))
	})
	t.Run("is never lowered for its holder", func(t *testing.T) {
		l := newLab(t, 1)
		ip := l.binds("aa")
		l.reconfigure(func(c *pool.Config) { c.LeaseTime = 2 * time.Minute })
		l.machines.has("worker-1", "aa") // something to write
		NewWithT(t).Expect(leaseOf(acked(t, l.renews("aa", ip)))).To(Equal(2 * time.Minute))
		NewWithT(t).Expect(l.store.records[ip].Horizon).To(Equal(epoch.Add(2 * day)))
	})
	t.Run("keeps others away until the grace is over", func(t *testing.T) {
		l := newLab(t, 1)
		ip := l.binds("aa")
		grace := day / 10
		l.passes(2*day + grace)
		ignored(t, l.discover("bb"))
		l.passes(time.Second)
		NewWithT(t).Expect(l.binds("bb")).To(Equal(ip))
		NewWithT(t).Expect(l.probes).To(Equal(1), "an address that changes hands is probed")
		refused(t, l.renews("aa", ip))
	})
	t.Run("even when another instance raised it and the watch has not told", func(t *testing.T) {
		l := newLab(t, 1)
		ip := l.binds("aa")
		l.passes(3 * day)
		offer := yours(l.discover("bb"))
		raised := l.store.records[ip]
		raised.Horizon = l.now().Add(2 * day)
		_, err := l.store.Update(t.Context(), raised)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		refused(t, l.selects("bb", offer))
	})
}

func TestAnUnsteadyClockTakesNothingFromAnybody(t *testing.T) {
	l := newLab(t, 1)
	ip := l.binds("aa")
	l.server.Clock.Observe(epoch.Add(365*day), l.boot, l.boot)
	ignored(t, l.discover("bb"))
	acked(t, l.renews("aa", ip))
	l.passes(day)
	l.releases("aa", ip)
	NewWithT(t).Expect(l.binds("bb")).To(Equal(ip), "what is given back may be given on")
}

func TestAWishTakesNothingBecauseATimeIsUpWhileOthersWereNeverUsed(t *testing.T) {
	for addresses, taken := range map[byte]bool{2: false, 1: true} {
		l := newLab(t, addresses)
		ip := l.binds("aa")
		l.passes(3 * day)
		NewWithT(t).Expect(yours(l.discover("bb", wants(ip))) == ip).To(Equal(taken))
	}
}

func TestAWallClockThatIsAYearAheadTakesNothingFromAnybody(t *testing.T) {
	l, g := newLab(t, 1), NewWithT(t)
	ip := l.binds("aa")
	l.passes(2*day - 2*time.Hour)
	saved, _ := l.server.Clock.Save()
	rebooted := clock.From(func() time.Duration { return l.boot }, "boot-2")
	rebooted.Alone(saved, l.now().Add(365*day))
	l.boots(rebooted)
	l.syncs()
	ignored(t, l.discover("bb", wants(ip)))
	l.passes(day - time.Minute)
	ignored(t, l.discover("bb"))
	g.Expect(leaseOf(acked(t, l.renews("aa", ip)))).To(Equal(day))
	l.passes(3 * day)
	g.Expect(l.binds("bb")).To(Equal(ip), "it was steady for a lease time")
}

func TestAServerThatDoesNotKnowTheTimeIsSilent(t *testing.T) {
	l := newLab(t, 5)
	ip := l.binds("aa")
	l.boots(clock.From(func() time.Duration { return l.boot }, "boot-2"))
	l.syncs()
	ignored(t, l.renews("aa", ip))
}

func TestReleases(t *testing.T) {
	l, g := newLab(t, 3), NewWithT(t)
	ip := l.binds("aa")
	l.releases("bb", ip)
	g.Expect(l.store.records[ip].State).To(Equal(lease.Bound), "by another client")
	l.releases("aa", at(12))
	g.Expect(l.store.records[ip].State).To(Equal(lease.Bound), "of another address")
	l.releases("aa", ip)
	g.Expect(l.store.records[ip]).To(And(HaveField("State", lease.Released), HaveField("Dropped", []netip.Addr{us})))
	g.Expect(l.binds("bb")).NotTo(Equal(ip), "reused late")
	g.Expect(l.binds("aa")).To(Equal(ip), "the same client first")
	g.Expect(l.store.records[ip].Dropped).To(BeEmpty())
}

func TestAReleasedAddressWaitsForEveryInstance(t *testing.T) {
	other := at(3)
	l := newLab(t, 1)
	l.reconfigure(func(c *pool.Config) { c.Instances = []netip.Addr{us, other} })
	ip := l.binds("aa")
	l.releases("aa", ip)
	ignored(t, l.discover("bb"))
	dropped := l.store.records[ip]
	dropped.Dropped = append(dropped.Dropped, other)
	r, err := l.store.Update(t.Context(), dropped)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	l.server.Table.Learn(r)
	NewWithT(t).Expect(l.binds("bb")).To(Equal(ip))
}

// An instance that is lost drops nothing.
func TestAReleasedAddressWaitsForALostInstanceUntilItsLeaseWouldHaveEnded(t *testing.T) {
	l := newLab(t, 1)
	l.reconfigure(func(c *pool.Config) { c.Instances = []netip.Addr{us, at(3)} })
	ip := l.binds("aa")
	l.releases("aa", ip)
	l.passes(2*day + l.config.Grace())
	ignored(t, l.discover("bb"))
	l.passes(time.Second)
	NewWithT(t).Expect(l.server.Table.Room(l.now(), true).None).To(BeFalse())
	NewWithT(t).Expect(l.binds("bb")).To(Equal(ip))
}

// The list of who has dropped an address is short, and instances move.
func TestFormerInstancesAreNotCountedAsDropped(t *testing.T) {
	l := newLab(t, 1)
	l.reconfigure(func(c *pool.Config) { c.Instances = []netip.Addr{us, at(3)} })
	ip := l.binds("aa")
	released := l.store.records[ip]
	released.State, released.Dropped = lease.Released, []netip.Addr{at(3), at(96), at(97), at(98)}
	r, err := l.store.Update(t.Context(), released)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	l.server.Table.Learn(r)
	l.server.Expire(t.Context())
	NewWithT(t).Expect(l.store.records[ip].Dropped).To(Equal([]netip.Addr{at(3), us}))
}

// Of two instances one that is cut off acknowledges no holder that boots, which would wait for it and not turn to the other.
func TestAHolderThatBootsIsOfferedOnlyWhatItsREQUESTGets(t *testing.T) {
	for name, instances := range map[string][]netip.Addr{"by one instance": {us}, "by one of two": {us, at(3)}} {
		t.Run(name, func(t *testing.T) {
			l, g := newLab(t, 5), NewWithT(t)
			yes, no := func() bool { return true }, func() bool { return false }
			l.reconfigure(func(c *pool.Config) { c.Instances = instances })
			ip := l.binds("aa")
			l.store.away, l.server.Away, l.server.Cut = true, yes, yes
			g.Expect(l.discover("aa") != nil).To(Equal(l.selects("aa", ip) != nil))
			acked(t, l.renews("aa", ip))
			l.store.away, l.server.Cut = false, no // as where a quota refuses new leases
			g.Expect(l.binds("aa")).To(Equal(ip))
		})
	}
}

func TestABindingWhoseReleaseMayStillArrive(t *testing.T) {
	l, g := newLab(t, 5), NewWithT(t)
	ip := l.binds("aa")
	l.store.deaf = true
	acked(t, l.reboots("aa", at(12))) // its other lease is released, and the answer is lost
	l.store.deaf = false
	g.Expect(l.store.records[ip].State).To(Equal(lease.Released))
	acked(t, l.selects("aa", ip))
	g.Expect(l.store.records[ip].State).To(Equal(lease.Bound), "what is acknowledged is stored")
}

// A client that releases, and asks again at once, may be heard by two instances: whose write comes first counts. Else the second one would end a
// binding that the first has just acknowledged.
func TestAReleaseThatFindsItsLeaseWrittenAnewIsDropped(t *testing.T) {
	w := newWorld(t, 2)
	ours, theirs := w.instances[0], w.instances[1]
	ip := ours.binds("aa")
	theirs.syncs()
	w.store.before = func() { acked(t, theirs.reboots("aa", ip)) }
	ours.releases("aa", ip)
	NewWithT(t).Expect(w.store.records[ip].State).To(Equal(lease.Bound), "what is acknowledged is stored")

	w.store.before = func() { ours.releases("aa", ip) }
	acked(t, theirs.reboots("aa", ip))
	NewWithT(t).Expect(w.store.records[ip].State).To(Equal(lease.Bound), "the other way round")
}

func TestDeclines(t *testing.T) {
	l, g := newLab(t, 100), NewWithT(t)
	ip := l.binds("aa")
	l.declines("bb", ip)
	g.Expect(l.store.records[ip].State).To(Equal(lease.Bound), "by another than the holder")
	for range 3 {
		ip = l.binds("aa")
		l.declines("aa", ip)
		g.Expect(l.store.records[ip].State).To(Equal(lease.Declined))
	}
	ip = l.binds("aa")
	l.declines("aa", ip)
	g.Expect(l.store.records[ip].State).To(Equal(lease.Bound), "the fourth in an hour")
	for i := range 9 {
		mac := fmt.Sprintf("b%d", i)
		ip = l.binds(mac)
		l.declines(mac, ip)
	}
	g.Expect(l.store.records[ip].State).To(Equal(lease.Bound), "more than a tenth of the pool")
	g.Expect(l.binds("b8")).NotTo(Equal(ip), "it was declined")
	l.passes(2*day + day/10 + time.Second) // nobody asked for those that rested
	ip = l.binds("c0")
	l.declines("c0", ip)
	g.Expect(l.store.records[ip].State).To(Equal(lease.Declined), "those whose time is over are not counted")
}

func TestADeclinedAddressIsProbedBeforeItsHolderGetsItBack(t *testing.T) {
	l := newLab(t, 1)
	ip := l.binds("aa")
	l.declines("aa", ip)
	l.passes(2*day + day/10 + time.Second)
	l.hosts[ip] = "bb"
	ignored(t, l.discover("aa"))
	delete(l.hosts, ip)
	l.passes(11 * time.Minute)
	NewWithT(t).Expect(l.binds("aa")).To(Equal(ip))
}

func TestWhoIsRefused(t *testing.T) {
	outside := netip.MustParseAddr("10.0.0.9")
	for name, c := range map[string]struct {
		reply func(*lab) *dhcpv4.DHCPv4
		nak   bool
	}{
		"reboots with another network's address":    {func(l *lab) *dhcpv4.DHCPv4 { return l.reboots("aa", outside) }, true},
		"renews another network's address":          {func(l *lab) *dhcpv4.DHCPv4 { return l.renews("aa", outside) }, true},
		"the same, and the store is away":           {func(l *lab) *dhcpv4.DHCPv4 { l.store.away = true; return l.reboots("aa", outside) }, true},
		"renews our own address":                    {func(l *lab) *dhcpv4.DHCPv4 { return l.renews("aa", us) }, true},
		"reboots with an address that another has":  {func(l *lab) *dhcpv4.DHCPv4 { return l.reboots("aa", l.binds("bb")) }, true},
		"renews an address that another has":        {func(l *lab) *dhcpv4.DHCPv4 { return l.renews("aa", l.binds("bb")) }, true},
		"the same, and nobody can be asked":         {func(l *lab) *dhcpv4.DHCPv4 { ip := l.binds("bb"); l.store.away = true; return l.renews("aa", ip) }, false},
		"reboots with an unknown address elsewhere": {func(l *lab) *dhcpv4.DHCPv4 { return l.reboots("aa", at(200)) }, false},
		"selects what it may not have":              {func(l *lab) *dhcpv4.DHCPv4 { return l.selects("aa", at(200)) }, true},
		"selects the router's address":              {func(l *lab) *dhcpv4.DHCPv4 { return l.selects("aa", at(1)) }, true},
		"selects another server": {func(l *lab) *dhcpv4.DHCPv4 {
			return l.hears("aa", dhcpv4.MessageTypeRequest, wants(at(10)), chose(at(77)))
		}, false},
		"comes through an unknown relay": {func(l *lab) *dhcpv4.DHCPv4 { return l.discover("aa", through(at(9))) }, false},
		"renews another network's address by relay": {func(l *lab) *dhcpv4.DHCPv4 {
			l.reconfigure(func(c *pool.Config) { c.Relays = []netip.Prefix{netip.MustParsePrefix("192.168.100.9/32")} })
			return l.hears("aa", dhcpv4.MessageTypeRequest, has(outside), through(at(9)))
		}, false},
		"informs from another network": {func(l *lab) *dhcpv4.DHCPv4 { return l.hears("aa", dhcpv4.MessageTypeInform, has(outside)) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 5)
			reply := c.reply(l)
			if c.nak {
				refused(t, reply)
			} else {
				ignored(t, reply)
			}
		})
	}
}

func TestARelayMustBeConfiguredAndOnTheSubnet(t *testing.T) {
	l := newLab(t, 5)
	l.reconfigure(func(c *pool.Config) {
		c.Relays = []netip.Prefix{netip.MustParsePrefix("192.168.100.9/32"), netip.MustParsePrefix("10.0.0.0/8")}
	})
	NewWithT(t).Expect(l.discover("aa", through(at(9)))).NotTo(BeNil())
	ignored(t, l.discover("bb", through(netip.MustParseAddr("10.0.0.9"))))
}

func TestAClientThatChoseAnotherServerFreesItsOffer(t *testing.T) {
	l := newLab(t, 1)
	ip := yours(l.discover("aa"))
	ignored(t, l.discover("bb"))
	ignored(t, l.hears("aa", dhcpv4.MessageTypeRequest, wants(at(77)), chose(at(77))))
	NewWithT(t).Expect(yours(l.discover("bb"))).To(Equal(ip))
}

func TestAnOfferIsForgottenAfterTenSeconds(t *testing.T) {
	l := newLab(t, 1)
	l.discover("aa")
	l.passes(10 * time.Second)
	ignored(t, l.discover("bb"))
	l.passes(time.Second)
	NewWithT(t).Expect(l.discover("bb")).NotTo(BeNil())
}

func TestReservations(t *testing.T) {
	reserve := func(l *lab, mac string, ip netip.Addr) {
		l.reconfigure(func(c *pool.Config) {
			c.Reservations = []pool.Reservation{{IP: ip, Client: lease.Client{MAC: "52:54:00:00:00:" + mac}, Hostname: "fixed"}}
		})
	}
	t.Run("come first, in or outside the range, with their hostname", func(t *testing.T) {
		l := newLab(t, 2)
		reserve(l, "aa", at(200))
		NewWithT(t).Expect(l.binds("aa")).To(Equal(at(200)))
		NewWithT(t).Expect(l.renews("aa", at(200)).HostName()).To(Equal("fixed"))
	})
	t.Run("are nobody else's", func(t *testing.T) {
		l := newLab(t, 1)
		reserve(l, "aa", at(10))
		ignored(t, l.discover("bb"))
		refused(t, l.selects("bb", at(10)))
	})
	t.Run("that changed are taken up at boot, never at renewal", func(t *testing.T) {
		l := newLab(t, 5)
		ip := l.binds("aa")
		l.told = nil
		reserve(l, "aa", at(200))
		NewWithT(t).Expect(l.said()).To(Equal([]string{"52:54:00:00:00:aa keeps " + ip.String() + " until it boots again; then it gets 192.168.100.200, which is reserved for it"}))
		acked(t, l.renews("aa", ip))
		refused(t, l.reboots("aa", ip))
		NewWithT(t).Expect(l.binds("aa")).To(Equal(at(200)))
		NewWithT(t).Expect(l.store.records[ip].State).To(Equal(lease.Released), "the other lease of the client")
		l.told = nil
		reserve(l, "aa", at(200))
		NewWithT(t).Expect(l.told).To(BeEmpty(), "it is served")
	})
	t.Run("wait for who holds the address", func(t *testing.T) {
		l := newLab(t, 5)
		ip := l.binds("bb")
		l.told = nil
		reserve(l, "aa", ip)
		NewWithT(t).Expect(l.said()).To(Equal([]string{ip.String() + " is reserved for 52:54:00:00:00:aa, and 52:54:00:00:00:bb has it; restart that machine, and it gets another"}))
		interim := l.binds("aa")
		NewWithT(t).Expect(interim).NotTo(Equal(ip))
		acked(t, l.renews("bb", ip))
		refused(t, l.reboots("bb", ip))
		l.releases("bb", ip)
		NewWithT(t).Expect(l.binds("aa")).To(Equal(ip))
	})
	t.Run("wait, and a new server says so, too", func(t *testing.T) {
		l := newLab(t, 5)
		reserve(l, "aa", l.binds("bb"))
		l.told = nil
		l.boots(l.server.Clock)
		NewWithT(t).Expect(l.told).To(BeEmpty(), "it has read nothing")
		l.syncs()
		NewWithT(t).Expect(l.told).To(ConsistOf(HaveField("Type", ReservationPending)))
	})
	t.Run("wait no longer for a lease that is over", func(t *testing.T) {
		l := newLab(t, 5)
		ip := l.binds("bb")
		l.passes(3 * day)
		l.told = nil
		reserve(l, "aa", ip)
		NewWithT(t).Expect(l.told).To(BeEmpty())
	})
	t.Run("by client-id", func(t *testing.T) {
		l := newLab(t, 5)
		l.reconfigure(func(c *pool.Config) {
			c.Reservations = []pool.Reservation{{IP: at(200), Client: lease.Client{ID: "ff:01"}}}
		})
		id := dhcpv4.WithOption(dhcpv4.OptClientIdentifier([]byte{255, 1}))
		NewWithT(t).Expect(yours(l.discover("aa", id))).To(Equal(at(200)))
	})
}

func TestAPoolThatShrankKeepsItsHoldersAndAdmitsNobody(t *testing.T) {
	l := newLab(t, 1)
	ip := l.binds("aa")
	l.reconfigure(func(c *pool.Config) { c.First, c.Last = at(50), at(50) })
	acked(t, l.renews("aa", ip))
	acked(t, l.reboots("aa", ip))
	ignored(t, l.reboots("bb", at(11)))
	l.releases("aa", ip)
	NewWithT(t).Expect(l.binds("bb")).To(Equal(at(50)))
}

func TestAnAddressThatIsNoLongerToBeHadDoesNotComeBackToItsLastClient(t *testing.T) {
	for name, change := range map[string]func(*pool.Config){
		"excluded":         func(c *pool.Config) { c.Last, c.Never = at(50), []pool.Range{{First: at(10), Last: at(49)}} },
		"outside the pool": func(c *pool.Config) { c.First, c.Last = at(50), at(50) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 1)
			ip := l.binds("aa")
			l.releases("aa", ip)
			l.reconfigure(change)
			ignored(t, l.reboots("aa", ip))
			refused(t, l.selects("aa", ip))
			NewWithT(t).Expect(l.binds("aa")).To(Equal(at(50)))
		})
	}
}

func TestAHolderLeavesAnAddressThatTheNetworkNeeds(t *testing.T) {
	for name, take := range map[string]func(*pool.Config, netip.Addr){
		"the server":        func(c *pool.Config, ip netip.Addr) { c.Server, c.Instances = ip, []netip.Addr{ip} },
		"the gateway":       func(c *pool.Config, ip netip.Addr) { c.Network.Router = ip },
		"a route's gateway": func(c *pool.Config, ip netip.Addr) { c.Network.Routes = []wire.Route{{Via: ip}} },
		"a name server":     func(c *pool.Config, ip netip.Addr) { c.Network.DNS = []netip.Addr{ip} },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 5)
			ip := l.binds("aa")
			l.reconfigure(func(c *pool.Config) { take(c, ip) })
			refused(t, l.reboots("aa", ip))
			refused(t, l.renews("aa", ip))
			NewWithT(t).Expect(l.binds("aa")).NotTo(Equal(ip))
		})
	}
	t.Run("but keeps one that is only excluded", func(t *testing.T) {
		l := newLab(t, 5)
		ip := l.binds("aa")
		l.reconfigure(func(c *pool.Config) { c.Never = []pool.Range{{First: ip, Last: ip}} })
		acked(t, l.reboots("aa", ip))
		acked(t, l.renews("aa", ip))
	})
}

func TestAClientOfAnEarlierServerIsAdopted(t *testing.T) {
	for name, asks := range map[string]func(*lab) *dhcpv4.DHCPv4{
		"at boot":    func(l *lab) *dhcpv4.DHCPv4 { return l.reboots("aa", at(12)) },
		"at renewal": func(l *lab) *dhcpv4.DHCPv4 { return l.renews("aa", at(12)) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 5)
			l.reconfigure(func(c *pool.Config) { c.Born = epoch })
			l.hosts[at(12)] = "52:54:00:00:00:aa" // it has the address already
			acked(t, asks(l))
			NewWithT(t).Expect(l.store.records[at(12)].State).To(Equal(lease.Bound))
		})
	}
}

func TestAYoungServerProbes(t *testing.T) {
	l, g := newLab(t, 1), NewWithT(t)
	l.reconfigure(func(c *pool.Config) { c.Born = epoch.Add(-2*day + time.Hour) })
	l.hosts[at(10)] = "squatter"
	ignored(t, l.discover("aa"))
	g.Expect(l.told).To(ContainElement(HaveField("Type", AddressInUse)))
	delete(l.hosts, at(10))
	l.passes(11 * time.Minute)
	g.Expect(l.binds("aa")).To(Equal(at(10)))
	g.Expect(l.probes).To(Equal(2), "once an exchange")

	old := newLab(t, 1)
	old.binds("aa")
	g.Expect(old.probes).To(BeZero(), "an old server knows")
}

func TestAKnownMachinesProbeHasRoomThatStrangersLeave(t *testing.T) {
	l, g := newLab(t, 20), NewWithT(t)
	l.reconfigure(func(c *pool.Config) {
		c.Born = epoch
		c.Reservations = []pool.Reservation{{IP: at(200), Client: lease.Client{MAC: "52:54:00:00:00:aa"}}}
	})
	l.discover("aa")
	l.discover("bb")
	g.Expect(l.known).To(Equal([]bool{true, false}))
}

func TestWhereNobodyCanBeAskedNoAddressCountsAsTaken(t *testing.T) {
	l, g := newLab(t, 1), NewWithT(t)
	l.reconfigure(func(c *pool.Config) { c.Born = epoch })
	l.mute = unix.ENOBUFS
	ignored(t, l.discover("aa"))
	g.Expect(l.probes).To(Equal(1), "another address would be asked for in vain, too")
	l.mute = nil
	g.Expect(l.binds("aa")).To(Equal(at(10)))
	g.Expect(l.told).NotTo(ContainElement(HaveField("Type", AddressInUse)))
}

// probesAhead has the server probe as it does on its own, until the kernel has given up.
func (l *lab) probesAhead() {
	l.t.Helper()
	for _, ip := range l.server.Table.Ahead(l.now()) {
		l.server.probeAhead(l.t.Context(), l, ip)
	}
	l.passes(5 * time.Second)
}

func TestAYoungServerProbesAhead(t *testing.T) {
	young := func(c *pool.Config) { c.Born = epoch }
	t.Run("and again, shortly, before the OFFER", func(t *testing.T) {
		l, g := newLab(t, 3), NewWithT(t)
		l.reconfigure(young)
		l.hosts[at(10)] = "squatter"
		l.probesAhead()
		g.Expect(l.told).To(ContainElement(And(HaveField("Type", AddressInUse), HaveField("IP", at(10)))))
		l.waited = nil
		g.Expect(l.binds("aa")).NotTo(Equal(at(10)))
		g.Expect(l.waited).To(Equal([]time.Duration{link.WaitAgain}))
	})
	t.Run("who took an address since is heard", func(t *testing.T) {
		l, g := newLab(t, 2), NewWithT(t)
		l.reconfigure(young)
		l.probesAhead()
		l.hosts[at(10)] = "squatter"
		g.Expect(l.binds("aa")).To(Equal(at(11)))
		ignored(t, l.discover("bb"))
		g.Expect(l.told).To(ContainElement(And(HaveField("Type", AddressInUse), HaveField("IP", at(10)))))
	})
	t.Run("a configuration that changes forgets only what it closes", func(t *testing.T) {
		l, g := newLab(t, 2), NewWithT(t)
		l.reconfigure(young)
		l.probesAhead()
		closed := pool.Range{First: at(10), Last: at(10)}
		l.reconfigure(func(c *pool.Config) { c.Never = []pool.Range{closed} })
		l.reconfigure(func(c *pool.Config) { c.Never = nil })
		l.waited = nil
		g.Expect(l.binds("aa")).To(Equal(at(11)))
		g.Expect(l.binds("bb")).To(Equal(at(10)))
		g.Expect(l.waited).To(Equal([]time.Duration{link.WaitAgain, link.Wait}))
	})
	t.Run("what was probed long ago is probed in full", func(t *testing.T) {
		l, g := newLab(t, 3), NewWithT(t)
		l.reconfigure(young)
		l.probesAhead()
		l.passes(4 * time.Minute)
		l.waited = nil
		l.binds("aa")
		g.Expect(l.waited).To(Equal([]time.Duration{link.Wait}))
	})
	t.Run("a client of an earlier server that answers is let in", func(t *testing.T) {
		l, g := newLab(t, 1), NewWithT(t)
		l.reconfigure(young)
		l.hosts[at(10)] = "52:54:00:00:00:aa"
		l.probesAhead()
		ignored(t, l.discover("bb"))
		g.Expect(yours(l.discover("aa", wants(at(10))))).To(Equal(at(10)))
		acked(t, l.reboots("aa", at(10)))
	})
	for name, asks := range map[string]func(*lab) *dhcpv4.DHCPv4{
		"boots":    func(l *lab) *dhcpv4.DHCPv4 { return l.reboots("bb", at(10)) },
		"renews":   func(l *lab) *dhcpv4.DHCPv4 { return l.renews("bb", at(10)) },
		"wants it": func(l *lab) *dhcpv4.DHCPv4 { return l.discover("bb", wants(at(10))) },
	} {
		t.Run("and another that "+name+" is not", func(t *testing.T) {
			l, g := newLab(t, 1), NewWithT(t)
			l.reconfigure(young)
			l.hosts[at(10)] = "52:54:00:00:00:aa"
			l.probesAhead()
			l.reconfigure(func(c *pool.Config) { c.Born = epoch.Add(-1000 * day) }) // a minute on, it is young no more
			ignored(t, asks(l))
			g.Expect(l.store.records).To(BeEmpty())
			g.Expect(l.told).To(ContainElement(HaveField("Client.MAC", "52:54:00:00:00:bb")))
		})
	}
	t.Run("an old one does not", func(t *testing.T) {
		l := newLab(t, 3)
		l.probesAhead()
		NewWithT(t).Expect(l.probes).To(BeZero())
	})
}

func TestAnAddressThatMayBeInUseStill(t *testing.T) {
	t.Run("is waited for by who takes it over", func(t *testing.T) {
		l, g := newLab(t, 5), NewWithT(t)
		l.machines.has("worker-1", "aa")
		ip := l.binds("aa")
		l.machines.running["aa"] = false
		delete(l.machines.owners, "aa")
		l.machines.has("worker-1", "bb")
		l.hosts[ip] = undecided
		ignored(t, l.discover("bb"))
		delete(l.hosts, ip)
		g.Expect(l.binds("bb")).To(Equal(ip))
		g.Expect(l.told).NotTo(ContainElement(HaveField("Type", AddressInUse)))
	})
	t.Run("is no reason to keep a client waiting that only asked for it", func(t *testing.T) {
		l, g := newLab(t, 5), NewWithT(t)
		ip := l.binds("aa")
		l.releases("aa", ip)
		l.hosts[ip] = undecided
		offer := l.discover("bb", wants(ip))
		g.Expect(offer).NotTo(BeNil())
		g.Expect(yours(offer)).NotTo(Equal(ip))
		g.Expect(yours(l.discover("bb", wants(ip)))).To(Equal(yours(offer)))
		delete(l.hosts, ip)
		g.Expect(yours(l.discover("cc", wants(ip)))).To(Equal(ip), "it has left")
	})
	t.Run("is waited for where none is as good", func(t *testing.T) {
		l, g := newLab(t, 1), NewWithT(t)
		ip := l.binds("aa")
		l.releases("aa", ip)
		l.hosts[ip], l.told = undecided, nil
		ignored(t, l.discover("bb"))
		g.Expect(l.told).To(BeEmpty(), "the pool is not exhausted")
		delete(l.hosts, ip)
		g.Expect(l.binds("bb")).To(Equal(ip))
	})
	t.Run("is left alone where another is as good", func(t *testing.T) {
		l, g := newLab(t, 2), NewWithT(t)
		l.reconfigure(func(c *pool.Config) { c.Born = epoch })
		l.hosts[at(10)], l.hosts[at(11)] = undecided, undecided
		ignored(t, l.discover("aa"))
		delete(l.hosts, at(11))
		l.passes(11 * time.Minute)
		g.Expect(l.binds("aa")).To(Equal(at(11)))
		g.Expect(l.told).NotTo(ContainElement(HaveField("Type", AddressInUse)))
	})
}

func TestTheLeaseOfAMachine(t *testing.T) {
	t.Run("carries its name, which the client is told", func(t *testing.T) {
		l := newLab(t, 5)
		vm := l.machines.has("worker-1", "aa")
		ip := l.binds("aa")
		NewWithT(t).Expect(l.store.records[ip]).To(And(HaveField("VM", vm), HaveField("Hostname", "worker-1")))
		NewWithT(t).Expect(l.renews("aa", ip).HostName()).To(Equal("worker-1"))
	})
	t.Run("lives as long as the machine", func(t *testing.T) {
		l := newLab(t, 1)
		vm := l.machines.has("worker-1", "aa")
		ip := l.binds("aa")
		l.passes(365 * day)
		ignored(t, l.discover("bb"))
		ignored(t, l.discover("bb", wants(ip)))
		refused(t, l.selects("bb", ip))
		l.server.Expire(t.Context())
		l.machines.gone[vm.UID] = true
		l.server.Expire(t.Context())
		l.passes(29 * time.Second)
		l.server.Expire(t.Context())
		NewWithT(t).Expect(l.store.records[ip].State).To(Equal(lease.Bound), "missed for a moment only")
		l.passes(time.Second)
		l.server.Expire(t.Context())
		NewWithT(t).Expect(l.store.records[ip].State).To(Equal(lease.Released))
		NewWithT(t).Expect(l.binds("bb")).To(Equal(ip))
	})
	t.Run("ends by time when it was declined, though the machine lives", func(t *testing.T) {
		l := newLab(t, 2)
		l.machines.has("worker-1", "aa")
		declined := l.binds("aa")
		l.declines("aa", declined)
		other := l.binds("aa")
		NewWithT(t).Expect(other).NotTo(Equal(declined))
		ignored(t, l.discover("bb"))
		l.passes(2*day + day/10 + time.Second)
		NewWithT(t).Expect(l.binds("bb")).To(Equal(declined), "its machine has another address, and no claim to this one")
		NewWithT(t).Expect(l.store.records[declined].VM).To(BeZero())
	})
	t.Run("follows it to another hardware address", func(t *testing.T) {
		l := newLab(t, 5)
		l.machines.has("worker-1", "aa")
		ip := l.binds("aa")
		l.machines.has("worker-1", "bb")
		NewWithT(t).Expect(l.binds("bb")).NotTo(Equal(ip), "while both are live it has two cards")
		l.machines.running["aa"] = false
		delete(l.machines.owners, "aa")
		l.machines.has("worker-1", "cc")
		NewWithT(t).Expect(l.binds("cc")).To(Equal(ip))
		NewWithT(t).Expect(l.store.records[ip].Client.MAC).To(HaveSuffix("cc"))
	})
	t.Run("follows it through a restore, which gives new UIDs", func(t *testing.T) {
		l := newLab(t, 5)
		vm := l.machines.has("worker-1", "aa")
		ip := l.binds("aa")
		restored := lease.VM{Namespace: vm.Namespace, Name: vm.Name, UID: "new"}
		l.machines.gone[vm.UID], l.machines.named = true, map[string]lease.VM{vm.Name: restored}
		l.server.Expire(t.Context())
		NewWithT(t).Expect(l.store.records[ip]).To(And(HaveField("VM", restored), HaveField("State", lease.Bound)))
	})
	t.Run("is its holder's when two machines run with one hardware address", func(t *testing.T) {
		l := newLab(t, 5)
		l.machines.has("worker-1", "aa")
		ip := l.binds("aa")
		twice := l.machines.owners["aa"]
		twice.Duplicate = true
		l.machines.owners["aa"], l.machines.owners["bb"] = twice, twice
		acked(t, l.renews("aa", ip))
		ignored(t, l.discover("bb"))
		NewWithT(t).Expect(l.told).To(ContainElement(HaveField("Type", DuplicateMAC)))
	})
}

func TestAStrangerWaitsForItsMachineToBeKnown(t *testing.T) {
	l := newLab(t, 10)
	l.reconfigure(func(c *pool.Config) { c.LooksUpVMs = true })
	l.machines.pending = true
	ignored(t, l.discover("aa"))
	l.passes(4 * time.Second)
	ignored(t, l.discover("aa"))
	l.machines.has("worker-1", "aa")
	NewWithT(t).Expect(l.discover("aa").HostName()).To(Equal("worker-1"))
	ignored(t, l.discover("bb"))
	l.passes(28 * time.Second) // as a client does that hears nothing (RFC 2131 §4.1)
	NewWithT(t).Expect(leaseOf(l.discover("bb"))).To(Equal(time.Hour), "then it is a stranger")
}

func TestStrangersAmongMachinesHoldHalfThePoolForAnHour(t *testing.T) {
	l, g := newLab(t, 10), NewWithT(t)
	l.reconfigure(func(c *pool.Config) { c.LooksUpVMs = true })
	for i := range 5 {
		ip := l.binds(fmt.Sprintf("a%d", i))
		g.Expect(l.store.records[ip].Horizon).To(Equal(epoch.Add(time.Hour)))
	}
	l.told = nil
	ignored(t, l.discover("a5"))
	g.Expect(l.told).To(ConsistOf(HaveField("Type", GuestShareUsed)), "addresses are left for machines, and nobody is alarmed")
	for i := range 5 {
		mac := fmt.Sprintf("b%d", i)
		l.machines.has("worker-"+mac, mac)
		l.binds(mac)
	}
}

func TestUnknownClientsAreIgnoredWhereAskedFor(t *testing.T) {
	l := newLab(t, 10)
	l.reconfigure(func(c *pool.Config) { c.KnownOnly = true })
	l.machines.has("worker-1", "aa")
	l.binds("aa")
	ignored(t, l.discover("bb"))
	ignored(t, l.reboots("bb", at(12)))
}

func TestOfClientsThatAreServedByAnotherServerNothingIsSaid(t *testing.T) {
	elsewhere := netip.MustParseAddr("10.0.0.9")
	l := newLab(t, 10)
	l.reconfigure(func(c *pool.Config) { c.KnownOnly = true })
	ignored(t, l.reboots("bb", elsewhere))
	ignored(t, l.renews("bb", elsewhere))
	ignored(t, l.selects("bb", elsewhere))
	ignored(t, l.hears("bb", dhcpv4.MessageTypeInform, has(at(99))))
	l.machines.has("worker-1", "aa")
	refused(t, l.reboots("aa", elsewhere))
	acked(t, l.hears("aa", dhcpv4.MessageTypeInform, has(at(99))))
}

func TestAClientIDOpensItsOwnAddressOnly(t *testing.T) {
	id := dhcpv4.WithOption(dhcpv4.OptClientIdentifier([]byte{255, 1}))
	reserved := pool.Reservation{IP: at(200), Client: lease.Client{ID: "ff:01"}, Hostname: "fixed"}
	l, g := newLab(t, 2), NewWithT(t)
	l.reconfigure(func(c *pool.Config) {
		c.LooksUpVMs = true
		c.Reservations = []pool.Reservation{reserved}
	})
	offer := l.discover("aa", id)
	g.Expect([]any{yours(offer), leaseOf(offer), offer.HostName()}).To(Equal([]any{at(200), day, "fixed"}))
	ack := acked(t, l.hears("aa", dhcpv4.MessageTypeRequest, wants(at(200)), chose(us), id))
	g.Expect([]any{leaseOf(ack), ack.HostName()}).To(Equal([]any{day, "fixed"}))
	g.Expect(l.store.records[at(200)].Horizon).To(Equal(epoch.Add(2 * day)))
	l.binds("c0") // guests have their half
	ignored(t, l.discover("bb", id))

	l.reconfigure(func(c *pool.Config) { c.Last = at(29) })
	interim := l.discover("bb", id)
	g.Expect([]any{leaseOf(interim), interim.HostName()}).To(Equal([]any{time.Hour, ""}), "a guest, who is called nothing")
	g.Expect(l.server.Table.Rank(lease.Client{MAC: "52:54:00:00:00:bb"})).To(Equal(pool.Offered))

	l.reconfigure(func(c *pool.Config) { c.KnownOnly = true })
	ignored(t, l.discover("cc", id))
	l.hears("aa", dhcpv4.MessageTypeRelease, has(at(200)))
	g.Expect(yours(l.discover("aa", id))).To(Equal(at(200)), "its own it gets wherever only known clients are served")
	acked(t, l.hears("aa", dhcpv4.MessageTypeRequest, wants(at(200)), chose(us), id))
}

func TestOffersNeverFillMoreThanHalfThePool(t *testing.T) {
	l := newLab(t, 10)
	for i := range 5 {
		NewWithT(t).Expect(l.discover(fmt.Sprintf("a%d", i))).NotTo(BeNil())
	}
	ignored(t, l.discover("a5"))
	l.reconfigure(func(c *pool.Config) {
		c.Reservations = []pool.Reservation{{IP: at(200), Client: lease.Client{MAC: "52:54:00:00:00:bb"}}}
	})
	NewWithT(t).Expect(l.binds("bb")).To(Equal(at(200)))
}

func TestYesterdaysQuestionsAreNotAnswered(t *testing.T) {
	t.Run("old at receipt", func(t *testing.T) {
		l := newLab(t, 1)
		ip := yours(l.discover("aa"))
		ignored(t, l.hearsAt(time.Now().Add(-3*time.Second), "aa", dhcpv4.MessageTypeRequest, wants(ip), chose(us)))
		NewWithT(t).Expect(l.store.writes).To(BeZero(), "and nothing is done")
	})
	t.Run("too old to be probed for and answered", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := newLab(t, 1)
			l.reconfigure(func(c *pool.Config) { c.Born = epoch })
			ignored(t, l.hearsAt(time.Now().Add(2*link.Wait-tooOld-time.Nanosecond), "aa", dhcpv4.MessageTypeDiscover))
			NewWithT(t).Expect(l.probes).To(BeZero())
		})
	})
	t.Run("too old to be offered an address, but not to be given it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := newLab(t, 1)
			ip := yours(l.discover("aa"))
			acked(t, l.hearsAt(time.Now().Add(-tooLate), "aa", dhcpv4.MessageTypeRequest, wants(ip), chose(us)))
		})
	})
	t.Run("too old to be given one", func(t *testing.T) {
		l := newLab(t, 1)
		ip := yours(l.discover("aa"))
		ignored(t, l.hearsAt(time.Now().Add(-tooLate-time.Nanosecond), "aa", dhcpv4.MessageTypeRequest, wants(ip), chose(us)))
		NewWithT(t).Expect(l.store.writes).To(BeZero())
	})
	t.Run("old when the answer is ready", func(t *testing.T) {
		l := newLab(t, 1)
		ip := yours(l.discover("aa"))
		l.store.before = func() { time.Sleep(1100 * time.Millisecond) } // a store that is slow
		ignored(t, l.hearsAt(time.Now().Add(-time.Second), "aa", dhcpv4.MessageTypeRequest, wants(ip), chose(us)))
	})
	t.Run("without a timestamp", func(t *testing.T) {
		ignored(t, newLab(t, 1).hearsAt(time.Time{}, "aa", dhcpv4.MessageTypeDiscover))
	})
}

func TestBeforeTheFirstListOnlyHoldersAreRenewed(t *testing.T) {
	l := newLab(t, 5)
	ip := l.binds("aa")
	known, c := l.store.records[ip], l.server.Clock
	l.boots(c)
	l.server.Table.Learn(known) // from the copy
	acked(t, l.renews("aa", ip))
	ignored(t, l.discover("bb"))
	ignored(t, l.renews("bb", ip))
	ignored(t, l.renews("cc", at(14)))
	l.passes(2*day + time.Second)
	ignored(t, l.renews("aa", ip))
	l.syncs()
	acked(t, l.renews("aa", ip))
}

func TestALeaseDeletedByHandIsWrittenAgain(t *testing.T) {
	l, g := newLab(t, 1), NewWithT(t)
	ip := l.binds("aa")
	deleted := l.store.records[ip]
	delete(l.store.records, ip)
	deleted.Version++
	l.server.Table.Lost(deleted)
	ignored(t, l.discover("bb"))
	l.server.Expire(t.Context())
	g.Expect(l.store.records[ip]).To(And(HaveField("Client.MAC", HaveSuffix("aa")), HaveField("Horizon", epoch.Add(2*day))))

	delete(l.store.records, ip)
	deleted.Version = 100
	l.server.Table.Lost(deleted)
	l.passes(2*day + time.Second)
	l.server.Expire(t.Context())
	g.Expect(l.store.records).To(BeEmpty(), "its promise has passed")
	g.Expect(l.binds("bb")).To(Equal(ip))
}

// An etcd that is restored to an older revision numbers its versions from there, so our version is higher than the true one.
func TestAStoreThatWentBack(t *testing.T) {
	type state struct {
		records map[netip.Addr]lease.Record
		last    uint64
	}
	save := func(l *lab) state { return state{maps.Clone(l.store.records), l.store.last} }
	goBack := func(l *lab, to state) { l.store.records, l.store.last = to.records, to.last }

	t.Run("extends its holders", func(t *testing.T) {
		l, g := newLab(t, 5), NewWithT(t)
		ip := l.binds("aa")
		before := save(l)
		l.passes(day + day/2)
		acked(t, l.renews("aa", ip))
		l.passes(day + day/2)
		goBack(l, before)
		g.Expect(leaseOf(acked(t, l.renews("aa", ip)))).To(Equal(day))
		g.Expect(l.store.records[ip].Horizon).To(Equal(l.now().Add(2 * day)))
	})
	t.Run("gets back what we promised, as soon as it tells", func(t *testing.T) {
		l, g := newLab(t, 5), NewWithT(t)
		ip := l.binds("aa")
		l.releases("aa", ip)
		before := save(l)
		l.binds("aa")
		promised := l.store.records[ip]
		goBack(l, before)
		l.syncs()
		l.server.Expire(t.Context())
		g.Expect(l.store.records[ip]).To(And(HaveField("State", lease.Bound), HaveField("Client", promised.Client), HaveField("Horizon", promised.Horizon)))
		g.Expect(l.told[len(l.told)-1].Type).To(Equal(LeaseRestored))
		writes := l.store.writes
		l.server.Expire(t.Context())
		acked(t, l.renews("aa", ip))
		g.Expect(l.store.writes).To(Equal(writes))
	})
	t.Run("gets back what it never heard of", func(t *testing.T) {
		l, g := newLab(t, 5), NewWithT(t)
		before := save(l)
		ip := l.binds("aa")
		promised := l.store.records[ip]
		goBack(l, before)
		l.syncs()
		g.Expect(l.server.Table.Suspects()).To(ConsistOf(ip), "what is newer than a list may have been written meanwhile")
		l.server.Expire(t.Context())
		g.Expect(l.store.records[ip]).To(And(HaveField("Client", promised.Client), HaveField("Horizon", promised.Horizon)))
	})
	t.Run("is not one that was read while we wrote", func(t *testing.T) {
		l, g := newLab(t, 5), NewWithT(t)
		version := l.store.last
		ip := l.binds("aa")
		writes := l.store.writes
		l.server.Table.Listed(map[netip.Addr]bool{}, version)
		l.server.Expire(t.Context())
		g.Expect(l.server.Table.Suspects()).To(BeEmpty())
		g.Expect([]any{l.server.Table.Records()[0], l.store.writes}).To(Equal([]any{l.store.records[ip], writes}))
	})
	t.Run("gives no address away that is promised", func(t *testing.T) {
		l := newLab(t, 1)
		ip := l.binds("aa")
		l.releases("aa", ip)
		before := save(l)
		l.binds("aa")
		goBack(l, before)
		refused(t, l.selects("bb", ip))
		acked(t, l.renews("aa", ip))
	})
	t.Run("is believed where its promise is the later one, or ours was given back", func(t *testing.T) {
		l, g := newLab(t, 5), NewWithT(t)
		ip := l.binds("aa")
		acked(t, l.renews("aa", ip))
		before := save(l)
		l.releases("aa", ip)
		goBack(l, before)
		l.syncs()
		l.server.Expire(t.Context())
		g.Expect(l.server.Table.Records()).To(ConsistOf(l.store.records[ip]))
	})
	t.Run("is not one whose watch is late", func(t *testing.T) {
		l, g := newLab(t, 5), NewWithT(t)
		ip := l.binds("aa")
		late := l.store.records[ip]
		l.passes(day + day/2)
		acked(t, l.renews("aa", ip))
		writes := l.store.writes
		l.server.Table.Learn(late)
		g.Expect(l.server.Table.Suspects()).To(ConsistOf(ip))
		l.server.Expire(t.Context())
		g.Expect(l.server.Table.Suspects()).To(BeEmpty())
		g.Expect([]any{l.server.Table.Records()[0], l.store.writes}).To(Equal([]any{l.store.records[ip], writes}))
	})
}

func TestAQuietPoolWritesNothing(t *testing.T) {
	l := newLab(t, 20)
	for i := range 10 {
		l.machines.has(fmt.Sprintf("worker-%d", i), fmt.Sprintf("a%d", i))
		ip := l.binds(fmt.Sprintf("a%d", i))
		if i%2 == 0 {
			l.releases(fmt.Sprintf("a%d", i), ip)
		}
	}
	writes := l.store.writes
	for range 100 {
		l.passes(time.Minute)
		l.server.Expire(t.Context())
	}
	NewWithT(t).Expect(l.store.writes).To(Equal(writes))
}

func TestEachLeaseThatBeginsOrEndsIsLogged(t *testing.T) {
	l, g, log := newLab(t, 20), NewWithT(t), &bytes.Buffer{}
	l.server.Log = slog.New(slog.NewTextHandler(log, nil))
	ip, begun := l.binds("aa"), l.now()
	l.passes(25 * time.Hour)
	acked(t, l.renews("aa", ip))
	g.Expect(l.store.writes).To(Equal(2))
	g.Expect(l.store.records[ip].Since).To(Equal(lease.SecondsOf(begun)), "a renewal goes on with the lease")
	l.releases("aa", ip)
	g.Expect(l.store.records[ip].Since).To(Equal(lease.SecondsOf(l.now())))
	l.declines("bb", l.binds("bb"))
	l.machines.has("worker-1", "cc")
	ip = l.binds("cc")
	l.machines.has("worker-2", "cc")
	acked(t, l.renews("cc", ip))
	var lines []string
	for _, m := range regexp.MustCompile(`msg=lease state=(\w+) ip=[\d.]+ client=52:54:00:00:00:(\w+) .* since=(\S+) .* why=\w+`).FindAllStringSubmatch(log.String(), -1) {
		lines = append(lines, m[1]+" "+m[2])
		g.Expect(time.Parse(time.RFC3339, m[3])).To(BeTemporally("~", l.now(), 26*time.Hour))
	}
	g.Expect(lines).To(Equal([]string{"Bound aa", "Released aa", "Bound bb", "Declined bb", "Bound cc", "Bound cc"}), log.String())
}

func TestInformGetsOptionsAndNoLease(t *testing.T) {
	l := newLab(t, 5)
	reply := acked(t, l.hears("aa", dhcpv4.MessageTypeInform, has(at(99))))
	NewWithT(t).Expect(leaseOf(reply)).To(Equal(time.Duration(-1)))
	NewWithT(t).Expect(reply.YourIPAddr.IsUnspecified()).To(BeTrue())
	NewWithT(t).Expect(l.store.records).To(BeEmpty())
}

func TestAForeignServerIsToldOf(t *testing.T) {
	foreign := at(99)
	offer := func(l *lab, server netip.Addr) []byte {
		reply, err := dhcpv4.New(func(d *dhcpv4.DHCPv4) { d.OpCode = dhcpv4.OpcodeBootReply }, dhcpv4.WithMessageType(dhcpv4.MessageTypeOffer), chose(server))
		NewWithT(l.t).Expect(err).NotTo(HaveOccurred())
		return reply.ToBytes()
	}
	for name, speak := range map[string]func(l *lab, server netip.Addr){
		"a client chooses its OFFER": func(l *lab, server netip.Addr) {
			l.hears("aa", dhcpv4.MessageTypeRequest, wants(at(10)), chose(server))
		},
		"its OFFER comes to everybody": func(l *lab, server netip.Addr) { _ = l.server.Overhear(&overheard{lab: l, packet: offer(l, server)}) },
	} {
		t.Run(name, func(t *testing.T) {
			l, g := newLab(t, 20), NewWithT(t)
			speak(l, us)
			g.Expect(l.told).NotTo(ContainElement(HaveField("Type", ForeignServer)), "our own")
			speak(l, foreign)
			g.Expect(l.told).To(ContainElement(And(HaveField("Type", ForeignServer), HaveField("IP", foreign))))
		})
	}
}

// overheard is a port at which one datagram arrives.
type overheard struct {
	*lab
	packet []byte
}

func (o *overheard) Receive() (link.Packet, error) {
	if o.packet == nil {
		return link.Packet{}, net.ErrClosed
	}
	p := link.Packet{Data: o.packet}
	o.packet = nil
	return p, nil
}

func TestInfrastructureIsNeverLeased(t *testing.T) {
	l := newLab(t, 1)
	l.reconfigure(func(c *pool.Config) {
		c.First, c.Last = at(0), at(255)
		c.Network.DNS, c.Network.NTP = []netip.Addr{at(3)}, []netip.Addr{at(254)}
		c.Never = []pool.Range{{First: at(4), Last: at(250)}}
	})
	got := map[netip.Addr]bool{}
	for i := range 10 {
		if offer := l.discover(fmt.Sprintf("0%d", i)); offer != nil {
			got[yours(l.selects(fmt.Sprintf("0%d", i), yours(offer)))] = true
		}
	}
	NewWithT(t).Expect(got).To(Equal(map[netip.Addr]bool{at(251): true, at(252): true, at(253): true}))
}
