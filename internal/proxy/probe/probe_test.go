package probe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gstruct"
	"github.com/onsi/gomega/types"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/testkit/backend"
)

const host = "ignition.example.com"

var here = netip.MustParseAddr("127.0.0.1")

// shown is a certificate for host that is valid now, changed.
func shown(t *testing.T, change func(*x509.Certificate)) tls.Certificate {
	t.Helper()
	return backend.Certificate(t, host, change)
}

// behind listens, and does something with each connection.
func behind(t *testing.T, serve func(net.Conn)) Target {
	t.Helper()
	listener, err := net.Listen("tcp", netip.AddrPortFrom(here, 0).String())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	backend.Serve(t, listener, serve)
	return Target{Backend: "ignition", At: netip.MustParseAddrPort(listener.Addr().String()), From: here, Host: host, Ignition: true}
}

// overTLS reads a request, and answers.
func overTLS(config *tls.Config, answer func(io.Writer)) func(net.Conn) {
	return func(conn net.Conn) {
		secure := tls.Server(conn, config)
		if _, err := secure.Read(make([]byte, 4096)); err == nil {
			answer(secure)
		}
		_, _ = io.Copy(io.Discard, conn) // until the client hangs up
	}
}

func answers(text string) func(io.Writer) {
	return func(w io.Writer) { _, _ = io.WriteString(w, text) }
}

// finds is a result with a fault.
func finds(reason v1alpha1.FaultReason, says string) types.GomegaMatcher {
	return HaveField("Fault", gstruct.PointTo(And(HaveField("Reason", reason), HaveField("Message", ContainSubstring(says)))))
}

func TestAProbeNamesWhatAWorkerWouldMeet(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
	certificate := func(change func(*x509.Certificate)) func(*testing.T) Target {
		return func(t *testing.T) Target {
			return behind(t, overTLS(&tls.Config{Certificates: []tls.Certificate{shown(t, change)}}, answers(ok)))
		}
	}
	answering := func(answer func(io.Writer)) func(*testing.T) Target {
		return func(t *testing.T) Target {
			return behind(t, overTLS(&tls.Config{Certificates: []tls.Certificate{shown(t, nil)}}, answer))
		}
	}
	raw := func(serve func(net.Conn)) func(*testing.T) Target {
		return func(t *testing.T) Target { return behind(t, serve) }
	}
	wantsClients := func(version uint16) func(*testing.T) Target {
		return func(t *testing.T) Target {
			return behind(t, overTLS(&tls.Config{Certificates: []tls.Certificate{shown(t, nil)}, ClientAuth: tls.RequireAnyClientCert, MaxVersion: version}, answers(ok)))
		}
	}
	long := strings.Repeat("a", 60) + "\n" + strings.Repeat("b", 300)
	for name, c := range map[string]struct {
		to   func(*testing.T) Target
		want types.GomegaMatcher
	}{
		"healthy": {certificate(nil), HaveField("Fault", BeNil())},
		"not valid yet": {certificate(func(c *x509.Certificate) {
			c.NotBefore = time.Date(2100, 1, 2, 3, 4, 5, 0, time.UTC)
			c.NotAfter = c.NotBefore.AddDate(1, 0, 0)
		}),
			finds(v1alpha1.FaultNotYetValid, "not valid before 2100-01-02T03:04:05Z")},
		"expired": {certificate(func(c *x509.Certificate) {
			c.NotBefore = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
			c.NotAfter = c.NotBefore.AddDate(1, 0, 0)
		}),
			finds(v1alpha1.FaultExpired, "expired at 2021-01-01T00:00:00Z")},
		"another name": {certificate(func(c *x509.Certificate) {
			c.DNSNames, c.IPAddresses = []string{"a.example.com", "*.b.example.com"}, []net.IP{{10, 0, 0, 1}, {10, 0, 0, 2}, {10, 0, 0, 3}}
		}), finds(v1alpha1.FaultAnotherName, "is for a.example.com, *.b.example.com, 10.0.0.1, 2 more, not for "+host)},
		"a common name is no name": {certificate(func(c *x509.Certificate) { c.DNSNames = nil }), finds(v1alpha1.FaultAnotherName, "is for no name, not for")},
		"names that are none":      {certificate(func(c *x509.Certificate) { c.DNSNames = []string{long, long, long, long} }), finds(v1alpha1.FaultAnotherName, `aaa\nbbb`)},
		"5xx":                      {answering(answers("HTTP/1.1 503 Service Unavailable\r\n\r\n")), finds(v1alpha1.FaultIgnition, "status 503")},
		"401":                      {answering(answers("HTTP/1.1 401 Unauthorized\r\n\r\n")), HaveField("Fault", BeNil())},
		"a header without end": {answering(func(w io.Writer) {
			for {
				if _, err := io.WriteString(w, "HTTP/1.1 200 OK\r\nX: "+long[:60]); err != nil {
					return
				}
			}
		}), finds(v1alpha1.FaultIgnition, "does not answer an HTTP request: the connection was closed")},
		"a body without end": {answering(func(w io.Writer) {
			answers("HTTP/1.1 200 OK\r\n\r\n")(w)
			for {
				if _, err := io.WriteString(w, long); err != nil {
					return
				}
			}
		}), HaveField("Fault", BeNil())},
		"no HTTP":               {answering(answers("nothing\r\n\r\n")), finds(v1alpha1.FaultIgnition, `malformed HTTP response \"nothing\"`)},
		"an answer that is cut": {answering(answers("HTTP/1.1 2")), finds(v1alpha1.FaultIgnition, "does not answer an HTTP request")},
		"no TLS": {raw(func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n")
			_, _ = io.Copy(io.Discard, c)
		}), finds(v1alpha1.FaultNoHandshake, "speaks no TLS")},
		"closed": {raw(func(net.Conn) {}), finds(v1alpha1.FaultNoHandshake, "the connection was closed")},
		"silent": {raw(func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }), finds(v1alpha1.FaultNoHandshake, "nothing came within 5s")},
		"an alert": {func(t *testing.T) Target {
			return behind(t, overTLS(&tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{"x"}, Certificates: []tls.Certificate{shown(t, nil)}}, answers(ok)))
		}, finds(v1alpha1.FaultNoHandshake, "no application protocol")},
		"clients' certificates, TLS 1.2": {wantsClients(tls.VersionTLS12), HaveField("Fault", BeNil())},
		"clients' certificates, TLS 1.3": {func(t *testing.T) Target { at := wantsClients(tls.VersionTLS13)(t); at.Ignition = false; return at }, HaveField("Fault", BeNil())},
		"an address that we have not": {func(*testing.T) Target {
			return Target{At: netip.MustParseAddrPort("127.0.0.1:1"), From: netip.MustParseAddr("203.0.113.9")}
		}, finds(v1alpha1.FaultNoHandshake, "cannot assign requested address")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, began := NewWithT(t), time.Now()
			at := c.to(t)
			r := Of(t.Context(), at)
			g.Expect(r).To(c.want)
			g.Expect(time.Since(began)).To(BeNumerically("<", 2*patience))
			if r.Fault != nil {
				g.Expect(len(r.Fault.Message)).To(BeNumerically("<", 1024))
				g.Expect(r.Fault.Message).NotTo(Or(ContainSubstring("\n"), ContainSubstring(at.At.String())), "it is one line, the same each time")
			}
		})
	}
}

// panics stands for a parser of what a tenant sends: those are not ours.
type panics struct{ context.Context }

func (panics) Deadline() (time.Time, bool) { panic("index out of range") }

func TestAPanicIsAFailedHandshake(t *testing.T) {
	NewWithT(t).Expect(Of(panics{t.Context()}, Target{})).To(finds(v1alpha1.FaultNoHandshake, "cannot be read"))
}

func TestAFailureIsSaidTheSameEachTime(t *testing.T) {
	g := NewWithT(t)
	for _, port := range []int{40001, 40002} {
		err := &net.OpError{Op: "read", Addr: &net.TCPAddr{IP: net.IP{10, 0, 0, 1}, Port: port}, Err: errors.New("no route to host")}
		g.Expect(said(fmt.Errorf("dialling: %w", err))).To(Equal(`"no route to host"`))
	}
}
