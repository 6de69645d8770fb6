package visits

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/internal/guest/pace"
)

// Session is what all visitors of a hosted cluster, each for one Infra or bridge, have in common.
type Session struct {
	stop context.CancelFunc
	gone chan struct{} // closed once none of its goroutines runs
	News chan struct{} // the owner should be reconciled
	Due  chan struct{} // there may be something to do in the hosted cluster
}

// NewSession is a Session that has not begun.
func NewSession() Session {
	return Session{gone: make(chan struct{}), News: make(chan struct{}, 1), Due: make(chan struct{}, 1)}
}

func (l *Session) session() *Session { return l }

// Sessions has the visitors, one for each Infra or bridge.
type Sessions[T interface{ session() *Session }] struct {
	mu    sync.Mutex
	of    map[types.NamespacedName]T
	ended bool
	all   sync.WaitGroup
}

// Start waits for the context's end, and then disconnects from every hosted cluster. It implements manager.Runnable.
func (l *Sessions[T]) Start(ctx context.Context) error {
	<-ctx.Done()
	l.mu.Lock()
	l.ended = true
	for _, one := range l.of {
		one.session().stop()
	}
	l.mu.Unlock()
	l.all.Wait()
	return nil
}

// Forget disconnects from the hosted cluster of an Infra or bridge without changing it. When it returns, nothing of ours runs there; until
// then nothing else starts.
func (l *Sessions[T]) Forget(owner types.NamespacedName) {
	l.mu.Lock()
	one, found := l.of[owner]
	l.mu.Unlock()
	if !found {
		return
	}
	forgotten := one.session()
	forgotten.stop()
	<-forgotten.gone
	l.mu.Lock()
	defer l.mu.Unlock()
	if now, found := l.of[owner]; found && now.session() == forgotten {
		delete(l.of, owner)
	}
}

// Current is the visitor of an owner's hosted cluster: the one that runs, if it is as wanted, or else a new one, which it runs until it is
// forgotten, but not once Start ends.
func (l *Sessions[T]) Current(owner types.NamespacedName, isWanted func(T) bool, other func() (T, func(context.Context)), changed func(types.NamespacedName)) (one T, found bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one, found = l.of[owner]
	if (!found || !isWanted(one)) && !l.ended {
		next, run := other()
		l.begin(owner, next, run, changed)
		return next, true
	}
	return one, found
}

// Get finds the visitor of an owner's hosted cluster.
func (l *Sessions[T]) Get(owner types.NamespacedName) (one T, found bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one, found = l.of[owner]
	return one, found
}

// begin starts a visitor once the one before has ended: two would overwrite each other, or approve two CSRs of one DPU. The caller holds
// the lock.
func (l *Sessions[T]) begin(owner types.NamespacedName, next T, run func(context.Context), changed func(types.NamespacedName)) {
	ctx, stop := context.WithCancel(context.Background())
	before, follows := l.of[owner]
	now := next.session()
	now.stop = stop
	if l.of == nil {
		l.of = map[types.NamespacedName]T{}
	}
	l.of[owner] = next
	l.all.Go(func() {
		defer close(now.gone)
		if follows {
			before.session().stop()
			<-before.session().gone
		}
		var telling sync.WaitGroup
		telling.Go(func() { pace.Tell(ctx, now.News, func() { changed(owner) }) })
		defer telling.Wait()
		run(ctx)
	})
}
