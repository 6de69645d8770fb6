package dns

import (
	"log/slog"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	mdns "github.com/miekg/dns"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/testkit/ports"
)

func never() time.Time { return time.Unix(0, 0) }

func at(t *testing.T, ip string) netip.AddrPort {
	t.Helper()
	return netip.AddrPortFrom(netip.MustParseAddr(ip), ports.Free(t))
}

// verdictOf resolvers: status, reason and message, empty before there is one.
func verdictOf(r *resolvers) func() []string {
	return func() []string {
		c := r.condition()
		if c == nil {
			return nil
		}
		return []string{string(c.Status), c.Reason, c.Message}
	}
}

func TestResolversThatAreSilentAreTold(t *testing.T) {
	g := NewWithT(t)
	answers, refuses := at(t, "127.0.0.1"), at(t, "127.0.0.2")
	var turned atomic.Int32
	var says atomic.Pointer[func(*mdns.Msg)]
	servfail := func(m *mdns.Msg) {
		m.Rcode = mdns.RcodeServerFailure // a resolver without a way out
	}
	says.Store(&servfail)
	otherInstance(t, answers, &says)
	r := &resolvers{turned: func() { turned.Add(1) }, heard: never}
	go func() {
		_ = (&daemon.Prober{Metrics: resolversProbed, Pause: quick, Probes: r.probes, Log: slog.New(slog.DiscardHandler)}).Run(t.Context())
	}()
	verdict := verdictOf(r)

	r.use(nil)
	g.Expect(verdict()).To(HaveExactElements("False", "NoResolver", ContainSubstring("networkConfig.dnsServers")))
	r.use([]netip.AddrPort{refuses})
	g.Eventually(verdict, 10*time.Second).Should(HaveExactElements("False", "ResolversSilent", And(HavePrefix("no resolver answers: 127.0.0.2 (read: connection refused); workers get SERVFAIL"), ContainSubstring("networkConfig.dnsServers"))))
	r.use([]netip.AddrPort{refuses, answers})
	g.Eventually(verdict, 10*time.Second).Should(HaveExactElements("True", "SomeResolversAnswer", "another resolver answers, and not: 127.0.0.2 (read: connection refused)"))
	r.use([]netip.AddrPort{answers})
	g.Eventually(verdict, 10*time.Second).Should(HaveExactElements("True", "ResolversAnswer", Not(BeEmpty())), "SERVFAIL is an answer")
	g.Consistently(turned.Load, 5*quick).Should(BeEquivalentTo(4), "each verdict is told once")
}

func TestALostAnswerIsNoSilentResolver(t *testing.T) {
	g, r := NewWithT(t), &resolvers{turned: func() {}, heard: never}
	one, two := netip.MustParseAddrPort("192.0.2.1:53"), netip.MustParseAddrPort("192.0.2.2:53")
	r.use([]netip.AddrPort{one, two})
	g.Expect(r.condition()).To(BeNil(), "nobody has been asked")
	r.note(one, nil)
	g.Expect(verdictOf(r)()).To(HaveExactElements("True", "ResolversAnswer", Not(BeEmpty())))
	for range silentRounds - 1 {
		r.note(one, mdns.ErrShortRead)
		r.note(two, mdns.ErrShortRead)
		g.Expect(r.condition().Status).To(Equal(metav1.ConditionTrue))
	}
	r.note(one, mdns.ErrShortRead)
	g.Expect(r.condition().Status).To(Equal(metav1.ConditionTrue), "the second may still answer")
	r.note(two, mdns.ErrShortRead)
	g.Expect(r.condition().Status).To(Equal(metav1.ConditionFalse))
	r.use([]netip.AddrPort{two})
	r.note(one, nil)
	g.Expect(r.condition().Status).To(Equal(metav1.ConditionFalse), "one that is no longer used says nothing")
	r.heard = time.Now
	r.note(two, mdns.ErrShortRead)
	g.Expect(r.condition().Status).To(Equal(metav1.ConditionTrue), "clients' queries are answered")
	r.heard = func() time.Time { return time.Now().Add(-time.Minute) }
	r.note(two, mdns.ErrShortRead)
	g.Expect(r.condition().Status).To(Equal(metav1.ConditionFalse))
}

func TestTheStatusSaysThatNoResolverAnswers(t *testing.T) {
	g, s := NewWithT(t), newStatus(nil, daemon.NewReadiness(), 1)
	served := object("192.168.100.4")
	served.Spec.NetworkConfig.AdditionalServerIPs, served.Generation = []v1alpha1.IPAddress{"127.0.0.2"}, 7
	s.consider(served)
	s.judge(nil)
	g.Expect(s.wanted().Status.Conditions).To(HaveLen(1), "nobody has been asked")
	r := &resolvers{turned: s.signal, heard: never}
	s.upstream = r.condition
	r.use(nil)
	g.Expect(s.changed).To(Receive())
	g.Expect(s.wanted().Status.Conditions).To(ContainElement(And(HaveField("Type", HaveValue(Equal("ResolversAnswer1"))),
		HaveField("Reason", HaveValue(Equal("NoResolver"))), HaveField("ObservedGeneration", HaveValue(BeEquivalentTo(7))))))
}
