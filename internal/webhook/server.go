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

// What a connection may cost. controller-runtime's own server bounds neither their number nor the time that a body takes, and speaks
// HTTP/2, in which a client can have us wait in more ways than in HTTP/1.1, which API servers use with webhooks (apiserver,
// pkg/util/webhook/client.go).
const (
	// connectionsFromOne are as many as wait in turn and are judged; of all connections each takes some 50 KiB with its TLS.
	connectionsFromOne, connections = inTurn + fromOne, 1000
	// arrives is how long a request may take to arrive: an API server sends it in one piece. In answered it must have its answer.
	arrives  = 2 * time.Second
	answered = arrives + 2*patience
	// idles is how long a connection may be without one: longer than API servers keep theirs (90 s), or both would close at once.
	idles = 2 * time.Minute
	// largestHead of a request.
	largestHead = 16 << 10
	// beginsPerSecond and beginsAtOnce are connections of one address that shake hands: each takes 0.2 ms of a processor, so that an address
	// has one hundredth of one. API servers use theirs again; one that starts anew makes all at once, maybe before the old ones are gone.
	beginsPerSecond, beginsAtOnce = 50, 2 * connectionsFromOne
	// remembered are addresses that began of late; those beyond share what one may begin.
	remembered = connections
)

// server is where API servers ask.
type server struct {
	address string
	// certificate that is served; nil to follow the files tls.crt and tls.key of files.
	certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	files       string
	handler     http.Handler
	away        *away
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
		Handler: s.handler, Protocols: new(http.Protocols), TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate},
		ReadHeaderTimeout: arrives, ReadTimeout: arrives, WriteTimeout: answered, IdleTimeout: idles, MaxHeaderBytes: largestHead,
		ErrorLog: log.New(io.Discard, "", 0), // whoever connects and says nonsense would write our log
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
		if serving.Shutdown(last) != nil { // somebody does not take his answer
			return serving.Close()
		}
		return nil
	})
	s.listens.Store(true)
	return all.Wait()
}

// counted bounds connections: of one address too many, or too many in a short time, are closed as soon as they are made, before they shake
// hands, and when there are too many in all, the oldest of the address that has most gives way.
type counted struct {
	net.Listener
	away *away

	mu     sync.Mutex
	from   map[string][]*counting // oldest first
	all    int
	begins map[string]*rate.Limiter // of addresses, also of those that have no connection any more
	others *rate.Limiter            // of those that are not remembered
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

// add a connection, if there is room, or one that gives way.
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

// begin a connection, unless its address has begun too many. Who may begin as many as ever is forgotten when there is no room.
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
