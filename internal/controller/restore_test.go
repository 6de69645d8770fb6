package controller_test

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
)

// inVelerosOrder are the kinds of a backup in Velero's order of restoring: some first (its default --restore-resource-priorities), all others
// by the names of their resources, so an Infra comes after its DHCPServer and DNSServer and before its ProxyServer.
var inVelerosOrder = []client.ObjectList{
	&corev1.ServiceAccountList{}, &corev1.ConfigMapList{}, &corev1.ServiceList{},
	&appsv1.DeploymentList{}, &v1alpha1.DHCPLeaseList{}, &v1alpha1.DHCPServerList{}, &v1alpha1.DNSServerList{}, &v1alpha1.InfraList{}, &nad.List{},
	&networkingv1.NetworkPolicyList{}, &policyv1.PodDisruptionBudgetList{}, &v1alpha1.ProxyServerList{}, &rbacv1.RoleBindingList{}, &rbacv1.RoleList{}, &appsv1.StatefulSetList{},
}

func TestARestoreInVelerosOrderKeepsAllAddresses(t *testing.T) {
	w := newWorld(t)
	w.hosts("c1")
	infra := w.smallest("c1")
	// Addresses that no allocation would give, and that stay once given, though nobody writes them any more.
	c := &infra.Spec.InfraComponents
	c.DHCP.ServerIP, c.DNS.ServerIP, c.Proxy.ServerIP, c.DHCP.RangeStart, c.DHCP.RangeEnd = "192.168.100.7", "192.168.100.8", "192.168.100.9", "192.168.100.40", "192.168.100.60"
	w.creates(infra)
	w.settled("c1")
	w.changes(infra, func() {
		c := &infra.Spec.InfraComponents
		c.DHCP.ServerIP, c.DNS.ServerIP, c.Proxy.ServerIP, c.DHCP.RangeStart, c.DHCP.RangeEnd = "", "", "", "", ""
	})
	w.settled("c1")
	lease := w.leases("c1", "192.168.100.50")
	dhcp, dns, proxy := named(&v1alpha1.DHCPServer{}, w.ns, "c1-dhcp"), named(&v1alpha1.DNSServer{}, w.ns, "c1-dns"), named(&v1alpha1.ProxyServer{}, w.ns, "c1-proxy")
	read := func(g Gomega) [3]any {
		for _, o := range []client.Object{dhcp, dns, proxy} {
			g.Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
			g.Expect(o.GetLabels()).To(HaveKeyWithValue(names.LabelOwnerUID, string(infra.UID)), "%s is not adopted", o.GetName())
		}
		return [3]any{dhcp.Spec.DeepCopy(), dns.Spec.DeepCopy(), proxy.Spec.DeepCopy()}
	}
	before := read(w)
	w.Expect(dhcp.Spec.LeaseConfig).To(And(HaveField("RangeStart", v1alpha1.IPv4Address("192.168.100.40")), HaveField("RangeEnd", Not(BeEmpty()))))
	w.Expect(string(proxy.Spec.NetworkConfig.ServerIP)).To(Equal("192.168.100.9"))
	backup := w.backup()

	w.Expect(w.api.Delete(w.ctx, infra)).To(Succeed())
	w.gone(infra)
	w.Eventually(func() []string { return w.inventory("c1") }).Should(BeEmpty())
	for _, kind := range backup {
		for _, o := range kind {
			withoutIdentity(o)
			if err := w.api.Create(w.ctx, o); !apierrors.IsAlreadyExists(err) { // Velero skips what the operator has made meanwhile
				w.Expect(err).NotTo(HaveOccurred())
			}
			if restored, is := o.(*v1alpha1.Infra); is {
				infra = restored
				sees(w, proxy, there) // the operator is faster than Velero
			}
		}
	}
	w.Eventually(func(g Gomega) { g.Expect(read(g)).To(Equal(before)) }).Should(Succeed())
	w.settled("c1")
	w.Expect(read(w)).To(Equal(before))
	w.Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(lease), lease)).To(Succeed())
	w.Expect(lease.DeletionTimestamp).To(BeNil())
}

// backup is what the operator and users have in the world's namespaces, by kind and without status, like a backup.
func (w *world) backup() (all [][]client.Object) {
	w.t.Helper()
	for _, list := range inVelerosOrder {
		var kind []client.Object
		for _, namespace := range []string{w.ns, w.controlPlane("c1")} {
			w.Expect(w.api.List(w.ctx, list, client.InNamespace(namespace))).To(Succeed())
			for _, o := range items(list) {
				if o.GetLabels()[names.LabelInfra] != "" || o.GetNamespace() == w.ns {
					kind = append(kind, w.withoutStatus(o))
				}
			}
		}
		all = append(all, kind)
	}
	return all
}

func (w *world) withoutStatus(o client.Object) client.Object {
	w.t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o.DeepCopyObject())
	w.Expect(err).NotTo(HaveOccurred())
	delete(fields, "status")
	kind, err := w.api.GroupVersionKindFor(o)
	w.Expect(err).NotTo(HaveOccurred())
	made, err := w.api.Scheme().New(kind)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(fields, made)).To(Succeed())
	return made.(client.Object)
}
