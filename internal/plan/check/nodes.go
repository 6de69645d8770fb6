package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/plan/apps"
)

// placement warns if NodePools select different nodes, so that they do not tell which nodes have the VLAN.
func placement(in apps.Published) []finding.Finding {
	by, ours := in.Selecting(), in.PlacedAnywhere()
	if len(by) < 2 || len(ours) == 0 {
		return nil
	}
	var differ []string
	for _, nodes := range slices.Sorted(maps.Keys(by)) {
		for _, p := range by[nodes] {
			differ = append(differ, fmt.Sprintf("%s/%s (%s)", p.Namespace, p.Name, nodes))
		}
	}
	return []finding.Finding{finding.Warn(v1alpha1.ConditionNetworkReady, "NodeSelectorsDiffer").At("spec.infraComponents").
		Say("NodePools on the VLAN select different nodes: %s; our pods may run on any node, and serve nobody on one without the VLAN: set nodeSelector of infraComponents %s to labels of nodes that have it",
			strings.Join(differ, ", "), strings.Join(ours, ", "))}
}
