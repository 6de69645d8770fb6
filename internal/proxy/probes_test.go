package proxy

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gstruct"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/proxy/intent"
	"github.com/cldmnky/oooi/internal/proxy/probe"
	"github.com/cldmnky/oooi/internal/testkit/backend"
)

// quick has a lab probe more often than a pod does.
const quick = 200 * time.Millisecond

// newIgnition is an ignition server that answers with a status of the test's, under a name.
func newIgnition(t *testing.T, name string, status *atomic.Int32) target {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("a probe has a token")
		}
		w.WriteHeader(int(status.Load()))
	}))
	inner, err := net.Listen("tcp", net.JoinHostPort(hostAddress(t).String(), "0"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	server.Listener = inner
	server.TLS = &tls.Config{Certificates: []tls.Certificate{backend.Certificate(t, name, nil)}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return target{name, inner}
}

func (l *lab) series(prefix string) (all []string) {
	answer := httptest.NewRecorder()
	l.proxy.metrics().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for line := range strings.SplitSeq(answer.Body.String(), "\n") {
		if strings.HasPrefix(line, prefix) {
			all = append(all, line)
		}
	}
	return all
}

func TestAProbeThroughEnvoyIsInStatusAndMetrics(t *testing.T) {
	g := NewWithT(t)
	var status atomic.Int32
	status.Store(http.StatusOK)
	port := freePort(t)
	l := prepareLab(t, route("ignition", port, newIgnition(t, "ignition.example.com", &status), "ignition.example.com"),
		route("konnectivity", port, newTarget(t, "old.example.com"), "konnectivity.example.com"), route("apps", port, newTarget(t, "apps"), "*.apps.example.com"))
	l.server.Labels = map[string]string{names.LabelInfra: "c1"}
	l.probePause = quick
	c := cluster(l, leaseOf(vip))
	l.startSidecar(c)
	l.startEnvoy()
	l.awaitReady()
	faults := func() map[string]string {
		s, all := &v1alpha1.ProxyServer{}, map[string]string{}
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(l.server), s)).To(Succeed())
		for _, b := range s.Status.Backends {
			all[b.Name] = ""
			if b.Fault != nil {
				all[b.Name] = string(b.Fault.Reason) + ": " + b.Fault.Message
			}
		}
		return all
	}
	const another = "CertificateForAnotherName: its certificate is for old.example.com, not for konnectivity.example.com"
	g.Eventually(faults, 20*time.Second).Should(Equal(map[string]string{"ignition": "", "konnectivity": another, "apps": ""}))
	g.Expect(l.series("oooi_proxy_probe_success")).To(ConsistOf(
		`oooi_proxy_probe_success{address="127.0.0.1",backend="ignition"} 1`, `oooi_proxy_probe_success{address="127.0.0.1",backend="konnectivity"} 0`))
	g.Expect(l.series("oooi_proxy_probe_certificate_not_after_timestamp_seconds")).To(HaveLen(2))
	g.Expect(l.series("oooi_proxy_probe_duration_seconds_count")).To(HaveLen(2))

	status.Store(http.StatusBadGateway)
	g.Eventually(faults, 20*time.Second).Should(HaveKeyWithValue("ignition", "IgnitionFails: it answers an HTTP request with status 502"))
	status.Store(http.StatusUnauthorized)
	g.Eventually(faults, 20*time.Second).Should(HaveKeyWithValue("ignition", ""))
	lease := leaseOf(vip)
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(lease), lease)).To(Succeed())
	g.Expect(lease.Stages()).To(BeEmpty(), "a probe is no boot")
}

// What hangs is named, and neither ends nor delays the sidecar.
func TestABackendThatHangsDelaysNobody(t *testing.T) {
	g := NewWithT(t)
	port := freePort(t)
	hangs := newPlainTarget(t, "hangs", func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	l := prepareLab(t, route("api", port, hangs, "api.example.com"), route("oauth", port, newTarget(t, "oauth.example.com"), "oauth.example.com"))
	l.probePause = quick
	l.startSidecar(nil)
	l.startEnvoy()
	l.awaitReady()
	g.Eventually(func() *v1alpha1.BackendFault { f, _ := l.proxy.probes.fault("api"); return f }, 20*time.Second).
		Should(gstruct.PointTo(HaveField("Message", "the TLS handshake through the proxy fails: nothing came within 5s")))
	began := time.Now()
	l.serves(route("api", port, hangs, "api.example.com"))
	l.awaitAccepted()
	g.Eventually(func() []string { return l.series("oooi_proxy_probe_success") }, 20*time.Second).Should(ConsistOf(ContainSubstring(`backend="api"`)))
	g.Expect(time.Since(began)).To(BeNumerically("<", 20*time.Second))
	g.Expect(l.proxy.ready.Problem()).To(Succeed())
}

func TestWhatIsProbed(t *testing.T) {
	server := &v1alpha1.ProxyServer{}
	server.Spec.NetworkConfig = v1alpha1.ProxyNetworkConfig{ServerIP: "192.168.100.3", AdditionalServerIPs: []v1alpha1.IPAddress{"192.168.100.6"},
		CapturedAddresses: []v1alpha1.CapturedAddress{{IP: "203.0.113.10", Ports: []v1alpha1.Port{6443}}}}
	server.Spec.Backends = []v1alpha1.ProxyBackend{
		{Name: "api", Port: 6443, Protocol: v1alpha1.ProtocolTLS, CatchAll: true},
		{Name: "ignition", Port: 443, Protocol: v1alpha1.ProtocolTLS, Hostname: "i.example.com", AlternateHostnames: []v1alpha1.DNSNameOrWildcard{"j.example.com"}},
		{Name: "apps-https", Port: 443, Protocol: v1alpha1.ProtocolTLS, Hostname: "*.apps.example.com"},
		{Name: "apps-http", Port: 80, Protocol: v1alpha1.ProtocolTCP, Hostname: "x.apps.example.com"},
	}
	for instance, want := range [][]string{
		{"api 192.168.100.3 192.168.100.3:6443 ", "api 192.168.100.3 192.168.100.6:6443 ", "api 203.0.113.10 203.0.113.10:6443 203.0.113.10", "ignition 192.168.100.3 192.168.100.3:443 i.example.com", "ignition 192.168.100.3 192.168.100.6:443 i.example.com"},
		{"api 192.168.100.6 192.168.100.3:6443 ", "api 192.168.100.6 192.168.100.6:6443 ", "ignition 192.168.100.6 192.168.100.3:443 i.example.com", "ignition 192.168.100.6 192.168.100.6:443 i.example.com"},
		nil, // one that is to go
	} {
		var got []string
		for _, t := range (&Proxy{Options: Options{Instance: instance}, server: server}).targetsToProbe() {
			got = append(got, strings.Join([]string{t.Backend, t.From.String(), t.At.String(), t.Host}, " "))
		}
		NewWithT(t).Expect(got).To(Equal(want))
	}
}

// Until it has probed, a sidecar that starts anew says what the last one said.
func TestAFaultOutlivesARestart(t *testing.T) {
	g := NewWithT(t)
	fault := &v1alpha1.BackendFault{Reason: v1alpha1.FaultExpired, Message: "its certificate expired"}
	p := &Proxy{probes: newProbes(), said: newSaid(), seen: &v1alpha1.ProxyServer{Status: v1alpha1.ProxyServerStatus{Backends: []v1alpha1.BackendStatus{{Name: "api", Healthy: 1, Total: 1, Fault: fault}}}}}
	p.told.Backends = []intent.Backend{{Name: "api"}}
	said := func(healthy int32) *v1alpha1.BackendFault {
		return p.backends(map[string]tally{"api": {healthy: healthy, total: 1}})[0].Fault
	}
	g.Expect(said(1)).To(Equal(fault))
	g.Expect(said(0)).To(BeNil(), "that no target answers is said already")
}

// What has a fault is looked at between two rounds of all, as often as the rest waits.
func TestAFaultIsProbedMoreOftenThanTheRest(t *testing.T) {
	g, s := NewWithT(t), newProbes()
	began := time.Now()
	s.round = began
	well, ill := probe.Target{Backend: "api"}, probe.Target{Backend: "ignition"}
	s.found = map[probe.Target]probe.Result{well: {}, ill: {Fault: &v1alpha1.BackendFault{Reason: v1alpha1.FaultIgnition}}}
	var asked []string
	for tick := 1; tick <= 2*faultsPerPause; tick++ {
		var now []string
		for _, t := range s.due([]probe.Target{well, ill}, began.Add(time.Duration(tick)*s.pause/faultsPerPause-time.Millisecond)) {
			now = append(now, t.Backend)
		}
		asked = append(asked, strings.Join(now, "+"))
	}
	five := []string{"ignition", "ignition", "ignition", "ignition", "ignition", "api+ignition"}
	g.Expect(asked).To(Equal(append(slices.Clone(five), five...)))
}

// A backend's pod that is being replaced closes a connection, and its successor serves the next.
func TestAFaultIsBelievedOnceItIsSeenAgain(t *testing.T) {
	for name, c := range map[string]struct {
		closes int32 // so many of the first connections
		fault  bool
	}{
		"a pod that is replaced":  {1, false},
		"one that serves nothing": {1 << 20, true},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := NewWithT(t), newProbes()
			s.pause = quick
			config := &tls.Config{Certificates: []tls.Certificate{backend.Certificate(t, "api.example.com", nil)}}
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			g.Expect(err).NotTo(HaveOccurred())
			var connections atomic.Int32
			backend.Serve(t, listener, func(conn net.Conn) {
				if connections.Add(1) > c.closes {
					_ = tls.Server(conn, config).Handshake()
				}
			})
			at := netip.MustParseAddrPort(listener.Addr().String())
			one := probe.Target{Backend: "api", At: at, From: at.Addr(), Host: "api.example.com"}
			result := s.ask(t.Context(), one)
			g.Expect(result.Fault != nil).To(Equal(c.fault), "%v", result.Fault)
			g.Expect(connections.Load()).To(BeEquivalentTo(2))
			s.note(one, result)
			g.Expect(s.ask(t.Context(), one).Fault).To(Equal(result.Fault))
			g.Expect(connections.Load()).To(BeEquivalentTo(3), "what is known is not looked for twice")
		})
	}
}
