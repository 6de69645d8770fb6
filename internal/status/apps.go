package status

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/plan"
	"github.com/cldmnky/oooi/internal/plan/apps"
	"github.com/cldmnky/oooi/internal/valid"
)

// appsVerdicts has one verdict while *.apps is enabled. Ready does not depend on it: workers join without *.apps.
func appsVerdicts(infra *v1alpha1.Infra, p plan.InfraPlan, components []verdict, out Outcome) []verdict {
	const kind = v1alpha1.ConditionAppsIngressReady
	switch a := infra.Spec.AppsIngress; {
	case a == nil || !a.Enabled:
		return nil
	case p.Apps == nil || p.Apps.Unread || out.Frozen:
		return []verdict{kept(infra.Status.Conditions, kind)}
	}
	// DNS and the proxy publish *.apps, so it needs both.
	if bad, found := firstNot(but(components, v1alpha1.ConditionDHCPReady)...); found && finding.Worst(out.Findings, kind) == finding.Warning {
		return []verdict{{kind, bad.Status, bad.Reason, bad.Type + ": " + bad.Message}}
	}
	return []verdict{judged(kind, out.Findings, yes(kind, "Serving", fmt.Sprintf("*.apps leads to %v", p.Apps.Addresses)))}
}

func but(all []verdict, kind string) []verdict {
	return slices.DeleteFunc(slices.Clone(all), func(v verdict) bool { return v.Type == kind })
}

// remembered is the previous finding about *.apps, as long as the hosted cluster was not read again.
func remembered(before []metav1.Condition, p plan.InfraPlan) []finding.Finding {
	c := meta.FindStatusCondition(before, v1alpha1.ConditionAppsIngressReady)
	if p.Apps == nil || !p.Apps.Unread || c == nil || c.Status != metav1.ConditionFalse {
		return nil
	}
	reason := current(c.Reason)
	found := finding.Fail(c.Type, reason)
	if waited := meta.FindStatusCondition(before, v1alpha1.ConditionProgressing); waited != nil && waited.Reason == c.Reason {
		found = finding.Wait(c.Type, reason)
	}
	return []finding.Finding{found.Say("%s", c.Message)}
}

// appsStatus is the status of *.apps. It outlasts the condition until nothing of ours is left in the hosted cluster.
func appsStatus(infra *v1alpha1.Infra, p plan.InfraPlan, out Outcome, conditions []metav1.Condition, now time.Time) *v1alpha1.AppsIngressStatus {
	before := infra.Status.AppsIngress
	c := meta.FindStatusCondition(conditions, v1alpha1.ConditionAppsIngressReady)
	var want v1alpha1.AppsIngressStatus
	switch {
	case c == nil && (before == nil || out.GuestLeft):
		return nil
	case c == nil:
		want = v1alpha1.AppsIngressStatus{Phase: v1alpha1.AppsDegraded, Reason: "Removing", Message: cut("appsIngress is disabled; its Service is still being removed from the hosted cluster: "+out.GuestStays, valid.LongestAppsMessage)}
	case p.Apps == nil && before != nil:
		want = *before
		want.Reason = current(before.Reason)
	default:
		want = v1alpha1.AppsIngressStatus{Phase: appsPhase(before, p.Apps, c, now), Reason: c.Reason, Message: cut(c.Message, valid.LongestAppsMessage)}
		want.ExternalIPs = appsAddresses(p.Apps)
		if len(want.ExternalIPs) > 0 {
			want.ExternalIP = want.ExternalIPs[0]
		}
	}
	return dated(before, want, now)
}

func appsAddresses(a *apps.Apps) []v1alpha1.IPAddress {
	var all []v1alpha1.IPAddress
	if a != nil {
		for _, at := range a.Addresses {
			all = append(all, v1alpha1.IPAddress(at.String()))
		}
	}
	return all
}

func appsPhase(before *v1alpha1.AppsIngressStatus, a *apps.Apps, c *metav1.Condition, now time.Time) v1alpha1.AppsIngressPhase {
	switch {
	case c.Status == metav1.ConditionTrue:
		return v1alpha1.AppsReady
	case c.Reason == "Progressing" && before != nil: // a change is being rolled out; the previous state serves until then
		return before.Phase
	case a != nil && (len(a.Addresses) > 0 || a.Away), c.Status == metav1.ConditionFalse && now.Sub(c.LastTransitionTime.Time) >= untilDegraded:
		return v1alpha1.AppsDegraded
	}
	return v1alpha1.AppsPending
}

// dated sets the time of the last change.
func dated(before *v1alpha1.AppsIngressStatus, want v1alpha1.AppsIngressStatus, now time.Time) *v1alpha1.AppsIngressStatus {
	if before != nil {
		want.LastSyncTime = before.LastSyncTime
		if equality.Semantic.DeepEqual(*before, want) {
			return before
		}
	}
	at := metav1.NewTime(now).Rfc3339Copy()
	want.LastSyncTime = &at
	return &want
}
