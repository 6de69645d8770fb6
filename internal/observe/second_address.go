package observe

import (
	"context"
	"net/netip"

	"github.com/cldmnky/oooi/internal/ipam"
	"github.com/cldmnky/oooi/internal/plan"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// mostLeased is how many leases are looked for while a second instance gets its address. Beyond, it gets none.
const mostLeased = 64

// Planned is the plan of an Infra in which no second instance gets an address that a machine leases: a pool that becomes smaller takes no lease
// away (docs/reference/dhcp-rules.md).
func (o *Observer) Planned(ctx context.Context, in input.Input) (plan.InfraPlan, error) {
	for range mostLeased {
		p := plan.Infra(in)
		leased, err := o.Leased(ctx, in.Infra, p.NewSeconds(in)...)
		if err != nil || len(leased) == 0 {
			return p, err
		}
		for _, at := range leased {
			in.Leased = append(in.Leased, ipam.Single(at))
		}
	}
	all, err := netip.ParsePrefix(string(in.Infra.Spec.NetworkConfig.CIDR))
	if err == nil {
		in.Leased = append(in.Leased, ipam.Whole(all))
	}
	return plan.Infra(in), err
}
