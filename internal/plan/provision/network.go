package provision

import (
	"maps"
	"slices"
	"strings"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/subject"
	"github.com/cldmnky/oooi/internal/plan/vlan"
	"github.com/cldmnky/oooi/internal/refgrant"
)

// attachment is the NetworkAttachmentDefinition of the workers' VLAN: the one network of the NodePools that are not on the pod network.
func (d *derivation) attachment() types.NamespacedName {
	const key = names.AnnotationNetworkAttachment
	if _, set := d.HostedCluster.Annotations[key]; set {
		return annotated(d, key, "NAMESPACE/NAME", vlan.NamespacedName)
	}
	found := map[string]types.NamespacedName{}
	for _, pool := range vlan.MachinesOf(d.NodePools) {
		for _, n := range isolated(pool) {
			at := vlan.AttachmentOf(n, d.HostedCluster)
			if len(validation.IsDNS1123Subdomain(at.Name)) > 0 {
				d.findings = append(d.findings, finding.Refuse(finding.Provisioned, "NetworkAttachmentMissing").In(subject.NodePool(pool)).At(subject.FieldNetworks).
					Say("NodePool %s/%s has the network %q, which cannot be a NetworkAttachmentDefinition's name; write NAMESPACE/NAME, such as default/vlan100", pool.Namespace, pool.Name, n.Name))
				return types.NamespacedName{}
			}
			found[at.String()] = at
		}
	}
	all := slices.Sorted(maps.Keys(found))
	switch {
	case len(vlan.MachinesOf(d.NodePools)) == 0:
		d.miss("NetworkAttachmentMissing", key, "NAMESPACE/NAME", nil, "no NodePool of VirtualMachines in namespace %s has spec.clusterName %s, so the NetworkAttachmentDefinition of the workers' VLAN is not known", d.HostedCluster.Namespace, d.HostedCluster.Name)
	case len(all) == 0:
		d.miss("NetworkAttachmentMissing", key, "NAMESPACE/NAME", d.isolating(), "no NodePool of this HostedCluster has attachDefaultNetwork: false with additionalNetworks, so the NetworkAttachmentDefinition of the workers' VLAN is not known")
	case len(all) == 1:
		return found[all[0]]
	default:
		d.miss("NetworkAttachmentAmbiguous", key, "NAMESPACE/NAME", nil, "NodePools with attachDefaultNetwork: false have several networks (%s), and an Infra serves one", strings.Join(all, ", "))
	}
	return types.NamespacedName{}
}

// isolating takes machines with further networks off the pod network, so that these networks tell which VLAN is theirs.
func (d *derivation) isolating() (all []finding.Change) {
	for _, pool := range vlan.MachinesOf(d.NodePools) {
		if len(pool.Spec.Platform.Kubevirt.AdditionalNetworks) > 0 {
			all = append(all, finding.Change{Of: subject.NodePool(pool), Values: finding.Values{subject.FieldDefaultNetwork: false}})
		}
	}
	return all
}

// isolated are the networks of a NodePool whose machines are not on the pod network; none otherwise.
func isolated(pool *hyperv1.NodePool) []hyperv1.KubevirtNetwork {
	if k := pool.Spec.Platform.Kubevirt; !ptr.Deref(k.AttachDefaultNetwork, true) {
		return k.AdditionalNetworks
	}
	return nil
}

// Attachment is the name of the workers' network; zero if it is not known.
func (in Input) Attachment() types.NamespacedName {
	d := derivation{Input: in}
	return d.attachment()
}

// mayJoin says whether an Infra of a namespace may be on a network; allowed are further namespaces whose networks it may use.
func (d *derivation) mayJoin(n *nad.NetworkAttachmentDefinition, namespace string, allowed ...string) bool {
	return n != nil && refgrant.Reference{From: namespace, Namespace: n.Namespace, Annotations: n.Annotations, AllowedNamespaces: append(allowed, d.AllowedNamespaces...)}.Allowed()
}
