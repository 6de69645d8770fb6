package status

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/api/v1alpha1"
)

// readyDelay is how long an Infra stays Ready while a pod of it is replaced, or a change is rolled out: workers retry, and watchers of
// Ready need not hear of seconds. An Infra that is not Ready must say so within ten.
const readyDelay = 3 * time.Second

// passing are the reasons of Ready that may pass.
var passing = []string{"Progressing", podNotReady, "ClockUnsteady"}

// mayPass is how much longer an Infra that was Ready is still reported so, while its reason may pass; 0 if it is not.
func (w *Writer) mayPass(infra *v1alpha1.Infra, want v1alpha1.InfraStatus, now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	next := meta.FindStatusCondition(want.Conditions, v1alpha1.ConditionReady)
	was := meta.IsStatusConditionTrue(infra.Status.Conditions, v1alpha1.ConditionReady)
	if !was || next == nil || next.Status == metav1.ConditionTrue || !slices.Contains(passing, next.Reason) {
		delete(w.unready, infra.UID)
		return 0
	}
	since, known := w.unready[infra.UID]
	if !known {
		if w.unready == nil {
			w.unready = map[types.UID]time.Time{}
		}
		since, w.unready[infra.UID] = now, now
	}
	return max(0, readyDelay-now.Sub(since))
}
