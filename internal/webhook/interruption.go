package webhook

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/change"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/foresee"
	"github.com/cldmnky/oooi/internal/plan"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/preflight"
)

// interrupts is the code of a warning that a change interrupts workers that run. `oooi diff` says the same, and more.
const interrupts = "InterruptsWorkers"

// interruptions are what a change of an Infra interrupts, as far as the cache tells. No lease is read for it: the answer goes to whoever asked.
// planned is what is planned of the Infra after it.
func (r reviewer) interruptions(ctx context.Context, before, after *v1alpha1.Infra, planned plan.InfraPlan) (all []preflight.Finding) {
	if before == nil {
		return nil
	}
	c, err := r.foreseen(ctx, before, after, planned)
	if err != nil {
		r.log.Error(err, "foreseeing what a change of an Infra interrupts", "namespace", after.Namespace, "name", after.Name)
		return nil
	}
	for _, reason := range c.Interruptions() {
		all = append(all, preflight.Finding{Code: interrupts, Severity: finding.Warning, Reason: reason})
	}
	return all
}

func (r reviewer) foreseen(ctx context.Context, before, after *v1alpha1.Infra, planned plan.InfraPlan) (change.Change, error) {
	key := client.ObjectKeyFromObject(after)
	quiet := *r.observer
	quiet.Eventless = true
	was, err := foresee.Now(ctx, quiet.Over(before), func(_ context.Context, in input.Input) (plan.InfraPlan, error) { return r.plan(in), nil }, key)
	if err != nil || was.Infra == nil {
		return change.Change{}, err
	}
	is, err := foresee.Then(ctx, quiet.Over(after), func(context.Context, input.Input) (plan.InfraPlan, error) { return planned, nil }, key, was)
	if err != nil || is.Infra == nil {
		return change.Change{}, err
	}
	return change.Between(was, is), nil
}
