package controller

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/internal/observe"
)

// turnstile lets pods of only one Infra at a time be replaced for a change that concerns several Infras: an update of all pod templates,
// another network. If the pods do not come back, all other Infras wait: the same change may break their pods too.
type turnstile struct {
	served func(context.Context, observe.Workload) bool

	mu       sync.Mutex
	holder   types.NamespacedName // an Infra, or a child without one
	gone     []observe.Workload   // the holder's workloads that take let go
	applying int                  // how many of them are not written yet
}

// take says whether the workload's new template may be applied now. If so, the caller applies it and then calls applied.
func (t *turnstile) take(ctx context.Context, who types.NamespacedName, of observe.Workload) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holder != who {
		if t.applying > 0 || slices.ContainsFunc(t.gone, func(w observe.Workload) bool { return !t.served(ctx, w) }) {
			return false
		}
		t.holder, t.gone = who, nil
	}
	t.gone = append(t.gone, of)
	t.applying++
	return true
}

// applied is called when the write that take allowed has succeeded or failed.
func (t *turnstile) applied() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.applying--
}

// passes ends the wait for an Infra's workloads: somebody paused that Infra deliberately.
func (t *turnstile) passes(who types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holder == who {
		t.gone = nil
	}
}
