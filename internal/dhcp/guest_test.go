package dhcp

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/link"
	"github.com/cldmnky/oooi/internal/dhcp/pool"
)

// Tests of what one guest can take from the others, and from the management cluster.

func TestWhoBindsAndReleasesInTurnCausesFewWrites(t *testing.T) {
	l, g := newLab(t, 100), NewWithT(t)
	l.reconfigure(func(c *pool.Config) { c.LooksUpVMs = true })
	loop := func(mac string) {
		if offer := l.discover(mac); offer != nil {
			if ack := l.selects(mac, yours(offer)); ack != nil {
				l.releases(mac, yours(ack))
			}
		}
	}
	for range 100 {
		loop("bb")
	}
	g.Expect(l.store.writes).To(BeNumerically("<=", 12), "one client")
	l.passes(time.Minute)
	writes := l.store.writes
	for range 100 {
		loop("bb")
	}
	g.Expect(l.store.writes-writes).To(Equal(12), "and a minute later as many")

	writes = l.store.writes
	l.passes(time.Minute)
	for i := range 200 {
		for range 6 {
			loop(fmt.Sprintf("%02x", i))
		}
	}
	g.Expect(l.store.writes-writes).To(Equal(256), "all guests together")

	l.passes(time.Minute)
	for range 5 {
		loop("fe")
	}
	ip := l.binds("fe")
	for _, name := range []string{"worker-1", "worker-2"} {
		l.machines.has(name, "fe")
		acked(t, l.renews("fe", ip))
		g.Expect(l.store.records[ip].VM.Name).To(Equal(name), "who renews has no budget")
	}
}

// bindsAndReleases has so many clients each take an address and give it back, three times, and returns the writes.
func (l *lab) bindsAndReleases(clients int) int {
	before := l.store.writes
	for i := range clients {
		mac := fmt.Sprintf("%02x:%02x", i/256, i%256)
		for range 3 {
			if offer := l.discover(mac); offer != nil {
				if ack := l.selects(mac, yours(offer)); ack != nil {
					l.releases(mac, yours(ack))
				}
			}
		}
	}
	return l.store.writes - before
}

// Where no virtual machines are looked up, as on bare metal, a guest with many hardware addresses had no bound.
func TestWhoBindsUnderManyAddressesCausesFewWrites(t *testing.T) {
	l, g := newLab(t, 100), NewWithT(t)
	g.Expect(l.bindsAndReleases(600)).To(Equal(2048), "a rack that boots at once has room")
	l.passes(10 * time.Second)
	g.Expect(l.bindsAndReleases(600)).To(Equal(100), "ten more a second")

	l.reconfigure(func(c *pool.Config) { c.LooksUpVMs = true })
	l.passes(time.Hour)
	g.Expect(l.bindsAndReleases(600)).To(Equal(256))
	l.reconfigure(func(c *pool.Config) { c.Instances = append(c.Instances, at(200)) })
	l.passes(10 * time.Second)
	g.Expect(l.bindsAndReleases(600)).To(Equal(50), "of each of two instances five a second")

	l.reconfigure(func(c *pool.Config) { c.Instances, c.InFile, c.LooksUpVMs = c.Instances[:1], true, false })
	g.Expect(l.bindsAndReleases(600)).To(BeNumerically(">", 3000), "a file is nobody else's")
}

// Who is given an address leaves the one it had, which is a write, too.
func TestWhoAsksForOneAddressAfterAnotherCausesFewWrites(t *testing.T) {
	l, g := newLab(t, 100), NewWithT(t)
	l.binds("bb")
	for n := range byte(100) {
		l.reboots("bb", at(10+n))
	}
	g.Expect(l.store.writes).To(BeNumerically("<=", 12))
}

// Each REQUEST of a guest raised its horizon, which reached no further than one term: 64 guests that asked all the time caused 48 writes a second.
func TestAGuestThatAsksAgainCausesNoWrite(t *testing.T) {
	l, g := newLab(t, 100), NewWithT(t)
	l.reconfigure(func(c *pool.Config) { c.LooksUpVMs = true })
	ip := l.binds("bb")
	g.Expect(l.store.writes).To(Equal(1))
	for _, after := range []time.Duration{time.Second, 10 * time.Minute, 30*time.Minute - 10*time.Minute - time.Second} {
		l.passes(after)
		offer := l.discover("bb")
		ack := acked(t, l.selects("bb", ip))
		g.Expect(leaseOf(offer)).To(Equal(leaseOf(ack)), "it gets what it is offered")
		g.Expect(leaseOf(ack)).To(Equal(l.store.records[ip].Horizon.Sub(l.now())), "what is left")
	}
	g.Expect(l.store.writes).To(Equal(1))
	l.passes(time.Second)
	g.Expect(leaseOf(l.discover("bb"))).To(Equal(time.Hour))
	g.Expect(leaseOf(acked(t, l.renews("bb", ip)))).To(Equal(time.Hour))
	g.Expect(l.store.writes).To(Equal(2), "half is over")
}

// Of two instances each confirms by a write that a holder that boots has released nothing through the other. A neighbour that sends a machine's
// REQUEST again and again, under its hardware address, uses up that machine's writes; a read does then.
func TestAHolderThatBootsAgainAndAgainCausesFewWrites(t *testing.T) {
	l, g := newLab(t, 100), NewWithT(t)
	l.reconfigure(func(c *pool.Config) { c.Instances = []netip.Addr{us, at(3)} })
	ip := l.binds("bb")
	for range 100 {
		acked(t, l.reboots("bb", ip))
		g.Expect(l.binds("bb")).To(Equal(ip))
	}
	g.Expect(l.store.writes).To(Equal(12))
	acked(t, l.renews("bb", ip))

	l.releasedElsewhere(ip, at(3))
	ignored(t, l.reboots("bb", ip))
	g.Expect(l.store.records[ip].State).To(Equal(lease.Released), "what is read counts")
}

// releasedElsewhere is what the store has after another instance has heard a RELEASE of which our watch has not told us yet.
func (l *lab) releasedElsewhere(ip, by netip.Addr) {
	r := l.store.records[ip]
	r.State, r.Dropped = lease.Released, []netip.Addr{by}
	_, err := l.store.Update(l.t.Context(), r)
	NewWithT(l.t).Expect(err).NotTo(HaveOccurred())
}

// blockedStore blocks every update until the gate opens.
type blockedStore struct {
	lease.Store
	gate <-chan struct{}
}

func (s blockedStore) Update(ctx context.Context, r lease.Record) (lease.Record, error) {
	select {
	case <-s.gate:
		return s.Store.Update(ctx, r)
	case <-ctx.Done():
		return lease.Record{}, ctx.Err()
	}
}

func TestWhoHasALeaseCrowdsNoMachineOut(t *testing.T) {
	for name, holders := range map[string]int{"one, itself known, that sends a thousand messages": 1, "all that there may be, each with its message": 200} {
		t.Run(name, func(t *testing.T) {
			l, g := newLab(t, 240), NewWithT(t)
			p := &crowdedPort{lab: l, packets: make(chan link.Packet), replies: make(chan *dhcpv4.DHCPv4, 10), machine: net.HardwareAddr{0x52, 0x54, 0, 0, 0, 0xfe}, answered: func(*dhcpv4.DHCPv4) {}}
			l.reconfigure(func(c *pool.Config) {
				c.Reservations = []pool.Reservation{{IP: at(254), Client: lease.Client{MAC: p.machine.String()}}}
				if holders == 1 { // one that goes into the machine's own lane
					c.Reservations = append(c.Reservations, pool.Reservation{IP: at(253), Client: lease.Client{MAC: "52:54:00:00:00:00"}})
				}
			})
			var bound []netip.Addr
			for i := range holders {
				bound = append(bound, l.binds(fmt.Sprintf("%02x", i)))
			}
			gate := make(chan struct{})
			l.server.Store = blockedStore{l.store, gate}
			ended := make(chan struct{})
			go func() { defer close(ended); _ = l.server.Serve(t.Context(), p) }()
			for i := range 1100 {
				i %= holders
				p.sends(net.HardwareAddr{0x52, 0x54, 0, 0, 0, byte(i)}, dhcpv4.MessageTypeRelease, has(bound[i]), chose(us))
			}
			p.sends(p.machine, dhcpv4.MessageTypeDiscover)
			g.Eventually(p.replies).WithTimeout(time.Second).Should(Receive(HaveField("YourIPAddr", Equal(net.IP(at(254).AsSlice())))))
			close(gate)
			close(p.packets)
			<-ended
		})
	}
}

func TestAGuestHasFewEventsWritten(t *testing.T) {
	g := NewWithT(t)
	var log bytes.Buffer
	a := newAnnouncer(nil, slog.New(slog.NewTextHandler(&log, nil)), nil)
	now, told := epoch, 0
	tell := func(h Event) {
		if a.isNews(h, now) {
			told++
		}
	}
	for i := range uint32(100_000) {
		tell(Event{Type: ForeignServer, IP: netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, i)))})
	}
	g.Expect(told).To(Equal(32), "servers that somebody makes up")
	for i := range uint32(100_000) {
		client := lease.Client{MAC: net.HardwareAddr(binary.BigEndian.AppendUint32([]byte{2, 0}, i)).String()}
		tell(Event{Type: LeaseBound, Client: client})
		tell(Event{Type: LeaseReleased, Client: client})
	}
	g.Expect(told).To(Equal(32+128), "clients that somebody makes up")
	tell(Event{Type: DuplicateMAC, Client: lease.Client{MAC: "52:54:00:00:00:aa"}})
	tell(Event{Type: LeaseBound, VM: lease.VM{UID: "u", Name: "worker-1"}})
	g.Expect(told).To(Equal(32+128+2), "another reason, and a machine, are told all the same")
	g.Expect(bytes.Count(log.Bytes(), []byte("more events than are told"))).To(Equal(2), log.String())
	now = now.Add(10 * time.Minute)
	tell(Event{Type: ForeignServer, IP: at(99)})
	g.Expect(told).To(Equal(32 + 128 + 3))
	tell(Event{Type: ForeignServer, IP: at(99)})
	g.Expect(told).To(Equal(32+128+3), "not twice")
}
