package dhcp

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/link"
	"github.com/cldmnky/oooi/internal/dhcp/pool"
	"github.com/cldmnky/oooi/internal/share"
)

// crowdedPort is a port with a crowd: strangers who go through the whole exchange, and one machine that we know.
type crowdedPort struct {
	*lab
	packets  chan link.Packet
	replies  chan *dhcpv4.DHCPv4 // to the machine
	machine  net.HardwareAddr
	answered func(*dhcpv4.DHCPv4)
}

func (p *crowdedPort) Receive() (link.Packet, error) {
	packet, open := <-p.packets
	if !open {
		return link.Packet{}, errors.New("closed")
	}
	packet.Received = time.Now()
	return packet, nil
}

func (p *crowdedPort) Send(data []byte, _ netip.AddrPort) error {
	reply, err := dhcpv4.FromBytes(data)
	if err != nil {
		return err
	}
	if reply.ClientHWAddr.String() == p.machine.String() {
		p.replies <- reply
	} else if reply.MessageType() == dhcpv4.MessageTypeOffer {
		p.answered(reply)
	}
	return nil
}

func (p *crowdedPort) sends(hardware net.HardwareAddr, kind dhcpv4.MessageType, with ...dhcpv4.Modifier) {
	m, err := dhcpv4.New(append([]dhcpv4.Modifier{dhcpv4.WithHwAddr(hardware), dhcpv4.WithMessageType(kind)}, with...)...)
	if err == nil {
		p.packets <- link.Packet{Data: m.ToBytes()}
	}
}

// slowStore is as slow as a busy API server.
type slowStore struct{ lease.Store }

func (s slowStore) Create(ctx context.Context, r lease.Record) (lease.Record, error) {
	select {
	case <-time.After(50 * time.Millisecond):
		return s.Store.Create(ctx, r)
	case <-ctx.Done():
		return lease.Record{}, ctx.Err()
	}
}

func TestAFloodDoesNotKeepAMachineOut(t *testing.T) {
	l, g := newLab(t, 240), NewWithT(t)
	l.server.Store = slowStore{l.store}
	l.server.Happened = func(Event) {}
	p := &crowdedPort{lab: l, packets: make(chan link.Packet), replies: make(chan *dhcpv4.DHCPv4, 10), machine: net.HardwareAddr{0x52, 0x54, 0, 0, 0, 0xaa}}
	l.reconfigure(func(c *pool.Config) {
		c.LooksUpVMs = true
		c.Reservations = []pool.Reservation{{IP: at(254), Client: lease.Client{MAC: p.machine.String()}}}
	})
	second := make(chan *dhcpv4.DHCPv4, 1000)
	p.answered = func(offer *dhcpv4.DHCPv4) {
		select {
		case second <- offer:
		default:
		}
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = l.server.Serve(t.Context(), p) }()
	over := make(chan struct{})
	go func() { // 100,000 strangers
		defer close(over)
		for i := range uint32(100_000) {
			select {
			case offer := <-second:
				p.sends(offer.ClientHWAddr, dhcpv4.MessageTypeRequest, wants(yours(offer)), chose(us))
			default:
				p.sends(binary.BigEndian.AppendUint32([]byte{2, 0}, i), dhcpv4.MessageTypeDiscover)
			}
		}
	}()
	for range 5 {
		start := time.Now()
		p.sends(p.machine, dhcpv4.MessageTypeDiscover)
		g.Eventually(p.replies).WithTimeout(2 * time.Second).Should(Receive(HaveField("YourIPAddr", Equal(net.IP(at(254).AsSlice())))))
		p.sends(p.machine, dhcpv4.MessageTypeRequest, wants(at(254)), chose(us))
		g.Eventually(p.replies).WithTimeout(2 * time.Second).Should(Receive(WithTransform((*dhcpv4.DHCPv4).MessageType, Equal(dhcpv4.MessageTypeAck))))
		g.Expect(time.Since(start)).To(BeNumerically("<", 2*time.Second))
		p.sends(p.machine, dhcpv4.MessageTypeRelease, has(at(254)), chose(us))
	}
	<-over
	close(p.packets)
	<-ended
	strangers := 0
	for _, r := range l.store.records {
		if r.IP != at(254) {
			strangers++
		}
	}
	g.Expect(strangers).To(BeNumerically("<=", 120), "half the pool")
}

// gatedPort blocks every probe until the gate opens.
type gatedPort struct {
	*crowdedPort
	gate <-chan struct{}
}

func (p gatedPort) Answers(context.Context, netip.Addr, string, bool, time.Duration) (bool, error) {
	<-p.gate
	return false, nil
}

func TestWhoStartsAtOnceWaitsAndIsAnswered(t *testing.T) {
	l, g := newLab(t, 240), NewWithT(t)
	l.server.Happened = func(Event) {}
	ip := yours(l.discover("aa"))
	l.reconfigure(func(c *pool.Config) { c.Born = epoch })
	l.server.Table.Vacant(ip)
	const strangers = 100
	offers, gate := make(chan *dhcpv4.DHCPv4, strangers), make(chan struct{})
	p := &crowdedPort{lab: l, packets: make(chan link.Packet), replies: make(chan *dhcpv4.DHCPv4, 10), machine: net.HardwareAddr{0x52, 0x54, 0, 0, 0, 0xaa}}
	p.answered = func(offer *dhcpv4.DHCPv4) { offers <- offer }
	ended := make(chan struct{})
	go func() { defer close(ended); _ = l.server.Serve(t.Context(), gatedPort{p, gate}) }()
	for i := range uint32(strangers) {
		p.sends(binary.BigEndian.AppendUint32([]byte{2, 0}, i), dhcpv4.MessageTypeDiscover)
	}
	p.sends(p.machine, dhcpv4.MessageTypeRequest, wants(ip), chose(us))
	g.Eventually(p.replies).WithTimeout(time.Second).Should(Receive(WithTransform((*dhcpv4.DHCPv4).MessageType, Equal(dhcpv4.MessageTypeAck))), "who was offered an address")
	close(gate)
	close(p.packets)
	<-ended
	g.Expect(offers).To(HaveLen(strangers))
}

func TestWhoWaitsForItsTurnHoldsNoPlace(t *testing.T) {
	l, c := &lane{Places: share.New[lease.Client](10, 10), answered: make(chan struct{}, 10)}, lease.Client{MAC: "aa"}
	begun, end := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	for range 10 {
		l.Enter(c)
		all.Go(func() { l.take(c, func() { begun <- struct{}{}; <-end }) })
	}
	for range 10 {
		<-begun
		NewWithT(t).Consistently(func() int { return len(l.answered) }).WithTimeout(20 * time.Millisecond).WithPolling(time.Millisecond).Should(Equal(1))
		end <- struct{}{}
	}
	all.Wait()
}

// largePort receives datagrams in large buffers, and says when one is garbage.
type largePort struct {
	gatedPort
	released chan struct{}
}

func (p largePort) Receive() (link.Packet, error) {
	packet, err := p.gatedPort.Receive()
	if err == nil {
		buffer := new([9216]byte)
		runtime.AddCleanup(buffer, func(released chan struct{}) { released <- struct{}{} }, p.released)
		packet.Data = buffer[:copy(buffer[:], packet.Data)]
	}
	return packet, err
}

func TestWhoWaitsKeepsNoBuffer(t *testing.T) {
	l, g, gate := newLab(t, 240), NewWithT(t), make(chan struct{})
	l.reconfigure(func(c *pool.Config) { c.Born = epoch })
	p := &crowdedPort{lab: l, packets: make(chan link.Packet), answered: func(*dhcpv4.DHCPv4) {}}
	large := largePort{gatedPort{p, gate}, make(chan struct{}, 100)}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = l.server.Serve(t.Context(), large) }()
	for i := range uint32(100) {
		p.sends(binary.BigEndian.AppendUint32([]byte{2, 0}, i), dhcpv4.MessageTypeDiscover)
	}
	g.Eventually(func() int { runtime.GC(); return len(large.released) }).WithTimeout(10*time.Second).Should(BeNumerically(">=", 99), "the last one may be on the stack still")
	close(gate)
	close(p.packets)
	<-ended
}

// FuzzServe: the server survives every datagram, and does not answer garbage.
func FuzzServe(f *testing.F) {
	discover, err := dhcpv4.NewDiscovery(net.HardwareAddr{0x52, 0x54, 0, 0, 0, 1})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(discover.ToBytes())
	f.Add([]byte("garbage"))
	f.Fuzz(func(t *testing.T, octets []byte) {
		l := newLab(t, 5)
		p := &onePacket{lab: l, data: octets}
		_ = l.server.Serve(t.Context(), p)
		if len(l.sent) > 1 {
			t.Fatalf("%d replies to one datagram", len(l.sent))
		}
	})
}

type onePacket struct {
	*lab
	data []byte
}

func (p *onePacket) Receive() (link.Packet, error) {
	data := p.data
	if data == nil {
		return link.Packet{}, errors.New("closed")
	}
	p.data = nil
	return link.Packet{Data: data, Received: time.Now()}, nil
}
