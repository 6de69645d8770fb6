package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

// Bounds on connections. controller-runtime's own server bounds neither their number nor the time that a body takes. It also speaks HTTP/2,
// in which a client can make us wait in more ways than in HTTP/1.1, which API servers use with webhooks (apiserver,
// pkg/util/webhook/client.go).
const (
	// connectionsFromOne allows one connection for each review that waits or is judged; each of all connections takes some 50 KiB with its
	// TLS.
	connectionsFromOne, connections = inTurn + fromOne, 1000
	// arrives bounds how long a request takes to arrive: an API server sends it in one piece. answered bounds the whole exchange.
	arrives  = 2 * time.Second
	answered = arrives + 2*patience
	// idles is longer than API servers keep idle connections (90 s); otherwise both might close one at the same time.
	idles = 2 * time.Minute
	// largestHead bounds the headers of a request.
	largestHead = 16 << 10
	// beginsPerSecond and beginsAtOnce ration the handshakes of one address: each takes 0.2 ms of a processor, so an address gets one
	// hundredth of one. API servers reuse connections; one that restarts opens all at once, perhaps before the old ones are gone.
	beginsPerSecond, beginsAtOnce = 50, 2 * connectionsFromOne
	// remembered bounds the addresses whose handshakes are counted one by one; those beyond it share one allowance.
	remembered = connections
)

// server answers API servers' reviews.
type server struct {
	address string
	// certificate is served; if nil, tls.crt and tls.key in the directory files are, and are followed.
	certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	files       string
	handler     http.Handler
	away        *away
	listens     atomic.Bool
}

// NeedLeaderElection is manager.LeaderElectionRunnable: each replica answers.
func (*server) NeedLeaderElection() bool { return false }

// started is the server's readiness check.
func (s *server) started(*http.Request) error {
	if !s.listens.Load() {
		return errors.New("the webhook does not listen yet")
	}
	return nil
}

// Start serves until ctx ends, and finishes the reviews that it has then.
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
		Handler: s.handler, Protocols: new(http.Protocols), TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate},
		ReadHeaderTimeout: arrives, ReadTimeout: arrives, WriteTimeout: answered, IdleTimeout: idles, MaxHeaderBytes: largestHead,
		ErrorLog: log.New(io.Discard, "", 0), // otherwise a client that sends garbage writes our log
	}
	serving.Protocols.SetHTTP1(true)
	all.Go(func() error {
		if err := serving.ServeTLS(newCounted(listener, s.away), "", ""); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	all.Go(func() error {
		<-ctx.Done()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*patience)
		defer cancel()
		if serving.Shutdown(last) != nil { // a client does not read its answer
			return serving.Close()
		}
		return nil
	})
	s.listens.Store(true)
	return all.Wait()
}

// counted bounds connections. Of one address, those that are too many, or too many in a short time, are closed before their handshake. When
// there are too many in all, the oldest connection of the address that has most is closed.
type counted struct {
	net.Listener
	away *away

	mu     sync.Mutex
	from   map[string][]*counting // oldest first
	all    int
	begins map[string]*rate.Limiter // also of addresses that have no connection any more
	others *rate.Limiter            // of all addresses that are not remembered
}

func newCounted(l net.Listener, a *away) *counted {
	return &counted{Listener: l, away: a, from: map[string][]*counting{}, begins: map[string]*rate.Limiter{}, others: rate.NewLimiter(beginsPerSecond, beginsAtOnce)}
}

// Accept implements net.Listener.
func (l *counted) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &counting{Conn: conn, of: l, address: hostOf(conn.RemoteAddr().String())}
		taken, gives := l.add(c)
		if gives != nil {
			l.away.counts(tooManyConnections, gives.address)
			_ = gives.Close()
		}
		if taken {
			return c, nil
		}
		l.away.counts(tooManyConnections, c.address)
		_ = conn.Close()
	}
}

// add counts a connection if there is room. Where there is none, gives is the connection to close for it.
func (l *counted) add(c *counting) (taken bool, gives *counting) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.begin(c.address) || len(l.from[c.address]) == connectionsFromOne {
		return false, nil
	}
	if l.all == connections {
		for _, ofOne := range l.from {
			if gives == nil || len(ofOne) > len(l.from[gives.address]) {
				gives = ofOne[0]
			}
		}
		if len(l.from[gives.address]) <= len(l.from[c.address])+1 { // nobody has more
			return false, nil
		}
	}
	l.all++
	l.from[c.address] = append(l.from[c.address], c)
	return true, gives
}

// begin counts a handshake unless its address has begun too many. To make room, it forgets addresses whose allowance is full again.
func (l *counted) begin(address string) bool {
	if l.begins[address] == nil && len(l.begins) == remembered {
		maps.DeleteFunc(l.begins, func(_ string, b *rate.Limiter) bool { return b.Tokens() >= beginsAtOnce })
	}
	switch b := l.begins[address]; {
	case b != nil:
		return b.Allow()
	case len(l.begins) == remembered:
		return l.others.Allow()
	}
	l.begins[address] = rate.NewLimiter(beginsPerSecond, beginsAtOnce)
	return l.begins[address].Allow()
}

func (l *counted) drop(c *counting) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ofOne := l.from[c.address]
	i := slices.Index(ofOne, c)
	if i < 0 {
		return
	}
	l.all--
	if l.from[c.address] = slices.Delete(ofOne, i, i+1); len(l.from[c.address]) == 0 {
		delete(l.from, c.address)
	}
}

type counting struct {
	net.Conn
	of      *counted
	address string
}

// Close implements net.Conn.
func (c *counting) Close() error {
	c.of.drop(c)
	return c.Conn.Close()
}
