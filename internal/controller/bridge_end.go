package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/observe"
	"github.com/cldmnky/oooi/internal/plan/bridge"
	"github.com/cldmnky/oooi/internal/status"
)

// end removes what a bridge made, step by step, and then its finalizer. A pause does not stop a deletion, which is explicit.
func (r bridgeReconciler) end(ctx context.Context, seen observe.Bridge) (ctrl.Result, error) {
	b := seen.Input.Bridge
	r.hosted.Approvals.Forget(client.ObjectKeyFromObject(b))
	r.hosted.Downloads.Forget(client.ObjectKeyFromObject(b))
	r.hosted.Lookups.Follow(client.ObjectKeyFromObject(b), nil)
	r.hosted.OVN.Follow(client.ObjectKeyFromObject(b), nil)
	if !slices.Contains(b.Finalizers, names.BridgeFinalizer) {
		return ctrl.Result{}, nil
	}
	remains, err := r.observe.Remains(ctx, seen)
	read := err == nil
	var step bridge.Ending
	if read {
		step = bridge.End(remains)
		err = r.take(ctx, remains, step)
	}
	say := func(cleanup metav1.ConditionStatus, reason, message string) error {
		return r.status.Bridge(ctx, b, status.Ending(remains.Input, read, cleanup, reason, message, time.Now()))
	}
	switch {
	case err != nil:
		return r.endFailed(err, say)
	case step.Reason != "":
		return soonest(retryStep(step)), say(metav1.ConditionFalse, step.Reason, step.Message)
	}
	if err := say(metav1.ConditionTrue, dpuv1.ReasonCleanupSucceeded, "the hosted cluster and everything created for it are gone"); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.letGo(ctx, b)
}

// endFailed reports the error or, for a missing Role, how to grant it. Roles are not watched.
func (r bridgeReconciler) endFailed(err error, say func(cleanup metav1.ConditionStatus, reason, message string) error) (ctrl.Result, error) {
	var missing []string
	for _, f := range r.observe.Settings.Ungranted("", err.Error()) {
		missing = append(missing, f.Message)
	}
	if len(missing) > 0 {
		return soonest(retryTaken), say(metav1.ConditionFalse, dpuv1.ReasonCleanupFailed, strings.Join(missing, "; "))
	}
	return ctrl.Result{}, errors.Join(err, say(metav1.ConditionFalse, dpuv1.ReasonCleanupFailed, err.Error()+"; the operator tries again"))
}

// retryStep is long for a deletion that waits for others: that may take days, and DPUs, their kubeconfig's Secrets and the bridge are watched.
func retryStep(step bridge.Ending) time.Duration {
	if step.Reason == dpuv1.ReasonCleanupInProgress {
		return retryEnding
	}
	return retryWaiting
}

// letGo removes the finalizer from the bridge as it is now: its status has just been written.
func (r bridgeReconciler) letGo(ctx context.Context, b *dpuv1.DPUHCPBridge) error {
	now := &dpuv1.DPUHCPBridge{}
	if err := r.observe.Live.Get(ctx, client.ObjectKeyFromObject(b), now); err != nil {
		return client.IgnoreNotFound(err)
	}
	return r.apply.RemoveFinalizer(ctx, now, names.BridgeFinalizer)
}

func (r bridgeReconciler) take(ctx context.Context, remains bridge.Remains, step bridge.Ending) error {
	errs := []error{r.inject(ctx, remains.Input, step.Inject, &status.Outcome{})}
	if step.Cluster != nil {
		errs = append(errs, r.apply.Remove(ctx, step.Cluster))
	}
	if step.Pool != nil {
		errs = append(errs, r.apply.Remove(ctx, step.Pool))
	}
	if step.Unrefer { // before the Secret is deleted: DPF would look for a missing one
		if err := r.apply.Unrefer(ctx, remains.DPUCluster, bridge.InjectedKey(remains.Bridge).Name); err != nil {
			return err
		}
	}
	for i := range step.Secrets {
		errs = append(errs, r.apply.Remove(ctx, &step.Secrets[i]))
	}
	for _, o := range step.Others {
		errs = append(errs, r.apply.Remove(ctx, o))
	}
	return errors.Join(errs...)
}
