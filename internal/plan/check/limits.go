package check

import (
	"maps"
	"slices"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/ipam"
	"github.com/cldmnky/oooi/internal/kept"
	"github.com/cldmnky/oooi/internal/plan/apps"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/valid"
)

// limits of the children's schemas that an Infra's own do not imply.
func limits(in apps.Published) []finding.Finding {
	var all []finding.Finding
	if n := len(in.Table.Names()); n > valid.MostHostnames {
		all = append(all, finding.Refuse(v1alpha1.ConditionAccepted, "TooManyHostnames").At("spec.extraEndpoints").
			Say("extraEndpoints and the control plane have %d hostnames together; at most %d are possible: use wildcards, which count once", n, valid.MostHostnames))
	}
	if n := len(in.Assigned.Excluded); n > valid.MostExclusions {
		all = append(all, finding.Refuse(v1alpha1.ConditionAccepted, "TooManyExclusions").At("spec.infraComponents.dhcp.excludeRanges").
			Say("%d separate ranges are excluded from DHCP (dhcp.excludeRanges, servers, neighbours); at most %d are possible: join some of them", n, valid.MostExclusions))
	}
	return append(all, burden(in)...)
}

// TooLarge is what an Infra is planned by, and is kept in part.
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

// burden: the addresses of a newcomer are kept from the DHCP of those who were there before. Where one of them cannot take
// more, the newcomer is refused, and nobody's DHCP is stopped by an Infra of somebody else's.
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
