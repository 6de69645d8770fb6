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
	"github.com/cldmnky/oooi/internal/names"
)

// The API server has HyperShift's own CRD: it refuses what cannot be created, and what cannot be changed.
func TestAHostedClusterIsCreatedForDPUsAndAppliedAgain(t *testing.T) {
	w := newDPUWorld(t)
	w.grants()
	b := w.bridge()
	b.Spec.Networking = &dpuv1.ClusterNetworking{
		ClusterNetwork: []dpuv1.ClusterNetworkEntry{{CIDR: "10.200.0.0/16", HostPrefix: 24}}, MachineNetwork: []dpuv1.NetworkEntry{{CIDR: "10.0.0.0/16"}},
	}
	b.Spec.NodeSelector = map[string]dpuv1.NodeLabelValue{"node-role.kubernetes.io/control-plane": ""}
	w.creates(w.dpuCluster("d1", "example.com/hosted"), b)
	w.hyperShift("b1", "first")
	w.saysOf("b1", dpuv1.ConditionReady, metav1.ConditionTrue, "Ready")
	hc := sees(w.world, named(&hyperv1.HostedCluster{}, w.ns, "b1"), there)
	w.Expect(hc.Spec.Networking).To(And(
		HaveField("AllocateNodeCIDRs", HaveValue(Equal(hyperv1.AllocateNodeCIDRsEnabled))),
		HaveField("ClusterNetwork", ConsistOf(And(HaveField("CIDR.String()", "10.200.0.0/16"), HaveField("HostPrefix", int32(24))))),
		HaveField("ServiceNetwork", ConsistOf(HaveField("CIDR.String()", "172.31.0.0/16"))),
		HaveField("MachineNetwork", ConsistOf(HaveField("CIDR.String()", "10.0.0.0/16")))))
	w.Expect(hc.Spec.Capabilities.Disabled).To(HaveLen(6))
	w.Expect(hc.Spec.NodeSelector).To(Equal(map[string]string{"node-role.kubernetes.io/control-plane": ""}))

	// An admin adds what a bridge has no field for, and it stays (docs/AIRGAP.md#dpus).
	mirrors := []hyperv1.ImageContentSource{{Source: "quay.io/openshift-release-dev", Mirrors: []string{"registry.example.com/openshift-release-dev"}}}
	w.changes(hc, func() { hc.Spec.ImageContentSources = mirrors })
	w.upgrades(hc)
	sees(w.world, hc, func(g Gomega, now *hyperv1.HostedCluster) {
		g.Expect(now.Spec.Networking).To(Equal(hc.Spec.Networking))
		g.Expect(now.Spec.Capabilities).To(Equal(hc.Spec.Capabilities))
		g.Expect(now.Spec.ImageContentSources).To(Equal(mirrors))
	})
}

func TestPodsInDPFsNamespaceMayBePrivileged(t *testing.T) {
	w := newDPUWorld(t)
	hosted, binding := w.clientOf(w.ground.hosted(t).Admin), named(&rbacv1.ClusterRoleBinding{}, "", "dpf-system-scc-privileged")
	w.Expect(client.IgnoreNotFound(hosted.Delete(w.ctx, binding))).To(Succeed()) // another test's, in the hosted cluster that all share
	w.bridged()
	w.hyperShift("b1", "first")
	w.saysOf("b1", dpuv1.ConditionPrivilegedPodsAllowed, metav1.ConditionFalse, "DPFOperatorConfigNotFound")
	w.saysOf("b1", dpuv1.ConditionReady, metav1.ConditionTrue, "Ready")
	theirs := binding.DeepCopy()
	theirs.RoleRef, theirs.Subjects = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}, []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "somebody"}}
	w.Expect(hosted.Create(w.ctx, theirs)).To(Succeed())
	w.creates(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns + "-dpf"}})
	w.runsDPF(w.ns + "-dpf")
	w.Expect(w.saysOf("b1", dpuv1.ConditionPrivilegedPodsAllowed, metav1.ConditionFalse, "NameTaken")).To(ContainSubstring("correct or delete it"))
	w.saysOf("b1", dpuv1.ConditionReady, metav1.ConditionTrue, "Ready")
	w.Expect(hosted.Delete(w.ctx, theirs, client.Preconditions{UID: &theirs.UID, ResourceVersion: &theirs.ResourceVersion})).To(Succeed(), "nobody has touched it")
	w.Expect(w.saysOf("b1", dpuv1.ConditionPrivilegedPodsAllowed, metav1.ConditionTrue, "Granted")).To(ContainSubstring("system:serviceaccounts:" + w.ns + "-dpf"))
	w.Expect(hosted.Get(w.ctx, client.ObjectKeyFromObject(binding), binding)).To(Succeed())
	w.Expect(binding.Subjects).To(ConsistOf(HaveField("Name", "system:serviceaccounts:"+w.ns+"-dpf")))
}

// A HostedCluster of a release before these fields: HyperShift's webhook has made up for them.
func TestAHostedClusterOfAnEarlierReleaseKeepsWhatItHas(t *testing.T) {
	w := newDPUWorld(t)
	w.grants()
	old, key := hostedClusterOf(w.ns, "b1"), w.secret(names.BridgeKey("b1"), "key", "01234567890123456789012345678901")
	old.Spec.Networking.AllocateNodeCIDRs = new(hyperv1.AllocateNodeCIDRsDisabled)
	old.Labels = map[string]string{names.LabelManagedBy: names.ManagedBy, names.LabelBridge: "b1", names.LabelBridgeNamespace: w.ns, names.LabelOwnerUID: "restored"}
	key.Labels = old.Labels
	w.creates(old, key)
	b := w.bridge()
	b.Spec.FlannelEnabled, b.Spec.Networking = new(true), &dpuv1.ClusterNetworking{ServiceNetwork: []dpuv1.NetworkEntry{{CIDR: v1alpha1.CIDR("10.201.0.0/16")}}}
	w.creates(w.dpuCluster("d1", "example.com/hosted"), b)
	w.Expect(w.saysOf("b1", dpuv1.ConditionReady, metav1.ConditionFalse, "HostedClusterDiffers")).To(ContainSubstring("flannelEnabled is true, but HostedCluster " + w.ns + "/b1 was created with false"))
	w.upgrades(old)
	sees(w.world, old, func(g Gomega, now *hyperv1.HostedCluster) {
		g.Expect(now.Spec.Networking).To(Equal(old.Spec.Networking))
		g.Expect(now.Spec.Capabilities.Disabled).To(BeEmpty())
		g.Expect(now.Spec.NodeSelector).To(BeEmpty())
	})
}

// upgrades has the bridge's objects applied again.
func (w dpuWorld) upgrades(hc *hyperv1.HostedCluster) {
	w.t.Helper()
	b := w.bridge()
	w.changes(b, func() { b.Spec.OCPReleaseImage = newRelease })
	now := hc.DeepCopy()
	sees(w.world, now, func(g Gomega, now *hyperv1.HostedCluster) { g.Expect(now.Spec.Release.Image).To(Equal(newRelease)) })
}

func TestNetworksOfTheManagementClusterAreSeen(t *testing.T) {
	w := newDPUWorld(t)
	w.grants()
	b := w.bridge()
	b.Spec.Networking = &dpuv1.ClusterNetworking{ServiceNetwork: []dpuv1.NetworkEntry{{CIDR: "10.0.0.0/25"}}} // the test cluster's own Services have 10.0.0.0/16
	w.creates(w.dpuCluster("d1", "example.com/hosted"), b)
	w.Expect(w.saysOf("b1", dpuv1.ConditionReady, metav1.ConditionFalse, "NetworksOverlap")).To(ContainSubstring("serviceNetwork 10.0.0.0/25 of the hosted cluster overlaps 10.0.0.0/16"))
}
