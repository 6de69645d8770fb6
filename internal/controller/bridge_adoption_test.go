package controller_test

import (
	"testing"

	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// orphaned is what a DPFHCPProvisioner of a name leaves when it is deleted with --cascade=orphan: HostedCluster, NodePool, and the key of etcd.
func (w dpuWorld) orphaned(namespace, name string) []client.Object {
	hc := hostedClusterOf(namespace, name)
	hc.Spec.SecretEncryption = &hyperv1.SecretEncryptionSpec{Type: hyperv1.AESCBC, AESCBC: &hyperv1.AESCBCSpec{ActiveKey: corev1.LocalObjectReference{Name: names.BridgeKey(name)}}}
	hc.Spec.PullSecret.Name = name + "-pull-secret"
	at := metav1.ObjectMeta{Namespace: namespace, Name: name}
	pool := &hyperv1.NodePool{ObjectMeta: at, Spec: hyperv1.NodePoolSpec{
		ClusterName: name, Replicas: ptr.To[int32](0), Release: hyperv1.Release{Image: release}, Arch: hyperv1.ArchitectureARM64,
		Platform: hyperv1.NodePoolPlatform{Type: hyperv1.NonePlatform}, Management: hyperv1.NodePoolManagement{UpgradeType: hyperv1.UpgradeTypeReplace},
	}}
	theirKey := make([]byte, bridge.KeyLength)
	theirKey[0] = 7
	at.Name = names.BridgeKey(name)
	return []client.Object{hc, pool, &corev1.Secret{ObjectMeta: at, Data: map[string][]byte{hyperv1.AESCBCKeySecretKey: theirKey}}}
}

// The one adoption: what a DPFHCPProvisioner has created becomes the bridge's once the garbage collector has orphaned it, and an annotation says
// so. A ConfigMap plays the DPFHCPProvisioner, because an owner's kind does not matter.
func TestAHostedClusterOfAnotherOperatorIsTakenOver(t *testing.T) {
	w := newDPUWorld(t)
	w.grants()
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "dpfhcpprovisioner"}}
	w.creates(owner)
	owned := func(o client.Object) client.Object {
		o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, Controller: ptr.To(true)}})
		return o
	}
	all := w.orphaned(w.ns, "b1")
	hc, pool, key := all[0].(*hyperv1.HostedCluster), all[1].(*hyperv1.NodePool), all[2].(*corev1.Secret)
	theirKey := key.Data[hyperv1.AESCBCKeySecretKey]
	w.creates(w.dpuCluster("d1", "example.com/hosted"), owned(hc), owned(pool), owned(key))
	uid, services := hc.UID, hc.Spec.Services
	w.changes(hc, func() { hc.Annotations = map[string]string{names.AnnotationAdoptBy: w.ns + "/b1"} })
	w.creates(w.bridge())
	w.Expect(w.saysOf("b1", dpuv1.ConditionReady, metav1.ConditionFalse, "HostedClusterTaken")).To(ContainSubstring("delete ConfigMap dpfhcpprovisioner with --cascade=orphan"))

	w.Expect(w.api.Delete(w.ctx, owner, client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
	w.hears(corev1.EventTypeNormal, "HostedClusterAdopted", w.ns+"/b1")
	w.hyperShift("b1", "first")
	w.saysOf("b1", dpuv1.ConditionKubeconfigInjected, metav1.ConditionTrue, "Injected")
	sees(w.world, hc, func(g Gomega, hc *hyperv1.HostedCluster) {
		g.Expect(hc.UID).To(Equal(uid))
		g.Expect(hc.Labels).To(HaveKeyWithValue(names.LabelBridge, "b1"))
		g.Expect(hc.Spec.Services).To(Equal(services))
		g.Expect(hc.Spec.PullSecret.Name).NotTo(Equal("b1-pull-secret"))
		g.Expect(hc.Spec.SecretEncryption.AESCBC.ActiveKey.Name).To(Equal(key.Name))
	})
	sees(w.world, key, func(g Gomega, s *corev1.Secret) {
		g.Expect(s.Data[hyperv1.AESCBCKeySecretKey]).To(Equal(theirKey), "another key would make etcd unreadable")
		g.Expect(s.Labels).To(HaveKeyWithValue(names.LabelBridgeSecret, "true"))
	})
	sees(w.world, pool, func(g Gomega, p *hyperv1.NodePool) { g.Expect(p.Spec.Config).NotTo(BeEmpty()) })
}
