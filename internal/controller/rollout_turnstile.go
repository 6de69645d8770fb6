package controller

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/internal/observe"
)

// turnstile lets the pods of one Infra at a time be replaced by what nobody decided for that Infra alone: a release of all,
// another network under several. Where they do not come back, all others wait: what broke them may break those too.
type turnstile struct {
	served func(context.Context, observe.Workload) bool

	mu       sync.Mutex
	holder   types.NamespacedName // an Infra, or a child that stands alone
	gone     []observe.Workload   // of the holder, that were let go
	applying int                  // of them have not been written yet
}

// take says whether the workload's new template may go now; it is then to be written, and applied called.
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

// applied is called when what was let go has been written, or could not be.
func (t *turnstile) applied() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.applying--
}

// passes has nobody wait for what was let go of an Infra: it is paused, by somebody who knows.
func (t *turnstile) passes(who types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holder == who {
		t.gone = nil
	}
}
