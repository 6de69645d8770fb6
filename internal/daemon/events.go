package daemon

import (
	"context"
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// document has what events need of an object with conditions, whatever its kind.
type document struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name, Namespace, ResourceVersion string
		UID                              types.UID
	} `json:"metadata"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// turned lists the conditions of now that differ from those of before. A condition without a predecessor counts only if it changed after
// since: a daemon that restarts finds its conditions as they were. (Transition times are whole seconds, in which a condition may change
// twice.)
func turned(before, now []metav1.Condition, since time.Time) (all []metav1.Condition) {
	for _, c := range now {
		was := meta.FindStatusCondition(before, c.Type)
		if was == nil && !c.LastTransitionTime.Time.Before(since.Truncate(time.Second)) ||
			was != nil && (was.Status != c.Status || was.Reason != c.Reason) {
			all = append(all, c)
		}
	}
	return all
}

// tell writes an event for each condition that changed between two statuses. answer is the object as the API server has it: only that has a
// UID.
func (s *Status) tell(ctx context.Context, before, now, answer []byte) {
	about := read(answer)
	for _, c := range turned(read(before).Status.Conditions, read(now).Status.Conditions, s.started) {
		if err := s.client.Create(ctx, eventOf(about, c, string(s.owner))); err != nil {
			s.log.Warn("event not written", "reason", c.Reason, "error", err)
		}
	}
}

// read returns an empty document for invalid content, such as the status before the first.
func read(content []byte) (d document) {
	_ = json.Unmarshal(content, &d)
	return d
}

func eventOf(about document, c metav1.Condition, by string) *corev1.Event {
	kind := corev1.EventTypeNormal
	if c.Status == metav1.ConditionFalse {
		kind = corev1.EventTypeWarning
	}
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: about.Metadata.Namespace, GenerateName: about.Metadata.Name + "-"},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: about.APIVersion, Kind: about.Kind, Namespace: about.Metadata.Namespace, Name: about.Metadata.Name, UID: about.Metadata.UID,
		},
		Type: kind, Reason: c.Reason, Message: c.Type + ": " + c.Message, Count: 1,
		FirstTimestamp: c.LastTransitionTime, LastTimestamp: c.LastTransitionTime, Source: corev1.EventSource{Component: by},
	}
}
