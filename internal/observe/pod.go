package observe

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/cldmnky/oooi/internal/kubelet"
	"github.com/cldmnky/oooi/internal/names"
)

// Pod is a pod that is not Ready, with what may be the cause.
type Pod struct {
	*corev1.Pod
	// Node to which the pod is bound; nil before that, and if the Node is gone.
	Node *corev1.Node
	// Warning is the kubelet's last one about the pod. It is read only while a container is being created, or while all run: the pod's status
	// tells everything else.
	Warning string
}

const (
	// soonCreated is how long a pod takes to be created when nothing is wrong.
	soonCreated = 3 * time.Second
	// mostEvents is how many Events of one pod are read; the kubelet merges equal ones.
	mostEvents = 50
)

// pods lists the pods of one instance of a child.
func (o *Observer) pods(ctx context.Context, child types.NamespacedName, component string, instance int) ([]corev1.Pod, error) {
	all := &corev1.PodList{}
	if err := o.Reader.List(ctx, all, client.InNamespace(child.Namespace), client.MatchingLabels{names.LabelApp: component, names.LabelInstance: child.Name}); err != nil {
		return nil, fmt.Errorf("listing the pods of %s: %w", child, err)
	}
	return slices.DeleteFunc(all.Items, func(p corev1.Pod) bool { return !names.OfInstance(p.Labels, instance) }), nil
}

func serves(p corev1.Pod) bool {
	return kubelet.PodCondition(&p, corev1.PodReady).Status == corev1.ConditionTrue
}

func nodeOf(pods []corev1.Pod) string {
	i := slices.IndexFunc(pods, func(p corev1.Pod) bool { return serves(p) && p.DeletionTimestamp == nil })
	if i < 0 {
		return ""
	}
	return pods[i].Spec.NodeName
}

// unready finds the newest of an instance's pods that are not Ready.
func (o *Observer) unready(ctx context.Context, pods []corev1.Pod) (*Pod, error) {
	waiting := slices.DeleteFunc(slices.Clone(pods), serves)
	if len(waiting) == 0 {
		return nil, nil
	}
	newest := slices.MaxFunc(waiting, func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	pod := &Pod{Pod: &newest}
	var err error
	if newest.Spec.NodeName != "" {
		if pod.Node, err = get[corev1.Node](ctx, o, types.NamespacedName{Name: newest.Spec.NodeName}); err != nil {
			return nil, err
		}
	}
	if (pod.Creating() || pod.runs()) && o.Now().Sub(newest.CreationTimestamp.Time) >= soonCreated {
		pod.Warning = o.lastWarning(ctx, pod.Pod)
	}
	return pod, nil
}

// Creating says whether a container of the pod waits for its sandbox, network or volumes, which only Events report.
func (p *Pod) Creating() bool {
	return slices.ContainsFunc(slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses), func(c corev1.ContainerStatus) bool {
		return c.State.Waiting != nil && (c.State.Waiting.Reason == "ContainerCreating" || c.State.Waiting.Reason == "PodInitializing")
	})
}

// runs says whether all containers of the pod run: a hung one shows only by its probes, which only Events report.
func (p *Pod) runs() bool {
	all := p.Status.ContainerStatuses
	return len(all) > 0 && !slices.ContainsFunc(all, func(c corev1.ContainerStatus) bool { return c.State.Running == nil })
}

// lastWarning reads the last warning about an object from the API server itself: Events are many, and are not cached. It only explains: if
// Events cannot be read, a child is planned and reported without it.
func (o *Observer) lastWarning(ctx context.Context, of client.Object) string {
	if o.Eventless {
		return ""
	}
	about := fields.Set{"involvedObject.uid": string(of.GetUID()), "type": corev1.EventTypeWarning}
	all := &corev1.EventList{}
	if err := o.Live.List(ctx, all, client.InNamespace(of.GetNamespace()), client.MatchingFieldsSelector{Selector: about.AsSelector()}, client.Limit(mostEvents)); err != nil {
		log.FromContext(ctx).Error(err, "why a pod does not start is not told: its events cannot be listed", "object", of.GetNamespace()+"/"+of.GetName())
		return ""
	}
	if len(all.Items) == 0 {
		return ""
	}
	last := slices.MaxFunc(all.Items, func(a, b corev1.Event) int { return timeOf(a).Compare(timeOf(b)) })
	return last.Reason + ": " + last.Message
}

// timeOf is when an Event was last seen; Events of events.k8s.io have their time in another field.
func timeOf(e corev1.Event) time.Time {
	if e.LastTimestamp.IsZero() {
		return e.EventTime.Time
	}
	return e.LastTimestamp.Time
}
