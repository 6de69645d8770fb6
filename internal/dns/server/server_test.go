package server

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	mdns "github.com/miekg/dns"
	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/dns/records"
	"github.com/cldmnky/oooi/internal/testkit/ports"
)

// served is both views on the loopback device, each on its own port.
type served struct {
	*Server
	t          *testing.T
	intent     records.Intent
	vlan, pods netip.AddrPort
}

var intent = records.Intent{
	Domain:   "c1.example.com.",
	VLAN:     []records.Record{{Name: "api.c1.example.com.", Addr: netip.MustParseAddr("192.168.100.4")}},
	Pods:     []records.Record{{Name: "api.c1.example.com.", Addr: netip.MustParseAddr("172.30.0.9")}},
	Clients:  []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	CacheTTL: time.Hour,
}

func serve(t *testing.T, upstreams ...netip.AddrPort) *served {
	t.Helper()
	s := &served{Server: New(), t: t, intent: intent}
	s.uses(upstreams...)
	s.vlan, s.pods = s.opens(s.VLAN()), s.opens(s.Pods())
	t.Cleanup(func() {
		s.Close()
		NewWithT(t).Eventually(func() int { return s.waiting() }, 10*time.Second).Should(BeZero())
	})
	return s
}

func (s *served) opens(view View) netip.AddrPort {
	g := NewWithT(s.t)
	l, err := Listen(s.t.Context(), netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), ports.Free(s.t)))
	g.Expect(err).NotTo(HaveOccurred())
	ctx, stop := context.WithCancel(s.t.Context())
	ended := make(chan error)
	go func() { ended <- l.Serve(ctx, view) }()
	s.t.Cleanup(func() {
		stop()
		g.Expect(<-ended).To(Succeed())
	})
	return l.At
}

func (s *served) uses(upstreams ...netip.AddrPort) {
	s.intent.Upstreams = upstreams
	NewWithT(s.t).Expect(s.Say(s.intent)).To(Succeed())
}

func query(t *testing.T, network string, at netip.AddrPort, m *mdns.Msg) *mdns.Msg {
	t.Helper()
	c := mdns.Client{Net: network, Timeout: 6 * time.Second}
	answer, _, err := c.Exchange(m, at.String())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return answer
}

func question(name string, qtype uint16) *mdns.Msg { return new(mdns.Msg).SetQuestion(name, qtype) }

// address returns the data of the first A record in a server's answer, else the response code.
func address(t *testing.T, at netip.AddrPort, name string) string {
	t.Helper()
	answer := query(t, "udp", at, question(name, mdns.TypeA))
	if len(answer.Answer) == 0 {
		return mdns.RcodeToString[answer.Rcode]
	}
	return answer.Answer[0].(*mdns.A).A.String()
}

// upstream is a resolver that answers every name with one address.
type upstream struct {
	netip.AddrPort
	asked atomic.Int32
	says  atomic.Pointer[string] // nil: silence
	// asks, if set, answers instead; nil: silence.
	asks atomic.Pointer[func(*mdns.Msg) *mdns.Msg]
}

func newUpstream(t *testing.T, addr string) *upstream {
	t.Helper()
	u := &upstream{}
	u.says.Store(&addr)
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	u.AddrPort = netip.MustParseAddrPort(udp.LocalAddr().String())
	server := &mdns.Server{PacketConn: udp, Handler: mdns.HandlerFunc(u.serve)}
	go func() { _ = server.ActivateAndServe() }()
	t.Cleanup(func() { _ = udp.Close() })
	return u
}

func (u *upstream) serve(w mdns.ResponseWriter, r *mdns.Msg) {
	u.asked.Add(1)
	if ask := u.asks.Load(); ask != nil {
		if answer := (*ask)(r.Copy()); answer != nil {
			_ = w.WriteMsg(answer)
		}
		return
	}
	addr := u.says.Load()
	if addr == nil {
		return
	}
	m := new(mdns.Msg).SetReply(r)
	m.Answer = []mdns.RR{&mdns.A{
		Hdr: mdns.RR_Header{Name: r.Question[0].Name, Rrtype: mdns.TypeA, Class: mdns.ClassINET, Ttl: 60},
		A:   net.ParseIP(*addr),
	}}
	_ = w.WriteMsg(m)
}

func (u *upstream) passes(ask func(*mdns.Msg) *mdns.Msg) { u.asks.Store(&ask) }

func (u *upstream) fallsSilent() { u.says.Store(nil) }

func TestOneNameHasTwoAnswers(t *testing.T) {
	g, s := NewWithT(t), serve(t)
	for _, network := range []string{"udp", "tcp"} {
		onVLAN := query(t, network, s.vlan, question("api.c1.example.com.", mdns.TypeA))
		g.Expect(onVLAN.Answer[0].String()).To(HaveSuffix("192.168.100.4"))
		g.Expect(onVLAN.Authoritative).To(BeTrue())
		onPods := query(t, network, s.pods, question("api.c1.example.com.", mdns.TypeA))
		g.Expect(onPods.Answer[0].String()).To(HaveSuffix("172.30.0.9"))
	}
}

func TestWhatIsNoQuestionOfTheInternetIsRefused(t *testing.T) {
	s := serve(t, newUpstream(t, "192.0.2.1").AddrPort)
	version := question("version.bind.", mdns.TypeTXT)
	version.Question[0].Qclass = mdns.ClassCHAOS
	update := new(mdns.Msg).SetUpdate("c1.example.com.")
	update.Insert([]mdns.RR{&mdns.A{Hdr: mdns.RR_Header{Name: "api.c1.example.com.", Rrtype: mdns.TypeA, Class: mdns.ClassINET}, A: net.IPv4bcast}})
	for name, m := range map[string]*mdns.Msg{
		"AXFR":         new(mdns.Msg).SetAxfr("c1.example.com."),
		"IXFR":         new(mdns.Msg).SetIxfr("www.example.org.", 1, "a.", "b."),
		"UPDATE":       update,
		"NOTIFY":       new(mdns.Msg).SetNotify("c1.example.com."),
		"version.bind": version,
	} {
		for view, at := range map[string]netip.AddrPort{"vlan": s.vlan, "pods": s.pods} {
			for _, network := range []string{"udp", "tcp"} {
				t.Run(name+" "+view+" "+network, func(t *testing.T) {
					NewWithT(t).Expect(query(t, network, at, m).Rcode).To(Equal(mdns.RcodeRefused))
				})
			}
		}
	}
}

func TestAQueryWithTwoOPTRecordsIsMalformed(t *testing.T) {
	s := serve(t, newUpstream(t, "192.0.2.1").AddrPort)
	for _, name := range []string{"api.c1.example.com.", "www.example.org."} {
		m := question(name, mdns.TypeA).SetEdns0(1232, true)
		NewWithT(t).Expect(query(t, "udp", s.vlan, m).Rcode).To(Equal(mdns.RcodeSuccess), name)
		m.SetEdns0(1232, false)
		answer := query(t, "udp", s.vlan, m)
		NewWithT(t).Expect(answer.Rcode).To(Equal(mdns.RcodeFormatError), name)
		NewWithT(t).Expect(answer.Extra).To(HaveLen(1), name)
	}
}

func TestThePodNetworkForwardsNothing(t *testing.T) {
	up := newUpstream(t, "192.0.2.1")
	s := serve(t, up.AddrPort)
	NewWithT(t).Expect(address(t, s.pods, "www.example.org.")).To(Equal("REFUSED"))
	NewWithT(t).Expect(up.asked.Load()).To(BeZero())
	NewWithT(t).Expect(address(t, s.vlan, "www.example.org.")).To(Equal("192.0.2.1"))
}

func TestADeadUpstreamLeavesOwnedNamesFast(t *testing.T) {
	g := NewWithT(t)
	up := newUpstream(t, "192.0.2.1")
	up.fallsSilent()
	s := serve(t, up.AddrPort)
	waiting := make(chan struct{})
	for range 50 { // these wait for the dead upstream until they time out
		go func() {
			defer func() { waiting <- struct{}{} }()
			_, _, _ = (&mdns.Client{Timeout: 6 * time.Second}).Exchange(question("www.example.org.", mdns.TypeA), s.vlan.String())
		}()
	}
	g.Eventually(up.asked.Load).Should(BeNumerically(">=", 50))
	var took []time.Duration
	for range 200 {
		start := time.Now()
		g.Expect(address(t, s.vlan, "api.c1.example.com.")).To(Equal("192.168.100.4"))
		took = append(took, time.Since(start))
	}
	g.Expect(slices.Max(took)).To(BeNumerically("<", time.Second), "none waits for the upstream, which takes twice two seconds; test/bench/run dns counts them")
	for range 50 {
		<-waiting
	}
}

// waiting counts the queries that wait for the upstreams.
func (s *served) waiting() int { return s.forwarding.waiting.Taken() }

// from is a client with an address of its own.
func from(network, address string) *mdns.Client {
	local := net.Addr(&net.UDPAddr{IP: net.ParseIP(address)})
	if network == "tcp" {
		local = &net.TCPAddr{IP: net.ParseIP(address)}
	}
	return &mdns.Client{Net: network, Timeout: 6 * time.Second, Dialer: &net.Dialer{Timeout: 6 * time.Second, LocalAddr: local}}
}

func TestOneGuestsConnectionsKeepNobodyOut(t *testing.T) {
	g, s := NewWithT(t), serve(t)
	guest := from("tcp", "127.0.0.2")
	open := 0
	for range 600 {
		c, err := guest.Dial(s.vlan.String())
		if err != nil {
			continue
		}
		defer func() { _ = c.Close() }()
		if _, _, err := guest.ExchangeWithConn(question("api.c1.example.com.", mdns.TypeA), c); err == nil {
			open++ // and stays so
		}
	}
	g.Expect(open).To(Equal(16))
	for _, other := range []string{"127.0.0.1", "127.0.0.3"} {
		answer, _, err := from("tcp", other).Exchange(question("api.c1.example.com.", mdns.TypeA), s.vlan.String())
		g.Expect(err).NotTo(HaveOccurred(), other)
		g.Expect(answer.Answer).To(HaveLen(1))
	}
}

// Many guests together may take all connections: UDP, by which readiness asks, has none.
func TestAllGuestsConnectionsLeaveUDPAlone(t *testing.T) {
	g, s := NewWithT(t), serve(t)
	open := 0
	for i := range 40 {
		guest := from("tcp", fmt.Sprintf("127.0.1.%d", i+1))
		for range 16 {
			c, err := guest.Dial(s.vlan.String())
			g.Expect(err).NotTo(HaveOccurred())
			defer func() { _ = c.Close() }()
			if _, _, err := guest.ExchangeWithConn(question("api.c1.example.com.", mdns.TypeA), c); err == nil {
				open++
			}
		}
	}
	g.Expect(open).To(Equal(512))
	g.Expect(query(t, "udp", s.vlan, question("c1.example.com.", mdns.TypeSOA)).Rcode).To(Equal(mdns.RcodeSuccess))
}

func TestOneGuestsSlowNamesFailNobodyElse(t *testing.T) {
	up := newUpstream(t, "192.0.2.1")
	up.fallsSilent()
	g, s := NewWithT(t), serve(t, up.AddrPort)
	guest, err := from("udp", "127.0.0.2").Dial(s.vlan.String())
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { _ = guest.Close() }()
	for i := range 2 * maxForwarded {
		g.Expect(guest.WriteMsg(question(fmt.Sprintf("slow-%d.example.org.", i), mdns.TypeA))).To(Succeed())
		if i%100 == 99 { // so that the socket's buffer does not overflow
			g.Expect(query(t, "udp", s.vlan, question("api.c1.example.com.", mdns.TypeA)).Answer).To(HaveLen(1))
		}
	}
	up.says.Store(new("192.0.2.1"))
	answer, _, err := from("udp", "127.0.0.3").Exchange(question("quick.example.org.", mdns.TypeA), s.vlan.String())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(answer.Answer).To(HaveLen(1), "%s", answer)
}

// An upstream that sends every query back to us must not delay owned names, nor loop for ever.
func TestALoopingUpstreamLeavesOwnedNamesAlone(t *testing.T) {
	g := NewWithT(t)
	up := newUpstream(t, "192.0.2.1")
	s := serve(t, up.AddrPort)
	var once sync.Once
	amid := make(chan string, 1)
	up.passes(func(r *mdns.Msg) *mdns.Msg {
		if up.asked.Load() >= 50 {
			once.Do(func() { amid <- address(t, s.vlan, "api.c1.example.com.") })
		}
		answer, _, err := (&mdns.Client{Timeout: 6 * time.Second}).Exchange(r, s.vlan.String())
		if err != nil {
			return nil
		}
		return answer
	})
	g.Expect(address(t, s.vlan, "www.example.org.")).To(Equal("SERVFAIL"))
	g.Expect(up.asked.Load()).To(BeNumerically("<=", 2*maxForwardedOfOne), "the loop ended; a query that was lost is asked again")
	g.Expect(amid).To(Receive(Equal("192.168.100.4")), "answered while fifty queries wait for each other")
}

func TestUpstreamsChangeWithoutAFailureAndKeepTheCache(t *testing.T) {
	g := NewWithT(t)
	one, two := newUpstream(t, "192.0.2.1"), newUpstream(t, "192.0.2.2")
	s := serve(t, one.AddrPort)
	g.Expect(address(t, s.vlan, "cached.example.org.")).To(Equal("192.0.2.1"))

	one.fallsSilent()
	answered := make(chan string)
	go func() { answered <- address(t, s.vlan, "held.example.org.") }()
	g.Eventually(one.asked.Load).Should(BeNumerically(">=", 2))
	s.uses(two.AddrPort)
	g.Expect(address(t, s.vlan, "fresh.example.org.")).To(Equal("192.0.2.2"))
	g.Expect(address(t, s.vlan, "cached.example.org.")).To(Equal("192.0.2.1"))
	g.Expect(<-answered).To(Equal("192.0.2.2"), "a query that the old upstream failed is asked again at the new one")
}

func TestAStaleAnswerCoversADeadUpstream(t *testing.T) {
	g := NewWithT(t)
	up := newUpstream(t, "192.0.2.1")
	s := serve(t)
	s.intent.CacheTTL = time.Second
	s.uses(up.AddrPort)
	g.Expect(address(t, s.vlan, "www.example.org.")).To(Equal("192.0.2.1"))
	up.fallsSilent()
	g.Eventually(func() uint32 {
		answer := query(t, "udp", s.vlan, question("www.example.org.", mdns.TypeA))
		g.Expect(answer.Answer).To(HaveLen(1), "%v", answer)
		return answer.Answer[0].Header().Ttl
	}, 5*time.Second).Should(BeEquivalentTo(30), "the TTL of a stale answer (RFC 8767)")
}

func TestARepairedUpstreamIsUsedAtOnce(t *testing.T) {
	g := NewWithT(t)
	dead, alive := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), ports.Free(t)), newUpstream(t, "192.0.2.1")
	s := serve(t, dead)
	g.Expect(address(t, s.vlan, "www.example.org.")).To(Equal("SERVFAIL"))
	s.uses(alive.AddrPort)
	g.Expect(address(t, s.vlan, "www.example.org.")).To(Equal("192.0.2.1"), "the failure was not cached")
}

func TestAnUpstreamThatAnsweredWasHeard(t *testing.T) {
	g := NewWithT(t)
	s := serve(t, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), ports.Free(t)))
	g.Expect(address(t, s.vlan, "api.c1.example.com.")).To(Equal("192.168.100.4"))
	g.Expect(address(t, s.vlan, "registry.example.net.")).To(Equal("SERVFAIL"))
	g.Expect(s.Heard().Unix()).To(BeZero())
	s.uses(newUpstream(t, "198.51.100.7").AddrPort)
	g.Expect(address(t, s.vlan, "registry.example.net.")).To(Equal("198.51.100.7"))
	g.Eventually(s.Heard).Should(BeTemporally("~", time.Now(), time.Minute), "it is noted after the answer was sent")
}

func TestSocketsAreBoundToTheirDevice(t *testing.T) {
	g := NewWithT(t)
	l, err := Listen(t.Context(), netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), ports.Free(t)))
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(l.Close()).To(Succeed()) }()
	g.Expect(l.Device).To(Equal("lo"))
	_, err = Listen(t.Context(), netip.MustParseAddrPort("0.0.0.0:53"))
	g.Expect(err).To(HaveOccurred())
}

// FuzzPacket sends bytes that no client library would send: the server must still answer.
func FuzzPacket(f *testing.F) {
	packed, _ := question("api.c1.example.com.", mdns.TypeA).Pack()
	f.Add(packed)
	f.Add(packed[:12])
	f.Add([]byte{})
	s := New()
	if err := s.Say(intent); err != nil {
		f.Fatal(err)
	}
	chain := s.VLAN().handler
	f.Fuzz(func(t *testing.T, packet []byte) {
		m := new(mdns.Msg)
		if m.Unpack(packet) != nil || len(m.Question) != 1 {
			return // CoreDNS refuses it before our plugin
		}
		w := &recorder{}
		if _, err := chain.ServeDNS(t.Context(), w, m); err != nil {
			t.Fatal(err)
		}
		if _, err := w.said.Pack(); err != nil || w.said.Id != m.Id {
			t.Fatalf("answered %v to %v: %v", w.said, m, err)
		}
	})
}

// recorder is a client in memory.
type recorder struct {
	mdns.ResponseWriter
	said *mdns.Msg
}

func (r *recorder) WriteMsg(m *mdns.Msg) error { r.said = m; return nil }
func (*recorder) RemoteAddr() net.Addr {
	return net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:1053"))
}
func (r *recorder) LocalAddr() net.Addr { return r.RemoteAddr() }

// BenchmarkOwnedName measures a query and its answer over a real socket.
func BenchmarkOwnedName(b *testing.B) {
	s := New()
	if err := s.Say(intent); err != nil {
		b.Fatal(err)
	}
	l, err := Listen(b.Context(), netip.MustParseAddrPort("127.0.0.1:15353"))
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = l.Serve(b.Context(), s.VLAN()) }()
	conn, err := mdns.Dial("udp", l.At.String())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	c, took := mdns.Client{}, []time.Duration{}
	for b.Loop() {
		_, rtt, err := c.ExchangeWithConn(question("api.c1.example.com.", mdns.TypeA), conn)
		if err != nil {
			b.Fatal(err)
		}
		took = append(took, rtt)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}
