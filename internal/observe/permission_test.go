package observe

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	routev1 "github.com/openshift/api/route/v1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// stage is a cluster in which Infra tenant/c1 names HostedCluster clusters/c1, and what was read of it.
type stage struct {
	*Observer
	reads []string
}

func newStage(t *testing.T, hostedClusterGrants string) *stage {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, hyperv1.AddToScheme, routev1.AddToScheme, configv1.Install, nad.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	infra := &v1alpha1.Infra{}
	infra.Namespace, infra.Name, infra.UID = "tenant", "c1", "infra"
	infra.Spec.HostedClusterRef = &v1alpha1.HostedClusterReference{Name: "c1", Namespace: "clusters"}
	infra.Spec.NetworkConfig.NetworkAttachmentDefinition = "vlan"
	hc := &hyperv1.HostedCluster{}
	hc.Namespace, hc.Name, hc.Annotations = "clusters", "c1", map[string]string{names.AnnotationAllowedNamespaces: hostedClusterGrants}
	vlan := &nad.NetworkAttachmentDefinition{}
	vlan.Namespace, vlan.Name = "tenant", "vlan"
	proxy := &v1alpha1.ProxyServer{}
	proxy.Namespace, proxy.Name = "tenant", "c1-proxy"
	proxy.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Infra", Name: "c1", UID: "infra", Controller: ptr.To(true)}}
	service := &corev1.Service{}
	service.Namespace, service.Name = "clusters-c1", "kube-apiserver"

	s := &stage{}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(infra, hc, vlan, proxy, service).
		WithIndex(&hyperv1.NodePool{}, IndexCluster, ClusterOf).WithIndex(&hyperv1.HostedCluster{}, IndexControlPlane, ControlPlane).
		WithIndex(&corev1.Namespace{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			s.reads = append(s.reads, fmt.Sprintf("%T %s", o, key))
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			of := client.ListOptions{}
			of.ApplyOptions(opts)
			s.reads = append(s.reads, fmt.Sprintf("%T %s/", list, of.Namespace))
			return c.List(ctx, list, opts...)
		},
	}).Build()
	s.Observer = &Observer{Reader: reader, Live: reader, Kinds: NewKinds(true, true), Listeners: NewListeners(), Now: time.Now}
	for _, kind := range s.Kinds.All() {
		s.Kinds.Set(kind, true)
	}
	return s
}

func TestNothingIsReadOfAControlPlaneWithoutPermission(t *testing.T) {
	for grants, want := range map[string]bool{"tenant": true, "others": false, "": false} {
		t.Run("admits "+grants, func(t *testing.T) {
			g, s := NewWithT(t), newStage(t, grants)
			seen, err := s.Infra(t.Context(), types.NamespacedName{Namespace: "tenant", Name: "c1"})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(len(seen.Services) > 0).To(Equal(want))
			for _, of := range []string{" clusters-c1/", "NodePoolList clusters/"} {
				reads := ContainElement(ContainSubstring(of))
				if !want {
					reads = Not(reads)
				}
				g.Expect(s.reads).To(reads)
			}
		})
	}
}

func TestAnInfraLendsOnlyWhatItMayUse(t *testing.T) {
	for grants, want := range map[string]string{"tenant": "clusters-c1", "others": ""} {
		t.Run("admits "+grants, func(t *testing.T) {
			g, s := NewWithT(t), newStage(t, grants)
			proxy, key := &v1alpha1.ProxyServer{}, types.NamespacedName{Namespace: "tenant", Name: "c1-proxy"}
			c := s.Reader.(client.Client)
			g.Expect(c.Get(t.Context(), key, proxy)).To(Succeed())
			proxy.Spec.Backends = []v1alpha1.ProxyBackend{{Name: "api", TargetNamespace: "clusters-c1", TargetService: "kube-apiserver"}}
			g.Expect(c.Update(t.Context(), proxy)).To(Succeed())
			seen, err := s.Child(t.Context(), theProxy(), key)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(seen.AllowedNamespace).To(Equal(want))
			g.Expect(len(seen.Services) > 0).To(Equal(want != ""))
		})
	}
}

// A HostedCluster's pause applies to an Infra that may refer to it. To any other it would reveal that the HostedCluster exists.
func TestAPauseIsToldToWhoMayReferToIt(t *testing.T) {
	for grants, want := range map[string]bool{"tenant": true, "others": false} {
		t.Run("admits "+grants, func(t *testing.T) {
			g, s := NewWithT(t), newStage(t, grants)
			hc, c := &hyperv1.HostedCluster{}, s.Reader.(client.Client)
			g.Expect(c.Get(t.Context(), types.NamespacedName{Namespace: "clusters", Name: "c1"}, hc)).To(Succeed())
			hc.Spec.PausedUntil = ptr.To("true")
			g.Expect(c.Update(t.Context(), hc)).To(Succeed())
			infra, err := s.Infra(t.Context(), types.NamespacedName{Namespace: "tenant", Name: "c1"})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(infra.Pause.Active()).To(Equal(want))
			child, err := s.Child(t.Context(), theProxy(), types.NamespacedName{Namespace: "tenant", Name: "c1-proxy"})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(child.Pause.Active()).To(Equal(want))
		})
	}
}

// A child that names a deleted Infra of the same name as its owner belongs to none.
func TestADeadInfraLendsNothing(t *testing.T) {
	g, s := NewWithT(t), newStage(t, "tenant")
	proxy := &v1alpha1.ProxyServer{}
	key := types.NamespacedName{Namespace: "tenant", Name: "c1-proxy"}
	c := s.Reader.(client.Client)
	g.Expect(c.Get(t.Context(), key, proxy)).To(Succeed())
	proxy.OwnerReferences[0].UID = "another"
	g.Expect(c.Update(t.Context(), proxy)).To(Succeed())
	seen, err := s.Child(t.Context(), theProxy(), key)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(seen.Infra).To(BeNil())
	g.Expect(seen.AllowedNamespace).To(BeEmpty())
}

func TestAKindThatIsAbsentCountsAsEmpty(t *testing.T) {
	g, s := NewWithT(t), newStage(t, "tenant")
	s.Kinds = NewKinds(true, true)
	seen, err := s.Infra(t.Context(), types.NamespacedName{Namespace: "tenant", Name: "c1"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(seen.HostedCluster).To(BeNil())
	g.Expect(seen.NAD).To(BeNil())
	g.Expect(s.reads).NotTo(ContainElement(ContainSubstring("hypershift")))
}

func TestWhoWithdrawsIsHeardOf(t *testing.T) {
	g, s := NewWithT(t), newStage(t, "others")
	c := s.Reader.(client.Client)
	lender := &corev1.Namespace{}
	lender.Name, lender.Annotations = "lender", map[string]string{names.AnnotationAllowedNamespaces: "tenant"}
	g.Expect(c.Create(t.Context(), lender)).To(Succeed())
	infra := &v1alpha1.Infra{}
	infra.Namespace, infra.Name = "tenant", "c1"
	withdrawn := func() []string {
		all, err := s.Withdrawn(t.Context(), input.Input{Infra: infra}, []string{"lender", "gone"})
		g.Expect(err).NotTo(HaveOccurred())
		return all
	}
	g.Expect(withdrawn()).To(BeEmpty())
	g.Expect(s.Listeners.Of("lender")).To(ConsistOf(client.ObjectKeyFromObject(infra)), "it is looked at again when the namespace changes")
	lender.Annotations = nil
	g.Expect(c.Update(t.Context(), lender)).To(Succeed())
	g.Expect(withdrawn()).To(ConsistOf("lender"))
	for _, kind := range s.Kinds.All() {
		s.Kinds.Set(kind, false)
	}
	g.Expect(withdrawn()).To(BeEmpty(), "whose control plane it is cannot be told")
}
