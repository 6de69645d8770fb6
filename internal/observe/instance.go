package observe

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/kept"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/workload"
)

// Rollout is the state of a workload.
type Rollout struct {
	// Workload is its name, and Version its resourceVersion; empty while there is none.
	Workload, Version string
	// Exists: there is a workload. Current: all pods have the newest template. Ready: a pod serves. Stopped: it is to have no pod.
	Exists, Current, Ready, Stopped bool
	// Pod is the newest pod that is not Ready; nil if all are, or if there is none.
	Pod *Pod
	// Refused is why no pod can be created, in the API server's words: a quota, Pod Security.
	Refused string
	// Node of the pod that serves, where there are several instances.
	Node string
}

// instance is the state of one instance's workload, and what a new template of it waits for.
type instance struct {
	workload.Instance
	Rollout
	workload kept.Object // nil while there is none
}

func (o *Observer) instance(ctx context.Context, of component.Component, server component.Server, number int) (instance, error) {
	app, key := string(of.Name), client.ObjectKeyFromObject(server)
	is, err := o.workload(ctx, of, server, types.NamespacedName{Namespace: key.Namespace, Name: names.InstanceWorkload(app, key.Name, number)})
	if err != nil {
		return is, err
	}
	is.Workload = names.InstanceWorkload(app, key.Name, number)
	is.Now = workload.Now{Serves: is.Ready, Rolled: is.Ready && is.Current}
	if is.Now.Pullers, err = o.pullers(ctx, key, app); err != nil || !is.Exists {
		return is, err
	}
	is.Now.PullOver = slices.ContainsFunc(is.Now.Pullers, func(p corev1.Pod) bool { return o.Now().Sub(p.CreationTimestamp.Time) > workload.LongestPull })
	several := len(of.Written(server).AdditionalServerIPs) > 0
	if several || !is.Now.Rolled {
		err = o.readPods(ctx, &is.Rollout, key, app, number)
	}
	is.Now.Starts = starts(is.Rollout, o.Now())
	return is, err
}

// readPods reads on which node an instance serves, and its newest pod that is not Ready.
func (o *Observer) readPods(ctx context.Context, r *Rollout, child types.NamespacedName, app string, number int) error {
	pods, err := o.pods(ctx, child, app, number)
	if err != nil {
		return err
	}
	r.Node = nodeOf(pods)
	if !r.Ready || !r.Current {
		r.Pod, err = o.unready(ctx, pods)
	}
	return err
}

// starts says whether a workload without a Ready pod may have one soon.
func starts(r Rollout, now time.Time) bool {
	return r.Exists && !r.Ready && !r.Stopped && r.Refused == "" && (r.Pod == nil || now.Sub(r.Pod.CreationTimestamp.Time) < workload.LongestStart)
}

func (o *Observer) pullers(ctx context.Context, child types.NamespacedName, component string) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	if err := o.Reader.List(ctx, pods, client.InNamespace(child.Namespace), client.MatchingLabels{names.LabelPulls: child.Name, names.LabelApp: component}); err != nil {
		return nil, fmt.Errorf("listing pods that pull images: %w", err)
	}
	return pods.Items, nil
}

// workload reads an instance's StatefulSet or, for a proxy, Deployment.
func (o *Observer) workload(ctx context.Context, of component.Component, server component.Server, at types.NamespacedName) (is instance, err error) {
	if of.Workload == component.Deployment {
		d, err := get[appsv1.Deployment](ctx, o, at)
		if err == nil && d != nil && metav1.IsControlledBy(d, server) {
			is.Running, is.Rollout, is.workload = d.Annotations, ofDeployment(d), d
		}
		return is, err
	}
	s, err := get[appsv1.StatefulSet](ctx, o, at)
	if err == nil && s != nil && metav1.IsControlledBy(s, server) {
		is.Running, is.Rollout, is.workload = s.Annotations, ofStatefulSet(s), s
		if s.Status.Replicas == 0 && !is.Stopped { // a Deployment says it in a condition, a StatefulSet in an event
			is.Refused = o.lastWarning(ctx, s)
		}
	}
	return is, err
}

// Workload names the workload of a child.
type Workload struct {
	Kind string
	types.NamespacedName
}

// Served says whether a workload's template has served; true for a workload that is gone, which nobody is to wait for.
func (o *Observer) Served(ctx context.Context, w Workload) bool {
	var live client.Object = &appsv1.StatefulSet{}
	if w.Kind == component.Deployment {
		live = &appsv1.Deployment{}
	}
	err := o.Reader.Get(ctx, w.NamespacedName, live)
	return err != nil || workload.Served(live.GetAnnotations())
}

// ofDeployment takes a template that has served as current: a Deployment's generation changes with its annotations too (kubernetes,
// pkg/registry/apps/deployment/strategy.go), and ours may not be observed yet.
func ofDeployment(d *appsv1.Deployment) Rollout {
	current := (d.Status.ObservedGeneration == d.Generation || workload.Served(d.Annotations)) && d.Status.UpdatedReplicas == 1 && d.Status.Replicas == 1
	r := Rollout{Version: d.ResourceVersion, Exists: true, Current: current, Ready: d.Status.ReadyReplicas > 0, Stopped: ptr.Deref(d.Spec.Replicas, 1) == 0}
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			r.Refused = c.Reason + ": " + c.Message
		}
	}
	return r
}

func ofStatefulSet(s *appsv1.StatefulSet) Rollout {
	current := s.Status.ObservedGeneration == s.Generation && s.Status.UpdatedReplicas == 1 && s.Status.CurrentRevision == s.Status.UpdateRevision
	return Rollout{Version: s.ResourceVersion, Exists: true, Current: current, Ready: s.Status.ReadyReplicas > 0, Stopped: ptr.Deref(s.Spec.Replicas, 1) == 0}
}
