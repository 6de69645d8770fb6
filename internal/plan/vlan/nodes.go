package vlan

import (
	"slices"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/names"
)

// Selecting are the NodePools on the VLAN by node selector. The nodes that they select have the VLAN, or their machines would not work. So
// if one has no selector, its machines may run on any node, as may our pods, and the other selectors are about something else, such as
// hardware: the result is empty. It is also empty if no machine is a VirtualMachine, because others have no selector.
func (j Joined) Selecting() map[string][]*hyperv1.NodePool {
	by := map[string][]*hyperv1.NodePool{}
	for _, p := range j.Machines() {
		if len(j.Attachments(p.Spec.Platform.Kubevirt)) > 0 {
			nodes := labels.Set(p.Spec.Platform.Kubevirt.NodeSelector).String()
			by[nodes] = append(by[nodes], p)
		}
	}
	if _, anywhere := by[""]; anywhere {
		return nil
	}
	return by
}

// WithNodes tells a child which nodes have the VLAN, if its own placement selects none and the NodePools agree. If they differ, any of
// them would be right, but the choice would change as NodePools come and go.
func (j Joined) WithNodes(placement v1alpha1.Placement) map[string]string {
	by := j.Selecting()
	if len(placement.NodeSelector) > 0 || len(by) != 1 {
		return nil
	}
	for nodes := range by {
		return map[string]string{names.AnnotationNodes: nodes}
	}
	return nil
}

// PlacedAnywhere are the components whose pods neither the Infra's nodeSelector nor the network's device resource places.
func (j Joined) PlacedAnywhere() []string {
	if j.NAD.Resource() != "" {
		return nil
	}
	var all []string
	for _, c := range component.All {
		if wanted := c.Wanted(j.Infra.Spec.InfraComponents); wanted.Enabled && len(wanted.Placement.NodeSelector) == 0 {
			all = append(all, string(c.Name))
		}
	}
	slices.Sort(all)
	return all
}
