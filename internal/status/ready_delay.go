package status

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/api/v1alpha1"
)

// readyDelay is how long an Infra stays Ready while a pod of it is replaced, or a change is rolled out: a worker asks again and
// again, and who follows Ready is not to hear of seconds. What is not Ready has to say so within ten.
const readyDelay = 3 * time.Second

// passing are the reasons that Ready has meanwhile.
var passing = []string{"Progressing", podNotReady, "ClockUnsteady"}

// mayPass is how long an Infra that was Ready is still said to be, while it is not for a reason that may pass; 0 where it is not.
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
