package observe

import (
	"testing"

	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/permission"
)

// HostedCluster c1 of namespace clusters stands for namespace clusters-c1, no matter who made that and why.
func TestANamespaceWithoutAControlPlaneIsNobodys(t *testing.T) {
	there := func(granted string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clusters-c1", Annotations: map[string]string{names.AnnotationAllowedNamespaces: granted}}}
	}
	marked := there("")
	marked.Labels = map[string]string{endpoint.ControlPlaneLabel: "true"}
	controlPlane := func(of string) *hyperv1.HostedControlPlane {
		return &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-c1", Name: "x", Annotations: map[string]string{names.AnnotationHostedCluster: of}}}
	}
	role := func(infra string) *rbacv1.Role {
		return &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{
			Namespace: "clusters-c1", Name: "x", Labels: map[string]string{names.LabelInfra: infra, names.LabelInfraNamespace: "clusters"},
		}}
	}
	for name, c := range map[string]struct {
		objects []client.Object
		allowed bool // to read it
		own     bool // its networks are the Infra's, and the HostedCluster's
		waits   bool // and is not refused
	}{
		"it is not there yet":              {nil, true, true, false},
		"somebody has made it":             {[]client.Object{there("")}, false, false, false},
		"and admits somebody else":         {[]client.Object{there("others")}, false, false, false},
		"and admits the Infra's":           {[]client.Object{there("clusters")}, true, true, false},
		"HyperShift has marked it":         {[]client.Object{marked.DeepCopy()}, false, false, true},
		"for another HostedCluster":        {[]client.Object{marked.DeepCopy(), controlPlane("clusters-c1/x")}, false, false, false},
		"its control plane was there":      {[]client.Object{marked.DeepCopy(), role("x")}, true, true, false},
		"an older release took it for one": {[]client.Object{there(""), role("x")}, false, false, false},
		"that of another Infra was":        {[]client.Object{marked.DeepCopy(), role("y")}, false, false, true},
		"HyperShift has a control plane":   {[]client.Object{there(""), controlPlane("clusters/c1")}, true, true, false},
		"of another HostedCluster":         {[]client.Object{there(""), controlPlane("clusters-c1/x")}, false, false, false},
		"another's, in a namespace for us": {[]client.Object{there("clusters"), controlPlane("clusters-c1/x")}, false, false, false},
		"that says not whose it is":        {[]client.Object{there(""), &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-c1", Name: "x"}}}, true, true, false},
		"before the namespace is visible":  {[]client.Object{controlPlane("clusters/c1")}, true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := NewWithT(t), newStage(t, "")
			vlan := &nad.NetworkAttachmentDefinition{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-c1", Name: "vlan100"}}
			for _, o := range append(c.objects, vlan) {
				g.Expect(s.Reader.(client.Client).Create(t.Context(), o)).To(Succeed())
			}
			infra := &v1alpha1.Infra{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "x"}}
			infra.Spec.HostedClusterRef = &v1alpha1.HostedClusterReference{Name: "c1"}
			infra.Spec.NetworkConfig.NetworkAttachmentDefinition, infra.Spec.NetworkConfig.NetworkAttachmentNamespace = "vlan100", "clusters-c1"
			seen, err := s.Around(t.Context(), infra)
			g.Expect(err).NotTo(HaveOccurred())
			found := permission.Check(seen.Input)
			g.Expect(found).To(HaveLen(map[bool]int{true: 0, false: 1}[c.allowed]))
			g.Expect(finding.Worst(found, v1alpha1.ConditionAccepted) == finding.Waiting).To(Equal(c.waits))
			g.Expect(seen.Services).To(HaveLen(map[bool]int{true: 1, false: 0}[c.allowed]))
			g.Expect(s.Listeners.Of("clusters-c1")).NotTo(BeEmpty(), "it is heard when one is made")

			infra.Spec.ExtraEndpoints = []v1alpha1.ExtraEndpoint{{Name: "e", Target: v1alpha1.EndpointTarget{Namespace: "refused"}}}
			g.Expect(s.onOwnNetwork(t.Context(), input.Neighbour{Infra: infra, NAD: vlan})).To(Equal(c.own), "another reference, which is refused, changes nothing")
		})
	}
}

// A namespace that was just made is somebody's too, though the cache does not show it yet.
func TestANamespaceThatTheCacheDoesNotShowIsNobodys(t *testing.T) {
	g, s := NewWithT(t), newStage(t, "tenant")
	s.Observer.Live = fake.NewClientBuilder().WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "clusters-c1"}}).
		WithIndex(&corev1.Namespace{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).Build()
	seen, err := s.Infra(t.Context(), types.NamespacedName{Namespace: "tenant", Name: "c1"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(permission.Check(seen.Input)).To(HaveLen(1))
	g.Expect(seen.Services).To(BeEmpty())
}

// Nor does a HostedCluster that requests an Infra get its subnet from the networks there.
func TestNetworksOfANamespaceWithoutAControlPlaneAreNobodys(t *testing.T) {
	for of, want := range map[string]string{"": "", "clusters/c1": "clusters-c1", "others/x": ""} {
		g, s := NewWithT(t), newStage(t, "")
		if of != "" {
			g.Expect(s.Reader.(client.Client).Create(t.Context(), &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{
				Namespace: "clusters-c1", Name: "x", Annotations: map[string]string{names.AnnotationHostedCluster: of},
			}})).To(Succeed())
		}
		hc, err := get[hyperv1.HostedCluster](t.Context(), s.Observer, types.NamespacedName{Namespace: "clusters", Name: "c1"})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(s.controlPlaneOf(t.Context(), hc)).To(Equal(want), of)
	}
}
