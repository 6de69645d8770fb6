// Package children is the last stage: the desired objects of an Infra.
package children

import (
	"net/netip"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/plan/apps"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// Children are an Infra's objects and status values.
type Children struct {
	Objects []runtime.ApplyConfiguration
	// Addresses and Endpoints for status.
	Addresses []v1alpha1.AssignedAddress
	Endpoints []v1alpha1.EndpointStatus
	// Given is the value of AnnotationGiven.
	Given string
}

// objects of each component: its Server, and what that needs.
var objects = map[component.Name]func(apps.Published) []runtime.ApplyConfiguration{component.DHCP: dhcp, component.DNS: dns, component.Proxy: proxy}

// Of plans an Infra's children. It requires that check.All refused nothing, so that each component has an address.
func Of(in apps.Published) Children {
	c := Children{Endpoints: endpointStatus(in)}
	if copied := shared(in); copied != nil {
		c.Objects = append(c.Objects, copied)
	}
	given := map[component.Name]netip.Addr{}
	for _, part := range component.All {
		if !part.Wanted(in.Infra.Spec.InfraComponents).Enabled {
			continue
		}
		for i, at := range in.Addresses(part.Name) {
			given[[]component.Name{part.Name, part.Name.Second()}[i]] = at
		}
		c.Addresses = append(c.Addresses, in.Told(part.Name)...)
		c.Objects = append(c.Objects, objects[part.Name](in)...)
	}
	c.Given = input.Memory(in.Infra, given, in.Assigned.Pool)
	return c
}

func endpointStatus(in apps.Published) []v1alpha1.EndpointStatus {
	var all []v1alpha1.EndpointStatus
	for _, e := range in.Table.Endpoints {
		s := v1alpha1.EndpointStatus{Name: e.Name, Port: v1alpha1.Port(e.Port), Hostnames: e.Hostnames, Backend: e.Backend.String(), Source: e.Source}
		for _, published := range e.PublishedIPs {
			s.Hostnames = append(s.Hostnames[:len(s.Hostnames):len(s.Hostnames)], published.String())
		}
		all = append(all, s)
	}
	return all
}
