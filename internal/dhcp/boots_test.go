package dhcp

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/boot"
	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/wire"
)

// counts are the boots that a server counts from now on.
func (l *lab) counts() *[]string {
	var all []string
	l.server.Booted = func(stage string, after time.Duration) { all = append(all, fmt.Sprint(stage, " ", after)) }
	return &all
}

func TestABootIsCountedOnce(t *testing.T) {
	l, g := newLab(t, 20), NewWithT(t)
	on := map[string]time.Time{}
	l.server.SwitchedOn = func(vm lease.VM) time.Time { return on[vm.Name] }
	counted := l.counts()
	on[l.machines.has("worker-1", "aa").Name] = l.now()
	l.passes(20 * time.Second)
	ip := l.binds("aa")
	g.Expect(*counted).To(Equal([]string{boot.PowerOnToLease + " 20s"}))

	l.passes(25 * time.Hour)
	acked(t, l.renews("aa", ip)) // is written
	acked(t, l.reboots("aa", ip))
	g.Expect(l.binds("aa")).To(Equal(ip))
	g.Expect(*counted).To(HaveLen(1), "it has its address")

	l.releases("aa", ip)
	l.passes(time.Second)
	l.discover("aa")
	l.passes(4 * time.Second)
	l.binds("aa")
	g.Expect((*counted)[1:]).To(Equal([]string{boot.DiscoverToLease + " 4s"}), "it was switched on yesterday")
}

func TestABootOfWhatIsNoVirtualMachineBeginsWithItsDiscover(t *testing.T) {
	l, g := newLab(t, 2), NewWithT(t)
	l.binds("aa")
	last := l.binds("bb")
	counted := l.counts()
	ignored(t, l.discover("cc"))
	l.passes(time.Minute)
	ignored(t, l.discover("cc"))
	l.releases("bb", last)
	l.passes(time.Minute)
	l.binds("cc")
	g.Expect(*counted).To(Equal([]string{boot.DiscoverToLease + " 2m0s"}), "the pool was full")
	g.Expect(l.server.discovers.first).To(BeEmpty())
}

// A client of an earlier server asks for the address that it has.
func TestAnAdoptedClientDoesNotBoot(t *testing.T) {
	l := newLab(t, 5)
	counted := l.counts()
	acked(t, l.reboots("aa", at(12)))
	NewWithT(t).Expect(*counted).To(BeEmpty())
}

// The other instance gave the address.
func TestWhatAnotherInstanceCountsIsForgotten(t *testing.T) {
	l, g := newLab(t, 5), NewWithT(t)
	l.discover("aa")
	g.Expect(l.server.discovers.first).To(HaveLen(1))
	l.server.learn(lease.Record{IP: at(11), Client: lease.Client{MAC: "52:54:00:00:00:aa"}, State: lease.Bound, Version: 100, Horizon: l.now().Add(time.Hour)})
	g.Expect(l.server.discovers.first).To(BeEmpty())
}

func TestWhoAskIsRememberedWithinBounds(t *testing.T) {
	g, d := NewWithT(t), discovers{first: map[lease.Client]time.Time{}}
	ask := func(n int, now time.Time) time.Time {
		return d.hears(wire.Message{Kind: wire.Discover, Client: lease.Client{MAC: fmt.Sprint(n)}}, now)
	}
	for n := range mostAsking + 10 {
		ask(n, epoch)
	}
	g.Expect(d.first).To(HaveLen(mostAsking))
	g.Expect(ask(1, epoch.Add(time.Minute))).To(Equal(epoch))
	later := epoch.Add(boot.Longest + time.Second)
	g.Expect(ask(1, later)).To(Equal(later), "that was another boot")
	g.Expect(d.first).To(HaveLen(1))
	for n := range 2 * mostAsking {
		ask(n, later)
	}
	ask(0, later.Add(time.Second))
	ask(-1, later.Add(time.Second))
	g.Expect(d.swept).To(Equal(later), "not for each message")
}
