package controller_test

import (
	"testing"

	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/metallb"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/testkit/envtest"
)

// alone has the operator serve bridges only, with no further permission, and MetalLB in a namespace of this test's own.
func (w dpuWorld) alone() (lb string) {
	w.t.Helper()
	w.stop()
	lb = w.ns + "-lb"
	w.creates(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: lb}})
	w.groups.VLAN, w.groups.Bridges.MetalLBNamespace = false, lb
	w.start()
	return lb
}

// grantsSecretsOnly is what config/components/dpu-bridge granted before 2026-11-23: an operator that is upgraded has that.
func (w dpuWorld) grantsSecretsOnly(namespace string) {
	w.t.Helper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "secrets-only"}
	w.creates(
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create", "delete", "get", "list", "patch", "watch"}}}},
		&rbacv1.RoleBinding{ObjectMeta: meta, Subjects: envtest.Managers, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name}},
	)
}

// takesBack removes the Role of config/components/dpu-bridge.
func (w dpuWorld) takesBack() {
	w.t.Helper()
	for _, o := range []client.Object{named(&rbacv1.RoleBinding{}, w.ns, "oooi-dpu-bridge"), named(&rbacv1.Role{}, w.ns, "oooi-dpu-bridge")} {
		w.Expect(w.api.Delete(w.ctx, o)).To(Succeed())
	}
}

// For each namespace in which the operator may not write, one sentence says what grants it, and the operator goes on when that is done.
func TestAMissingRoleIsSaidWithTheCommandThatGrantsIt(t *testing.T) {
	w := newDPUWorld(t)
	lb, cards := w.alone(), w.ns+"-cards"
	w.creates(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cards}})
	w.grantsSecretsOnly(w.ns)
	w.grantsSecretsOnly(cards)
	cluster, b := w.dpuCluster("d1", "example.com/hosted"), w.bridge()
	cluster.Namespace, cluster.Annotations = cards, map[string]string{names.AnnotationAllowedNamespaces: w.ns}
	b.Spec.DPUClusterRef.Namespace = v1alpha1.ObjectName(cards)
	w.creates(cluster, b)
	granting := func(namespace string) string {
		return "the operator may not write what bridges need in namespace " + namespace + ": kubectl apply -n " + namespace + " -k config/components/dpu-bridge, " +
			"or, where Helm installed it, add " + namespace + " to the chart's bridge.namespaces"
	}
	pools := "the operator may not write what bridges need in namespace " + lb + ": kubectl apply -n " + lb + " -k config/components/metallb, " +
		"or, where Helm installed it, name the address's network in the chart's flags.bridge-virtual-ips"
	w.Expect(w.saysOf("b1", dpuv1.ConditionReady, metav1.ConditionFalse, "NamespaceNotGranted")).To(And(ContainSubstring(granting(w.ns)), ContainSubstring(pools)))
	w.Expect(w.saysOf("b1", dpuv1.ConditionIgnitionConfigured, metav1.ConditionFalse, "NamespaceNotGranted")).To(Equal(granting(w.ns)))
	w.Expect(w.saysOf("b1", dpuv1.ConditionMetalLBConfigured, metav1.ConditionFalse, "NamespaceNotGranted")).To(Equal(pools))

	w.appliesRole("metallb", lb)
	w.grants()
	w.saysOf("b1", dpuv1.ConditionMetalLBConfigured, metav1.ConditionTrue, "Configured")
	w.hyperShift("b1", "first")
	w.Expect(w.saysOf("b1", dpuv1.ConditionKubeconfigInjected, metav1.ConditionFalse, "NamespaceNotGranted")).To(Equal(granting(cards)))
	w.appliesRole("dpu-bridge", cards)
	w.saysOf("b1", dpuv1.ConditionKubeconfigInjected, metav1.ConditionTrue, "Injected")
	w.saysOf("b1", dpuv1.ConditionReady, metav1.ConditionTrue, "Ready")

	w.takesBack()
	w.Expect(w.api.Delete(w.ctx, b)).To(Succeed())
	w.Expect(w.saysOf("b1", dpuv1.ConditionHostedClusterCleanup, metav1.ConditionFalse, dpuv1.ReasonCleanupFailed)).To(Equal(granting(w.ns)))
	w.grants()
	w.tearsDown("b1")
	w.gone(b)
	w.Expect(w.left()).To(BeEmpty())
}

// The Roles are enough where nothing else is granted: changes by others are reverted, and their additions are removed.
func TestBridgesAloneNeedTheirRolesOnly(t *testing.T) {
	w := newDPUWorld(t)
	lb := w.alone()
	w.appliesRole("metallb", lb)
	w.bridged()
	w.hyperShift("b1", "first")
	w.saysOf("b1", dpuv1.ConditionReady, metav1.ConditionTrue, "Ready")
	ignition, pool := named(&corev1.ConfigMap{}, w.ns, names.BridgeIgnition("b1")), named(&metallb.IPAddressPool{}, lb, names.Qualified(w.ns, "b1"))
	w.changes(ignition, func() { ignition.Data["more"] = "theirs" })
	sees(w.world, ignition, func(g Gomega, m *corev1.ConfigMap) { g.Expect(m.Data).NotTo(HaveKey("more")) })
	w.changes(pool, func() { pool.Spec.Addresses = append(pool.Spec.Addresses, "192.0.2.20/32") })
	sees(w.world, pool, func(g Gomega, p *metallb.IPAddressPool) { g.Expect(p.Spec.Addresses).To(HaveLen(1)) })
	np := named(&hyperv1.NodePool{}, w.ns, "b1")
	w.changes(np, func() { np.Spec.Release.Image = newRelease })
	sees(w.world, np, func(g Gomega, np *hyperv1.NodePool) { g.Expect(np.Spec.Release.Image).To(Equal(release)) })
	w.Expect(w.api.Delete(w.ctx, w.bridge())).To(Succeed())
	w.tearsDown("b1")
	w.gone(w.bridge())
	w.Expect(w.left()).To(BeEmpty())
}

// Our Secret beside a DPUCluster of another namespace proves that the bridge had it: it goes with it, though it is no longer granted, and even
// if there was no kubeconfig to hand over yet.
func TestABridgeGoesWithADPUClusterOfAnotherNamespace(t *testing.T) {
	for name, handed := range map[string]bool{"that has the kubeconfig": true, "that went before": false} {
		t.Run(name, func(t *testing.T) {
			w := newDPUWorld(t)
			cards := w.ns + "-cards"
			w.creates(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cards}})
			w.grants()
			w.appliesRole("dpu-bridge", cards)
			cluster, b := w.dpuCluster("d1", "example.com/hosted"), w.bridge()
			cluster.Namespace, cluster.Annotations = cards, map[string]string{names.AnnotationAllowedNamespaces: w.ns}
			b.Spec.DPUClusterRef.Namespace, b.Spec.DPUClusterDeletionPolicy = v1alpha1.ObjectName(cards), dpuv1.DeleteHostedCluster
			w.creates(cluster, b)
			if handed {
				w.hyperShift("b1", "first")
				w.saysOf("b1", dpuv1.ConditionReady, metav1.ConditionTrue, "Ready")
			}
			w.saysOf("b1", dpuv1.ConditionDPUClusterBound, metav1.ConditionTrue, "Bound")
			w.silent()
			w.Expect(w.api.Delete(w.ctx, cluster)).To(Succeed())
			if handed { // otherwise HyperShift has added no finalizers
				w.tearsDown("b1")
			}
			w.gone(w.bridge())
			w.gone(named(&hyperv1.HostedCluster{}, w.ns, "b1"))
			w.gone(named(&corev1.Secret{}, cards, names.BridgeKubeconfig(w.ns, "b1")))
		})
	}
}
