package observe

import (
	"context"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/clusterapi"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/permission"
)

// Machines are those of the virtual machines that lease addresses from an Infra; false if it leases none, or if it may not refer to their control
// plane, which may be another's.
func (o *Observer) Machines(ctx context.Context, infra *v1alpha1.Infra) (all []clusterapi.Machine, known bool, err error) {
	if infra.DeletionTimestamp != nil || !input.Enabled(infra.Spec.InfraComponents.DHCP.Enabled) {
		return nil, false, nil
	}
	seen := &Infra{Input: input.Input{Settings: o.Settings, Infra: infra}}
	for _, read := range []func(context.Context, *Infra) error{o.references, o.owner} {
		if err := read(ctx, seen); err != nil {
			return nil, false, err
		}
	}
	if seen.VMNamespace() == "" || len(permission.Check(seen.Input)) > 0 {
		return nil, false, nil
	}
	machines, err := list[clusterapi.MachineList](ctx, o, seen.VMNamespace())
	if err != nil || machines == nil {
		return nil, false, err
	}
	return machines.Items, true, nil
}
