package controller

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/internal/observe"
)

// turnstile lets the pods of one Infra at a time be replaced by what nobody decided for that Infra alone: a release of all,
// another network under several.
type turnstile struct {
	served func(context.Context, observe.Workload) bool

	mu       sync.Mutex
	holder   types.NamespacedName // an Infra, or a child that stands alone
	since    time.Time
	gone     []observe.Workload // of the holder, that were let go
	applying int                // of them have not been written yet
}

// longestTurn of one Infra: one that does not become Ready holds the others up no longer. So what all have in common and is broken
// takes an Infra a minute, which leaves time to put it right; images are pulled before.
const longestTurn = time.Minute

// take says whether the workload's new template may go now; it is then to be written, and applied called.
func (t *turnstile) take(ctx context.Context, who types.NamespacedName, of observe.Workload, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holder != who {
		if now.Sub(t.since) < longestTurn && (t.applying > 0 || slices.ContainsFunc(t.gone, func(w observe.Workload) bool { return !t.served(ctx, w) })) {
			return false
		}
		t.holder, t.since, t.gone = who, now, nil
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
