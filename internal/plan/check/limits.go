package check

import (
	"maps"
	"slices"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/ipam"
	"github.com/cldmnky/oooi/internal/kept"
	"github.com/cldmnky/oooi/internal/plan/apps"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// limits of the children's schemas that an Infra's own do not imply.
func limits(in apps.Published) []finding.Finding {
	const mostNames = 256
	var all []finding.Finding
	if n := len(in.Table.Names()); n > mostNames {
		all = append(all, finding.Wrong(v1alpha1.ConditionAccepted, "TooManyHostnames").At("spec.extraEndpoints").
			Say("extraEndpoints and control plane have %d hostnames together; %d are possible, a wildcard counts once", n, mostNames))
	}
	if n := len(in.Assigned.Excluded); n > mostExclusions {
		all = append(all, finding.Wrong(v1alpha1.ConditionAccepted, "TooManyExclusions").At("spec.infraComponents.dhcp.excludeRanges").
			Say("%d separate ranges are kept from DHCP (dhcp.excludeRanges, servers, neighbours); %d are possible, join some", n, mostExclusions))
	}
	return append(all, burden(in)...)
}

// TooLarge is what an Infra is planned by, and is kept in part.
func TooLarge(in input.Input) []finding.Finding {
	objects := []kept.Object{in.Children.DHCP, in.Children.DNS, in.Children.Proxy, in.HostedCluster, in.HostedControlPlane, in.NAD}
	for i := range in.NodePools {
		objects = append(objects, &in.NodePools[i])
	}
	return kept.Judge(v1alpha1.ConditionAccepted, objects...)
}

// mostExclusions is what a DHCPServer takes: more than a /23 can have.
const mostExclusions = 256

// burden: the addresses of a newcomer are kept from the DHCP of those who were there before. Where one of them cannot take
// more, the newcomer is refused, and nobody's DHCP is stopped by an Infra of somebody else's.
func burden(in apps.Published) []finding.Finding {
	ours := slices.Concat(slices.Collect(maps.Values(in.Assigned.Addresses)), in.Assigned.Spare)
	for _, n := range in.Others {
		kept := n.Children.Exclusions()
		if !n.Older || len(kept)+len(ours) <= mostExclusions {
			continue
		}
		for _, a := range ours {
			kept = append(kept, ipam.Single(a).Intersect(n.Children.Pool()))
		}
		if all := ipam.Merge(kept); len(all) > mostExclusions && len(all) > len(n.Children.Exclusions()) {
			return []finding.Finding{finding.Wrong(v1alpha1.ConditionAccepted, "TooManyExclusions").At("spec.infraComponents").
				Say("another Infra on this VLAN, which leases addresses, would have to keep %d separate ranges from DHCP, and %d are possible; set serverIPs that lie side by side with those of others, or outside its range", len(all), mostExclusions)}
		}
	}
	return nil
}
