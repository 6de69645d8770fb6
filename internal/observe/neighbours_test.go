package observe

import (
	"testing"

	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan"
)

func TestANeighbourOfAControlPlanesNamespaceIsOnItsOwnNetwork(t *testing.T) {
	for name, c := range map[string]struct {
		namespace string
		at        string
		want      bool
	}{
		"beside its HostedCluster":     {"clusters", "clusters-c1", true},
		"not admitted by it":           {"others", "clusters-c1", false},
		"on a network that is no such": {"clusters", "default", false},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := NewWithT(t), newStage(t, "tenant")
			vlan := &nad.NetworkAttachmentDefinition{}
			vlan.Namespace, vlan.Name = c.at, "vlan100"
			theirs := &hyperv1.HostedControlPlane{}
			theirs.Namespace, theirs.Name, theirs.Annotations = "clusters-c1", "c1", map[string]string{names.AnnotationHostedCluster: "clusters/c1"}
			for _, o := range []client.Object{vlan, theirs} {
				g.Expect(s.Reader.(client.Client).Create(t.Context(), o)).To(Succeed())
			}
			infra := &v1alpha1.Infra{}
			infra.Namespace, infra.Name = c.namespace, "x"
			infra.Spec.HostedClusterRef = &v1alpha1.HostedClusterReference{Name: "c1", Namespace: "clusters"}
			infra.Spec.NetworkConfig.NetworkAttachmentDefinition, infra.Spec.NetworkConfig.NetworkAttachmentNamespace = "vlan100", v1alpha1.ObjectName(c.at)
			g.Expect(s.onOwnNetwork(t.Context(), plan.Neighbour{Infra: infra, NAD: vlan})).To(Equal(c.want))
		})
	}
}
