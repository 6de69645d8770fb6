package observe

import (
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/nad"
)

// Indexes are the values by which an Observer finds objects of a kind, each with the name of its index.
func Indexes(kind client.Object) map[string]client.IndexerFunc {
	switch kind.(type) {
	case *v1alpha1.Infra:
		return map[string]client.IndexerFunc{IndexControlPlane: controlPlanes, IndexNAD: attachedNAD}
	case *hyperv1.HostedCluster:
		return map[string]client.IndexerFunc{IndexControlPlane: ControlPlane}
	case *hyperv1.NodePool:
		return map[string]client.IndexerFunc{IndexCluster: ClusterOf}
	case *nad.NetworkAttachmentDefinition:
		return map[string]client.IndexerFunc{IndexLayer2: layer2}
	case *corev1.Service:
		return map[string]client.IndexerFunc{IndexLeading: leading}
	}
	return nil
}
