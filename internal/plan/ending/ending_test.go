package ending

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
)

func TestADeletionSaysWhatItWaitsForAndEnds(t *testing.T) {
	due := time.Date(2026, 11, 22, 16, 0, 0, 0, time.UTC)
	asked := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "c1-dhcp-deployment-0", DeletionTimestamp: &metav1.Time{Time: due}}, Spec: corev1.PodSpec{NodeName: "n1"}}
	node := func(ready corev1.ConditionStatus) []corev1.Node {
		return []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}}}}
	}
	running := *asked.DeepCopy()
	running.DeletionTimestamp = nil
	for name, c := range map[string]struct {
		pods  []corev1.Pod
		nodes []corev1.Node
		after time.Duration
		want  Ending
	}{
		"its pods have ended": {nil, nil, 0, Ending{Reason: "Deleting", Message: "waiting for the garbage collector to remove DHCPServer c1-dhcp"}},
		"nobody has asked the pod to end": {[]corev1.Pod{running}, node(corev1.ConditionTrue), time.Hour,
			Ending{Reason: "Deleting", Message: "waiting for pod c1-dhcp-deployment-0 on node n1 to end; until then it keeps its leases"}},
		"it has its grace": {[]corev1.Pod{asked}, node(corev1.ConditionUnknown), 0,
			Ending{Reason: "Deleting", Message: "waiting for pod c1-dhcp-deployment-0 on node n1 to end; until then it keeps its leases"}},
		"its node is lost": {[]corev1.Pod{asked}, node(corev1.ConditionUnknown), time.Minute, Ending{Reason: "NodeLost", Stuck: true,
			Message: "pod c1-dhcp-deployment-0 cannot end: its node n1 is not Ready; start the node, or make sure that it is off and say so with: kubectl taint node n1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute; at 2026-11-22T16:10:00Z the leases are forgotten without it"}},
		"its node is gone": {[]corev1.Pod{asked}, nil, time.Minute, Ending{Reason: "NodeLost", Stuck: true,
			Message: "pod c1-dhcp-deployment-0 cannot end: its node n1 is gone; make sure that the node is off, and remove the pod with: kubectl -n clusters delete pod c1-dhcp-deployment-0 --force; at 2026-11-22T16:10:00Z the leases are forgotten without it"}},
		"it does not end on a good node": {[]corev1.Pod{running, asked}, node(corev1.ConditionTrue), time.Minute, Ending{Reason: "Deleting",
			Message: "waiting for pod c1-dhcp-deployment-0 on node n1 to end; until then it keeps its leases"}},
		"it alone does not end": {[]corev1.Pod{asked}, node(corev1.ConditionTrue), time.Minute, Ending{Reason: "PodStays", Stuck: true,
			Message: "pod c1-dhcp-deployment-0 on node n1 should have ended at 2026-11-22T16:00:00Z; see why with: kubectl -n clusters describe pod c1-dhcp-deployment-0; at 2026-11-22T16:10:00Z the leases are forgotten without it"}},
		"just before patience ends": {[]corev1.Pod{asked}, node(corev1.ConditionTrue), endPatience - time.Second, Ending{Reason: "PodStays", Stuck: true,
			Message: "pod c1-dhcp-deployment-0 on node n1 should have ended at 2026-11-22T16:00:00Z; see why with: kubectl -n clusters describe pod c1-dhcp-deployment-0; at 2026-11-22T16:10:00Z the leases are forgotten without it"}},
		"patience ends": {[]corev1.Pod{asked}, nil, endPatience, Ending{Unseen: "pod c1-dhcp-deployment-0 on node n1"}},
	} {
		t.Run(name, func(t *testing.T) {
			infra := &v1alpha1.Infra{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "c1"}}
			NewWithT(t).Expect(End(Remains{Infra: infra, Pods: c.pods, Nodes: c.nodes}, due.Add(c.after))).To(Equal(c.want))
		})
	}
}
