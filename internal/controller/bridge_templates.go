package controller

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/observe"
	"github.com/cldmnky/oooi/internal/plan/bridge"
	"github.com/cldmnky/oooi/internal/status"
)

// foreignEvery is how often templates of others are looked for, of which no event tells.
const foreignEvery = 5 * time.Minute

func retryForeign(p bridge.Plan) time.Duration {
	if p.Templates.Served == 0 {
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

// withdraw deletes templates from which no DPU may be installed. It comes before the hosted cluster gets another release.
func (r bridgeReconciler) withdraw(ctx context.Context, p bridge.Templating, out *status.Outcome) error {
	var errs []error
	for i := range p.Withdraw {
		if p.Withdraw[i].DeletionTimestamp == nil {
			out.Wrote = true
			errs = append(errs, r.apply.Remove(ctx, &p.Withdraw[i]))
		}
	}
	return errors.Join(errs...)
}

// template applies new and changed templates.
func (r bridgeReconciler) template(ctx context.Context, in bridge.Input, p bridge.Templating, out *status.Outcome) error {
	applied, err := r.apply.Add(ctx, ownerTemplates(in), p.Apply...)
	out.Wrote = out.Wrote || applied.Wrote
	for _, f := range applied.Findings {
		f.Condition = dpuv1.ConditionIgnitionConfigured
		out.Findings = append(out.Findings, r.orGranting(f)...)
	}
	r.tellMended(in.Bridge, applied.Mended)
	return err
}

// templating maps what templates are made from, and what a DPUDeployment needs, to the bridges that read it.
func (r bridgeReconciler) templating(ctx context.Context, o client.Object) ([]types.NamespacedName, error) {
	_, forAll := o.(*dpf.DPFOperatorConfig)
	return r.bridgesThat(ctx, func(b *dpuv1.DPUHCPBridge) bool {
		return forAll || o.GetNamespace() == bridge.ClusterKey(b).Namespace || o.GetNamespace() == bridge.DeploymentKey(b).Namespace
	})
}
