package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/ipam"
	"github.com/cldmnky/oooi/internal/names"
)

// selecting are the NodePools on the VLAN by the nodes that they ask for. Where their machines run the VLAN is, or they would not
// work. So one that asks for none outweighs the others, whose selectors then are about something else, such as hardware: its
// machines run on any node, and our pods may, too. Empty as well where no machine is a VirtualMachine: there is no such field.
func (v *view) selecting() map[string][]*hyperv1.NodePool {
	by := map[string][]*hyperv1.NodePool{}
	for _, p := range v.pools() {
		if len(v.sockets(p.Spec.Platform.Kubevirt)) > 0 {
			nodes := labels.Set(p.Spec.Platform.Kubevirt.NodeSelector).String()
			by[nodes] = append(by[nodes], p)
		}
	}
	if _, anywhere := by[""]; anywhere {
		return nil
	}
	return by
}

// withNodes tells a child on which nodes the VLAN is, where its own placement says none and the NodePools agree. Any of several
// that differ would be right, but which, would change as NodePools come and go.
func (v *view) withNodes(placement v1alpha1.Placement) map[string]string {
	by := v.selecting()
	if len(placement.NodeSelector) > 0 || len(by) != 1 {
		return nil
	}
	for nodes := range by {
		return map[string]string{names.AnnotationNodes: nodes}
	}
	return nil
}

// placement warns where NodePools say on which nodes the VLAN is, and our pods cannot follow all of them.
func (v *view) placement() []finding.Finding {
	by, ours := v.selecting(), v.placedAnywhere()
	if len(by) < 2 || len(ours) == 0 {
		return nil
	}
	var differ []string
	for _, nodes := range slices.Sorted(maps.Keys(by)) {
		for _, p := range by[nodes] {
			differ = append(differ, fmt.Sprintf("%s/%s (%s)", p.Namespace, p.Name, nodes))
		}
	}
	return []finding.Finding{finding.Note(v1alpha1.ConditionNetworkReady, "NodeSelectorsDiffer").At("spec.infraComponents").
		Say("NodePools on the VLAN ask for different nodes: %s; our pods go to any node, and where the VLAN is missing they serve nobody: set nodeSelector of infraComponents %s to labels of nodes that have it",
			strings.Join(differ, ", "), strings.Join(ours, ", "))}
}

// placedAnywhere are the components whose pods neither the Infra nor the network's resource places.
func (v *view) placedAnywhere() []string {
	if v.NAD.Resource() != "" {
		return nil
	}
	c := v.Infra.Spec.InfraComponents
	own := map[ipam.Component]v1alpha1.Placement{ipam.DHCP: c.DHCP.Placement, ipam.DNS: c.DNS.Placement, ipam.Proxy: c.Proxy.Placement}
	var all []string
	for component, on := range switchedOn(c) {
		if on && len(own[component].NodeSelector) == 0 {
			all = append(all, string(component))
		}
	}
	slices.Sort(all)
	return all
}
