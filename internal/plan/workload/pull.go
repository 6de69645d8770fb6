package workload

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	accore "k8s.io/client-go/applyconfigurations/core/v1"
	acmeta "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/kubelet"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/desired"
)

// LongestPull is how long to wait for pods that pull images: on a full node they may never run.
const LongestPull = 5 * time.Minute

// postponed says whether a changed template has to wait while the previous pod serves: until its images are pulled and, if it selects other
// nodes, until one accepts it; then for its turn.
func (w workload) postponed(p *ChildPlan, last, newest chosenTemplate) bool {
	images := slices.DeleteFunc(imagesOf(newest), func(image string) bool { return slices.Contains(imagesOf(last), image) })
	moves := !slices.Equal(placed(last), placed(newest))
	if len(images) == 0 && moves {
		images = imagesOf(newest)
	}
	puller := w.puller(newest, images)
	if len(images) > 0 && (!w.now.PullOver || w.pullerNamed(*puller.Name) != nil) {
		found, wait := w.pulling(*puller.Name, images, moves)
		over := w.now.PullOver && !w.bound(*puller.Name)
		if p.AwaitsImages = wait && (!over || found.Severity == finding.Failing); p.AwaitsImages {
			p.Find(found)
		}
		if p.AwaitsImages || w.awaitsTurn() {
			p.Want(puller)
		}
	}
	if p.AwaitsTurn = !p.AwaitsImages && w.awaitsTurn(); p.AwaitsTurn {
		p.Find(waitsForTurn())
	}
	return p.AwaitsImages || p.AwaitsTurn
}

// placed is what a template requires of a node: labels, tolerations, and extended resources.
func placed(r chosenTemplate) []string {
	if r.template.Spec == nil {
		return nil
	}
	all := []string{string(desired.Encoded(r.template.Spec.NodeSelector)), string(desired.Encoded(r.template.Spec.Tolerations))}
	for _, c := range r.template.Spec.Containers {
		for _, name := range slices.Sorted(maps.Keys(devices(c.Resources))) {
			all = append(all, string(name))
		}
	}
	return all
}

// devices are the extended resources that a container requests.
func devices(r *accore.ResourceRequirementsApplyConfiguration) corev1.ResourceList {
	if r == nil {
		return nil
	}
	return kubelet.Devices(ptr.Deref(r.Limits, nil))
}

// awaitsTurn: what the users of this child decided does not wait for other Infras.
func (w workload) awaitsTurn() bool { return !w.now.Turn && !w.decidedHere() }

func waitsForTurn() finding.Finding {
	return finding.Wait(v1alpha1.ConditionProgressing, "WaitingForTurn").
		Say("the new pod waits for its turn: another Infra's pods are being replaced, one Infra at a time; an Infra whose pods do not become ready blocks all others until it is corrected, paused or deleted; see: kubectl get infra -A")
}

func imagesOf(r chosenTemplate) []string {
	var all []string
	if r.template.Spec != nil {
		for _, c := range r.template.Spec.Containers {
			all = append(all, ptr.Deref(c.Image, ""))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// unpullable are the kubelet's reasons for an image that it cannot pull (kubernetes, pkg/kubelet/images/types.go).
var unpullable = []string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed"}

// pullerNamed is a pod that pulls images; nil if it does not exist.
func (w workload) pullerNamed(name string) *corev1.Pod {
	i := slices.IndexFunc(w.now.Pullers, func(p corev1.Pod) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &w.now.Pullers[i]
}

// bound says whether a pod that pulls is on a node: the kubelet ends it, however long the pull takes.
func (w workload) bound(puller string) bool {
	pod := w.pullerNamed(puller)
	return pod != nil && pod.Spec.NodeName != ""
}

// pulling says how far the pod that pulls is, and whether to wait for it. If the new pod moves, and no node accepts the one that pulls, none
// accepts the new one; on a node that is merely full, the end of the previous pod makes room.
func (w workload) pulling(puller string, images []string, moves bool) (finding.Finding, bool) {
	there := 0
	if pod := w.pullerNamed(puller); pod != nil {
		if c := kubelet.PodCondition(pod, corev1.PodScheduled); moves && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return finding.Fail(v1alpha1.ConditionProgressing, "NewPodUnschedulable").
				Say("the previous pod keeps serving, because no node accepts the new one, which selects other nodes (%s); correct nodeSelector and tolerations of the component", c.Message), true
		}
		for _, c := range pod.Status.ContainerStatuses {
			switch waiting := c.State.Waiting; {
			case c.ImageID != "" || c.State.Running != nil || c.State.Terminated != nil:
				there++
			case waiting != nil && slices.Contains(unpullable, waiting.Reason):
				return finding.Fail(v1alpha1.ConditionProgressing, "ImagePullFailed").
					Say("the previous pod keeps serving, because image %s of the new one cannot be pulled (%s: %s); correct the image in the spec or, if none is set there, the operator's --image or --envoy-image",
						c.Image, waiting.Reason, waiting.Message), true
			}
		}
	}
	return finding.Wait(v1alpha1.ConditionProgressing, "PullingImages").
		Say("the images of the new pod are pulled before the pod that serves is replaced; see: kubectl -n %s describe pod %s", w.namespace(), puller), there < len(images)
}

// puller is a pod that pulls a template's images where the new pod will most likely run: beside the one that serves. It joins only the pod
// network, and no selector matches its labels.
func (w workload) puller(r chosenTemplate, images []string) *accore.PodApplyConfiguration {
	labels := w.labels()
	delete(labels, names.LabelInstance)
	labels[names.LabelPulls] = w.name()
	beside := accore.PodAffinityTerm().WithTopologyKey(corev1.LabelHostname).WithLabelSelector(w.pods())
	spec := accore.PodSpec().WithServiceAccountName(w.own()).WithAutomountServiceAccountToken(false).WithRestartPolicy(corev1.RestartPolicyNever).WithTerminationGracePeriodSeconds(0).
		WithSecurityContext(accore.PodSecurityContext().WithRunAsNonRoot(true).WithSeccompProfile(accore.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))).
		WithAffinity(accore.Affinity().WithPodAffinity(accore.PodAffinity().
			WithPreferredDuringSchedulingIgnoredDuringExecution(accore.WeightedPodAffinityTerm().WithWeight(100).WithPodAffinityTerm(beside))))
	spec.NodeSelector, spec.Tolerations, spec.ImagePullSecrets, spec.PriorityClassName = r.template.Spec.NodeSelector, r.template.Spec.Tolerations, r.template.Spec.ImagePullSecrets, r.template.Spec.PriorityClassName
	for i, image := range images {
		// Whether it succeeds does not matter: the image is pulled before the container is created.
		spec.WithContainers(accore.Container().WithName(fmt.Sprintf("image-%d", i)).WithImage(image).WithArgs("--version").WithSecurityContext(restricted()).
			WithResources(accore.ResourceRequirements().
				WithRequests(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m"), corev1.ResourceMemory: resource.MustParse("16Mi")}).
				WithLimits(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")})))
	}
	asksAsOf(spec, r)
	decides := []any{images, placed(r)}
	if w.Instance > 0 {
		decides = append(decides, w.Instance)
	}
	name := names.Puller(w.App, w.name(), desired.Digest(decides))
	return accore.Pod(name, w.namespace()).WithLabels(labels).WithOwnerReferences(w.owner()).WithSpec(spec)
}

// pods selects the pods of this instance alone, even if there are others.
func (w workload) pods() *acmeta.LabelSelectorApplyConfiguration {
	own := acmeta.LabelSelector().WithMatchLabels(w.instance())
	if w.Instance == 0 && len(w.peers) > 0 {
		own.WithMatchExpressions(acmeta.LabelSelectorRequirement().WithKey(names.LabelOrdinal).WithOperator(metav1.LabelSelectorOpDoesNotExist))
	}
	return own
}

// asksAsOf makes a pod that pulls request the extended resources of the template. KubeVirt's bridge-marker offers enough bridges for both
// pods (pkg/marker: 1,000 of each).
func asksAsOf(spec *accore.PodSpecApplyConfiguration, r chosenTemplate) {
	if len(spec.Containers) == 0 {
		return
	}
	to := spec.Containers[0].Resources
	for _, c := range r.template.Spec.Containers {
		maps.Copy(*to.Requests, devices(c.Resources))
		maps.Copy(*to.Limits, devices(c.Resources))
	}
}
