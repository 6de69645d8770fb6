package dhcp

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/link"
	"github.com/cldmnky/oooi/internal/dhcp/pool"
	"github.com/cldmnky/oooi/internal/dhcp/wire"
)

// RunProbing is Run with another pause between probes.
func RunProbing(ctx context.Context, o Options, c client.WithWatch, pause time.Duration) error {
	i := newInstance(o, c)
	i.probePause = pause
	return i.run(ctx)
}

// fedPort is a port on which these datagrams arrive, and then no more.
type fedPort struct {
	*lab
	datagrams [][]byte

	mu   sync.Mutex
	sent map[netip.AddrPort][]byte
}

func (p *fedPort) Receive() (link.Packet, error) {
	if len(p.datagrams) == 0 {
		return link.Packet{}, io.EOF
	}
	next := p.datagrams[0]
	p.datagrams = p.datagrams[1:]
	return link.Packet{Data: next, Received: time.Now()}, nil
}

func (p *fedPort) Send(data []byte, to netip.AddrPort) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent[to] = data
	return nil
}

// receives has the lab's server answer datagrams, and returns its replies and what it counted.
func (l *lab) receives(datagrams ...[]byte) (sent map[netip.AddrPort][]byte, metrics string) {
	l.t.Helper()
	counted := newMetrics(l.server)
	p := &fedPort{lab: l, datagrams: datagrams, sent: map[netip.AddrPort][]byte{}}
	NewWithT(l.t).Expect(l.server.Serve(l.t.Context(), p)).To(MatchError(io.EOF))
	answer := httptest.NewRecorder()
	counted.handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	return p.sent, answer.Body.String()
}

var (
	xid   = dhcpv4.TransactionID{1, 2, 3, 4}
	other = at(3)
)

// twoServe is a lab whose server is one of two, and serves known clients only.
func twoServe(t *testing.T) *lab {
	l := newLab(t, 10)
	l.reconfigure(func(c *pool.Config) { c.Instances, c.KnownOnly = []netip.Addr{us, other}, true })
	return l
}

func TestAProbeIsAnsweredAndIsNoClient(t *testing.T) {
	l, g := twoServe(t), NewWithT(t)
	l.store.away = true // as it is for an instance that is cut off
	forged, err := dhcpv4.New(dhcpv4.WithHwAddr(net.HardwareAddr{0x52, 0x54, 0, 0, 0, 1}), dhcpv4.WithMessageType(dhcpv4.MessageTypeInform), has(us))
	g.Expect(err).NotTo(HaveOccurred())
	relayed, err := dhcpv4.FromBytes(wire.ProbeOf(other, xid))
	g.Expect(err).NotTo(HaveOccurred())
	relayed.GatewayIPAddr = at(99).AsSlice()
	sent, metrics := l.receives(wire.ProbeOf(other, xid), wire.ProbeOf(at(77), xid), forged.ToBytes(), relayed.ToBytes())
	g.Expect(sent).To(HaveLen(1))
	g.Expect(wire.JudgeProbed(sent[netip.AddrPortFrom(other, 68)], xid, us)).To(Succeed())
	g.Expect(metrics).To(And(
		ContainSubstring(`oooi_dhcp_packets_received_total{kind="probe",outcome="ack/informed"} 1`),
		ContainSubstring(`oooi_dhcp_packets_received_total{kind="inform",outcome="silence/unknown-client"} 2`),
		Not(ContainSubstring("oooi_dhcp_packets_sent_total{"))))
	g.Expect(l.store.writes).To(BeZero())
	g.Expect(l.told).To(BeEmpty())
}

// A flood of strangers keeps no machine out, so it must not look as if it did. Who forges probes takes their two places, and no others.
func TestAFloodOfStrangersCrowdsOutNoProbe(t *testing.T) {
	l, g := twoServe(t), NewWithT(t)
	for i := 0; l.server.lanes[pool.Stranger].Enter(lease.Client{ID: fmt.Sprint(i)}); i++ {
	}
	sent, _ := l.receives(wire.ProbeOf(other, xid))
	g.Expect(sent).To(HaveLen(1))
	for range ofOneClient {
		g.Expect(l.server.lanes[pool.Known].Enter(wire.Probing(other))).To(BeTrue())
	}
	sent, metrics := l.receives(wire.ProbeOf(other, xid), wire.ProbeOf(us, xid))
	g.Expect(sent).To(And(HaveLen(1), HaveKey(netip.AddrPortFrom(us, 68))))
	g.Expect(metrics).To(ContainSubstring(`oooi_dhcp_packets_received_total{kind="probe",outcome="crowded-out"} 1`))
}
