package proxy

import (
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/api/v1alpha1"
)

// newSmallLab has an Envoy that may have 384 connections.
func newSmallLab(t *testing.T, backends ...v1alpha1.ProxyBackend) *lab {
	l := prepareLab(t, backends...)
	l.descriptors = 1024
	l.startSidecar(nil)
	l.startEnvoy()
	l.awaitReady()
	return l
}

// counts says whether Envoy has counted refused connections under a name, which the alert OooiProxyRefusesConnections looks at.
func (l *lab) counts(name string) bool {
	l.t.Helper()
	var all strings.Builder
	NewWithT(l.t).Expect(l.proxy.envoy.appendMetrics(l.t.Context(), &all)).To(Succeed())
	return regexp.MustCompile(`(?m)^` + name + `{.*} [1-9]`).MatchString(all.String())
}

func at(port v1alpha1.Port) string { return net.JoinHostPort(vip, fmt.Sprint(port)) }

func TestEnvoyRefusesConnectionsBeforeItsDescriptorsEnd(t *testing.T) {
	g := NewWithT(t)
	a, port := newTarget(t, "a"), freePort(t)
	l := newSmallLab(t, route("a", port, a, "a.example.com"))
	var kept []*stream
	refused := 0
	for n := range 2000 {
		s, err := openFrom(fmt.Sprintf("127.0.%d.%d", 1+n/250, 1+n%250), port, "a.example.com")
		if err != nil {
			refused++
			continue
		}
		kept = append(kept, s)
	}
	t.Logf("of 2,000 connections %d are held and %d were refused", len(kept), refused)
	g.Expect(len(kept)).To(BeNumerically("~", 384, 4), "what the cap admits")
	g.Expect(l.counts("envoy_listener_downstream_global_cx_overflow")).To(BeTrue())
	for _, s := range kept {
		g.Expect(s.alive()).To(Succeed())
		g.Expect(s.Close()).To(Succeed())
	}
	g.Eventually(func() (string, error) { return reached(port, "a.example.com") }, 10*time.Second).Should(Equal("a"))
	g.Expect(l.envoy.ProcessState).To(BeNil(), "Envoy lives")
}

func TestOneSourceCannotTakeAllConnections(t *testing.T) {
	const greedy, cap, others = "127.0.0.2", 384, 30
	a, b, port, plain := newTarget(t, "a"), newTarget(t, "b"), freePort(t), freePort(t)
	opens := map[string]func() (net.Conn, error){
		"with a stream each": func() (net.Conn, error) { return openFrom(greedy, port, "a.example.com") },
		"by two routes": func() func() (net.Conn, error) {
			n := 0
			return func() (net.Conn, error) { n++; return openFrom(greedy, port, string(rune('a'+n%2))+".example.com") }
		}(),
		"in silence":   func() (net.Conn, error) { return from(greedy).Dial("tcp", at(port)) },
		"of plain TCP": func() (net.Conn, error) { return from(greedy).Dial("tcp", at(plain)) },
	}
	l := newSmallLab(t, route("a", port, a, "a.example.com"), route("b", port, b, "b.example.com"),
		v1alpha1.ProxyBackend{Name: "plain", Port: plain, TargetAddresses: []string{a.address()}})
	for name, open := range opens {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			for range cap {
				if conn, err := open(); err == nil {
					defer conn.Close()
				}
			}
			served := 0
			for n := range others {
				if s, err := openFrom(fmt.Sprintf("127.0.1.%d", n+1), port, "b.example.com"); err == nil {
					served++
					g.Expect(s.Close()).To(Succeed())
				}
			}
			g.Expect(served).To(BeNumerically(">=", others-4), "of all but those who have its share")
			g.Expect(l.counts("envoy_connection_limit_limited_connections")).To(BeTrue())
			g.Expect(l.envoy.ProcessState).To(BeNil(), "Envoy lives")
		})
	}
}

// A client such as kubectl closes its side of the stream after its last byte.
func TestAStreamWhoseClientHasSaidAllIsAnsweredStill(t *testing.T) {
	g := NewWithT(t)
	echo := newPlainTarget(t, "echo", func(conn net.Conn) {
		said, _ := io.ReadAll(conn) // a health check sends nothing
		_, _ = conn.Write(said)
	})
	port := freePort(t)
	newLab(t, v1alpha1.ProxyBackend{Name: "plain", Port: port, TargetAddresses: []string{echo.address()}})
	conn, err := net.Dial("tcp", at(port))
	g.Expect(err).NotTo(HaveOccurred())
	defer conn.Close()
	g.Expect(conn.SetDeadline(time.Now().Add(10 * time.Second))).To(Succeed())
	_, err = conn.Write([]byte("all"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(conn.(*net.TCPConn).CloseWrite()).To(Succeed())
	g.Expect(io.ReadAll(conn)).To(Equal([]byte("all")))
}
