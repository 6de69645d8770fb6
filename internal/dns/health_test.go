package dns

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"testing"
	"time"

	mdns "github.com/miekg/dns"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/testkit/ports"
)

// gone is how soon an address that accepts nothing has left the answers.
const gone = time.Second

func TestAnAddressThatAcceptsNothingLeavesTheAnswersAndComesBack(t *testing.T) {
	g, port := NewWithT(t), ports.Free(t)
	served := object("127.0.0.2")
	served.Spec.StaticEntries = append(served.Spec.StaticEntries, v1alpha1.DNSEntry{Hostname: "api.c1.example.com", IP: "127.0.0.3"})
	accept := func(at string) net.Listener {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(at, fmt.Sprint(port)))
		g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	second, third := accept("127.0.0.2"), accept("127.0.0.3")
	for _, at := range []v1alpha1.IPAddress{"127.0.0.2", "127.0.0.3"} {
		served.Spec.HealthChecks = append(served.Spec.HealthChecks, v1alpha1.DNSHealthCheck{IP: at, Port: v1alpha1.Port(port)})
	}
	c := cluster(served)
	d := start(t, "", daemon.Flags{Namespace: "ns"}, c)
	answers := func() (all []string, err error) {
		answer, err := mdns.Exchange(new(mdns.Msg).SetQuestion("api.c1.example.com.", mdns.TypeA), netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), d.port).String())
		if err != nil {
			return nil, err
		}
		for _, rr := range answer.Answer {
			all = append(all, rr.(*mdns.A).A.String())
		}
		slices.Sort(all)
		return all, nil
	}
	both := []string{"127.0.0.2", "127.0.0.3"}
	g.Eventually(answers, 5*time.Second).Should(Equal(both))
	g.Consistently(answers, gone).Should(Equal(both))

	g.Expect(third.Close()).To(Succeed())
	g.Eventually(answers, gone).Should(Equal(both[:1]))
	g.Expect(second.Close()).To(Succeed())
	g.Eventually(answers, gone).Should(Equal(both), "nothing empties an answer")
	accept("127.0.0.3")
	g.Eventually(answers, gone).Should(Equal(both[1:]))

	now := &v1alpha1.DNSServer{}
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(served), now)).To(Succeed())
	now.Spec.HealthChecks = nil
	g.Expect(c.Update(t.Context(), now)).To(Succeed())
	g.Eventually(answers, 5*time.Second).Should(Equal(both), "what is not checked is answered")
	g.Consistently(answers, gone).Should(Equal(both))
}

func TestHealthChecksAreValid(t *testing.T) {
	for wrong, says := range map[v1alpha1.DNSHealthCheck]string{
		{IP: "192.168.100.4", Port: 70000}: "spec.healthChecks[0].port: 70000 is not a port (1 to 65535)",
		{IP: "192.168.100.400", Port: 443}: `spec.healthChecks[0].ip: "192.168.100.400" is not an IP address`,
		{IP: "fd00:100::4", Port: 443}:     "spec.healthChecks[0].ip: fd00:100::4 is not of the family of networkConfig.serverIP",
	} {
		served := object("192.168.100.4")
		served.Spec.HealthChecks = []v1alpha1.DNSHealthCheck{wrong}
		_, err := IntentOf(served, nil)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(says)))
	}
}

// A DNS server that has no descriptor left knows nothing of the other side.
func TestWhatKeepsUsFromTryingIsNoFailure(t *testing.T) {
	g, to, port := NewWithT(t), netip.MustParseAddr("127.0.0.2"), ports.Free(t)
	refused := vantage{netip.MustParseAddr("127.0.0.1"), "lo"}.connect(t.Context(), to, port)
	g.Expect(refused).To(MatchError(syscall.ECONNREFUSED))
	g.Expect(isOurs(refused)).To(BeFalse())
	for at, healthy := range map[netip.AddrPort]bool{netip.AddrPortFrom(to, port): false, netip.AddrPortFrom(to, 0): true} {
		is, _ := vantage{netip.MustParseAddr("127.0.0.1"), "lo"}.look(t.Context(), at)
		g.Expect(is).To(Equal(healthy), "%s: without a port, whoever is there is healthy", at)
	}
	g.Expect(isOurs(vantage{netip.MustParseAddr("192.0.2.77"), "lo"}.connect(t.Context(), to, port))).To(BeTrue(), "our address is on no device")
}

// A port that refuses is a host that is there; where nothing comes back, the status says so. What another instance says takes an API server,
// which keeps the status of both (internal/controller).
func TestAnAddressFromWhichNothingComesIsSaidInTheStatus(t *testing.T) {
	g, port := NewWithT(t), v1alpha1.Port(ports.Free(t))
	served := object("127.0.0.2")
	served.Spec.HealthChecks = []v1alpha1.DNSHealthCheck{{IP: "127.0.0.2", Port: port}, {IP: "127.0.0.3"}, {IP: "192.0.2.99", Port: port}}
	c := cluster(served)
	start(t, "", daemon.Flags{Namespace: "ns"}, c)
	says := func() []v1alpha1.Instance {
		now := &v1alpha1.DNSServer{}
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(served), now)).To(Succeed())
		return now.Status.Instances
	}
	is := func(second v1alpha1.HealthState) types.GomegaMatcher {
		return ConsistOf(HaveField("Health", Equal([]v1alpha1.Health{{IP: "127.0.0.2", State: v1alpha1.HealthAnswers}, {IP: "127.0.0.3", State: v1alpha1.HealthAnswers}, {IP: "192.0.2.99", State: second}})))
	}
	g.Eventually(says, 10*time.Second).Should(is(v1alpha1.HealthAnswers))
	g.Eventually(says, 10*time.Second).Should(is(v1alpha1.HealthSilent))
	g.Eventually(says, 10*time.Second).Should(is(v1alpha1.HealthLost))
}

// Else nobody confirms that an address is silent while an edit is refused, and a proxy that is lost is not moved.
func TestAnInstanceWhoseSpecIsRefusedHearsTheOthers(t *testing.T) {
	g := NewWithT(t)
	served := object("127.0.0.2")
	served.Spec.HealthChecks = []v1alpha1.DNSHealthCheck{{IP: "192.0.2.99"}}
	c := cluster(served)
	r := start(t, "", daemon.Flags{Namespace: "ns"}, c)
	heard := func() []v1alpha1.HealthState {
		r.health.mu.Lock()
		defer r.health.mu.Unlock()
		if s := r.health.checked[netip.MustParseAddr("192.0.2.99")]; s != nil {
			return s.others
		}
		return nil
	}
	accepted := func(want metav1.ConditionStatus) {
		t.Helper()
		g.Eventually(func() []metav1.Condition {
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(served), served)).To(Succeed())
			return served.Status.Conditions
		}, 10*time.Second).Should(ContainElement(And(HaveField("Type", v1alpha1.ConditionConfigAccepted), HaveField("Status", want))))
	}
	accepted(metav1.ConditionTrue)
	before := served.DeepCopy()
	served.Spec.HostedClusterDomain = "not a domain"
	g.Expect(c.Patch(t.Context(), served, client.MergeFrom(before))).To(Succeed())
	accepted(metav1.ConditionFalse)
	before = served.DeepCopy()
	served.Status.Instances = append(served.Status.Instances, v1alpha1.Instance{IP: "127.0.0.9", Health: []v1alpha1.Health{{IP: "192.0.2.99", State: v1alpha1.HealthConfirmed}}})
	g.Expect(c.Status().Patch(t.Context(), served, client.MergeFrom(before))).To(Succeed())
	g.Eventually(heard, 10*time.Second).Should(ConsistOf(v1alpha1.HealthConfirmed))
}

// With as many leases as a /16 has, building all names takes half a second, for which a proxy that is lost stayed in the answers.
func TestNeitherHealthNorAStatusBuildsNames(t *testing.T) {
	const many = 2000
	all := []client.Object{object("127.0.0.2")}
	for i := range many {
		all = append(all, lease(fmt.Sprintf("worker-%d", i), fmt.Sprintf("127.9.%d.%d", i/250, 1+i%250), time.Now().Add(time.Hour)))
	}
	d, g := start(t, "", daemon.Flags{Namespace: "ns"}, cluster(all...)), NewWithT(t)
	g.Eventually(d.says("worker-1999.c1.example.com.", mdns.TypeA), 10*time.Second).Should(Equal("127.9.7.250"))
	changes := 0
	allocations := func(change func(*v1alpha1.DNSServer)) float64 {
		return testing.AllocsPerRun(1, func() {
			changes++
			served := object("127.0.0.2")
			change(served)
			g.Expect(d.configure(t.Context(), served)).To(Succeed())
		})
	}
	g.Expect(allocations(func(s *v1alpha1.DNSServer) { s.Spec.CacheTTL.Duration = time.Duration(changes) * time.Minute })).To(BeNumerically(">", many))
	g.Expect(d.configure(t.Context(), object("127.0.0.2"))).To(Succeed())
	g.Expect(allocations(func(s *v1alpha1.DNSServer) { s.Status.ObservedGeneration = int64(changes) })).To(BeNumerically("<", many))
	g.Expect(testing.AllocsPerRun(1, func() { d.health.check(t.Context(), vantage{}, nil) })).To(BeNumerically("<", many))
}

func TestEachInstanceIsHeard(t *testing.T) {
	at := netip.MustParseAddr("192.0.2.99")
	h := newHealth(nil, nil, nil, nil)
	h.checked[at] = &sight{}
	of := func(ip v1alpha1.IPAddress, state v1alpha1.HealthState) v1alpha1.Instance {
		return v1alpha1.Instance{IP: ip, Health: []v1alpha1.Health{{IP: "192.0.2.98", State: v1alpha1.HealthLost}, {IP: "192.0.2.99", State: state}}}
	}
	h.hear([]v1alpha1.Instance{of("127.0.0.1", v1alpha1.HealthSilent), of("127.0.0.9", v1alpha1.HealthConfirmed)}, "127.0.0.1")
	g := NewWithT(t)
	g.Expect(h.checked[at].own).To(Equal(v1alpha1.HealthSilent))
	g.Expect(h.checked[at].others).To(ConsistOf(v1alpha1.HealthConfirmed))
	h.hear(nil, "127.0.0.1")
	g.Expect(h.checked[at].own).To(BeEmpty())
	g.Expect(h.checked[at].others).To(BeEmpty())
}

// Names would have it again for as long as its checks take to fail, and its silence would count anew.
func TestAnAddressWhoseCheckGetsAnotherPortIsAsItWas(t *testing.T) {
	g, before, after := NewWithT(t), netip.MustParseAddrPort("192.0.2.99:443"), netip.MustParseAddrPort("192.0.2.99:6443")
	other := netip.MustParseAddrPort("192.0.2.98:443")
	var started []func() error
	var down map[netip.Addr]bool // as names leave it out
	h := newHealth(func(check func() error) { started = append(started, check) }, func(is map[netip.Addr]bool) { down = is }, func() {}, slog.New(slog.DiscardHandler))
	h.check(t.Context(), vantage{}, []netip.AddrPort{before})
	h.note(t.Context(), before, syscall.ECONNREFUSED, func(s *sight) { s.down, s.heard = true, time.Now().Add(-silentAfter) })
	g.Expect(down).To(Equal(map[netip.Addr]bool{before.Addr(): true}))

	h.check(t.Context(), vantage{}, []netip.AddrPort{after, other})
	g.Expect(started).To(HaveLen(3))
	ended := make(chan error, 1)
	go func() { ended <- started[0]() }()
	g.Eventually(ended, 30*time.Second).Should(Receive(BeNil()), "the old port is no longer checked")
	h.check(t.Context(), vantage{}, []netip.AddrPort{after, other})
	g.Expect(started).To(HaveLen(3), "the same checks go on")
	g.Expect(down).To(Equal(map[netip.Addr]bool{after.Addr(): true, other.Addr(): false}))
	g.Expect(h.states()).To(Equal([]v1alpha1.Health{{IP: "192.0.2.98", State: v1alpha1.HealthAnswers}, {IP: "192.0.2.99", State: v1alpha1.HealthSilent}}))
	g.Expect(healthOf(g)).To(HaveKeyWithValue("192.0.2.99", 0.0))
	g.Expect(healthOf(g)).To(HaveKeyWithValue("192.0.2.98", 1.0))

	h.note(t.Context(), after, nil, func(s *sight) { s.down, s.heard = false, time.Now() })
	g.Expect(healthOf(g)).To(HaveKeyWithValue("192.0.2.99", 1.0))
	g.Expect(down).To(Equal(map[netip.Addr]bool{after.Addr(): false, other.Addr(): false}))
	h.check(t.Context(), vantage{}, nil)
	g.Expect(down).To(BeEmpty(), "what is no longer checked is answered")
	g.Expect(healthOf(g)).NotTo(Or(HaveKey("192.0.2.99"), HaveKey("192.0.2.98")))
}

// healthOf are the addresses in the metrics, with their health.
func healthOf(g Gomega) map[string]float64 {
	all := map[string]float64{}
	families, err := prometheus.DefaultGatherer.Gather()
	g.Expect(err).NotTo(HaveOccurred())
	for _, f := range families {
		if f.GetName() == "oooi_dns_address_healthy" {
			for _, m := range f.Metric {
				all[m.Label[0].GetValue()] = m.Gauge.GetValue()
			}
		}
	}
	return all
}

func TestAHealthCheckLeavesByTheVLANsDevice(t *testing.T) {
	err := vantage{netip.MustParseAddr("127.0.0.1"), "none0"}.connect(t.Context(), netip.MustParseAddr("127.0.0.2"), ports.Free(t))
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("binding a socket to device none0")))
}

// A DNS instance that has lost its address hears nothing, and says so; it takes no name's address away.
func TestWhoCannotLookHearsNothing(t *testing.T) {
	g, at, judged := NewWithT(t), netip.MustParseAddrPort("127.0.0.2:1"), make(chan struct{}, 9)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	h := newHealth(nil, func(map[netip.Addr]bool) { t.Error("an answer changed") }, func() { judged <- struct{}{} }, slog.New(slog.DiscardHandler))
	h.checked[at.Addr()] = &sight{heard: time.Now(), state: v1alpha1.HealthAnswers}
	go func() { _ = h.follow(ctx, vantage{netip.MustParseAddr("192.0.2.77"), "lo"}, at) }()
	g.Eventually(judged, 10*time.Second).Should(Receive())
	g.Expect(h.states()).To(ConsistOf(HaveField("State", v1alpha1.HealthSilent)))
	g.Expect(h.down()).To(HaveKeyWithValue(at.Addr(), false))
}
