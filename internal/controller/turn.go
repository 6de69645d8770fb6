package controller

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
)

// turn has the children wait, after a start, until each Infra had its turn: with hundreds of them all get their addresses and
// children before the API server is busy with the workloads and the status of the first.
type turn struct {
	waker
	left int // Infras of the first round; only their one worker counts
	over chan struct{}
	end  func()
}

type requests = workqueue.TypedRateLimitingInterface[ctrl.Request]

// longestWait of one child: an Infra that takes long, or none at all, holds no workload up.
const longestWait = 3 * time.Second

func newTurn() *turn {
	over := make(chan struct{})
	return &turn{over: over, end: sync.OnceFunc(func() { close(over) })}
}

// waker has what a controller is to reconcile put into its queue from outside.
type waker struct{ queued atomic.Pointer[requests] }

// queue of the controller. First come, first served: by priority, which is controller-runtime's default, what an Infra's own
// children report would come before the Infras that have none yet.
func (t *waker) queue(name string, limiter workqueue.TypedRateLimiter[ctrl.Request]) requests {
	q := workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[ctrl.Request]{Name: name})
	t.queued.Store(&q)
	return q
}

// wake has an object reconciled.
func (t *waker) wake(key types.NamespacedName) {
	if q := t.queued.Load(); q != nil {
		(*q).Add(ctrl.Request{NamespacedName: key})
	}
}

// taken by one Infra. At the first the queue holds all others.
func (t *turn) taken() {
	if t.left == 0 {
		t.left = (*t.queued.Load()).Len() + 1
	}
	if t.left--; t.left == 0 {
		t.end()
	}
}

// await returns when the first round is over, or after longestWait.
func (t *turn) await(ctx context.Context) {
	select {
	case <-t.over:
	case <-ctx.Done():
	case <-time.After(longestWait):
		if q := t.queued.Load(); q != nil && (*q).Len() == 0 { // there are no Infras
			t.end()
		}
	}
}
