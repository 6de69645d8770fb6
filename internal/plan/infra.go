// Package plan computes the desired objects, and the findings on what the user wrote. It is pure: it reads no clock, no environment and no
// cluster, and does not change its input.
//
// An Infra goes through stages: permission, vlan, endpoint, address, apps, check, children. Each is a package that uses the results of
// earlier stages and imports no later one. Package workload plans a child, provision an annotated HostedCluster, bridge a DPUHCPBridge,
// and ending the removal of an Infra.
package plan

import (
	"net/netip"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/kept"
	"github.com/cldmnky/oooi/internal/plan/address"
	"github.com/cldmnky/oooi/internal/plan/apps"
	"github.com/cldmnky/oooi/internal/plan/check"
	"github.com/cldmnky/oooi/internal/plan/children"
	"github.com/cldmnky/oooi/internal/plan/desired"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/permission"
	"github.com/cldmnky/oooi/internal/plan/subject"
	"github.com/cldmnky/oooi/internal/plan/vlan"
)

// InfraPlan has the desired objects of one Infra, and the derived values for its status.
type InfraPlan struct {
	desired.Plan
	// Frozen means that nothing is applied, and only what is Off is pruned. The findings say why.
	Frozen bool
	// Off are the disabled components. They are removed even while the plan is frozen.
	Off []string
	// Addresses and Endpoints for status. Nil while Frozen: status keeps its values.
	Addresses []v1alpha1.AssignedAddress
	Endpoints []v1alpha1.EndpointStatus
	// Given is stored on the Infra (AnnotationGiven) before anything is created. Empty while Frozen.
	Given string
	// Apps is the plan for *.apps; nil while Frozen, and while it is disabled (it is then removed even while the plan is frozen).
	Apps *apps.Apps
}

// NewSeconds are the addresses that the plan gives to second instances which had none.
func (p InfraPlan) NewSeconds(in input.Input) (all []netip.Addr) {
	given, written := input.Given(in.Infra, in.Children), input.Written(in.Infra)
	for _, a := range p.Addresses {
		second := component.Name(a.Component).Second()
		if at, err := netip.ParseAddr(string(a.IP)); err == nil && a.Instance > 0 && !given[second].IsValid() && !written[second].IsValid() {
			all = append(all, at)
		}
	}
	return all
}

// Infra plans one Infra. The input is complete: nil means that an object does not exist, except for Guest, which is also nil while the
// hosted cluster has not been read. The same input gives the same plan.
func Infra(in input.Input) InfraPlan {
	p := InfraPlan{Off: input.SwitchedOff(in.Infra.Spec.InfraComponents)}
	p.Find(finding.About(subject.Infra(in.Infra), foremost(in))...)
	if p.Frozen = p.Blocked(v1alpha1.ConditionAccepted); p.Frozen {
		return p
	}
	published := stages(in)
	p.Find(finding.About(subject.Infra(in.Infra), check.All(published))...)
	if p.Frozen = p.Blocked(v1alpha1.ConditionAccepted, v1alpha1.ConditionNetworkReady, v1alpha1.ConditionEndpointsResolved); p.Frozen {
		return p
	}
	becomes := children.Of(published)
	p.Want(becomes.Objects...)
	p.Addresses, p.Endpoints, p.Given, p.Apps = becomes.Addresses, becomes.Endpoints, becomes.Given, published.Apps
	return p
}

// foremost are the findings that come before all others. An Infra that is too large to be kept whole gets no others, and the objects
// that it refers to are judged only with permission.
func foremost(in input.Input) []finding.Finding {
	if own := kept.Judge(v1alpha1.ConditionAccepted, in.Infra); len(own) > 0 {
		return own
	}
	refused := permission.Check(in)
	if len(refused) == 0 {
		refused = check.TooLarge(in)
	}
	return append(refused, check.Subnet(in)...)
}

// stages runs the stages in order: the network of the workers, the addresses on it, and *.apps.
func stages(in input.Input) apps.Published {
	return apps.Publish(address.Assign(vlan.Join(in), in.Endpoints()))
}
