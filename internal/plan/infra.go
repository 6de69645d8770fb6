// Package plan says what should be, and what is wrong with what the user wrote. It is pure: it reads no clock, no
// environment and no cluster, and does not change its input.
//
// An Infra goes through stages: permission, vlan, endpoint, address, apps, check, children. Each is a package that uses the results of
// earlier stages and imports no later one. What a child becomes is in workload, an annotated HostedCluster in provision, a DPUHCPBridge
// in bridge, and the end of an Infra in ending.
package plan

import (
	"github.com/cldmnky/oooi/api/v1alpha1"
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

// InfraPlan is what one Infra becomes, and what its status says of what was derived.
type InfraPlan struct {
	desired.Plan
	// Frozen means that nothing may change: nothing is applied and nothing pruned but what is Off; all else stays as it is.
	// The findings say why.
	Frozen bool
	// Off are the components that are disabled. They are removed even while the rest of the Infra is wrong.
	Off []string
	// Addresses and Endpoints for status. Nil while Frozen: status keeps what it says.
	Addresses []v1alpha1.AssignedAddress
	Endpoints []v1alpha1.EndpointStatus
	// Given is stored on the Infra (AnnotationGiven) before anything is created. Empty while Frozen.
	Given string
	// Apps is what *.apps becomes; nil while Frozen, and while it is disabled (it is removed even while the rest of the Infra is
	// wrong).
	Apps *apps.Apps
}

// Infra says what one Infra becomes. The input is complete: what is nil in it does not exist; only Guest is nil also while the hosted
// cluster has not been read. The same input gives the same plan.
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

// foremost is what is said before anything else is looked at: of an Infra that is not known as a whole nothing more, and of what it
// refers to nothing before it may.
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

// stages of planning, each of which takes what the one before gives: the network of the workers, the addresses on it, and *.apps.
func stages(in input.Input) apps.Published {
	return apps.Publish(address.Assign(vlan.Join(in), in.Endpoints()))
}
