package observe

import (
	"testing"

	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/permission"
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
			g.Expect(s.onOwnNetwork(t.Context(), input.Neighbour{Infra: infra, NAD: vlan})).To(Equal(c.want))
		})
	}
}

// HyperShift puts the control planes of a/b-c and a-b/c into one namespace; here both are there.
func TestOfTwoControlPlanesInOneNamespaceOursIsRead(t *testing.T) {
	for name, c := range map[string]struct {
		newer, older string // namespaces; that of c is a-b
		infra        string
		written      v1alpha1.ObjectName
		reads        string
		allowed      bool
	}{
		"ours is older":                   {"a", "a-b", "a-b", "", "a-b/c", true},
		"ours is newer":                   {"a-b", "a", "a-b", "", "a-b/c", false},
		"ours by its namespace, is older": {"a", "a-b", "a-b", "a-b-c", "a-b/c", true},
		"ours by its namespace, is newer": {"a-b", "a", "a-b", "a-b-c", "a/b-c", false},
		"the other, as it sees it":        {"a", "a-b", "a", "", "a/b-c", false},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := NewWithT(t), newStage(t, "")
			names := map[string]string{"a": "b-c", "a-b": "c"}
			create := func(o client.Object) { g.Expect(s.Reader.(client.Client).Create(t.Context(), o)).To(Succeed()) }
			for made, namespace := range []string{c.older, c.newer} {
				create(&hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: names[namespace], CreationTimestamp: metav1.Unix(int64(10+made), 0)}})
				create(&hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{
					Namespace: "a-b-c", Name: names[namespace], Annotations: map[string]string{"hypershift.openshift.io/cluster": namespace + "/" + names[namespace]},
				}})
			}
			vlan := &nad.NetworkAttachmentDefinition{ObjectMeta: metav1.ObjectMeta{Namespace: "a-b-c", Name: "vlan100"}}
			create(vlan)
			infra := &v1alpha1.Infra{ObjectMeta: metav1.ObjectMeta{Namespace: c.infra, Name: "x"}}
			infra.Spec.HostedClusterRef = &v1alpha1.HostedClusterReference{Name: v1alpha1.ObjectName(names[c.infra])}
			if infra.Spec.InfraComponents.Proxy.ControlPlaneNamespace = c.written; c.written != "" {
				infra.Spec.HostedClusterRef = nil
			}
			infra.Spec.NetworkConfig.NetworkAttachmentDefinition, infra.Spec.NetworkConfig.NetworkAttachmentNamespace = "vlan100", "a-b-c"
			seen, err := s.Around(t.Context(), infra)
			g.Expect(err).NotTo(HaveOccurred())
			if c.allowed || c.written != "" {
				g.Expect(seen.HostedControlPlane.Annotations).To(ContainElement(c.reads))
			}
			g.Expect(len(permission.Check(seen.Input)) == 0).To(Equal(c.allowed))
			g.Expect(s.onOwnNetwork(t.Context(), input.Neighbour{Infra: infra, NAD: vlan})).To(Equal(c.allowed))
		})
	}
}
