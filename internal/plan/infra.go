package plan

import "github.com/cldmnky/oooi/api/v1alpha1"

// InfraPlan is what one Infra becomes, and what its status says of what was derived.
type InfraPlan struct {
	Plan
	// Held means that nothing may change: nothing is applied and nothing pruned; what runs stays as it is. The findings
	// say why.
	Held bool
	// Addresses and Endpoints for status. Nil while Held before they were known: status keeps what it says.
	Addresses []v1alpha1.AssignedAddress
	Endpoints []v1alpha1.EndpointStatus
}
