// Package ending says what the deletion of an Infra waits for.
package ending

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/kubelet"
	"github.com/cldmnky/oooi/internal/names"
)

// Remains are what still exists of an Infra that is being deleted, while its DHCPServer exists.
type Remains struct {
	Infra *v1alpha1.Infra
	// Pods of the DHCPServer.
	Pods []corev1.Pod
	// Nodes of these pods that exist.
	Nodes []corev1.Node
}

// Ending is what the deletion of an Infra waits for.
type Ending struct {
	// Reason and Message of Progressing. The zero Ending waits for nothing.
	Reason, Message string
	// Stuck: the pod is overdue, and an administrator has to act.
	Stuck bool
	// Unseen names a pod that is no longer waited for, though its end was not reported.
	Unseen string
}

// Deleting is the reason while an Infra is being deleted.
const Deleting = "Deleting"

// endPatience is how long a deletion waits for a DHCP pod that should have ended (docs/adr/0008-a-deletion-ends.md).
const endPatience = 10 * time.Minute

// End says what an Infra waits for before its leases are deleted: a DHCP pod that still runs may write them. Call it while the DHCPServer
// exists; without pods, the Infra waits for the garbage collector. It waits at most endPatience after the last pod should have ended: then
// Reason is empty and Unseen names that pod.
func End(r Remains, now time.Time) Ending {
	if len(r.Pods) == 0 {
		return Ending{Reason: Deleting, Message: fmt.Sprintf("waiting for the garbage collector to remove DHCPServer %s", names.DHCPServer(r.Infra.Name))}
	}
	pod := slices.MaxFunc(r.Pods, func(a, b corev1.Pod) int { return due(a, now).Compare(due(b, now)) })
	until := due(pod, now).Add(endPatience)
	without := fmt.Sprintf("at %s the leases are forgotten without it", until.UTC().Format(time.RFC3339))
	switch node, there := r.nodeOf(pod); {
	case !now.Before(until):
		return Ending{Unseen: fmt.Sprintf("pod %s on node %s", pod.Name, pod.Spec.NodeName)}
	case !now.After(due(pod, now)):
		return Ending{Reason: Deleting, Message: fmt.Sprintf("waiting for pod %s on node %s to end; until then it keeps its leases", pod.Name, pod.Spec.NodeName)}
	case !there:
		return Ending{Reason: "NodeLost", Stuck: true, Message: fmt.Sprintf(
			"pod %s cannot end: its node %s is gone; make sure that the node is off, and remove the pod with: kubectl -n %s delete pod %s --force; %s",
			pod.Name, pod.Spec.NodeName, pod.Namespace, pod.Name, without)}
	case kubelet.NodeReady(&node).Status != corev1.ConditionTrue:
		return Ending{Reason: "NodeLost", Stuck: true, Message: fmt.Sprintf(
			"pod %s cannot end: its node %s is not Ready; start the node, or make sure that it is off and say so with: kubectl taint node %s node.kubernetes.io/out-of-service=nodeshutdown:NoExecute; %s",
			pod.Name, node.Name, node.Name, without)}
	}
	return Ending{Reason: "PodStays", Stuck: true, Message: fmt.Sprintf("pod %s on node %s should have ended at %s; see why with: kubectl -n %s describe pod %s; %s",
		pod.Name, pod.Spec.NodeName, due(pod, now).UTC().Format(time.RFC3339), pod.Namespace, pod.Name, without)}
}

// due is when a pod should have ended; now, if nobody has deleted it.
func due(pod corev1.Pod, now time.Time) time.Time {
	if pod.DeletionTimestamp == nil {
		return now
	}
	return pod.DeletionTimestamp.Time
}

func (r Remains) nodeOf(pod corev1.Pod) (corev1.Node, bool) {
	at := slices.IndexFunc(r.Nodes, func(n corev1.Node) bool { return n.Name == pod.Spec.NodeName })
	if at < 0 {
		return corev1.Node{}, false
	}
	return r.Nodes[at], true
}

// InHostedCluster is an Ending that waits until our Service is removed from the hosted cluster.
func InHostedCluster(why string) Ending {
	return Ending{Reason: Deleting, Message: "waiting for our Service to be removed from the hosted cluster: " + why}
}
