// Package probe connects to a proxy on the VLAN as a worker would, through Envoy to the backend, and judges what comes back. The backend is a
// tenant's: what it sends is bounded in time and size, and nothing of it is trusted.
package probe

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/daemon"
)

const (
	// patience is how long one probe may take.
	patience = 5 * time.Second
	// headerBytes is how much of an HTTP answer is read; its body is not.
	headerBytes = 16 << 10
	// ignitionPath is answered by HyperShift's ignition server without a token, a log line or an event. Its path /ignition answers 401, and makes a
	// Warning event in the control plane's namespace each time (v0.1.60, ignition-server/cmd/start.go).
	ignitionPath = "/healthz"
)

// Target is one way from the VLAN to a backend.
type Target struct {
	Backend string
	// At is a listener, and From our own address.
	At   netip.AddrPort
	From netip.Addr
	// Host is the name or the address that workers connect to, and that the certificate must have. Empty: no name is sent or judged.
	Host string
	// Ignition has it asked over HTTP, too.
	Ignition bool
}

// Result of a probe.
type Result struct {
	Fault *v1alpha1.BackendFault // nil if a worker would be served
	// Handshake is how long the connection and the TLS handshake took, and NotAfter when the certificate ends; zero if there was none.
	Handshake time.Duration
	NotAfter  time.Time
}

// Of probes a target, and takes at most patience. A panic while a certificate is parsed is a failed handshake.
func Of(ctx context.Context, t Target) (r Result) {
	defer recovered(&r)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began := time.Now()
	seen, conn, err := shakeHands(ctx, t)
	if err != nil {
		return Result{Fault: fault(v1alpha1.FaultNoHandshake, "the TLS handshake through the proxy fails: %s", said(err))}
	}
	r.Handshake, r.NotAfter = time.Since(began), seen.NotAfter
	if conn != nil {
		defer conn.Close()
	}
	if r.Fault = judge(seen, t.Host, time.Now()); r.Fault == nil && t.Ignition && conn != nil {
		r.Fault = ask(ctx, conn, t.Host)
	}
	return r
}

func recovered(r *Result) {
	if cause := recover(); cause != nil {
		*r = Result{Fault: fault(v1alpha1.FaultNoHandshake, "what the backend sends cannot be read")}
	}
}

// shakeHands returns the certificate that is served, and the connection; none if the server wants a certificate of its clients, as konnectivity
// does: it has shown its own before.
func shakeHands(ctx context.Context, t Target) (*x509.Certificate, net.Conn, error) {
	dialer := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(t.From, 0))}
	raw, err := dialer.DialContext(ctx, "tcp", t.At.String())
	if err != nil {
		return nil, nil, err
	}
	var seen *x509.Certificate
	wanted := false
	config := &tls.Config{
		ServerName: t.Host, MinVersion: tls.VersionTLS12,
		InsecureSkipVerify: true, //nolint:gosec // judge says what is wrong with it; whom it is signed by, only workers know
		VerifyConnection: func(s tls.ConnectionState) error {
			seen = s.PeerCertificates[0]
			return nil
		},
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			wanted = true
			return &tls.Certificate{}, nil
		},
	}
	if t.Ignition {
		config.NextProtos = []string{"http/1.1"} // another server may refuse it
	}
	conn := tls.Client(raw, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close() // it is of no use
		if seen != nil && wanted {
			return seen, nil, nil
		}
		return nil, nil, err
	}
	return seen, conn, nil
}

// ask has the ignition server answer, whatever it answers: only a 5xx means that it gives no worker a config.
func ask(ctx context.Context, conn net.Conn, host string) *v1alpha1.BackendFault {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+host+ignitionPath, nil)
	if err != nil {
		return fault(v1alpha1.FaultIgnition, "it cannot be asked: %q is no host", host)
	}
	request.Close = true
	request.Header.Set("User-Agent", "oooi-probe")
	if deadline, has := ctx.Deadline(); has {
		err = conn.SetDeadline(deadline)
	}
	if err == nil {
		err = request.Write(conn)
	}
	if err != nil {
		return fault(v1alpha1.FaultIgnition, "it takes no request: %s", said(err))
	}
	response, err := http.ReadResponse(bufio.NewReader(io.LimitReader(conn, headerBytes)), request) //nolint:bodyclose // to close the body is to read it; the connection ends instead
	if err != nil {
		return fault(v1alpha1.FaultIgnition, "it does not answer an HTTP request: %s", said(err))
	}
	if response.StatusCode >= http.StatusInternalServerError {
		return fault(v1alpha1.FaultIgnition, "it answers an HTTP request with status %d", response.StatusCode)
	}
	return nil
}

func fault(reason v1alpha1.FaultReason, says string, args ...any) *v1alpha1.BackendFault {
	return &v1alpha1.BackendFault{Reason: reason, Message: daemon.Bounded(fmt.Sprintf(says, args...))}
}
