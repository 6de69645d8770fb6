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

// turn makes the children wait after a start until each Infra was reconciled once: with hundreds of Infras, all get their addresses and
// children before the workloads and status of the first ones keep the API server busy.
type turn struct {
	waker
	left int // Infras left in the first round; used only by their one worker
	over chan struct{}
	end  func()
}

type requests = workqueue.TypedRateLimitingInterface[ctrl.Request]

// longestWait limits the wait of one child: neither a slow Infra nor a cluster without Infras blocks a workload.
const longestWait = 3 * time.Second

func newTurn() *turn {
	over := make(chan struct{})
	return &turn{over: over, end: sync.OnceFunc(func() { close(over) })}
}

// waker puts objects into a controller's queue from outside.
type waker struct{ queued atomic.Pointer[requests] }

// queue creates the controller's queue, first come, first served: by priority, which is controller-runtime's default, the events of an Infra's
// own children would come before the Infras that have none yet.
func (t *waker) queue(name string, limiter workqueue.TypedRateLimiter[ctrl.Request]) requests {
	q := workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[ctrl.Request]{Name: name})
	t.queued.Store(&q)
	return q
}

// wake queues an object for reconciling.
func (t *waker) wake(key types.NamespacedName) {
	if q := t.queued.Load(); q != nil {
		(*q).Add(ctrl.Request{NamespacedName: key})
	}
}

// taken counts the turn of one Infra. At the first call the queue holds all others.
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
