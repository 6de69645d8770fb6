package controller_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
)

// lodger is an Infra whose control plane belongs to another tenant, who grants it.
type lodger struct {
	*world
	infra  *v1alpha1.Infra
	hc     *hyperv1.HostedCluster
	grants map[string]string
}

func newLodger(t *testing.T) lodger {
	w := newWorld(t)
	w.hosts("c1")
	l := lodger{world: w, infra: w.smallest("lodger"), hc: named(&hyperv1.HostedCluster{}, w.ns, "c1")}
	l.infra.Namespace = w.ns + "-lodgers"
	l.grants = map[string]string{names.AnnotationAllowedNamespaces: l.infra.Namespace}
	l.infra.Spec.HostedClusterRef = &v1alpha1.HostedClusterReference{Name: "c1", Namespace: v1alpha1.ObjectName(w.ns)}
	l.infra.Spec.NetworkConfig.NetworkAttachmentNamespace, l.infra.Spec.NetworkConfig.NetworkAttachmentDefinition = v1alpha1.ObjectName(w.ns), "c1-vlan"
	vlan := named(&nad.NetworkAttachmentDefinition{}, w.ns, "c1-vlan")
	w.changes(vlan, func() { vlan.Annotations = l.grants })
	l.grant()
	w.creates(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: l.infra.Namespace}}, l.infra)
	t.Cleanup(func() { // the next test on this API server would see it written
		w.Expect(w.api.Delete(context.Background(), l.infra)).To(Succeed())
		w.Eventually(func() error { return w.api.Get(context.Background(), client.ObjectKeyFromObject(l.infra), l.infra) }).Should(MatchError(apierrors.IsNotFound, "it is gone"))
	})
	w.Eventually(l.lodged).Should(HaveLen(lodges))
	return l
}

func (l lodger) grant() { l.changes(l.hc, func() { l.hc.Annotations = l.grants }) }

func (l lodger) evict() { l.changes(l.hc, func() { l.hc.Annotations = nil }) }

// lodges is how many objects the lodger has in the control-plane namespace: two Roles, two RoleBindings, three NetworkPolicies.
const lodges = 7

func (l lodger) lodged() []string { return l.has(l.controlPlane("c1")) }

func (l lodger) has(namespace string) (all []string) {
	l.t.Helper()
	for _, list := range []client.ObjectList{&rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &networkingv1.NetworkPolicyList{}} {
		l.Expect(l.api.List(l.ctx, list, client.InNamespace(namespace), client.MatchingLabels{names.LabelInfra: l.infra.Name})).To(Succeed())
		for _, o := range items(list) {
			all = append(all, o.GetName())
		}
	}
	return all
}

func (l lodger) refused() {
	l.t.Helper()
	sees(l.world, l.infra, func(g Gomega, i *v1alpha1.Infra) {
		g.Expect(i.Status.Conditions).To(ContainElement(And(HaveField("Type", v1alpha1.ConditionAccepted), HaveField("Reason", "RefNotPermitted"))))
	})
}

func TestWhatLiesWithOthersGoesWithTheirPermission(t *testing.T) {
	l := newLodger(t)
	proxy := sees(l.world, named(&appsv1.Deployment{}, l.infra.Namespace, "lodger-proxy-deployment"), there)
	l.evict()
	l.Eventually(l.lodged).Should(BeEmpty())
	l.refused()
	l.Eventually(func(g Gomega) {
		all := &eventsv1.EventList{}
		g.Expect(l.api.List(l.ctx, all, client.InNamespace(l.infra.Namespace))).To(Succeed())
		g.Expect(all.Items).To(ContainElement(And(HaveField("Reason", "PermissionWithdrawn"), HaveField("Type", "Warning"), HaveField("Note", ContainSubstring(l.controlPlane("c1"))))))
	}).Should(Succeed())
	l.silent()
	l.Expect(sees(l.world, named(&appsv1.Deployment{}, l.infra.Namespace, "lodger-proxy-deployment"), there).UID).To(Equal(proxy.UID), "what it has at home stays")

	l.grant()
	l.Eventually(l.lodged).Should(HaveLen(lodges))
}

// uses makes the lodger name a namespace for an endpoint of its own, or none.
func (l lodger) uses(namespace string) {
	l.t.Helper()
	l.changes(l.infra, func() {
		if l.infra.Spec.ExtraEndpoints = nil; namespace != "" {
			l.infra.Spec.ExtraEndpoints = []v1alpha1.ExtraEndpoint{{Name: "mirror", Hostnames: []v1alpha1.DNSNameOrWildcard{"mirror.example.com"}, Port: 8443, Protocol: v1alpha1.ProtocolTLS,
				Target: v1alpha1.EndpointTarget{Service: "mirror", Namespace: v1alpha1.ObjectName(namespace), Port: 8443}}}
		}
	})
}

// allowedBy is a namespace that the lodger uses with a grant.
func (l lodger) allowedBy(name string) *corev1.Namespace {
	l.t.Helper()
	lender := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: l.ns + "-" + name, Annotations: l.grants}}
	l.creates(lender)
	l.uses(lender.Name)
	l.Eventually(func() []string { return l.has(lender.Name) }).Should(HaveLen(2))
	return lender
}

// The lodger's author can set a pause, and what its spec names.
func TestAPauseKeepsNothingWhereNobodyAdmitsIt(t *testing.T) {
	l := newLodger(t)
	lender := l.allowedBy("lender")
	l.changes(l.infra, func() { l.infra.Annotations = map[string]string{names.AnnotationPaused: "true"} })
	l.uses("")
	l.silent()
	l.Expect(l.has(lender.Name)).To(HaveLen(2), "a pause stops all writes")
	l.changes(lender, func() { lender.Annotations = nil })
	l.Eventually(func() []string { return l.has(lender.Name) }).Should(BeEmpty())
	l.Expect(l.lodged()).To(HaveLen(lodges), "the control plane's owner grants it still")
}

func TestWhatLiesWithOthersGoesThoughTheSpecNamesThemNoMore(t *testing.T) {
	l := newLodger(t)
	lender := l.allowedBy("lender")
	l.uses("somebody-elses")
	l.refused()
	l.silent()
	l.Expect(l.has(lender.Name)).To(HaveLen(2), "what served last serves on")
	l.stop()
	l.start() // a manager that has not read the lender's namespace
	l.silent()
	l.changes(lender, func() { lender.Annotations = nil })
	l.Eventually(func() []string { return l.has(lender.Name) }).Should(BeEmpty())
	l.Expect(l.lodged()).To(HaveLen(lodges))
}

// During a restore, or an upgrade of HyperShift, the HostedCluster may be missing for a while.
func TestAHostedClusterThatIsOnlyAwayHasWithdrawnNothing(t *testing.T) {
	l := newLodger(t)
	l.Expect(l.api.Delete(l.ctx, l.hc)).To(Succeed())
	l.refused()
	l.silent()
	l.Expect(l.lodged()).To(HaveLen(lodges))
}
