package controller

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/apply"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/observe"
	"github.com/cldmnky/oooi/internal/plan/bridge"
	"github.com/cldmnky/oooi/internal/status"
)

// foreignEvery is how often templates of others are looked for, of which no event tells. One that is found is looked for every retryTaken.
const foreignEvery = 5 * time.Minute

func retryForeign(seen observe.Bridge) time.Duration {
	if !seen.WantsTemplates() {
		return 0
	}
	return foreignEvery
}

// download follows the ignition that the bridge's templates are made from, and notes what is known of it.
func (r bridgeReconciler) download(seen *observe.Bridge) {
	key, want := client.ObjectKeyFromObject(seen.Input.Bridge), seen.Download()
	if want == nil || !seen.WantsTemplates() {
		r.hosted.Downloads.Forget(key)
		return
	}
	seen.Templates.Payload = r.hosted.Downloads.Follow(key, *want)
}

// withdraw deletes objects of a plan that are not being deleted yet.
func withdraw[T any, P interface {
	*T
	client.Object
}](ctx context.Context, w *apply.Writer, all []T, out *status.Outcome) error {
	var errs []error
	for i := range all {
		if o := P(&all[i]); o.GetDeletionTimestamp() == nil {
			err := w.Remove(ctx, o)
			out.Wrote = out.Wrote || err == nil // the status reports a failed write
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// template applies new and changed templates.
func (r bridgeReconciler) template(ctx context.Context, in bridge.Input, p bridge.Templating, out *status.Outcome) error {
	return r.maintain(ctx, in.Bridge, ownerTemplates(in), dpuv1.ConditionIgnitionConfigured, p.Apply, out)
}

// serve applies the DPUServiceTemplates that the bridge keeps, and deletes those that it no longer keeps.
func (r bridgeReconciler) serve(ctx context.Context, in bridge.Input, p bridge.Servicing, out *status.Outcome) error {
	return errors.Join(withdraw(ctx, r.apply, p.Remove, out), r.maintain(ctx, in.Bridge, ownerBridge(in), dpuv1.ConditionServiceTemplatesReady, p.Apply, out))
}

// maintain applies objects that a condition reports, and restores them.
func (r bridgeReconciler) maintain(ctx context.Context, b *dpuv1.DPUHCPBridge, owner apply.Owner, condition string, objects []runtime.ApplyConfiguration, out *status.Outcome) error {
	applied, err := r.apply.Add(ctx, owner, objects...)
	out.Wrote = out.Wrote || applied.Wrote
	for _, f := range applied.Findings {
		f.Condition = condition
		out.Findings = append(out.Findings, r.orGranting(f)...)
	}
	r.status.TellRestored(b, applied.Mended)
	return err
}

// templating maps what templates are made from, and what a DPUDeployment needs, to the bridges that read it.
func (r bridgeReconciler) templating(ctx context.Context, o client.Object) ([]types.NamespacedName, error) {
	_, forAll := o.(*dpf.DPFOperatorConfig)
	return r.bridgesThat(ctx, func(b *dpuv1.DPUHCPBridge) bool {
		return forAll || o.GetNamespace() == bridge.ClusterKey(b).Namespace || o.GetNamespace() == bridge.DeploymentKey(b).Namespace
	})
}

// installing maps a BFB or DPUFlavor to the bridges whose DPUs are installed with it. A DPU or DPUDeployment that names it later has an event of
// its own.
func (r bridgeReconciler) installing(ctx context.Context, o client.Object) ([]types.NamespacedName, error) {
	deployments, dpus := &dpf.DPUDeploymentList{}, &dpf.DPUList{}
	for _, list := range []client.ObjectList{deployments, dpus} {
		if !r.observe.Kinds.Served(list) {
			continue
		}
		if err := r.observe.Reader.List(ctx, list, client.InNamespace(o.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}
	}
	_, isBFB := o.(*dpf.BFB)
	uses := func(bfb, flavor string) bool { return isBFB && bfb == o.GetName() || !isBFB && flavor == o.GetName() }
	return r.bridgesThat(ctx, func(b *dpuv1.DPUHCPBridge) bool {
		return slices.ContainsFunc(deployments.Items, func(d dpf.DPUDeployment) bool {
			return client.ObjectKeyFromObject(&d) == bridge.DeploymentKey(b) && uses(d.Spec.DPUs.BFB, d.Spec.DPUs.Flavor)
		}) || slices.ContainsFunc(dpus.Items, func(d dpf.DPU) bool { return d.Joins(bridge.ClusterKey(b)) && uses(d.Spec.BFB, d.Spec.DPUFlavor) })
	})
}

// managing maps what the bridges' DPUServiceTemplates are made from to the bridges that make some.
func (r bridgeReconciler) managing(ctx context.Context, _ client.Object) ([]types.NamespacedName, error) {
	return r.bridgesThat(ctx, func(b *dpuv1.DPUHCPBridge) bool { return b.Spec.ManageDPUServiceTemplates })
}
