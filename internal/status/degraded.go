package status

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
)

// degraded: something that exists does not serve, though it did before, or has had two minutes to. A refusal does not count.
func degraded(before []metav1.Condition, now time.Time, parts []verdict) verdict {
	const kind = v1alpha1.ConditionDegraded
	for _, v := range parts {
		if v.isHalf() {
			return yes(kind, v.Reason, v.Type+": "+v.Message)
		}
		if v.Status == metav1.ConditionFalse && (fell(before, v) || patienceLeft(before, v.Type, now) <= 0) {
			return yes(kind, v.Reason, v.Type+": "+v.Message)
		}
	}
	return no(kind, "AsExpected", "everything that exists serves, or was started less than two minutes ago")
}

// fell says whether a part served and, with no change under way, no longer does: it served until now, or Ready has not yet said otherwise,
// or Degraded has said so since.
func fell(before []metav1.Condition, v verdict) bool {
	was := meta.FindStatusCondition(before, v.Type)
	served := meta.IsStatusConditionTrue(before, v1alpha1.ConditionReady) || meta.IsStatusConditionTrue(before, v1alpha1.ConditionDegraded)
	return v.Reason != "Progressing" && was != nil && (was.Status == metav1.ConditionTrue || served)
}

// untilDegraded is how long a part of an Infra may take before it counts as degraded: a pod that starts, or *.apps without an address
// (dns-proxy-rules.md#apps-patience).
const untilDegraded = 2 * time.Minute

// patienceLeft is how much of that a part has left.
func patienceLeft(before []metav1.Condition, kind string, now time.Time) time.Duration {
	was := meta.FindStatusCondition(before, kind)
	if was == nil || was.Status != metav1.ConditionFalse {
		return untilDegraded
	}
	return untilDegraded - now.Sub(was.LastTransitionTime.Time)
}

// parts are the conditions that Degraded depends on.
func parts() (all []string) {
	for _, c := range component.All {
		all = append(all, c.Ready)
	}
	return append(all, v1alpha1.ConditionBackendsHealthy, v1alpha1.ConditionAppsIngressReady)
}

// PatienceEnds is how long from now a part counts as degraded if nothing changes; zero if none will.
func PatienceEnds(s v1alpha1.InfraStatus, now time.Time) (ends time.Duration) {
	for _, kind := range parts() {
		left := patienceLeft(s.Conditions, kind, now)
		if meta.IsStatusConditionFalse(s.Conditions, kind) && left > 0 && (ends == 0 || left < ends) {
			ends = left
		}
	}
	return ends
}
