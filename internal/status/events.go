package status

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/plan/ending"
)

// tell emits an event for each condition that changed. A condition seen for the first time counts only if it is bad.
func (w *Writer) tell(about runtime.Object, before, after []metav1.Condition) {
	for _, c := range after {
		was := meta.FindStatusCondition(before, c.Type)
		if was == nil && severity(c) == corev1.EventTypeNormal || was != nil && was.Status == c.Status {
			continue
		}
		w.Events.Eventf(about, nil, severity(c), c.Reason, c.Type, "%s is %s: %s", c.Type, c.Status, c.Message)
	}
}

// TellRestored emits an event for each object of about's that somebody else had changed or deleted.
func (w *Writer) TellRestored(about runtime.Object, restored []finding.Object) {
	for _, o := range restored {
		object := &corev1.ObjectReference{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
		w.Events.Eventf(about, object, corev1.EventTypeWarning, "DriftCorrected", "Apply", "%s was changed or deleted by somebody else, and is restored: change the object that has this event instead", o)
	}
}

// severity of a condition's new status: for Degraded and Progressing, True is not good news.
func severity(c metav1.Condition) string {
	bad := c.Status == metav1.ConditionFalse && c.Reason != "Progressing" && c.Reason != ending.Deleting
	switch c.Type {
	case v1alpha1.ConditionDegraded, dpuv1.ConditionHostedClusterDegraded, dpuv1.ConditionEtcdRecoveryActive:
		bad = c.Status == metav1.ConditionTrue
	case v1alpha1.ConditionProgressing, dpuv1.ConditionHostedClusterProgressing, dpuv1.ConditionHostedClusterRestoredFromBackup:
		bad = false
	}
	if bad {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}

// Recorder cuts notes to size: the API server refuses an event with a longer one.
func Recorder(of events.EventRecorder) events.EventRecorder { return fitting{of} }

type fitting struct{ events.EventRecorder }

func (f fitting) Eventf(about, related runtime.Object, kind, reason, action, note string, args ...any) {
	f.EventRecorder.Eventf(about, related, kind, reason, action, "%s", cut(fmt.Sprintf(note, args...), longestNote))
}

// longestNote is the size limit of an event's note (events.k8s.io/v1: 1 kB).
const longestNote = 1024
