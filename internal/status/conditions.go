// Package status computes an object's status, purely from findings and its parts' reports, and writes it once, with one event per condition
// that changed.
package status

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/internal/finding"
)

// verdict is a condition without times.
type verdict struct {
	Type    string
	Status  metav1.ConditionStatus
	Reason  string
	Message string
}

func yes(kind, reason, message string) verdict {
	return verdict{kind, metav1.ConditionTrue, reason, message}
}

func no(kind, reason, message string) verdict {
	return verdict{kind, metav1.ConditionFalse, reason, message}
}

func unknown(kind, reason, message string) verdict {
	return verdict{kind, metav1.ConditionUnknown, reason, message}
}

// judged is the verdict of the worst findings about one condition; without findings, it is the fallback.
func judged(kind string, findings []finding.Finding, fallback verdict) verdict {
	worst := finding.Worst(findings, kind)
	var reason string
	var messages []string
	for _, f := range findings {
		if f.Condition == kind && f.Severity == worst && !slices.Contains(messages, f.Message) {
			reason = cmp.Or(reason, f.Reason)
			messages = append(messages, f.Message)
		}
	}
	switch {
	case len(messages) == 0:
		return fallback
	case worst == finding.Warning:
		return yes(kind, reason, say(messages))
	}
	return no(kind, reason, say(messages))
}

func say(messages []string) string { return strings.Join(messages, "; ") }

// longest is the size limit of a condition's message (metav1.Condition).
const longest = 32768

// cut shortens a text to at most so many bytes, between characters.
func cut(text string, most int) string {
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

// conditions turns verdicts into conditions: one whose status did not change keeps its time.
func conditions(before []metav1.Condition, generation int64, now time.Time, verdicts ...verdict) []metav1.Condition {
	var all []metav1.Condition
	for _, v := range verdicts {
		c := metav1.Condition{
			Type: v.Type, Status: v.Status, Reason: v.Reason, Message: cut(v.Message, longest), ObservedGeneration: generation,
			LastTransitionTime: metav1.NewTime(now).Rfc3339Copy(),
		}
		if was := meta.FindStatusCondition(before, v.Type); was != nil && was.Status == v.Status {
			c.LastTransitionTime = was.LastTransitionTime
		}
		all = append(all, c)
	}
	return all
}

// kept is the condition as it was before; at first Unknown. It is used where nothing could be judged.
func kept(before []metav1.Condition, kind string) verdict {
	if was := meta.FindStatusCondition(before, kind); was != nil {
		return verdict{was.Type, was.Status, current(was.Reason), was.Message}
	}
	return unknown(kind, "NotEvaluated", "not evaluated until the conditions before it are met")
}

// firstNot finds the first verdict that is False, or else the first that is Unknown.
func firstNot(verdicts ...verdict) (verdict, bool) {
	for _, status := range []metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionUnknown} {
		if i := slices.IndexFunc(verdicts, func(v verdict) bool { return v.Status == status }); i >= 0 {
			return verdicts[i], true
		}
	}
	return verdict{}, false
}
