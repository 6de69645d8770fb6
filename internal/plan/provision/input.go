package provision

import (
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/kept"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// Input is everything from which an Infra is derived.
type Input struct {
	HostedCluster *hyperv1.HostedCluster
	// NodePools of the HostedCluster.
	NodePools []hyperv1.NodePool
	// Infra with the HostedCluster's name and namespace; nil if there is none.
	Infra *v1alpha1.Infra
	// NAD of Attachment; nil if it does not exist, or no Attachment is known.
	NAD *nad.NetworkAttachmentDefinition
	// OnVLAN are the Infras on the layer 2 of NAD.
	OnVLAN []input.Neighbour
	// ControlPlane is the HostedCluster's control-plane namespace; empty as long as no control plane is seen there.
	ControlPlane string
	// AllowedNamespaces are the namespaces whose NetworkAttachmentDefinitions Multus allows every pod to use.
	AllowedNamespaces []string
}

// tooLarge reports inputs that are too large to be kept whole.
func (in Input) tooLarge() []finding.Finding {
	objects := []kept.Object{in.HostedCluster, in.Infra}
	for i := range in.NodePools {
		objects = append(objects, &in.NodePools[i])
	}
	return kept.Judge(finding.Provisioned, objects...)
}

// derivation derives an Infra from a HostedCluster and its NodePools; an annotation overrides what is derived.
type derivation struct {
	Input
	findings []finding.Finding
}
