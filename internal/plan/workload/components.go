package workload

import (
	"github.com/cldmnky/oooi/internal/component"
)

// planner of one component: what its servers refer to, and what one gets.
type planner struct {
	refer func(component.Server) References
	plan  func(Child[component.Server]) ChildPlan
}

var planners = map[component.Name]planner{
	component.DHCP:  plannerOf(dhcpReferences, DHCP),
	component.DNS:   plannerOf(dnsReferences, DNS),
	component.Proxy: plannerOf(proxyReferences, Proxy),
}

func plannerOf[T component.Server](refer func(T) References, plan func(Child[T]) ChildPlan) planner {
	return planner{
		func(s component.Server) References { return refer(s.(T)) },
		func(in Child[component.Server]) ChildPlan { return plan(Child[T]{in.Server.(T), in.Surroundings}) },
	}
}

// Of plans a component's server.
func Of(name component.Name, in Child[component.Server]) ChildPlan { return planners[name].plan(in) }

// Refer says what a component's server refers to.
func Refer(name component.Name, server component.Server) References {
	return planners[name].refer(server)
}
