package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

// What a connection may cost. controller-runtime's own server bounds neither their number nor the time that a body takes.
const (
	// connections, of one address and of all: each takes some 50 KiB with its TLS.
	connectionsFromOne, connections = 50, 500
	// arrives is how long a request may take to arrive: an API server sends it in one piece.
	arrives = 2 * time.Second
	// idles is how long a connection may be without one: API servers keep theirs.
	idles = 90 * time.Second
	// largestHead of a request, and what of its body is kept before it is read.
	largestHead, receiveBuffer = 16 << 10, 64 << 10
	// streams of one connection: as many as wait in turn, and those that are judged.
	streams = inTurn + fromOne
)

// server is where API servers ask.
type server struct {
	address string
	// certificate that is served; nil to follow the files tls.crt and tls.key of files.
	certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	files       string
	handler     http.Handler
	listens     atomic.Bool
}

// NeedLeaderElection is manager.LeaderElectionRunnable: each replica answers.
func (*server) NeedLeaderElection() bool { return false }

// started is its readiness.
func (s *server) started(*http.Request) error {
	if !s.listens.Load() {
		return errors.New("the webhook does not listen yet")
	}
	return nil
}

// Start serves until the end of ctx. Reviews that are in hand then are answered.
func (s *server) Start(ctx context.Context) error {
	all, ctx := errgroup.WithContext(ctx)
	certificate := s.certificate
	if certificate == nil {
		files, err := certwatcher.New(filepath.Join(s.files, "tls.crt"), filepath.Join(s.files, "tls.key"))
		if err != nil {
			return fmt.Errorf("--webhook-cert-dir: %w", err)
		}
		all.Go(func() error { return files.Start(ctx) })
		certificate = files.GetCertificate
	}
	listener, err := net.Listen("tcp", s.address)
	if err != nil {
		return fmt.Errorf("--webhook-bind-address: %w", err)
	}
	serving := &http.Server{
		Handler: s.handler, TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate},
		ReadHeaderTimeout: arrives, ReadTimeout: arrives, IdleTimeout: idles, MaxHeaderBytes: largestHead,
		HTTP2:    &http.HTTP2Config{MaxConcurrentStreams: streams, MaxReceiveBufferPerConnection: receiveBuffer, MaxReceiveBufferPerStream: receiveBuffer},
		ErrorLog: log.New(io.Discard, "", 0), // whoever connects and says nonsense would write our log
	}
	all.Go(func() error {
		if err := serving.ServeTLS(&counted{Listener: listener, from: map[string]int{}}, "", ""); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	all.Go(func() error {
		<-ctx.Done()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*patience)
		defer cancel()
		return serving.Shutdown(last)
	})
	s.listens.Store(true)
	return all.Wait()
}

// counted closes connections beyond the bounds as soon as they are made.
type counted struct {
	net.Listener

	mu   sync.Mutex
	from map[string]int
	all  int
}

// Accept implements net.Listener.
func (l *counted) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		address := hostOf(conn.RemoteAddr().String())
		if l.add(address) {
			return &counting{Conn: conn, closed: sync.OnceFunc(func() { l.drop(address) })}, nil
		}
		conn.Close()
	}
}

func (l *counted) add(address string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == connections || l.from[address] == connectionsFromOne {
		return false
	}
	l.all++
	l.from[address]++
	return true
}

func (l *counted) drop(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all--
	if l.from[address]--; l.from[address] == 0 {
		delete(l.from, address)
	}
}

type counting struct {
	net.Conn
	closed func()
}

// Close implements net.Conn.
func (c *counting) Close() error {
	c.closed()
	return c.Conn.Close()
}
