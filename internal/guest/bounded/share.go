package bounded

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"github.com/cldmnky/oooi/internal/guest/pace"
)

// share is what one hosted API server may have of the manager. All connections to it have it together, whichever Infra or bridge each is
// for.
type share struct {
	server  string
	bytes   *rate.Limiter // that are read a second
	objects *rate.Limiter // that are taken in a second
	answers *rate.Limiter // that are written a second
	large   chan struct{} // whose is the turn to take in a large one
	read    prometheus.Counter
	late    prometheus.Counter
	slowed  atomic.Int64 // when it last had more objects or answers than its share, in Unix seconds

	line chan struct{} // whose is the one place among those who wait for all

	connections int // guarded by shares
}

func newShare(server string) *share {
	return &share{
		server: server, large: make(chan struct{}, 1), line: make(chan struct{}, 1), read: readBytes.WithLabelValues(server), late: lateObjects.WithLabelValues(server),
		bytes: rate.NewLimiter(readOfOne, readAtOnce), objects: rate.NewLimiter(ObjectsOfOne, objectsAtOnce), answers: rate.NewLimiter(AnswersOfOne, answersAtOnce),
	}
}

// shares by server; one goes after the last connection, and its metrics, for anybody may make hosted clusters of ever new names. It stays until
// nothing of it is used up: a new connection begins no new one.
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

// sweep away what nobody uses.
func (s *shares) sweep() {
	for server, one := range s.of {
		if one.connections == 0 && one.objects.Tokens() >= objectsAtOnce {
			delete(s.of, server)
			readBytes.DeleteLabelValues(server)
			lateObjects.DeleteLabelValues(server)
		}
	}
}

// objectsFromAll is the share in taking in of all hosted clusters.
var objectsFromAll = rate.NewLimiter(objectsOfAll, allAtOnce)

// paced waits until one more object may be taken in. Who sends more than his share waits for himself, before he stands in line with others,
// where he has one place, however many connections.
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
	return ctx.Err()
}

func (s *share) slows() {
	s.slowed.Store(time.Now().Unix())
	s.late.Inc()
}

// isSlowed says whether it had more than its share a short while ago.
func (s *share) isSlowed() bool { return pace.IsRecent(time.Unix(s.slowed.Load(), 0)) }
