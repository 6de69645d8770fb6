package check

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/cldmnky/oooi/internal/step"
)

// LeaseName is that of the Lease of the leader, in the operator's namespace.
const LeaseName = "oooi-manager"

func named(d *appsv1.Deployment) string { return "Deployment " + d.Namespace + "/" + d.Name }

// absent says why the operator's Deployment is not known.
func (f Facts) absent() string {
	if f.Deployment.Unread != "" {
		return "the operator's Deployment is not read"
	}
	return "there is no operator"
}

// down says why no pod of the operator can be asked, for the checks that depend on one; empty if one can be.
func (f Facts) down() string {
	switch d := f.Deployment.Is; {
	case f.Deployment.Unread != "":
		return ""
	case d == nil:
		return "there is no operator"
	case d.Status.AvailableReplicas == 0:
		return "no pod of the operator is available"
	}
	return ""
}

func deployment(f Facts) []step.Step {
	d := f.Deployment.Is
	if f.Deployment.Unread != "" {
		return one(unread("the operator", f.Deployment.Unread))
	}
	if d == nil {
		return one(fail("install it (README.md#install), or name its namespace with --operator-namespace", "there is no operator in namespace %s", f.Namespace))
	}
	logs := "kubectl -n " + d.Namespace + " describe pods -l app.kubernetes.io/component=manager"
	wanted, has := ptr.Deref(d.Spec.Replicas, 1), d.Status.AvailableReplicas
	var s step.Step
	switch {
	case wanted == 0:
		s = fail("kubectl -n "+d.Namespace+" scale deployment/"+d.Name+" --replicas=2", "%s is scaled to 0: nothing reacts to changes; what serves workers goes on", named(d))
	case has == 0:
		s = fail(logs, "%s has no available pod%s", named(d), because(f.PodWaits))
	case d.Status.ObservedGeneration != d.Generation || d.Status.UpdatedReplicas < wanted || d.Status.Replicas > wanted:
		s = fail("kubectl -n "+d.Namespace+" rollout status deployment/"+d.Name, "%s is being updated: %d of %d pods are%s", named(d), d.Status.UpdatedReplicas, wanted, because(f.PodWaits))
	case has < wanted:
		s = warn(logs, "%s has %d of %d pods available%s", named(d), has, wanted, because(f.PodWaits))
	default:
		s = ok("%s has %d of %d pods available", named(d), has, wanted)
	}
	return one(about("Deployment", d.Namespace, d.Name, s))
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// PodWaits is why the first of some pods that is not Ready is not: what the kubelet or the scheduler says.
func PodWaits(pods []corev1.Pod) string {
	for _, p := range pods {
		for _, c := range p.Status.ContainerStatuses {
			if w := c.State.Waiting; w != nil {
				return "pod " + p.Name + ": " + w.Reason + because(w.Message)
			}
		}
		for _, c := range p.Status.Conditions {
			if c.Status != corev1.ConditionTrue && c.Message != "" && (c.Type == corev1.PodScheduled || c.Type == corev1.PodReady) {
				return "pod " + p.Name + ": " + c.Reason + because(c.Message)
			}
		}
	}
	return ""
}

func leader(f Facts) []step.Step {
	why, lease := f.down(), f.Lease.Is
	do := "kubectl -n " + f.Namespace + " logs -l app.kubernetes.io/component=manager --prefix"
	switch {
	case why != "":
		return one(skip("the leader is not checked: %s", why))
	case f.Deployment.Is != nil && !f.Manager.Elects:
		return one(skip("no leader is elected: the operator runs without --leader-elect"))
	case f.Lease.Unread != "":
		return one(unread("the leader", f.Lease.Unread))
	case lease == nil || ptr.Deref(lease.Spec.HolderIdentity, "") == "" || lease.Spec.RenewTime == nil:
		return one(fail(do, "nobody leads: Lease %s/%s has no holder, so nothing reacts to changes", f.Namespace, LeaseName))
	}
	ago, lasts := f.Now.Sub(lease.Spec.RenewTime.Time), time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0))*time.Second
	if ago > lasts {
		return one(about("Lease", f.Namespace, LeaseName, fail(do, "nobody leads: Lease %s/%s was last renewed %s ago, and lasts %s", f.Namespace, LeaseName, ago.Round(time.Second), lasts)))
	}
	return one(ok("pod %s leads", podOf(*lease.Spec.HolderIdentity)))
}
