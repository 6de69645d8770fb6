package controller

import (
	"context"
	"errors"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/cldmnky/oooi/internal/apply"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/observe"
	"github.com/cldmnky/oooi/internal/plan"
	"github.com/cldmnky/oooi/internal/status"
)

const (
	// retryTaken: nothing tells us when an object that is not ours goes away.
	retryTaken = 10 * time.Second
	// retryWritten comes after a change even if it led to no event.
	retryWritten = 2 * time.Second
	// retryEnding looks again at what is being deleted.
	retryEnding = time.Second
	// retryHeldUp is for a deletion that waits for somebody.
	retryHeldUp = 30 * time.Second
)

// infraReconciler makes of one Infra what plan.Infra says.
type infraReconciler struct{ parts }

// Reconcile is observe, plan, apply, status.
func (r infraReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	defer r.turn.taken()
	seen, err := r.observe.Infra(ctx, req.NamespacedName)
	if err == nil && seen.Gone() {
		r.observe.Guests.Forget(req.NamespacedName)
	}
	if err != nil || seen.Gone() {
		return ctrl.Result{}, err
	}
	if seen.Input.Infra.DeletionTimestamp != nil {
		return r.end(ctx, seen)
	}
	p := plan.Infra(seen.Input)
	out, err := r.do(ctx, seen, p)
	if out.Wrote { // what was read of the children is from before; their change brings us back
		return soonest(retryWritten), err
	}
	now := r.observe.Now()
	want := status.Infra(seen.Input.Infra, p, seen.Children, out, now)
	counted, statusErr := r.status.Infra(ctx, seen.Input.Infra, want, now)
	if statusErr == nil && want.AppsIngress == nil { // nothing is looked for any more
		r.observe.Guests.Forget(req.NamespacedName)
	}
	return retry(out, seen.Pause, counted, status.PatienceEnds(want, now), r.retryLeaving(want)), errors.Join(err, statusErr)
}

// do applies a plan unless it is held back.
func (r infraReconciler) do(ctx context.Context, seen observe.Infra, p plan.InfraPlan) (status.Outcome, error) {
	out := status.Outcome{Findings: p.Findings, Held: p.Held || seen.Pause.Holds(), Paused: seen.Pause.Reason}
	if seen.Pause.Holds() {
		r.observe.Guests.Hold(client.ObjectKeyFromObject(seen.Input.Infra))
		return out, nil
	}
	// Also while the plan is held: a restored Infra comes without the finalizer, and what it made before may be there.
	if err := r.apply.Hold(ctx, seen.Input.Infra, names.Finalizer); err != nil {
		return out, err
	}
	var guestErr error
	out.GuestLeft, guestErr = r.follow(seen, p)
	out.GuestStays = stays(seen)
	if p.Held {
		dropped, err := r.apply.Drop(ctx, ownerInfra(seen), seen.Input.Infra, p.Off)
		out.Wrote = dropped.Wrote
		return out, errors.Join(err, guestErr)
	}
	applied, err := r.apply.To(ctx, ownerInfra(seen), p.Objects)
	out.Findings, out.Wrote = append(out.Findings, applied.Findings...), applied.Wrote
	return out, errors.Join(err, guestErr)
}

// end takes away what an Infra made, before it goes itself. A pause does not hold this up: to delete is explicit.
func (r infraReconciler) end(ctx context.Context, seen observe.Infra) (ctrl.Result, error) {
	infra := seen.Input.Infra
	if !controllerutil.ContainsFinalizer(infra, names.Finalizer) {
		return ctrl.Result{}, nil
	}
	done, err := r.apply.End(ctx, infra, ownerInfra(seen))
	if err != nil || !done || !r.leave(seen) {
		return soonest(retryEnding), err
	}
	r.observe.Listeners.Forget(client.ObjectKeyFromObject(infra))
	r.status.Forget(infra.UID)
	return ctrl.Result{}, r.apply.Release(ctx, infra, names.Finalizer)
}

func retry(out status.Outcome, pause observe.Pause, more ...time.Duration) ctrl.Result {
	for _, f := range out.Findings {
		if f.Reason == apply.NameTaken {
			more = append(more, retryTaken)
		}
	}
	if !pause.Until.IsZero() {
		more = append(more, max(time.Until(pause.Until), retryWritten))
	}
	return soonest(more...)
}
