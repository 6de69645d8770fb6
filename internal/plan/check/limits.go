package check

import (
	"maps"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/ipam"
	"github.com/cldmnky/oooi/internal/kept"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/apps"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/valid"
)

// limits checks the limits of the children's schemas that those of an Infra do not imply.
func limits(in apps.Published) []finding.Finding {
	var all []finding.Finding
	if n := len(in.Table.Names()) + len(in.Infra.Spec.InfraComponents.DNS.StaticEntries); n > valid.MostHostnames {
		all = append(all, finding.Refuse(v1alpha1.ConditionAccepted, "TooManyHostnames").At("spec.extraEndpoints").
			Say("extraEndpoints, dns.staticEntries and the control plane have %d hostnames together; at most %d are possible: use wildcards, which count once", n, valid.MostHostnames))
	}
	if n := len(in.Assigned.Excluded); n > valid.MostExclusions {
		all = append(all, finding.Refuse(v1alpha1.ConditionAccepted, "TooManyExclusions").At("spec.infraComponents.dhcp.excludeRanges").
			Say("%d separate ranges are excluded from DHCP (dhcp.excludeRanges, dns.staticEntries, servers, neighbours); at most %d are possible: join some of them", n, valid.MostExclusions))
	}
	return append(all, burden(in)...)
}

// TooLarge reports objects that planning an Infra needs and that are too large to be kept whole.
func TooLarge(in input.Input) []finding.Finding {
	objects := []kept.Object{in.HostedCluster, in.HostedControlPlane, in.NAD}
	for _, c := range component.All {
		if server := in.Children[c.Name]; server != nil {
			objects = append(objects, server)
		}
	}
	for i := range in.NodePools {
		objects = append(objects, &in.NodePools[i])
	}
	return kept.Judge(v1alpha1.ConditionAccepted, objects...)
}

// unread reports objects of the control-plane namespace that are kept in part and matter for endpoints: the EndpointSlices of their
// Services, and NetworkPolicies. A policy is only warned about, because any editor there may create one, and it may select none of our
// targets.
func unread(in apps.Published) (all []finding.Finding) {
	backends := map[string]bool{}
	for _, e := range in.Table.Endpoints {
		if e.Backend.Namespace == in.ControlPlaneNamespace() {
			backends[e.Backend.Service] = true
		}
	}
	for i := range in.EndpointSlices {
		if slice := &in.EndpointSlices[i]; backends[slice.Labels[discoveryv1.LabelServiceName]] {
			all = append(all, kept.Judge(v1alpha1.ConditionEndpointsResolved, slice)...)
		}
	}
	for i := range in.NetworkPolicies {
		policy := &in.NetworkPolicies[i]
		if excess, inPart := kept.InPart(policy); inPart && policy.Labels[names.LabelManagedBy] != names.ManagedBy {
			of := finding.Object{Kind: "NetworkPolicy", Namespace: policy.Namespace, Name: policy.Name}
			all = append(all, finding.Warn(v1alpha1.ConditionEndpointsResolved, "ObjectTooLarge").In(of).
				Say("%s is too large to be read: %s; if it isolates pods of the control plane, the proxy does not reach them: make its podSelector smaller", of, excess))
		}
	}
	return all
}

// burden: older neighbours' DHCP excludes our addresses. If one of them cannot have more exclusions, we are refused, so that nobody's Infra
// stops the DHCP of another's.
func burden(in apps.Published) []finding.Finding {
	ours := slices.Concat(slices.Collect(maps.Values(in.Assigned.Addresses)), in.Assigned.Spare)
	for _, n := range in.Others {
		kept := n.Children.Exclusions()
		if !n.Older || len(kept)+len(ours) <= valid.MostExclusions {
			continue
		}
		for _, a := range ours {
			kept = append(kept, ipam.Single(a).Intersect(n.Children.Pool()))
		}
		if all := ipam.Merge(kept); len(all) > valid.MostExclusions && len(all) > len(n.Children.Exclusions()) {
			return []finding.Finding{finding.Refuse(v1alpha1.ConditionAccepted, "TooManyExclusions").At("spec.infraComponents").
				Say("another Infra on this VLAN, which leases addresses, would have to exclude %d separate ranges from DHCP, and at most %d are possible; set serverIPs next to those of other Infras, or outside its range", len(all), valid.MostExclusions)}
		}
	}
	return nil
}
