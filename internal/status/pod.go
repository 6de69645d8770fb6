package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/internal/kubelet"
	"github.com/cldmnky/oooi/internal/observe"
	"github.com/cldmnky/oooi/internal/plan/workload"
)

// Reasons of a child whose pod does not serve.
const (
	podNotReady = "PodNotReady"
	nodeLost    = "NodeLost"
)

// trouble is why a child's pod does not come up; empty while nothing is known to be wrong.
func trouble(p *observe.Pod) (reason, why string) {
	switch {
	case p == nil:
		return "", ""
	case silent(p.Node):
		return nodeLost, stranded(p)
	case p.Spec.NodeName == "":
		if c := kubelet.PodCondition(p.Pod, corev1.PodScheduled); c.Status == corev1.ConditionFalse {
			return podNotReady, fmt.Sprintf("pod %s has no node: %s", p.Name, c.Message)
		}
	case p.Warning != "" && p.Creating():
		return podNotReady, fmt.Sprintf("pod %s does not start on node %s: %s", p.Name, p.Spec.NodeName, p.Warning)
	}
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if why := failing(c); why != "" {
			return podNotReady, fmt.Sprintf("pod %s, container %s: %s", p.Name, c.Name, why)
		}
	}
	return "", ""
}

// failing is why a container does not run: what the kubelet says while it waits, and how it last ended.
func failing(c corev1.ContainerStatus) string {
	w, ended := c.State.Waiting, cmp.Or(c.State.Terminated, c.LastTerminationState.Terminated)
	switch {
	case w != nil && (w.Reason == "ContainerCreating" || w.Reason == "PodInitializing"):
		return ""
	case c.State.Running != nil || w == nil && ended == nil:
		return ""
	case w != nil && ended == nil:
		return w.Reason + ": " + w.Message
	}
	last := strings.TrimSpace(fmt.Sprintf("ended with exit code %d (%s) %s", ended.ExitCode, ended.Reason, ended.Message))
	if w == nil {
		return last
	}
	return w.Reason + ": it " + last
}

// silent says whether a node has stopped reporting.
func silent(n *corev1.Node) bool {
	return n != nil && kubelet.NodeReady(n).Status == corev1.ConditionUnknown
}

// stranded says what becomes of a pod on a lost node and, for a StatefulSet's, which command gets it replaced: Kubernetes does not replace
// it by itself while its node may still run it (non-graceful node shutdown).
func stranded(p *observe.Pod) string {
	since := kubelet.NodeReady(p.Node).LastTransitionTime
	if owner := metav1.GetControllerOf(p); owner != nil && owner.Kind == "ReplicaSet" {
		return fmt.Sprintf("pod %s is on node %s, which has not reported since %s; it is replaced %d seconds after that at the latest if DNS no longer finds it on the VLAN, else, or without a manager, %d seconds after, if another node has room and the VLAN",
			p.Name, p.Node.Name, since.UTC().Format(time.RFC3339), workload.UnreachableSeconds, workload.EvictedSeconds)
	}
	return fmt.Sprintf("pod %s is on node %s, which has not reported since %s, and is not replaced while that node may still run it. Once you know that the machine is off, run: kubectl taint node %s node.kubernetes.io/out-of-service=nodeshutdown:NoExecute, or for this pod alone: kubectl -n %s delete pod %s --force --grace-period=0",
		p.Name, p.Node.Name, since.UTC().Format(time.RFC3339), p.Node.Name, p.Namespace, p.Name)
}
