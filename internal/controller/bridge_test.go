package controller_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/controller"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/metallb"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/bridge"
	"github.com/cldmnky/oooi/internal/plan/input"
)

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
	vip := sees(w.world, named(&metallb.IPAddressPool{}, "metallb-system", names.Qualified(w.ns, "b1")), there)
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

	// Neither this manager nor the next writes anything more, and HyperShift's own fields and Secret stay.
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

// However long a DPU's name is, and though another was reported before.
func TestEachDPUThatIsLetInIsToldOf(t *testing.T) {
	w := newDPUWorld(t)
	w.bridged()
	long := strings.Repeat("d", 253)
	for _, name := range []string{"dpu-1", long} {
		dpu := w.dpu(name, "d1")
		w.creates(dpu)
		w.reports(dpu, func() {
			dpu.Object["status"] = map[string]any{"phase": "OS Installing", "conditions": []any{map[string]any{
				"type": dpf.ConditionOSInstalled, "status": "True", "reason": "Installed", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
			}}}
		})
		w.Eventually(time.Now).Should(BeTemporally(">", dpu.GetCreationTimestamp().Add(6*time.Second)), "what was asked before may be of an earlier DPU's (csr, AskedInItsLife)")
		w.asksToJoin(name, name)
	}
	w.hyperShift("b1", "first")
	w.hears(corev1.EventTypeNormal, "DPUMayJoin", "certificate request dpu-1 of dpu-1 is approved: DPUHCPBridge "+w.ns+"/b1: ")
	w.hears(corev1.EventTypeNormal, "DPUMayJoin", "certificate request "+long+" of "+long+" is approved: DPUHCPBridge "+w.ns+"/b1: ")
	w.asksToJoin("stranger", "stranger")
	sees(w.world, w.bridge(), func(g Gomega, b *dpuv1.DPUHCPBridge) {
		var told []string
		for _, r := range b.Status.CertificateRequests {
			told = append(told, fmt.Sprintf("%s of %s (%s) approved=%t %s", r.Name, r.Host, r.Kind, r.ApprovalTime != nil, r.RefusedBy))
			g.Expect(r.CreationTime.Time).To(BeTemporally("~", time.Now(), time.Minute))
		}
		g.Expect(told).To(ConsistOf("stranger of stranger (Bootstrap) approved=false DPUOfThisCluster", "dpu-1 of dpu-1 (Bootstrap) approved=true ", long+" of "+long+" (Bootstrap) approved=true "))
		g.Expect(told[0]).To(HavePrefix("stranger"), "what waits comes first")
	})
}

// A second request in a DPU's name, with another key than the approved one.
func TestAStrangersRequestInADPUsNameIsToldOf(t *testing.T) {
	w := newDPUWorld(t)
	w.bridged()
	w.creates(w.dpu("dpu-1", "d1"))
	w.Eventually(time.Now).Should(BeTemporally(">", sees(w.world, w.dpu("dpu-1", "d1"), there).GetCreationTimestamp().Add(6*time.Second)), "what was asked before may be of an earlier DPU's (csr, AskedInItsLife)")
	w.asksToJoin("first", "dpu-1")
	w.asksToJoin("second", "dpu-1")
	w.hyperShift("b1", "first")
	w.warned("KeysDiffer", "bootstrap requests for DPU "+w.ns+"/dpu-1 carry 2 different keys: ")
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
	w.silent()
	for _, name := range []string{hc.Spec.PullSecret.Name, hc.Spec.SSHKey.Name} {
		w.Expect(w.api.Delete(w.ctx, named(&corev1.Secret{}, w.ns, name))).To(Succeed())
		sees(w.world, named(&corev1.Secret{}, w.ns, name), there)
	}
	w.Expect(sees(w.world, named(&corev1.Secret{}, w.ns, names.BridgeKey("b1")), there).Data["key"]).To(Equal(key))

	// A pull secret that vanishes later is reported, and nothing is torn down.
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
	b := w.bridge()
	w.changes(b, func() { b.Finalizers = append(b.Finalizers, "example.com/kept") }) // to see what is said last

	w.Expect(w.api.Delete(w.ctx, w.bridge())).To(Succeed())
	w.Expect(w.saysOf("b1", dpuv1.ConditionHostedClusterCleanup, metav1.ConditionFalse, dpuv1.ReasonCleanupDPUsAttached)).To(ContainSubstring("dpu-1"))
	w.wire.setCut(true)
	dialed := w.dials()
	w.silent()
	w.Expect(w.dials()).To(Equal(dialed), "nobody approves any more")
	w.wire.setCut(false)
	hc := sees(w.world, named(&hyperv1.HostedCluster{}, w.ns, "b1"), func(g Gomega, hc *hyperv1.HostedCluster) { g.Expect(hc.DeletionTimestamp).To(BeNil()) })
	w.reports(hc, func() {
		meta.SetStatusCondition(&hc.Status.Conditions, metav1.Condition{Type: string(hyperv1.HostedClusterAvailable), Status: metav1.ConditionFalse, Reason: "EtcdDown"})
	})
	w.saysOf("b1", dpuv1.ConditionHostedClusterAvailable, metav1.ConditionFalse, "EtcdDown")
	w.staysWithDPF("b1")

	w.Expect(w.api.Delete(w.ctx, dpu)).To(Succeed())
	w.saysOf("b1", dpuv1.ConditionHostedClusterCleanup, metav1.ConditionFalse, dpuv1.ReasonCleanupInProgress)
	sees(w.world, w.injected("b1"), there)
	w.tearsDown("b1")
	w.saysOf("b1", dpuv1.ConditionHostedClusterCleanup, metav1.ConditionTrue, dpuv1.ReasonCleanupSucceeded)
	sees(w.world, b, func(g Gomega, b *dpuv1.DPUHCPBridge) {
		g.Expect(b.Finalizers).To(Equal([]string{"example.com/kept"}))
		for _, m := range bridge.Mirrored {
			g.Expect(meta.FindStatusCondition(b.Status.Conditions, m.Ours)).To(BeNil(), "it was the HostedCluster's: %s", m.Ours)
		}
	})
	w.changes(b, func() { b.Finalizers = nil })
	w.gone(w.bridge())
	w.Expect(w.left()).To(BeEmpty())
	sees(w.world, cluster, func(g Gomega, c *dpf.DPUCluster) {
		g.Expect(c.Spec.Kubeconfig).To(BeEmpty())
		g.Expect(c.Finalizers).To(BeEmpty())
	})
	w.hears(corev1.EventTypeNormal, dpuv1.ReasonCleanupSucceeded, "everything created for it are gone")
	w.Expect(client.IgnoreNotFound(w.api.Get(w.ctx, client.ObjectKey{Namespace: w.ns, Name: "pull"}, &corev1.Secret{}))).To(Succeed())
	sees(w.world, named(&corev1.Secret{}, w.ns, "pull"), there)
}

// staysWithDPF checks that a rotated or lost kubeconfig reaches DPF within 10 s, also from a manager that remembers nothing.
func (w dpuWorld) staysWithDPF(name string) {
	w.t.Helper()
	secret := w.injected(name)
	has := func(token string) {
		w.t.Helper()
		w.Eventually(func(g Gomega) {
			g.Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(secret), secret)).To(Succeed())
			g.Expect(string(secret.Data[dpf.KubeconfigKey])).To(ContainSubstring("token: " + token))
		}).WithTimeout(10 * time.Second).Should(Succeed())
	}
	passes := func() int { return w.passes(&dpuv1.DPUHCPBridge{}) }
	before := passes()
	w.stop()
	w.start()
	w.Eventually(passes).Should(BeNumerically(">", before), "the new manager is at work")
	w.quiet(passes, "it does not wait, or asks somebody")
	w.writesKubeconfig(name, "second")
	has("second")
	w.Expect(w.api.Delete(w.ctx, secret)).To(Succeed())
	has("second")
}

func TestABridgeSaysWhatIsMissingAndGoesOnByItself(t *testing.T) {
	w := newDPUWorld(t)
	b := w.bridge()
	b.Spec.EtcdStorageClass = v1alpha1.ObjectName(w.ns + "-slow")
	mapping, pull := named(&corev1.ConfigMap{}, "oooi-system", w.ns+"-images"), named(&corev1.Secret{}, w.ns, "pull")
	w.Expect(w.api.Delete(w.ctx, mapping)).To(Succeed())
	w.creates(b)
	w.saysOf("b1", dpuv1.ConditionDPUClusterBound, metav1.ConditionFalse, "DPUClusterNotFound")
	w.Expect(w.saysOf("b1", dpuv1.ConditionSecretsValid, metav1.ConditionFalse, "NamespaceNotGranted")).To(ContainSubstring("kubectl apply -n " + w.ns + " -k config/components/dpu-bridge"))
	w.saysOf("b1", dpuv1.ConditionBlueFieldContainerImageAvailable, metav1.ConditionFalse, "MappingNotFound")
	w.saysOf("b1", dpuv1.ConditionReady, metav1.ConditionFalse, "StorageClassNotFound")

	w.creates(w.dpuCluster("d1", "example.com/hosted"))
	w.saysOf("b1", dpuv1.ConditionDPUClusterBound, metav1.ConditionTrue, "Bound")
	w.Expect(w.api.Delete(w.ctx, pull)).To(Succeed())
	w.grants()
	w.saysOf("b1", dpuv1.ConditionSecretsValid, metav1.ConditionFalse, "SecretNotFound")
	w.creates(w.secret("pull", corev1.DockerConfigJsonKey, `{"auths":{}}`))
	w.saysOf("b1", dpuv1.ConditionSecretsValid, metav1.ConditionFalse, "SecretInvalid")
	w.changes(pull, func() { pull.Data[corev1.DockerConfigJsonKey] = []byte(`{"auths":{"quay.io":{"auth":"x"}}}`) })
	w.saysOf("b1", dpuv1.ConditionSecretsValid, metav1.ConditionTrue, "Valid")
	w.creates(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "oooi-system", Name: w.ns + "-images"}, Data: map[string]string{"4.20.3": osImage}})
	w.saysOf("b1", dpuv1.ConditionBlueFieldContainerImageAvailable, metav1.ConditionFalse, "ImageNotMapped")
	w.changes(mapping, func() { mapping.Data["4.20.4"] = osImage })
	w.saysOf("b1", dpuv1.ConditionBlueFieldContainerImageAvailable, metav1.ConditionTrue, "Mapped")
	w.saysOf("b1", dpuv1.ConditionMetalLBConfigured, metav1.ConditionUnknown, "NotEvaluated")
	w.Expect(w.left()).To(BeEmpty())

	slow := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: w.ns + "-slow"}, Provisioner: "example.com/slow"}
	w.creates(slow)
	w.t.Cleanup(func() { w.Expect(w.api.Delete(context.Background(), slow)).To(Succeed()) })
	w.saysOf("b1", dpuv1.ConditionMetalLBConfigured, metav1.ConditionTrue, "Configured")
	w.saysOf("b1", dpuv1.ConditionIgnitionConfigured, metav1.ConditionTrue, "Configured")
	w.saysOf("b1", dpuv1.ConditionKubeconfigInjected, metav1.ConditionFalse, "WaitingForKubeconfig")
	w.saysOf("b1", dpuv1.ConditionCSRAutoApprovalActive, metav1.ConditionFalse, "WaitingForKubeconfig")
	w.hyperShift("b1", "first")
	w.saysOf("b1", dpuv1.ConditionKubeconfigInjected, metav1.ConditionTrue, "Injected")
	w.saysOf("b1", dpuv1.ConditionCSRAutoApprovalActive, metav1.ConditionTrue, "Watching")
	w.saysOf("b1", dpuv1.ConditionReady, metav1.ConditionTrue, "Ready")

	w.wire.setCut(true)
	w.saysOf("b1", dpuv1.ConditionCSRAutoApprovalActive, metav1.ConditionFalse, input.GuestUnreachable)
	w.wire.setCut(false)
	w.saysOf("b1", dpuv1.ConditionCSRAutoApprovalActive, metav1.ConditionTrue, "Watching")
	source := named(&corev1.Secret{}, w.ns, "b1-admin-kubeconfig")
	w.changes(source, func() { source.Data["kubeconfig"] = []byte("users: [{name: u, user: {exec: {command: sh}}}]") })
	w.saysOf("b1", dpuv1.ConditionKubeconfigInjected, metav1.ConditionFalse, "KubeconfigRefused")
	w.Expect(string(sees(w.world, w.injected("b1"), there).Data[dpf.KubeconfigKey])).NotTo(ContainSubstring("exec"))

	pool := named(&hyperv1.NodePool{}, w.ns, "b1")
	refuses := func(kind string, status corev1.ConditionStatus) {
		w.reports(pool, func() {
			pool.Status.Conditions = []hyperv1.NodePoolCondition{{Type: kind, Status: status, Reason: "InvalidPlatform", Message: "no", LastTransitionTime: metav1.Now()}}
		})
	}
	refuses(hyperv1.NodePoolValidMachineConfigConditionType, corev1.ConditionFalse)
	w.saysOf("b1", dpuv1.ConditionIgnitionConfigured, metav1.ConditionFalse, "MachineConfigRefused")
	refuses(hyperv1.NodePoolValidArchPlatform, corev1.ConditionFalse)
	w.saysOf("b1", dpuv1.ConditionReady, metav1.ConditionFalse, "ReleaseNotForARM64")
	refuses(hyperv1.NodePoolValidArchPlatform, corev1.ConditionTrue)
	w.saysOf("b1", dpuv1.ConditionIgnitionConfigured, metav1.ConditionTrue, "Configured")
}

func TestWhatIsNotInstalledIsNamedAndNoticedWhenItIs(t *testing.T) {
	w := dpuWorldIn(newBareWorld(t))
	w.grants()
	w.creates(w.bridge())
	w.Expect(w.saysOf("b1", dpuv1.ConditionDPUClusterBound, metav1.ConditionFalse, "DPFNotInstalled")).To(ContainSubstring("install the DPF operator"))
	w.Expect(w.saysOf("b1", dpuv1.ConditionReady, metav1.ConditionFalse, "HyperShiftNotInstalled")).To(ContainSubstring("MCE"))
	w.saysOf("b1", dpuv1.ConditionMetalLBConfigured, metav1.ConditionFalse, "MetalLBNotInstalled")

	// In another version they are missing too, and the message says which version is needed.
	w.offers("v9", "DPUCluster."+dpf.GroupVersion.Group, "HostedCluster."+hyperv1.GroupVersion.Group, "IPAddressPool."+metallb.GroupVersion.Group)
	w.Consistently(func(g Gomega) {
		for condition, reason := range map[string]string{dpuv1.ConditionDPUClusterBound: "DPFNotInstalled", dpuv1.ConditionReady: "HyperShiftNotInstalled", dpuv1.ConditionMetalLBConfigured: "MetalLBNotInstalled"} {
			g.Expect(w.saysOf("b1", condition, metav1.ConditionFalse, reason)).To(MatchRegexp(`\([a-z.]+/v1(alpha|beta)1\): install`))
		}
	}, 2*controller.LookEvery, time.Second).Should(Succeed())
	w.uninstalls(dpf.GroupVersion.Group, hyperv1.GroupVersion.Group, metallb.GroupVersion.Group)

	w.Expect(w.cluster.InstallForeign()).To(Succeed())
	w.creates(w.dpuCluster("d1", "example.com/hosted"))
	w.saysOf("b1", dpuv1.ConditionDPUClusterBound, metav1.ConditionTrue, "Bound")
	w.saysOf("b1", dpuv1.ConditionMetalLBConfigured, metav1.ConditionTrue, "Configured")
	sees(w.world, named(&hyperv1.HostedCluster{}, w.ns, "b1"), there)

	// If their CRDs are removed again, all are reported as missing, and noticed when they are back.
	w.uninstalls(dpf.GroupVersion.Group, hyperv1.GroupVersion.Group, metallb.GroupVersion.Group)
	w.saysOf("b1", dpuv1.ConditionDPUClusterBound, metav1.ConditionFalse, "DPFNotInstalled")
	w.saysOf("b1", dpuv1.ConditionReady, metav1.ConditionFalse, "HyperShiftNotInstalled")
	w.saysOf("b1", dpuv1.ConditionMetalLBConfigured, metav1.ConditionFalse, "MetalLBNotInstalled")
	w.silent()
	w.Expect(w.cluster.InstallForeign()).To(Succeed())
	w.creates(w.dpuCluster("d1", "example.com/hosted"))
	w.saysOf("b1", dpuv1.ConditionDPUClusterBound, metav1.ConditionTrue, "Bound")
	w.saysOf("b1", dpuv1.ConditionMetalLBConfigured, metav1.ConditionTrue, "Configured")
	w.hyperShift("b1", "first")
	w.saysOf("b1", dpuv1.ConditionReady, metav1.ConditionTrue, "Ready")

	// Missing kinds do not block a bridge's deletion, unless their objects exist and cannot be read.
	w.uninstalls(dpf.GroupVersion.Group, metallb.GroupVersion.Group)
	w.offers("v9", "DPU."+dpf.GroupVersion.Group)
	w.Expect(w.api.Delete(w.ctx, w.bridge())).To(Succeed())
	w.Expect(w.saysOf("b1", dpuv1.ConditionHostedClusterCleanup, metav1.ConditionFalse, dpuv1.ReasonCleanupFailed)).
		To(ContainSubstring("serves DPU as %s/v9, and the operator reads %s", dpf.GroupVersion.Group, dpf.GroupVersion))
	sees(w.world, named(&hyperv1.HostedCluster{}, w.ns, "b1"), func(g Gomega, hc *hyperv1.HostedCluster) { g.Expect(hc.DeletionTimestamp).To(BeNil()) })
	w.uninstalls(dpf.GroupVersion.Group)
	w.tearsDown("b1")
	w.gone(w.bridge())
}

// offers installs kinds, each as Kind.group, in one version only.
func (w dpuWorld) offers(version string, kinds ...string) {
	w.t.Helper()
	for _, k := range kinds {
		kind, group, _ := strings.Cut(k, ".")
		plural := strings.ToLower(kind) + "s"
		w.Expect(w.cluster.Install(&apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group}, Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped, Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, Plural: plural},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}},
			}},
		}})).To(Succeed())
	}
}

// uninstalls removes the CRDs of groups, and with them their objects.
func (w dpuWorld) uninstalls(groups ...string) {
	w.t.Helper()
	all := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinitionList"}}
	w.Expect(w.api.List(w.ctx, all)).To(Succeed())
	for i := range all.Items {
		_, group, _ := strings.Cut(all.Items[i].GetName(), ".")
		if slices.Contains(groups, group) {
			w.Expect(w.api.Delete(w.ctx, &all.Items[i])).To(Succeed())
			w.gone(&all.Items[i])
		}
	}
}

func TestEveryConditionOfTheHostedClusterIsShown(t *testing.T) {
	w := newDPUWorld(t)
	w.bridged()
	hc := sees(w.world, named(&hyperv1.HostedCluster{}, w.ns, "b1"), there)
	for _, status := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse} {
		w.reports(hc, func() {
			hc.Status.Conditions = nil
			for _, m := range bridge.Mirrored {
				meta.SetStatusCondition(&hc.Status.Conditions, metav1.Condition{Type: m.Theirs, Status: status, Reason: "Its" + m.Theirs, Message: "so"})
			}
		})
		for _, m := range bridge.Mirrored {
			w.Expect(w.saysOf("b1", m.Ours, status, "Its"+m.Theirs)).To(Equal("so"))
		}
	}
	w.Expect(bridge.Mirrored).To(HaveLen(13))

	// A HostedCluster that somebody deletes is recreated, and that is reported; until then its conditions are not mirrored.
	w.changes(hc, func() { controllerutil.AddFinalizer(hc, finalizer) })
	uid := hc.UID
	w.Expect(w.api.Delete(w.ctx, hc)).To(Succeed())
	w.changes(hc, func() { controllerutil.RemoveFinalizer(hc, finalizer) })
	sees(w.world, named(&hyperv1.HostedCluster{}, w.ns, "b1"), func(g Gomega, hc *hyperv1.HostedCluster) { g.Expect(hc.UID).NotTo(Equal(uid)) })
	w.warned("HostedClusterRecreated", "not by this bridge")
	w.saysOf("b1", dpuv1.ConditionHostedClusterAvailable, metav1.ConditionUnknown, dpuv1.ReasonNotReported)
}

func TestWhatSomebodyChangesIsPutBackAndSaid(t *testing.T) {
	w := newDPUWorld(t)
	w.bridged()
	w.hyperShift("b1", "first")
	w.saysOf("b1", dpuv1.ConditionReady, metav1.ConditionTrue, "Ready")
	name := names.Qualified(w.ns, "b1")
	pool := sees(w.world, named(&metallb.IPAddressPool{}, "metallb-system", name), there)
	w.changes(pool, func() { pool.Spec.Addresses = []string{"192.0.2.0/24"} })
	sees(w.world, pool, func(g Gomega, p *metallb.IPAddressPool) {
		g.Expect(p.Spec.Addresses).To(Equal([]string{"192.0.2.10/32"}))
	})
	w.warned("DriftCorrected", "IPAddressPool metallb-system/"+name)
	w.Expect(w.api.Delete(w.ctx, named(&metallb.L2Advertisement{}, "metallb-system", name))).To(Succeed())
	sees(w.world, named(&metallb.L2Advertisement{}, "metallb-system", name), there)
	w.warned("DriftCorrected", "L2Advertisement metallb-system/"+name)
	ignition := sees(w.world, named(&corev1.ConfigMap{}, w.ns, names.BridgeIgnition("b1")), there)
	w.changes(ignition, func() { ignition.Data["config"] = "{}" })
	sees(w.world, ignition, func(g Gomega, m *corev1.ConfigMap) { g.Expect(m.Data["config"]).To(ContainSubstring(osImage)) })
	w.warned("DriftCorrected", "ConfigMap "+w.ns+"/"+ignition.Name)
	injected := w.injected("b1")
	w.changes(injected, func() { injected.Data[dpf.KubeconfigKey] = []byte("mine") })
	sees(w.world, injected, func(g Gomega, s *corev1.Secret) {
		g.Expect(string(s.Data[dpf.KubeconfigKey])).To(ContainSubstring("token: first"))
	})
	hc := named(&hyperv1.HostedCluster{}, w.ns, "b1")
	w.changes(hc, func() { hc.Spec.Release.Image = newRelease })
	sees(w.world, hc, func(g Gomega, hc *hyperv1.HostedCluster) { g.Expect(hc.Spec.Release.Image).To(Equal(release)) })
}

func TestWhatIsSomebodyElsesIsLeftAlone(t *testing.T) {
	w := newDPUWorld(t)
	w.grants()
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: names.BridgeKubeconfig(w.ns, "b1")}, Data: map[string][]byte{"a": []byte("b")}}
	pool := named(&metallb.IPAddressPool{Spec: metallb.PoolSpec{Addresses: []string{"192.0.2.10/32"}}}, "metallb-system", names.Qualified(w.ns, "b1"))
	ignition := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: names.BridgeIgnition("b1")}, Data: map[string]string{"config": "theirs"}}
	hc := hostedClusterOf(w.ns, "b2")
	w.creates(w.dpuCluster("d1", "example.com/hosted"), w.dpuCluster("d2", "example.com/hosted"), theirs, pool, ignition, hc, w.bridge())
	b2 := w.bridge()
	b2.Name, b2.Spec.DPUClusterRef.Name = "b2", "d2"
	w.creates(b2)
	w.saysOf("b2", dpuv1.ConditionReady, metav1.ConditionFalse, "HostedClusterTaken")
	w.hyperShift("b1", "first")
	w.saysOf("b1", dpuv1.ConditionKubeconfigInjected, metav1.ConditionFalse, "NameTaken")
	w.Expect(w.saysOf("b1", dpuv1.ConditionMetalLBConfigured, metav1.ConditionFalse, "NameTaken")).To(ContainSubstring(pool.Name))
	w.saysOf("b1", dpuv1.ConditionIgnitionConfigured, metav1.ConditionFalse, "NameTaken")
	w.saysOf("b1", dpuv1.ConditionReady, metav1.ConditionFalse, "NameTaken")
	w.silent()
	sees(w.world, ignition, func(g Gomega, m *corev1.ConfigMap) { g.Expect(m.Data).To(HaveKeyWithValue("config", "theirs")) })
	sees(w.world, pool, func(g Gomega, p *metallb.IPAddressPool) {
		g.Expect(p.Spec).To(Equal(metallb.PoolSpec{Addresses: []string{"192.0.2.10/32"}}))
	})
	sees(w.world, theirs, func(g Gomega, s *corev1.Secret) { g.Expect(s.Data).To(HaveKey("a")) })
	sees(w.world, w.dpuCluster("d1", ""), func(g Gomega, c *dpf.DPUCluster) { g.Expect(c.Spec.Kubeconfig).To(BeEmpty()) })
	w.Expect(w.api.Delete(w.ctx, b2)).To(Succeed())
	w.gone(b2)
	sees(w.world, named(&hyperv1.HostedCluster{}, w.ns, "b2"), func(g Gomega, now *hyperv1.HostedCluster) {
		g.Expect(now.ResourceVersion).To(Equal(hc.ResourceVersion))
	})
	w.Expect(w.api.Delete(w.ctx, theirs)).To(Succeed())
	w.saysOf("b1", dpuv1.ConditionKubeconfigInjected, metav1.ConditionTrue, "Injected")
}

func hostedClusterOf(namespace, name string) *hyperv1.HostedCluster {
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	hc.Spec.Platform.Type, hc.Spec.Release.Image, hc.Spec.PullSecret.Name = hyperv1.NonePlatform, release, "pull"
	hc.Spec.DNS.BaseDomain, hc.Spec.Networking.NetworkType = "example.com", hyperv1.Other
	hc.Spec.Etcd = hyperv1.EtcdSpec{ManagementType: hyperv1.Managed, Managed: &hyperv1.ManagedEtcdSpec{Storage: hyperv1.ManagedEtcdStorageSpec{Type: hyperv1.PersistentVolumeEtcdStorage}}}
	for _, s := range []hyperv1.ServiceType{hyperv1.APIServer, hyperv1.OAuthServer, hyperv1.Konnectivity, hyperv1.Ignition} {
		hc.Spec.Services = append(hc.Spec.Services, hyperv1.ServicePublishingStrategyMapping{Service: s, ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{Type: hyperv1.LoadBalancer}})
	}
	return hc
}

func TestOfTwoBridgesForOneDPUClusterOneWins(t *testing.T) {
	w := newDPUWorld(t)
	w.grants()
	second := w.bridge()
	second.Name = "b2"
	w.creates(w.dpuCluster("d1", "example.com/hosted"), w.bridge(), second)
	winner, loser := "b1", "b2"
	w.Eventually(func(g Gomega) {
		g.Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(second), second)).To(Succeed())
		c := meta.FindStatusCondition(second.Status.Conditions, dpuv1.ConditionDPUClusterBound)
		g.Expect(c).NotTo(BeNil())
		if c.Status == metav1.ConditionTrue { // both are made in the same second, so b2 may be the first
			winner, loser = "b2", "b1"
		}
	}).Should(Succeed())
	w.Expect(w.saysOf(loser, dpuv1.ConditionDPUClusterBound, metav1.ConditionFalse, "DPUClusterTaken")).To(ContainSubstring("d1"))
	w.saysOf(winner, dpuv1.ConditionDPUClusterBound, metav1.ConditionTrue, "Bound")
	sees(w.world, named(&hyperv1.HostedCluster{}, w.ns, winner), there)
	w.hyperShift(winner, "first")
	w.saysOf(winner, dpuv1.ConditionKubeconfigInjected, metav1.ConditionTrue, "Injected")
	before := w.silent()
	w.Expect(w.left()).NotTo(ContainElement(ContainSubstring(loser)))

	// Deleting the loser writes nothing to the winner; another bridge is bound when the winner is gone.
	w.Expect(w.api.Delete(w.ctx, named(&dpuv1.DPUHCPBridge{}, w.ns, loser))).To(Succeed())
	w.gone(named(&dpuv1.DPUHCPBridge{}, w.ns, loser))
	for _, call := range w.calls.written()[before:] {
		w.Expect(call).To(ContainSubstring(loser))
	}
	third := w.bridge()
	third.Name = "b3"
	w.creates(third)
	w.saysOf("b3", dpuv1.ConditionDPUClusterBound, metav1.ConditionFalse, "DPUClusterTaken")
	w.Expect(w.api.Delete(w.ctx, named(&dpuv1.DPUHCPBridge{}, w.ns, winner))).To(Succeed())
	w.tearsDown(winner)
	w.saysOf("b3", dpuv1.ConditionDPUClusterBound, metav1.ConditionTrue, "Bound")
}

// A bridge that works is never disturbed: not by an older one that is granted later, nor by a restart.
func TestABridgeThatWorksGivesWayToNoOlderOne(t *testing.T) {
	w := newDPUWorld(t)
	w.grants()
	elder := w.bridge()
	elder.Namespace, elder.Spec.DPUClusterRef.Namespace = w.ns+"-elder", v1alpha1.ObjectName(w.ns)
	w.creates(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: elder.Namespace}}, elder)
	says := func(reason string) {
		t.Helper()
		sees(w.world, elder, func(g Gomega, b *dpuv1.DPUHCPBridge) {
			g.Expect(b.Status.Conditions).To(ContainElement(And(HaveField("Type", dpuv1.ConditionDPUClusterBound), HaveField("Reason", reason))))
		})
	}
	says("RefNotPermitted")
	w.Eventually(time.Now).Should(BeTemporally(">", elder.CreationTimestamp.Add(time.Second)), "creation is told to the second")
	cluster := w.dpuCluster("d1", "example.com/hosted")
	w.creates(cluster, w.bridge())
	w.saysOf("b1", dpuv1.ConditionDPUClusterBound, metav1.ConditionTrue, "Bound")
	w.changes(cluster, func() {
		cluster.Annotations = map[string]string{names.AnnotationAllowedNamespaces: elder.Namespace}
	})
	says("DPUClusterTaken")
	w.hyperShift("b1", "first")
	w.saysOf("b1", dpuv1.ConditionReady, metav1.ConditionTrue, "Ready")
	before := w.silent()
	w.stop()
	w.start()
	w.Expect(w.silent()).To(Equal(before), "written: %v", w.calls.written())
	w.Expect(w.api.Delete(w.ctx, elder)).To(Succeed())
	w.gone(elder)
}

func TestApprovalEndsWithTheDPUClusterThoughASecretCannotBeRead(t *testing.T) {
	w := newDPUWorld(t)
	w.bridged()
	w.hyperShift("b1", "first")
	w.saysOf("b1", dpuv1.ConditionReady, metav1.ConditionTrue, "Ready")
	w.Expect(w.wire.connections()).NotTo(BeZero())
	w.faults.hide("/secrets/pull")
	w.Expect(w.api.Delete(w.ctx, w.dpuCluster("d1", ""))).To(Succeed())
	w.Eventually(w.wire.connections).Should(BeZero(), "the hosted cluster's requests are followed")
	w.faults.hide("")
	w.saysOf("b1", dpuv1.ConditionCSRAutoApprovalActive, metav1.ConditionFalse, "DPUClusterDeleted")
}

func TestABridgeByNodePortsIsReadyWhileTheirNodeIs(t *testing.T) {
	w := newDPUWorld(t)
	w.grants()
	b := w.bridge()
	b.Spec.ExposeThroughLoadBalancer, b.Spec.MetalLBVirtualIP = false, ""
	w.creates(w.dpuCluster("d1", "example.com/hosted"), b)
	w.hyperShift("b1", "first")
	w.saysOf("b1", dpuv1.ConditionReady, metav1.ConditionTrue, "Ready")
	w.silent()
	turns := func(ready corev1.ConditionStatus) {
		node := named(&corev1.Node{}, "", "publishes")
		w.reports(node, func() { node.Status.Conditions[0].Status = ready })
	}
	turns(corev1.ConditionFalse)
	w.Expect(w.saysOf("b1", dpuv1.ConditionReady, metav1.ConditionFalse, "NodeAddressNotFound")).To(ContainSubstring("reached at 10.0.0.1"))
	turns(corev1.ConditionTrue)
	w.saysOf("b1", dpuv1.ConditionReady, metav1.ConditionTrue, "Ready")
}

func TestAPolicySaysWhatGoesWithTheDPUCluster(t *testing.T) {
	w := newDPUWorld(t)
	w.bridged()
	w.hyperShift("b1", "first")
	w.saysOf("b1", dpuv1.ConditionReady, metav1.ConditionTrue, "Ready")
	w.Expect(w.api.Delete(w.ctx, w.dpuCluster("d1", ""))).To(Succeed())
	w.saysOf("b1", dpuv1.ConditionReady, metav1.ConditionFalse, "DPUClusterDeleted")
	w.saysOf("b1", dpuv1.ConditionCSRAutoApprovalActive, metav1.ConditionFalse, "DPUClusterDeleted")
	w.warned("DPUClusterDeleted", "")
	w.silent()
	sees(w.world, named(&hyperv1.HostedCluster{}, w.ns, "b1"), func(g Gomega, hc *hyperv1.HostedCluster) { g.Expect(hc.DeletionTimestamp).To(BeNil()) })

	// A recreated DPUCluster is bound again, but not one with another kubeconfig or type.
	again := w.dpuCluster("d1", "example.com/hosted")
	again.Spec.Kubeconfig = "mine"
	w.creates(again)
	w.saysOf("b1", dpuv1.ConditionDPUClusterBound, metav1.ConditionFalse, "KubeconfigTaken")
	w.Expect(w.api.Delete(w.ctx, again)).To(Succeed())
	w.creates(w.dpuCluster("d1", "example.com/other"))
	w.saysOf("b1", dpuv1.ConditionDPUClusterBound, metav1.ConditionFalse, "TypeMismatch")
	w.Expect(w.api.Delete(w.ctx, again)).To(Succeed())
	w.creates(w.dpuCluster("d1", "example.com/hosted"))
	w.saysOf("b1", dpuv1.ConditionReady, metav1.ConditionTrue, "Ready")
	sees(w.world, w.dpuCluster("d1", ""), func(g Gomega, c *dpf.DPUCluster) {
		g.Expect(c.Spec.Kubeconfig).To(Equal(names.BridgeKubeconfig(w.ns, "b1")))
	})

	b := w.bridge()
	w.changes(b, func() { b.Spec.DPUClusterDeletionPolicy = dpuv1.DeleteHostedCluster })
	w.saysOf("b1", dpuv1.ConditionReady, metav1.ConditionTrue, "Ready")
	w.Expect(w.api.Delete(w.ctx, w.dpuCluster("d1", ""))).To(Succeed())
	w.tearsDown("b1")
	w.gone(w.bridge())
	w.Expect(w.left()).To(BeEmpty())
}

// The deletion rests on the bridge's status, which says that it was bound: no write may change that before the bridge is deleted.
func TestABridgeThatGoesWithItsDPUClusterGoesThoughItsDeletionFailsAtFirst(t *testing.T) {
	w := newDPUWorld(t)
	w.grants()
	b := w.numberedBridge(1)
	b.Spec.DPUClusterDeletionPolicy = dpuv1.DeleteHostedCluster
	w.creates(w.dpuCluster("d01", "example.com/hosted"), b)
	w.hyperShift("b01", "first")
	w.saysOf("b01", dpuv1.ConditionKubeconfigInjected, metav1.ConditionTrue, "Injected")
	w.silent()
	w.faults.since(map[string]fault{"01": {fails: 1}})
	w.Expect(w.api.Delete(w.ctx, w.dpuCluster("d01", ""))).To(Succeed())
	w.tearsDown("b01")
	w.gone(b)
}

// A key from a backup is used once somebody has labelled it as the key.
func TestAKeyThatVanishesIsMissed(t *testing.T) {
	w := newDPUWorld(t)
	w.bridged()
	w.saysOf("b1", dpuv1.ConditionIgnitionConfigured, metav1.ConditionTrue, "Configured")
	w.silent()
	key := sees(w.world, named(&corev1.Secret{}, w.ns, names.BridgeKey("b1")), there)
	w.Expect(w.api.Delete(w.ctx, key)).To(Succeed())
	w.saysOf("b1", dpuv1.ConditionSecretsValid, metav1.ConditionFalse, "EncryptionKeyLost")

	restored := named(&corev1.Secret{}, w.ns, key.Name)
	restored.Data = key.Data
	w.creates(restored)
	sees(w.world, w.bridge(), func(g Gomega, b *dpuv1.DPUHCPBridge) {
		g.Expect(meta.FindStatusCondition(b.Status.Conditions, dpuv1.ConditionSecretsValid).Message).To(ContainSubstring("label secret " + key.Name))
	})
	_, labels, found := strings.Cut(w.saysOf("b1", dpuv1.ConditionSecretsValid, metav1.ConditionFalse, "EncryptionKeyLost"), "--overwrite ")
	w.Expect(found).To(BeTrue())
	w.changes(restored, func() {
		restored.Labels = map[string]string{}
		for _, label := range strings.Fields(labels) {
			name, value, _ := strings.Cut(label, "=")
			restored.Labels[name] = value
		}
	})
	w.saysOf("b1", dpuv1.ConditionSecretsValid, metav1.ConditionTrue, "Valid")
}

func TestAPermissionThatComesBackIsNoticed(t *testing.T) {
	w := newDPUWorld(t)
	w.bridged()
	w.saysOf("b1", dpuv1.ConditionSecretsValid, metav1.ConditionTrue, "Valid")
	w.silent()
	for _, o := range []client.Object{named(&rbacv1.RoleBinding{}, w.ns, "oooi-dpu-bridge"), named(&rbacv1.Role{}, w.ns, "oooi-dpu-bridge")} {
		w.Expect(w.api.Delete(w.ctx, o)).To(Succeed())
	}
	pull := named(&corev1.Secret{}, w.ns, "pull")
	w.changes(pull, func() { pull.Annotations = map[string]string{"example.com/touched": "yes"} })
	w.saysOf("b1", dpuv1.ConditionSecretsValid, metav1.ConditionFalse, "NamespaceNotGranted")
	w.grants()
	w.saysOf("b1", dpuv1.ConditionSecretsValid, metav1.ConditionTrue, "Valid")
}

func TestAForcedDeletionDoesNotWaitForDPUs(t *testing.T) {
	w := newDPUWorld(t)
	w.bridged()
	w.creates(w.dpu("dpu-1", "d1"))
	w.hyperShift("b1", "first")
	w.saysOf("b1", dpuv1.ConditionKubeconfigInjected, metav1.ConditionTrue, "Injected")
	w.Expect(w.api.Delete(w.ctx, w.bridge())).To(Succeed())
	w.saysOf("b1", dpuv1.ConditionHostedClusterCleanup, metav1.ConditionFalse, dpuv1.ReasonCleanupDPUsAttached)
	b := w.bridge()
	w.changes(b, func() { b.Annotations = map[string]string{names.AnnotationForceDelete: "true"} })
	w.tearsDown("b1")
	w.gone(w.bridge())
	w.Expect(w.left()).To(BeEmpty())
}

// If the operator may no longer delete something, the finalizer stays, and the operator goes on when it may again.
func TestAnEndThatFailsIsSaidAndTriedAgain(t *testing.T) {
	w := newDPUWorld(t)
	w.bridged()
	w.hyperShift("b1", "first")
	w.saysOf("b1", dpuv1.ConditionKubeconfigInjected, metav1.ConditionTrue, "Injected")
	w.faults.refuse("/secrets/" + names.BridgeKubeconfig(w.ns, "b1"))
	w.Expect(w.api.Delete(w.ctx, w.bridge())).To(Succeed())
	w.tearsDown("b1")
	w.saysOf("b1", dpuv1.ConditionHostedClusterCleanup, metav1.ConditionFalse, dpuv1.ReasonCleanupFailed)
	sees(w.world, w.bridge(), func(g Gomega, b *dpuv1.DPUHCPBridge) { g.Expect(b.Finalizers).NotTo(BeEmpty()) })
	w.faults.refuse("")
	w.gone(w.bridge())
	w.Expect(w.left()).To(BeEmpty())
}

// A group that is switched off needs no permissions.
func TestAGroupThatIsSwitchedOffIsNotRead(t *testing.T) {
	of := map[string]*regexp.Regexp{
		"VLAN services": regexp.MustCompile(`/(infras|dhcpservers|dnsservers|proxyservers|routes|network-attachment-definitions|hostedcontrolplanes|endpointslices|networkpolicies)\b`),
		"bridges":       regexp.MustCompile(`/(dpuhcpbridges|dpuclusters|dpus|ipaddresspools|l2advertisements|storageclasses|secrets)\b`),
	}
	w := newWorld(t)
	w.silent()
	all := w.groups
	for on, groups := range map[string]controller.Groups{"VLAN services": {VLAN: true}, "bridges": {Bridges: all.Bridges}} {
		w.stop()
		before := len(w.calls.read())
		w.groups = groups
		w.start()
		w.silent()
		for group, kinds := range of {
			read := strings.Join(w.calls.read()[before:], "\n")
			w.Expect(kinds.MatchString(read)).To(Equal(group == on), "%s, with %s on: %s", group, on, kinds.FindString(read))
		}
	}
}
