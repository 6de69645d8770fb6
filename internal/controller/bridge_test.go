package controller_test

import (
	"encoding/base64"
	"testing"

	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/metallb"
	"github.com/cldmnky/oooi/internal/names"
)

// certificateAuthority is any certificate, in base64.
func certificateAuthority(t *testing.T) string {
	t.Helper()
	text, err := hosted(t).Kubeconfig()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	var k struct {
		Clusters []struct {
			Cluster struct {
				CA []byte `json:"certificate-authority-data"`
			}
		}
	}
	NewWithT(t).Expect(yaml.Unmarshal(text, &k)).To(Succeed())
	return base64.StdEncoding.EncodeToString(k.Clusters[0].Cluster.CA)
}

func TestABridgeMakesAHostedClusterAndHandsItsKubeconfigOver(t *testing.T) {
	w := newDPUWorld(t)
	w.bridged()
	hc := sees(w.world, named(&hyperv1.HostedCluster{}, w.ns, "b1"), there)
	w.Expect(hc.OwnerReferences).To(BeEmpty(), "the garbage collector would keep no order")
	w.Expect(hc.Spec.Services[0]).To(Equal(hyperv1.ServicePublishingStrategyMapping{Service: hyperv1.APIServer, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer}}))
	pool := sees(w.world, named(&hyperv1.NodePool{}, w.ns, "b1"), there)
	w.Expect(pool.Spec.Arch).To(Equal("arm64"))
	for _, s := range []struct{ name, key, is string }{{hc.Spec.PullSecret.Name, corev1.DockerConfigJsonKey, `{"auths":{"quay.io":{"auth":"x"}}}`}, {hc.Spec.SSHKey.Name, "id_rsa.pub", sshKey}} {
		w.Expect(string(sees(w.world, named(&corev1.Secret{}, w.ns, s.name), there).Data[s.key])).To(Equal(s.is))
	}
	w.Expect(sees(w.world, named(&corev1.Secret{}, w.ns, hc.Spec.SecretEncryption.AESCBC.ActiveKey.Name), there).Data["key"]).To(HaveLen(32))
	w.Expect(sees(w.world, named(&corev1.ConfigMap{}, w.ns, pool.Spec.Config[0].Name), there).Data["config"]).To(ContainSubstring(osImage))
	vip := sees(w.world, named(&metallb.IPAddressPool{}, "metallb-system", names.Abroad(w.ns, "b1")), there)
	w.Expect(vip.Spec).To(Equal(metallb.PoolSpec{Addresses: []string{"192.0.2.10/32"}, AutoAssign: true, AllocateTo: &metallb.Allocation{Namespaces: []string{w.ns + "-b1"}}}))
	w.Expect(sees(w.world, named(&metallb.L2Advertisement{}, "metallb-system", vip.Name), there).Spec.IPAddressPools).To(Equal([]string{vip.Name}))
	w.saysOf("b1", dpuv1.ConditionHostedClusterAvailable, metav1.ConditionUnknown, dpuv1.ReasonNotReported)
	w.saysOf("b1", dpuv1.ConditionReady, metav1.ConditionFalse, "Provisioning")

	w.hyperShift("b1", "first")
	secret := sees(w.world, w.injected("b1"), there)
	w.Expect(secret.Labels).To(And(HaveKeyWithValue(names.LabelBridge, "b1"), HaveKeyWithValue(names.LabelBridgeNamespace, w.ns), HaveKey(names.LabelOwnerUID)))
	w.Expect(string(secret.Data[dpf.KubeconfigKey])).To(ContainSubstring("token: first"))
	sees(w.world, w.dpuCluster("d1", ""), func(g Gomega, c *dpf.DPUCluster) {
		g.Expect(c.Spec.Kubeconfig).To(Equal(secret.Name))
		g.Expect(meta.IsStatusConditionTrue(c.Status.Conditions, dpf.ConditionCreated)).To(BeTrue())
	})
	w.saysOf("b1", dpuv1.ConditionKubeconfigInjected, metav1.ConditionTrue, "Injected")
	w.saysOf("b1", dpuv1.ConditionHostedClusterAvailable, metav1.ConditionTrue, "AsExpected")
	w.saysOf("b1", dpuv1.ConditionBlueFieldContainerImageAvailable, metav1.ConditionTrue, "Mapped")
	w.saysOf("b1", dpuv1.ConditionMetalLBConfigured, metav1.ConditionTrue, "Configured")

	// Nothing more is written, by this manager or the next, and HyperShift's own fields and Secret stay.
	before := w.silent()
	w.stop()
	w.start()
	w.Expect(w.silent()).To(Equal(before), "written: %v", w.calls.written())
	sees(w.world, hc, func(g Gomega, hc *hyperv1.HostedCluster) { g.Expect(hc.Spec.InfraID).To(Equal("b1-x")) })
	sees(w.world, named(&corev1.Secret{}, w.ns, "b1-admin-kubeconfig"), there)

	w.writesKubeconfig("b1", "second")
	sees(w.world, secret, func(g Gomega, s *corev1.Secret) {
		g.Expect(string(s.Data[dpf.KubeconfigKey])).To(ContainSubstring("token: second"))
	})
}

func TestAReleaseIsUpgradedAndSecretsAreKeptInStep(t *testing.T) {
	w := newDPUWorld(t)
	w.bridged()
	w.hyperShift("b1", "first")
	hc := sees(w.world, named(&hyperv1.HostedCluster{}, w.ns, "b1"), there)
	pool, old := named(&hyperv1.NodePool{}, w.ns, "b1"), hc.Spec.PullSecret.Name
	key := sees(w.world, named(&corev1.Secret{}, w.ns, names.BridgeKey("b1")), there).Data["key"]

	b := w.bridge()
	w.changes(b, func() { b.Spec.OCPReleaseImage = newRelease })
	sees(w.world, hc, func(g Gomega, hc *hyperv1.HostedCluster) { g.Expect(hc.Spec.Release.Image).To(Equal(newRelease)) })
	sees(w.world, pool, func(g Gomega, np *hyperv1.NodePool) { g.Expect(np.Spec.Release.Image).To(Equal(newRelease)) })
	sees(w.world, named(&corev1.ConfigMap{}, w.ns, names.BridgeIgnition("b1")), func(g Gomega, m *corev1.ConfigMap) {
		g.Expect(m.Data["config"]).To(ContainSubstring(newOSImage))
	})

	pull := named(&corev1.Secret{}, w.ns, "pull")
	w.changes(pull, func() { pull.Data[corev1.DockerConfigJsonKey] = []byte(`{"auths":{"quay.io":{"auth":"y"}}}`) })
	sees(w.world, hc, func(g Gomega, hc *hyperv1.HostedCluster) { g.Expect(hc.Spec.PullSecret.Name).NotTo(Equal(old)) })
	sees(w.world, named(&corev1.Secret{}, w.ns, hc.Spec.PullSecret.Name), there)
	w.gone(named(&corev1.Secret{}, w.ns, old))
	w.Expect(sees(w.world, named(&corev1.Secret{}, w.ns, names.BridgeKey("b1")), there).Data["key"]).To(Equal(key))

	// One that vanishes later is said, and tears nothing down.
	w.Expect(w.api.Delete(w.ctx, pull)).To(Succeed())
	w.saysOf("b1", dpuv1.ConditionSecretsValid, metav1.ConditionFalse, "SecretNotFound")
	w.silent()
	sees(w.world, named(&corev1.Secret{}, w.ns, hc.Spec.PullSecret.Name), there)
	w.writesKubeconfig("b1", "second")
	sees(w.world, w.injected("b1"), func(g Gomega, s *corev1.Secret) {
		g.Expect(string(s.Data[dpf.KubeconfigKey])).To(ContainSubstring("token: second"))
	})
}

func TestADeletedBridgeTakesAllAwayInTheSafeOrder(t *testing.T) {
	w := newDPUWorld(t)
	w.bridged()
	dpu := w.dpu("dpu-1", "d1")
	w.creates(dpu)
	w.hyperShift("b1", "first")
	cluster := sees(w.world, w.dpuCluster("d1", ""), func(g Gomega, c *dpf.DPUCluster) { g.Expect(c.Spec.Kubeconfig).NotTo(BeEmpty()) })
	w.saysOf("b1", dpuv1.ConditionKubeconfigInjected, metav1.ConditionTrue, "Injected")

	w.Expect(w.api.Delete(w.ctx, w.bridge())).To(Succeed())
	w.Expect(w.saysOf("b1", dpuv1.ConditionHostedClusterCleanup, metav1.ConditionFalse, dpuv1.ReasonCleanupDPUsAttached)).To(ContainSubstring("dpu-1"))
	w.silent()
	sees(w.world, named(&hyperv1.HostedCluster{}, w.ns, "b1"), func(g Gomega, hc *hyperv1.HostedCluster) { g.Expect(hc.DeletionTimestamp).To(BeNil()) })

	w.Expect(w.api.Delete(w.ctx, dpu)).To(Succeed())
	w.saysOf("b1", dpuv1.ConditionHostedClusterCleanup, metav1.ConditionFalse, dpuv1.ReasonCleanupInProgress)
	sees(w.world, w.injected("b1"), there)
	w.tearsDown("b1")
	w.gone(w.bridge())
	w.Expect(w.left()).To(BeEmpty())
	sees(w.world, cluster, func(g Gomega, c *dpf.DPUCluster) {
		g.Expect(c.Spec.Kubeconfig).To(BeEmpty())
		g.Expect(c.Finalizers).To(BeEmpty())
	})
	w.warned(dpuv1.ReasonCleanupSucceeded)
	w.Expect(client.IgnoreNotFound(w.api.Get(w.ctx, client.ObjectKey{Namespace: w.ns, Name: "pull"}, &corev1.Secret{}))).To(Succeed())
	sees(w.world, named(&corev1.Secret{}, w.ns, "pull"), there)
}
