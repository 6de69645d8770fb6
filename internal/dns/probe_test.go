package dns

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	mdns "github.com/miekg/dns"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/testkit/ports"
)

// quick has a test probe more often than a pod does.
const quick = 100 * time.Millisecond

// probeSeries are what /metrics says of the last probes.
func probeSeries() (all []string) {
	answer := httptest.NewRecorder()
	promhttp.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for line := range strings.SplitSeq(answer.Body.String(), "\n") {
		if said, is := strings.CutPrefix(line, "oooi_dns_probe_success"); is {
			all = append(all, said)
		}
	}
	return all
}

// otherInstance answers over UDP at an address as the test says; over TCP nothing listens there.
func otherInstance(t *testing.T, at netip.AddrPort, answers *atomic.Pointer[func(*mdns.Msg)]) {
	t.Helper()
	socket, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	server := &mdns.Server{PacketConn: socket, Handler: mdns.HandlerFunc(func(w mdns.ResponseWriter, asked *mdns.Msg) {
		answer := new(mdns.Msg).SetReply(asked)
		(*answers.Load())(answer)
		_ = w.WriteMsg(answer)
	})}
	go func() { _ = server.ActivateAndServe() }()
	t.Cleanup(func() { _ = socket.Close() })
}

func answering(ips ...string) func(*mdns.Msg) {
	return func(m *mdns.Msg) {
		m.Authoritative = true
		for _, ip := range ips {
			m.Answer = append(m.Answer, &mdns.A{Hdr: mdns.RR_Header{Name: m.Question[0].Name, Rrtype: mdns.TypeA, Class: mdns.ClassINET, Ttl: 5}, A: net.ParseIP(ip)})
		}
	}
}

func TestAnInstanceProbesItselfAndTheOther(t *testing.T) {
	g, port := NewWithT(t), ports.Free(t)
	served := object("192.168.100.4")
	served.Spec.NetworkConfig.AdditionalServerIPs = []v1alpha1.IPAddress{"127.0.0.2"}
	served.Spec.StaticEntries = append([]v1alpha1.DNSEntry{{Hostname: "*.apps.c1.example.com", IP: "192.168.100.9"}},
		append(served.Spec.StaticEntries, v1alpha1.DNSEntry{Hostname: "api.c1.example.com", IP: "192.168.100.6"}, v1alpha1.DNSEntry{Hostname: "api.c1.example.com", IP: "fd00::4"})...)
	var answers atomic.Pointer[func(*mdns.Msg)]
	says := func(how func(*mdns.Msg)) { answers.Store(&how) }
	says(answering("192.168.100.6"))
	otherInstance(t, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.2"), port), &answers)
	c := cluster(served)
	startProbing(t, quick, 0, port, "", daemon.Flags{Namespace: "ns"}, c)
	good := func(other string) []string {
		return []string{`{address="127.0.0.1",protocol="dns-tcp"} 1`, `{address="127.0.0.1",protocol="dns-udp"} 1`,
			`{address="127.0.0.2",protocol="dns-tcp"} 0`, `{address="127.0.0.2",protocol="dns-udp"} ` + other}
	}
	g.Eventually(probeSeries, 10*time.Second).Should(ConsistOf(good("1")), "one of two addresses is an answer: health is each instance's own")
	for name, how := range map[string]func(*mdns.Msg){
		"an address that is not ours": answering("192.168.100.4", "192.168.100.66"),
		"none":                        answering(),
		"a forwarder's answer":        func(m *mdns.Msg) { answering("192.168.100.4")(m); m.Authoritative = false },
		"refused":                     func(m *mdns.Msg) { m.Rcode = mdns.RcodeRefused },
	} {
		says(how)
		g.Eventually(probeSeries, 10*time.Second).Should(ConsistOf(good("0")), name)
		says(answering("192.168.100.4", "192.168.100.6"))
		g.Eventually(probeSeries, 10*time.Second).Should(ConsistOf(good("1")), "after "+name)
	}

	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(served), served)).To(Succeed())
	served.Spec.NetworkConfig.AdditionalServerIPs = nil
	g.Expect(c.Update(t.Context(), served)).To(Succeed())
	g.Eventually(probeSeries, 10*time.Second).Should(ConsistOf(good("")[:2]), "an instance that is gone is not missed")
}

func TestWithoutANameNothingIsProbed(t *testing.T) {
	g, d := NewWithT(t), &Daemon{}
	g.Expect(d.probes()).To(BeEmpty(), "before the first configuration")
	d.object = object("192.168.100.4")
	g.Expect(d.probes()).To(HaveLen(2))
	d.object.Spec.StaticEntries[0].Hostname = "*.apps.c1.example.com"
	g.Expect(d.probes()).To(BeEmpty())
}
