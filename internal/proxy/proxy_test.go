package proxy

import (
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/api/v1alpha1"
)

func TestServerNamesLeadToTheirBackends(t *testing.T) {
	api, ignition, apps := newTarget(t, "api"), newTarget(t, "ignition"), newTarget(t, "apps")
	apiPort, tlsPort, plainPort := freePort(t), freePort(t), freePort(t)
	plain := v1alpha1.ProxyBackend{Name: "plain", Port: plainPort, TargetAddresses: []string{api.address()}}
	newLab(t,
		catchAll(route("api", apiPort, api, "api.c1.example.com")),
		route("ignition", tlsPort, ignition, "ignition.c1.example.com", "ignition.apps.c1.example.com"),
		route("apps", tlsPort, apps, "*.apps.c1.example.com"),
		plain,
	)
	for name, c := range map[string]struct {
		port       v1alpha1.Port
		serverName string
		target     string // empty: refused
	}{
		"the API by its name":                      {apiPort, "api.c1.example.com", "api"},
		"an unknown name on the API's port":        {apiPort, "kubernetes.default.svc", "api"},
		"no name on the API's port":                {apiPort, "", "api"},
		"an exact name":                            {tlsPort, "ignition.c1.example.com", "ignition"},
		"a wildcard":                               {tlsPort, "console.apps.c1.example.com", "apps"},
		"an exact name inside a wildcard":          {tlsPort, "ignition.apps.c1.example.com", "ignition"},
		"a name in other letters":                  {tlsPort, "Ignition.C1.example.com", "ignition"},
		"an unknown name on a port without catch":  {tlsPort, "api.c1.example.com", ""},
		"no name on a port without a catch-all":    {tlsPort, "", ""},
		"plain TCP, whatever is said on it":        {plainPort, "anything.example.com", "api"},
		"plain TCP with nothing recognisable said": {plainPort, "", "api"},
	} {
		t.Run(name, func(t *testing.T) {
			target, err := reached(c.port, c.serverName)
			if c.target == "" {
				NewWithT(t).Expect(err).To(HaveOccurred(), "it reached %s", target)
				return
			}
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(target).To(Equal(c.target))
		})
	}
}

func TestRemovingOneRouteLeavesTheStreamsOfAnother(t *testing.T) {
	g := NewWithT(t)
	a, b, port := newTarget(t, "a"), newTarget(t, "b"), freePort(t)
	l := newLab(t, route("a", port, a, "a.example.com"), route("b", port, b, "b.example.com"))
	var streams []*stream
	for range 50 {
		streams = append(streams, mustOpen(t, port, "b.example.com"))
	}
	l.serves(route("b", port, b, "b.example.com"))
	l.awaitAccepted()
	g.Eventually(func() error { _, err := reached(port, "a.example.com"); return err }).Should(HaveOccurred())
	for _, s := range streams {
		g.Expect(s.alive()).To(Succeed())
	}
	l.serves(route("a", port, a, "a.example.com"), route("b", port, b, "b.example.com", "b2.example.com"))
	l.awaitAccepted()
	g.Eventually(func() (string, error) { return reached(port, "a.example.com") }).Should(Equal("a"))
	for _, s := range streams {
		g.Expect(s.alive()).To(Succeed(), "a changed chain's own streams end with the drain time only")
	}
}

func TestASidecarThatRestartsBreaksNoStream(t *testing.T) {
	g := NewWithT(t)
	a, port := newTarget(t, "a"), freePort(t)
	l := newLab(t, route("a", port, a, "a.example.com"))
	var streams []*stream
	for range 20 {
		streams = append(streams, mustOpen(t, port, "a.example.com"))
	}
	l.stop()
	g.Expect(reached(port, "a.example.com")).To(Equal("a"), "Envoy serves alone")
	// The configuration is damaged while the sidecar is away: it must go on with what Envoy acknowledged.
	g.Expect(os.WriteFile(l.file("proxy.yaml"), []byte("spec: {"), 0o600)).To(Succeed())
	l.startSidecar(nil)
	l.awaitReady()
	for _, s := range streams {
		g.Expect(s.alive()).To(Succeed())
	}
	g.Expect(reached(port, "a.example.com")).To(Equal("a"))
}

func TestWhatEnvoyRefusesIsToldInItsOwnWordsAndTheOldStays(t *testing.T) {
	g := NewWithT(t)
	a, b, port, taken := newTarget(t, "a"), newTarget(t, "b"), freePort(t), freePort(t)
	l := newLab(t, route("a", port, a, "a.example.com"))
	squatter, err := net.Listen("tcp", fmt.Sprintf("%s:%d", vip, taken))
	g.Expect(err).NotTo(HaveOccurred())
	l.serves(route("a", port, a, "a.example.com"), route("b", taken, b, "b.example.com"))
	g.Eventually(l.condition, 10*time.Second).Should(And(HavePrefix("False RejectedByEnvoy: "), ContainSubstring("Address already in use")))
	g.Expect(reached(port, "a.example.com")).To(Equal("a"))
	g.Expect(l.proxy.ready.Problem()).To(MatchError(ContainSubstring("Envoy refuses its configuration")))

	g.Expect(squatter.Close()).To(Succeed())
	l.serves(route("a", port, a, "a.example.com", "a2.example.com"), route("b", taken, b, "b.example.com"))
	l.awaitAccepted()
	g.Eventually(l.condition, 10*time.Second).Should(HavePrefix("True Accepted"))
	g.Expect(reached(taken, "b.example.com")).To(Equal("b"))
}

func TestABadFileIsToldAndTheOldStays(t *testing.T) {
	g := NewWithT(t)
	a, port := newTarget(t, "a"), freePort(t)
	l := newLab(t, route("a", port, a, "a.example.com"))
	l.serves(route("a", port, a, "a.example.com"), route("b", port, a, "a.example.com"))
	g.Eventually(l.condition, 10*time.Second).Should(HavePrefix("False Invalid: backend b: hostname a.example.com"))
	turned := route("a", port, a)
	turned.Protocol = v1alpha1.ProtocolTCP
	l.serves(turned)
	g.Eventually(l.condition, 10*time.Second).Should(ContainSubstring("cannot turn between TCP and TLS"))
	g.Expect(reached(port, "a.example.com")).To(Equal("a"))
}

func TestAChangedBackendKeepsItsEndpoints(t *testing.T) {
	g := NewWithT(t)
	a, port := newTarget(t, "a"), freePort(t)
	l := newLab(t, route("a", port, a, "a.example.com"))
	s := mustOpen(t, port, "a.example.com")
	slower := route("a", port, a, "a.example.com")
	slower.TimeoutSeconds = 1
	l.serves(slower)
	g.Eventually(func() time.Duration {
		l.proxy.mu.Lock()
		defer l.proxy.mu.Unlock()
		return l.proxy.told.Backends[0].ConnectTimeout
	}).Should(Equal(333 * time.Millisecond))
	l.awaitAccepted()
	g.Consistently(func() (string, error) { return reached(port, "a.example.com") }, 3*time.Second, "100ms").Should(Equal("a"))
	g.Expect(s.alive()).To(Succeed())
}

func TestADeadTargetIsLeftWithinTwoSeconds(t *testing.T) {
	g := NewWithT(t)
	a, b, port := newTarget(t, "a"), newTarget(t, "b"), freePort(t)
	both := route("both", port, a, "a.example.com")
	both.TargetAddresses = append(both.TargetAddresses, b.address())
	newLab(t, both)
	g.Eventually(func() (string, error) { return reached(port, "a.example.com") }).Should(Equal("a"))
	g.Eventually(func() (string, error) { return reached(port, "a.example.com") }).Should(Equal("b"))
	g.Expect(a.listener.Close()).To(Succeed())
	for range 10 {
		begun := time.Now()
		g.Expect(reached(port, "a.example.com")).To(Equal("b"))
		g.Expect(time.Since(begun)).To(BeNumerically("<", 2*time.Second))
	}
}

// The kernel accepts connections for a stopped process: only an answer shows that it runs.
func TestAnEnvoyThatHangsIsNotReady(t *testing.T) {
	g := NewWithT(t)
	l := newLab(t, route("a", freePort(t), newTarget(t, "a"), "a.example.com"))
	g.Expect(l.envoy.Process.Signal(syscall.SIGSTOP)).To(Succeed())
	g.Eventually(l.proxy.ready.Problem, 10*time.Second).Should(MatchError(HavePrefix("envoy: Envoy does not answer")))
	g.Eventually(func() any { return l.logs.status()["instances"] }, 10*time.Second).Should(ConsistOf(HaveKeyWithValue("message", HavePrefix("envoy: Envoy does not answer"))))
	g.Expect(l.envoy.Process.Signal(syscall.SIGCONT)).To(Succeed())
	l.awaitReady()
}
