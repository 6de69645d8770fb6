package controller

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/observe"
	"github.com/cldmnky/oooi/internal/plan/workload"
	"github.com/cldmnky/oooi/internal/status"
)

// childReconciler reconciles one child of a component to its workload.
type childReconciler struct {
	parts
	of component.Component
}

// Reconcile observes, plans, applies and writes the status.
func (r childReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	r.turn.await(ctx)
	seen, err := r.observe.Child(ctx, r.of, req.NamespacedName)
	if err != nil || !seen.Found || seen.Server.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, err // its dependents are deleted by ownerReference
	}
	if r.status.Overtook(seen.Server) {
		return ctrl.Result{}, nil
	}
	p, out, err := r.next(ctx, seen)
	if err != nil && mayNotPull(out) {
		seen.EachInstance(func(i *workload.Instance) { i.Now.PullOver = true })
		p, out, err = r.next(ctx, seen)
	}
	if out.Wrote { // seen predates the write, whose event brings the next reconcile
		return soonest(retryWritten), err
	}
	report := status.Child(seen, out, time.Now())
	return retry(out, seen.Pause, lookAtAll(seen, r.observe.Now()), waiting(p), status.StartEnds(report, time.Now())), errors.Join(err, r.status.Child(ctx, r.of, seen.Server, report))
}

// lookAtAll is the shortest lookAgain of all instances; 0 if none is set.
func lookAtAll(seen observe.Child, now time.Time) (after time.Duration) {
	for _, r := range seen.Rollouts() {
		if d := lookAgain(r, now); after == 0 || d > 0 && d < after {
			after = d
		}
	}
	return after
}

// lookAgain is when to check a pod that is being created or was refused: Events are not watched, and Nodes only by the pod's condition.
func lookAgain(r observe.Rollout, now time.Time) time.Duration {
	awaited := r.Exists && !r.Ready && !r.Stopped
	switch p := r.Pod; {
	case p != nil && now.Sub(p.CreationTimestamp.Time) < time.Minute, p == nil && awaited && r.Refused == "":
		return retryCreated
	case p != nil || awaited:
		return retryWaiting
	}
	return 0
}

// next plans and applies; a changed template is applied when the turnstile allows it.
func (r childReconciler) next(ctx context.Context, seen observe.Child) (workload.ChildPlan, status.Outcome, error) {
	p := workload.Of(r.of.Name, seen.Child)
	switch {
	case seen.Pause.Active():
		r.turnstile.passes(group(seen))
	case p.AwaitsTurn && r.turnstile.take(ctx, group(seen), r.workload(seen, p.Next)):
		defer r.turnstile.applied()
		seen.EachInstance(func(i *workload.Instance) { i.Now.Turn = true })
		p = workload.Of(r.of.Name, seen.Child)
	}
	out, err := r.do(ctx, seen, p)
	return p, out, err
}

// group is the unit whose pods are replaced together: an Infra, or a child without one.
func group(seen observe.Child) types.NamespacedName {
	if seen.Child.Infra != nil {
		return client.ObjectKeyFromObject(seen.Child.Infra)
	}
	return types.NamespacedName{Namespace: seen.Server.GetNamespace(), Name: string(seen.Server.GetUID())}
}

func (r childReconciler) workload(seen observe.Child, instance int) observe.Workload {
	name := names.InstanceWorkload(string(r.of.Name), seen.Server.GetName(), instance)
	return observe.Workload{Kind: r.of.Workload, NamespacedName: types.NamespacedName{Namespace: seen.Server.GetNamespace(), Name: name}}
}

// mayNotPull says whether a pod that pulls images was refused, for example by a quota. The images are then pulled when the old pod is gone.
func mayNotPull(out status.Outcome) bool {
	return slices.ContainsFunc(out.Findings, func(f finding.Finding) bool { return f.Reason == "Rejected" && f.Of.Kind == "Pod" })
}

// waiting is when to check again what no event reports: the turn of an Infra, the age of a lost pod, and the time limit of an image pull.
func waiting(p workload.ChildPlan) time.Duration {
	switch {
	case p.AwaitsTurn:
		return retryTurn
	case p.LostLater:
		return retryCreated
	case p.AwaitsImages:
		return retryWaiting
	}
	return 0
}

func (r childReconciler) do(ctx context.Context, seen observe.Child, p workload.ChildPlan) (status.Outcome, error) {
	out := status.Outcome{Findings: p.Findings, Frozen: p.Frozen || seen.Pause.Active(), Paused: seen.Pause.Reason}
	lost := r.replaceLost(ctx, seen, p)
	if out.Frozen {
		return out, lost
	}
	applied, err := r.apply.To(ctx, r.owner(seen), p.Objects)
	r.status.TellRestored(seen.Server, applied.Mended)
	out.Findings, out.Wrote = append(out.Findings, applied.Findings...), applied.Wrote
	return out, errors.Join(lost, err)
}

// replaceLost has pods that are lost replaced, also in a pause, which leaves their templates as they are.
func (r childReconciler) replaceLost(ctx context.Context, seen observe.Child, p workload.ChildPlan) (err error) {
	for _, pod := range p.Lost {
		if failed := r.apply.Lost(ctx, pod.NamespacedName, pod.UID); failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		r.status.Events.Eventf(seen.Server, nil, corev1.EventTypeWarning, "PodLost", "Replace",
			"pod %s no longer answers on the VLAN: it is to end, and another one with its address starts where a node has room and the VLAN", pod.Name)
	}
	return err
}
