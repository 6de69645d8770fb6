package controller

import (
	"context"
	"errors"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/apply"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/observe"
	"github.com/cldmnky/oooi/internal/plan"
	"github.com/cldmnky/oooi/internal/plan/ending"
	"github.com/cldmnky/oooi/internal/status"
)

const (
	// retryTaken is for what no watch reports: the deletion of an object that is not ours, a new Role.
	retryTaken = 10 * time.Second
	// retryClaimed is the wait for another bridge's claim.
	retryClaimed = 200 * time.Millisecond
	// retryWritten follows a write that may lead to no event.
	retryWritten = 2 * time.Second
	// retryCreated is for a recently created pod that does not start; retryWaiting is for an older one.
	retryCreated = 4 * time.Second
	// retryEnding is for a deletion in progress; for an Infra it grows up to retryWaiting.
	retryEnding = time.Second
	// retryTurn is for a template that waits for the pods of another Infra.
	retryTurn = 500 * time.Millisecond
	// retryWaiting is for what may take long, such as a deletion that waits for somebody.
	retryWaiting = 30 * time.Second
)

// infraReconciler reconciles one Infra to the plan of plan.Infra.
type infraReconciler struct{ parts }

// Reconcile observes, plans, applies and writes the status.
func (r infraReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	defer r.turn.taken()
	seen, err := r.observe.Infra(ctx, req.NamespacedName)
	if err == nil {
		seen.Guest = r.look(req.NamespacedName, seen)
	}
	if err != nil || seen.Gone() || r.status.Overtook(seen.Input.Infra) {
		return ctrl.Result{}, err
	}
	if seen.Input.Infra.DeletionTimestamp != nil {
		return r.end(ctx, seen)
	}
	p, err := r.observe.Planned(ctx, seen.Input)
	if err != nil {
		return ctrl.Result{}, err
	}
	out, err := r.do(ctx, seen, p)
	if out.Wrote { // seen predates the write, whose events bring the next reconcile
		return soonest(retryWritten), err
	}
	now := r.observe.Now()
	want := status.Infra(seen.Input.Infra, p, seen.Children, out, now)
	counted, statusErr := r.status.Infra(ctx, seen.Input.Infra, want, now)
	if statusErr == nil && want.AppsIngress == nil { // the hosted cluster is not read any more
		r.hosted.Guests.Forget(req.NamespacedName)
	}
	return retry(out, seen.Pause, counted, status.PatienceEnds(want, now), r.retryLeaving(want)), errors.Join(err, statusErr)
}

// do applies a plan unless it is frozen.
func (r infraReconciler) do(ctx context.Context, seen observe.Infra, p plan.InfraPlan) (status.Outcome, error) {
	out := status.Outcome{Findings: p.Findings, Frozen: p.Frozen || seen.Pause.Active(), Paused: seen.Pause.Reason}
	if out.Frozen {
		if err := r.retreat(ctx, seen); err != nil {
			return out, err
		}
	}
	if seen.Pause.Active() {
		r.hosted.Guests.Freeze(client.ObjectKeyFromObject(seen.Input.Infra))
		return out, nil
	}
	// Also while the plan is frozen: a restored Infra lacks the finalizer, and objects that it made before may exist.
	if err := r.apply.AddFinalizer(ctx, seen.Input.Infra, names.Finalizer); err != nil {
		return out, err
	}
	var guestErr error
	out.GuestLeft, guestErr = r.follow(seen, p)
	out.GuestStays = stays(seen)
	if p.Frozen {
		dropped, err := r.apply.Drop(ctx, ownerInfra(seen), seen.Input.Infra, p.Off)
		out.Wrote = dropped.Wrote
		return out, errors.Join(err, guestErr)
	}
	if err := r.apply.Remember(ctx, seen.Input.Infra, p.Given); err != nil {
		return out, errors.Join(err, guestErr)
	}
	applied, err := r.apply.To(ctx, ownerInfra(seen), p.Objects)
	r.status.TellRestored(seen.Input.Infra, applied.Mended)
	out.Findings, out.Wrote = append(out.Findings, applied.Findings...), applied.Wrote
	return out, errors.Join(err, guestErr)
}

// retreat removes objects from namespaces whose owners no longer grant the Infra; a frozen plan does not. A pause does not stop this: the
// Infra's author may set one.
func (r infraReconciler) retreat(ctx context.Context, seen observe.Infra) error {
	owner, infra := ownerInfra(seen), seen.Input.Infra
	others, err := r.apply.OtherNamespaces(ctx, owner, infra)
	if err != nil {
		return err
	}
	withdrawn, err := r.observe.Withdrawn(ctx, seen.Input, others)
	if err != nil || len(withdrawn) == 0 {
		return err
	}
	if _, err = r.apply.Leave(ctx, owner, withdrawn); err == nil { // nothing changes that was read of the children
		r.status.Events.Eventf(infra, nil, corev1.EventTypeWarning, "PermissionWithdrawn", "Delete",
			"Roles and NetworkPolicies of this Infra in namespaces %s are removed: their owners no longer allow namespace %s; its workers may lose the control plane", strings.Join(withdrawn, ", "), infra.Namespace)
	}
	return err
}

// end removes what an Infra made, and then its finalizer. A pause does not stop a deletion, which is explicit.
func (r infraReconciler) end(ctx context.Context, seen observe.Infra) (ctrl.Result, error) {
	infra := seen.Input.Infra
	if !controllerutil.ContainsFinalizer(infra, names.Finalizer) {
		return ctrl.Result{}, nil
	}
	waits, err := r.takeAway(ctx, seen)
	if err != nil {
		return ctrl.Result{}, err
	}
	now := r.observe.Now()
	if waits.Reason != "" {
		_, err := r.status.Infra(ctx, infra, status.InfraEnding(infra, waits, now), now)
		return soonest(min(max(now.Sub(infra.DeletionTimestamp.Time)/4, retryEnding), retryWaiting)), err
	}
	r.observe.Listeners.Forget(client.ObjectKeyFromObject(infra))
	r.status.Forget(infra.UID)
	err = r.apply.RemoveFinalizer(ctx, infra, names.Finalizer)
	if apierrors.IsConflict(err) { // its status was just written, and the cache does not show that yet
		return soonest(retryEnding), nil
	}
	return ctrl.Result{}, err
}

// takeAway removes what an Infra made, and returns what still blocks its end.
func (r infraReconciler) takeAway(ctx context.Context, seen observe.Infra) (ending.Ending, error) {
	infra, owner := seen.Input.Infra, ownerInfra(seen)
	left, err := r.apply.End(ctx, infra, owner)
	if err != nil {
		return ending.Ending{}, err
	}
	if left {
		remains, err := r.observe.Remains(ctx, infra)
		waits := ending.End(remains, r.observe.Now())
		if err != nil || waits.Reason != "" {
			return waits, err
		}
		r.status.Events.Eventf(infra, nil, corev1.EventTypeWarning, "DHCPPodMayStillRun", "Delete",
			"%s did not report that it ended, and its leases are deleted: make sure that it no longer runs, or it keeps answering clients until their leases expire", waits.Unseen)
	}
	if err := r.apply.Forget(ctx, infra, owner); err != nil {
		return ending.Ending{}, err
	}
	if !r.leave(seen) {
		return ending.InHostedCluster(stays(seen)), nil
	}
	return ending.Ending{}, nil
}

func retry(out status.Outcome, pause observe.Pause, more ...time.Duration) ctrl.Result {
	for _, f := range out.Findings {
		if f.Reason == apply.NameTaken || f.Reason == dpuv1.ReasonTemplatesAmbiguous {
			more = append(more, retryTaken)
		}
	}
	if !pause.Until.IsZero() {
		more = append(more, max(time.Until(pause.Until), retryWritten))
	}
	return soonest(more...)
}
