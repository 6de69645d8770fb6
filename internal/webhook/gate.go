package webhook

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// Any pod may post an AdmissionReview: API servers come from addresses that no NetworkPolicy selects, and show no certificate. So what
// one address can have us do is bounded before anything is read, and what all of them can.
const (
	// largestReview is a body: an Infra whose lists are as long as its schema lets them, beside what it was, with who wrote each field.
	largestReview = 2 << 20
	// atOnce and fromOne are reviews that are read and judged at once, of all and of one address: 16 MiB of bodies, and some 64 as objects.
	atOnce, fromOne = 8, 4
	// inTurn are reviews of one address that wait for theirs. An API server writes 200 changing requests at once (--max-mutating-requests-inflight).
	inTurn = 256
	// turn is how long one waits; the rest of its patience is to look around in.
	turn = patience / 2
)

// gate lets reviews of many addresses through in turn. Who may not wait hears so, which to an API server is a webhook that does not
// answer, and stops nobody.
type gate struct {
	next http.Handler
	all  chan struct{}

	mu   sync.Mutex
	from map[string]*queue
}

// queue of one address, while it has reviews.
type queue struct {
	slots chan struct{}
	users int
}

func newGate(next http.Handler) *gate {
	return &gate{next: next, all: make(chan struct{}, atOnce), from: map[string]*queue{}}
}

// ServeHTTP implements http.Handler.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	address := hostOf(r.RemoteAddr)
	q := g.join(address)
	if q == nil {
		tooMany(w)
		return
	}
	defer g.leave(address, q)
	waiting, enough := context.WithTimeout(ctx, turn)
	defer enough()
	for _, slots := range []chan struct{}{q.slots, g.all} {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		case <-waiting.Done():
			tooMany(w)
			return
		}
	}
	r.Body = http.MaxBytesReader(w, r.Body, largestReview)
	g.next.ServeHTTP(w, r.WithContext(ctx))
}

func tooMany(w http.ResponseWriter) {
	http.Error(w, "too many reviews at once from this address, or from all: not judged", http.StatusTooManyRequests)
}

// join the queue of an address; nil when it is full.
func (g *gate) join(address string) *queue {
	g.mu.Lock()
	defer g.mu.Unlock()
	q := g.from[address]
	if q == nil {
		q = &queue{slots: make(chan struct{}, fromOne)}
		g.from[address] = q
	}
	if q.users == fromOne+inTurn {
		return nil
	}
	q.users++
	return q
}

func (g *gate) leave(address string, q *queue) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if q.users--; q.users == 0 {
		delete(g.from, address)
	}
}

func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}
