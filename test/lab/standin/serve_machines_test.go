package standin

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// As Cluster API does: the moment at which the Node came stays, and the condition's changes with its status alone.
func TestAMachineSaysSinceWhenItsNodeIsReady(t *testing.T) {
	machine := unstructured.Unstructured{Object: object{"status": Worker{Name: "w"}.machineStatus("")}}
	begun := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		after time.Duration
		is    corev1.ConditionStatus
		since string
	}{
		{0, "False", "2026-11-28T00:00:00Z"},
		{time.Second, "False", "2026-11-28T00:00:00Z"},
		{2 * time.Second, "True", "2026-11-28T00:00:02Z"},
		{3 * time.Second, "True", "2026-11-28T00:00:02Z"},
	} {
		node := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: c.is}}}}
		machine.Object["status"] = joined(&machine, node, begun.Add(c.after))
		got := readMachine(machine)
		came, _, _ := unstructured.NestedString(machine.Object, "status", "lastUpdated")
		if since := healthy(machine)["lastTransitionTime"]; !got.HasNode || got.Healthy != string(c.is) || since != c.since || came != "2026-11-28T00:00:00Z" {
			t.Errorf("%s after it came, the Node is Ready: %s; the Machine says %+v since %s, and a Node since %s", c.after, c.is, got, since, came)
		}
	}
	if got := nodeReady(&corev1.Node{}); got != "Unknown" {
		t.Errorf("of a Node that says nothing it says %s", got)
	}
}
