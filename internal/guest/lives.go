package guest

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// life is what looks into one hosted cluster, for one Infra or bridge, has beside its task.
type life struct {
	stop context.CancelFunc
	gone chan struct{} // closed when nothing of it runs any more
	news chan struct{} // its owner should look at it
	due  chan struct{} // there may be something to do in the hosted cluster
}

func newLife() life {
	return life{gone: make(chan struct{}), news: make(chan struct{}, 1), due: make(chan struct{}, 1)}
}

func (l *life) itself() *life { return l }

// lives are one for each Infra or bridge.
type lives[T interface{ itself() *life }] struct {
	mu    sync.Mutex
	of    map[types.NamespacedName]T
	ended bool
	all   sync.WaitGroup
}

// Start waits for the end and then leaves every hosted cluster: it makes a Runnable of the manager.
func (l *lives[T]) Start(ctx context.Context) error {
	<-ctx.Done()
	l.mu.Lock()
	l.ended = true
	for _, one := range l.of {
		one.itself().stop()
	}
	l.mu.Unlock()
	l.all.Wait()
	return nil
}

// Forget leaves the hosted cluster of an Infra or bridge, and all in it as it is. When it returns, nothing of ours is done there any
// more; until then nobody else begins to.
func (l *lives[T]) Forget(owner types.NamespacedName) {
	l.mu.Lock()
	one, found := l.of[owner]
	l.mu.Unlock()
	if !found {
		return
	}
	forgotten := one.itself()
	forgotten.stop()
	<-forgotten.gone
	l.mu.Lock()
	defer l.mu.Unlock()
	if now, found := l.of[owner]; found && now.itself() == forgotten {
		delete(l.of, owner)
	}
}

// begin has one follow another, which must have ended: two would write over each other, or approve two CSRs of one DPU. The lock is
// held.
func (l *lives[T]) begin(owner types.NamespacedName, next T, visits *link, changed func(types.NamespacedName)) {
	ctx, stop := context.WithCancel(context.Background())
	before, follows := l.of[owner]
	now := next.itself()
	now.stop = stop
	l.of[owner] = next
	l.all.Go(func() {
		defer close(now.gone)
		if follows {
			before.itself().stop()
			<-before.itself().gone
		}
		var telling sync.WaitGroup
		telling.Go(func() { tell(ctx, now.news, func() { changed(owner) }) })
		defer telling.Wait()
		visits.run(ctx)
	})
}
