package bounded

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"github.com/cldmnky/oooi/internal/guest/pace"
)

// share has the limits of one hosted API server. All connections to it share them, whichever Infra or bridge each is for.
type share struct {
	server  string
	bytes   *rate.Limiter // bytes that are read
	objects *rate.Limiter // objects that are decoded
	answers *rate.Limiter // writes
	large   chan struct{} // full while a large object is read
	read    prometheus.Counter
	late    prometheus.Counter
	slowed  atomic.Int64 // when it last exceeded its objects or answers, in Unix seconds

	line chan struct{} // full while one of its connections waits for objectsFromAll

	connections int // guarded by shares.mu
}

func newShare(server string) *share {
	return &share{
		server: server, large: make(chan struct{}, 1), line: make(chan struct{}, 1), read: readBytes.WithLabelValues(server), late: lateObjects.WithLabelValues(server),
		bytes: rate.NewLimiter(readOfOne, readAtOnce), objects: rate.NewLimiter(ObjectsOfOne, objectsAtOnce), answers: rate.NewLimiter(AnswersOfOne, answersAtOnce),
	}
}

// shares are kept by server. One is removed, with its metrics, after its last connection, because users may create hosted clusters of ever
// new names; but not before its limit of objects is full again, so that a reconnect gains nothing.
type shares struct {
	mu sync.Mutex
	of map[string]*share
}

var allShares = &shares{of: map[string]*share{}}

func (s *shares) begin(server string) *share {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep()
	if s.of[server] == nil {
		s.of[server] = newShare(server)
	}
	s.of[server].connections++
	return s.of[server]
}

func (s *shares) end(one *share) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one.connections--
	s.sweep()
}

// sweep removes shares that nobody uses.
func (s *shares) sweep() {
	for server, one := range s.of {
		if one.connections == 0 && one.objects.Tokens() >= objectsAtOnce {
			delete(s.of, server)
			readBytes.DeleteLabelValues(server)
			lateObjects.DeleteLabelValues(server)
		}
	}
}

// objectsFromAll limits the objects that are decoded of all hosted clusters.
var objectsFromAll = rate.NewLimiter(objectsOfAll, allAtOnce)

// paced waits until one more object may be decoded. A server that sends more than its share waits for its own limit first; for the limit
// of all, it has one place in the queue, however many connections it has.
func (s *share) paced(ctx context.Context) error {
	if own := s.objects.Reserve().Delay(); own > 0 {
		s.slows()
		pace.Pause(ctx, own)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case s.line <- struct{}{}:
	}
	defer func() { <-s.line }()
	if all := objectsFromAll.Reserve().Delay(); all > 0 {
		pace.Pause(ctx, all)
	}
	runtime.Gosched() // else a server that always has more keeps its processor until it is preempted, after 10 ms, before each step of another's
	return ctx.Err()
}

func (s *share) slows() {
	s.slowed.Store(time.Now().Unix())
	s.late.Inc()
}

// isSlowed says whether it recently exceeded its share.
func (s *share) isSlowed() bool { return pace.IsRecent(time.Unix(s.slowed.Load(), 0)) }
