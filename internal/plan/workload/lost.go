package workload

import (
	"slices"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/finding"
)

// lost are the pods whose address has to come up on another node: nobody finds it on the VLAN, as DNS instances on two nodes agree; or else its
// node is lost, and no DNS instance may find it. A proxy that is only cut off from the API server keeps its address.
func (in Child[T]) lost() (all []RunningPod, later bool) {
	serves, _ := component.Of(in.Server)
	ips := serves.Written(in.Server).ServerIPs()
	for i, instance := range in.instances() {
		for _, pod := range instance.Pods {
			gone := in.isGone(ips[i]) || pod.Stranded && !in.mayBeFound(ips[i])
			if gone && pod.Settled {
				all = append(all, pod)
			}
			later = later || gone && !pod.Settled
		}
	}
	return all, later
}

// isGone says whether one DNS instance has lost an address, and no other finds it. Two on one node are cut off together; one whose node does
// not report has said what it knew before; one that says nothing, as an older release does, may find it; and one that hears no proxy at all is
// cut off itself, or the network pauses.
func (in Child[T]) isGone(ip v1alpha1.IPAddress) bool {
	isLost, nodes := false, map[string]bool{}
	for _, l := range in.Lookouts {
		if l.Node == "" {
			continue
		}
		state := l.Said.HealthAt(ip)
		if state == "" || state == v1alpha1.HealthConfirmed {
			return false
		}
		isLost, nodes[l.Node] = isLost || state == v1alpha1.HealthLost && l.hears(), true
	}
	return isLost && len(nodes) > 1
}

// mayBeFound says whether a DNS instance whose node reports has not lost an address. It may be starting again: then it has found it before.
func (in Child[T]) mayBeFound(ip v1alpha1.IPAddress) bool {
	return slices.ContainsFunc(in.Lookouts, func(l Lookout) bool {
		state := l.Said.HealthAt(ip)
		return l.Node != "" && state != "" && state != v1alpha1.HealthLost
	})
}

// hears says whether an instance finds one of several proxies.
func (l Lookout) hears() bool {
	return len(l.Said.Health) < 2 || slices.ContainsFunc(l.Said.Health, v1alpha1.Health.Hears)
}

// awaitsEnd: for a new template, a Deployment ends the pod that serves, and makes none until all older ones have ended, also those that cannot
// (kubernetes, pkg/controller/deployment/recreate.go, oldPodsRunning). A successor of the same template does not wait.
func (w workload) awaitsEnd(p *ChildPlan) bool {
	ending := w.now.Ending
	if ending.Name == "" {
		return false
	}
	p.Find(finding.Wait(v1alpha1.ConditionProgressing, "WaitingForLostPod").
		Say("the new pod with %s waits, and the previous one keeps serving, because pod %s cannot end while its node %s does not report; start the node or, once you know that the machine is off, run: kubectl taint nodes %s node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
			w.Addresses[0].Addr(), ending.Name, ending.Node, ending.Node))
	return true
}
