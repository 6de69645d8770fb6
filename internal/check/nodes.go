package check

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/kubelet"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/vlan"
	"github.com/cldmnky/oooi/internal/step"
)

// nodes says on how many Ready nodes the pods of each Infra may run. Which nodes have the VLAN, nodeSelectors of the Infra and of NodePools
// tell, and the resource that the network names; if none does, each node counts. Taints count too.
func nodes(f Facts) (all []step.Step) {
	if why := cmp.Or(f.Nodes.Unread, f.NodePools.Unread, f.HostedClusters.Unread, f.Networks.Unread); why != "" {
		return one(unread("which nodes have the VLANs", why))
	}
	if f.Infras.Unread != "" || f.lacksCRD("infras."+names.Group) {
		return one(skip("which nodes have the VLANs is not checked: the Infras are not read"))
	}
	good := 0
	for i := range f.Infras.Is {
		infra := &f.Infras.Is[i]
		if infra.DeletionTimestamp != nil {
			continue
		}
		if s := f.nodesOf(infra); s.Outcome != step.OK {
			all = append(all, about("Infra", infra.Namespace, infra.Name, s))
		} else {
			good++
		}
	}
	switch {
	case len(f.Infras.Is) == 0:
		return one(skip("which nodes have the VLANs is not checked: %s", f.none("Infra")))
	case good > 0:
		all = append(all, ok("the pods of %d Infras find Ready nodes that have their VLAN, as far as node selectors say", good))
	}
	return all
}

// nodesOf looks at one Infra.
func (f Facts) nodesOf(infra *v1alpha1.Infra) step.Step {
	j := vlan.Join(f.inputOf(infra))
	if pools := j.Selecting(); len(pools) > 1 && len(j.PlacedAnywhere()) > 0 {
		return warn("set nodeSelector of infraComponents "+strings.Join(j.PlacedAnywhere(), ", ")+" to labels of nodes that have the VLAN",
			"Infra %s/%s: its NodePools select different nodes (%s), so nothing says which have the VLAN", infra.Namespace, infra.Name, strings.Join(slices.Sorted(maps.Keys(pools)), "; "))
	}
	ready := f.ready(nil, "")
	resource := j.NAD.Resource()
	if len(f.ready(nil, resource)) == 0 { // our pods start without one that no node has (observe, unoffered)
		resource = ""
	}
	for _, c := range component.All {
		wanted := c.Wanted(infra.Spec.InfraComponents)
		if !wanted.Enabled {
			continue
		}
		selector := labels.Set(wanted.Placement.NodeSelector)
		if text := j.WithNodes(wanted.Placement)[names.AnnotationNodes]; text != "" {
			selector, _ = labels.ConvertSelectorToLabelsMap(text) // a node selector, as WithNodes wrote it
		}
		on := f.ready(selector, resource)
		switch free, taint := f.tolerated(on, wanted.Placement.Tolerations); {
		case len(ready) == 0:
			return fail("kubectl get nodes", "Infra %s/%s: no node is Ready and takes pods, so no pod of %s starts", infra.Namespace, infra.Name, c.Name)
		case len(on) == 0:
			return fail("label the nodes that have the VLAN: kubectl label node NODE "+strings.ReplaceAll(selector.String(), ",", " "),
				"Infra %s/%s: no Ready node has %s, so no pod of %s starts", infra.Namespace, infra.Name, wants(selector, resource), c.Name)
		case len(free) == 0:
			return fail("set tolerations of infraComponents "+string(c.Name)+", or remove the taint: kubectl taint node NODE "+taint+"-",
				"Infra %s/%s: each of its %d Ready nodes has a taint that no pod of %s tolerates, such as %s, so none starts", infra.Namespace, infra.Name, len(on), c.Name, taint)
		case len(on) == 1 && len(ready) > 1 && wanted.Second:
			return warn("add a second node with the VLAN", "Infra %s/%s: of %d Ready nodes only %s has %s, so both pods of %s end with it", infra.Namespace, infra.Name, len(ready), on[0], wants(selector, resource), c.Name)
		case len(free) == 1 && len(on) > 1 && wanted.Second:
			return warn("set tolerations of infraComponents "+string(c.Name)+", or add a second node with the VLAN",
				"Infra %s/%s: of its %d Ready nodes only %s has no taint, so both pods of %s end with it; another has %s", infra.Namespace, infra.Name, len(on), free[0], c.Name, taint)
		}
	}
	return step.Step{Outcome: step.OK}
}

func wants(selector labels.Set, resource string) string {
	var all []string
	if len(selector) > 0 {
		all = append(all, "labels "+selector.String())
	}
	if resource != "" {
		all = append(all, "resource "+resource)
	}
	return strings.Join(all, " and ")
}

// ready are the Ready nodes that pods may be scheduled to, with these labels and this resource, by name.
func (f Facts) ready(selector labels.Set, resource string) (all []string) {
	for i := range f.Nodes.Is {
		n := &f.Nodes.Is[i]
		has := n.Status.Allocatable[corev1.ResourceName(resource)]
		if !n.Spec.Unschedulable && kubelet.NodeReady(n).Status == corev1.ConditionTrue && selector.AsSelector().Matches(labels.Set(n.Labels)) && (resource == "" || !has.IsZero()) {
			all = append(all, n.Name)
		}
	}
	slices.Sort(all)
	return all
}

// tolerated are the nodes that have no taint which keeps pods with these tolerations away; taint is one that does.
func (f Facts) tolerated(nodes []string, with []corev1.Toleration) (all []string, taint string) {
	for i := range f.Nodes.Is {
		n := &f.Nodes.Is[i]
		repels := func(t corev1.Taint) bool {
			return t.Effect != corev1.TaintEffectPreferNoSchedule &&
				!slices.ContainsFunc(with, func(w corev1.Toleration) bool { return w.ToleratesTaint(logr.Discard(), &t, true) })
		}
		if at := slices.IndexFunc(n.Spec.Taints, repels); at >= 0 && slices.Contains(nodes, n.Name) {
			taint = n.Spec.Taints[at].ToString()
		} else if slices.Contains(nodes, n.Name) {
			all = append(all, n.Name)
		}
	}
	slices.Sort(all)
	return all, taint
}

// inputOf is what planning reads of the network of an Infra's workers.
func (f Facts) inputOf(infra *v1alpha1.Infra) input.Input {
	refs := input.Refs(infra)
	in := input.Input{Infra: infra, Settings: input.Settings{NADSourceNamespaces: f.Manager.Lenders}}
	for i := range f.HostedClusters.Is {
		if hc := &f.HostedClusters.Is[i]; refs.HostedCluster == (types.NamespacedName{Namespace: hc.Namespace, Name: hc.Name}) {
			in.HostedCluster = hc
		}
	}
	in.NodePools = slices.Clone(f.NodePools.Is)
	in.NodePools = slices.DeleteFunc(in.NodePools, func(p hyperv1.NodePool) bool {
		return p.Namespace != refs.HostedCluster.Namespace || p.Spec.ClusterName != refs.HostedCluster.Name
	})
	for i := range f.Networks.Is {
		if n := &f.Networks.Is[i]; n.Namespace == refs.NAD.Namespace && n.Name == refs.NAD.Name {
			in.NAD = n
		}
	}
	for _, n := range f.Networks.Is {
		if in.NAD != nil && n.Layer2() != "" && n.Layer2() == in.NAD.Layer2() && n.Labels[names.LabelManagedBy] != names.ManagedBy {
			in.Attachable = append(in.Attachable, n)
		}
	}
	return in
}
