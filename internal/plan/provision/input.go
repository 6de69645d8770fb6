package provision

import (
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/kept"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// Input is everything that making an Infra from a HostedCluster looks at.
type Input struct {
	HostedCluster *hyperv1.HostedCluster
	// NodePools of the HostedCluster.
	NodePools []hyperv1.NodePool
	// Infra of the HostedCluster's name and namespace; nil when there is none.
	Infra *v1alpha1.Infra
	// NAD of Attachment; nil if it does not exist, or no Attachment is known.
	NAD *nad.NetworkAttachmentDefinition
	// OnVLAN are the Infras on the layer 2 of NAD.
	OnVLAN []input.Neighbour
	// ControlPlane is the namespace where that of the HostedCluster is; empty as long as none is seen there.
	ControlPlane string
	// AllowedNamespaces are the namespaces whose NetworkAttachmentDefinitions Multus allows every pod to use.
	AllowedNamespaces []string
}

// tooLarge is what an Infra would be derived from, or is, and is kept in part.
func (in Input) tooLarge() []finding.Finding {
	objects := []kept.Object{in.HostedCluster, in.Infra}
	for i := range in.NodePools {
		objects = append(objects, &in.NodePools[i])
	}
	return kept.Judge(finding.Provisioned, objects...)
}

// derivation reads an Infra off a HostedCluster and its NodePools; an annotation wins over what is derived.
type derivation struct {
	Input
	findings []finding.Finding
}
