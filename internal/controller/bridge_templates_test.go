package controller_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/controller"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/observe"
	"github.com/cldmnky/oooi/internal/plan/bridge"
	"github.com/cldmnky/oooi/internal/testkit/envtest"
	"github.com/cldmnky/oooi/internal/testkit/hypershift"
	"github.com/cldmnky/oooi/internal/testkit/ignitionserver"
)

// templateWorld is one in which DPF has what DPUs are installed with, in a namespace of its own.
type templateWorld struct {
	dpuWorld
	server *ignitionserver.Server
	dpf    string // the namespace of DPFOperatorConfig
}

func newTemplateWorld(t *testing.T) templateWorld {
	t.Helper()
	w := templateWorld{dpuWorld: newDPUWorld(t)}
	server, err := ignitionserver.Start("ignition.example.com")
	w.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(server.Close)
	w.server, w.dpf = server, w.ns+"-dpf"
	w.wire.mu.Lock()
	w.wire.ignition = server
	w.wire.mu.Unlock()
	w.creates(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.dpf}})
	w.runsDPF(w.dpf)
	w.creates(w.toInstall(w.ns)...)
	return w
}

// toInstall is what DPUs are installed with, in a namespace.
func (w templateWorld) toInstall(namespace string) []client.Object {
	port := map[string]any{"serviceInterface": map[string]any{"matchLabels": map[string]any{"a": "b"}}}
	all := []client.Object{
		w.foreign(dpf.ServiceGroupVersion.String(), "DPUDeployment", namespace, "ovn", map[string]any{
			"dpus": map[string]any{"bfb": "rhcos", "flavor": "plain"}, "services": map[string]any{}, "serviceChains": map[string]any{"switches": []any{map[string]any{"ports": []any{port}}}},
		}),
		w.foreign(dpf.GroupVersion.String(), "BFB", namespace, "rhcos", map[string]any{"url": "http://example.com/rhcos.bfb"}),
		w.flavor("true"),
	}
	for _, o := range all {
		o.SetNamespace(namespace)
	}
	return all
}

func (w templateWorld) foreign(version, kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	return named(&unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind, "spec": spec}}, namespace, name)
}

// flavor is a DPUFlavor with a script, whose spec DPF lets nobody change.
func (w templateWorld) flavor(script string) *unstructured.Unstructured {
	f := w.foreign(dpf.GroupVersion.String(), "DPUFlavor", w.ns, "plain", map[string]any{"ovs": map[string]any{"rawConfigScript": script}})
	f.SetAnnotations(map[string]string{dpf.AnnotationSkipSizeCheck: ""})
	return f
}

// ignites makes the control-plane namespace of a bridge, with its ignition server's CA.
func (w templateWorld) ignites(bridge string) (at string) {
	w.t.Helper()
	at = w.controlPlane(bridge)
	w.creates(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: at, Labels: map[string]string{endpoint.ControlPlaneLabel: "true"}}},
		named(&corev1.Secret{Data: map[string][]byte{corev1.TLSCertKey: w.server.CA}}, at, endpoint.IgnitionCA(at).Name),
	)
	return at
}

// rolledOut plays HyperShift once a bridge's control plane runs a release: the NodePool has a hash, and a token, whose ignition the server has.
func (w templateWorld) rolledOut(bridge, image, hash string) {
	w.t.Helper()
	w.renders(bridge, image, hash, ignitionOf(hash))
}

// renders is rolledOut with an ignition.
func (w templateWorld) renders(bridge, image, hash string, ignition []byte) {
	w.t.Helper()
	hc, pool := named(&hyperv1.HostedCluster{}, w.ns, bridge), named(&hyperv1.NodePool{}, w.ns, bridge)
	sees(w.world, hc, func(g Gomega, hc *hyperv1.HostedCluster) { g.Expect(hc.Spec.Release.Image).To(Equal(image)) })
	w.server.Has(hash, ignition)
	w.Expect(hypershift.RollOut(w.ctx, w.api, hc, sees(w.world, pool, there), "ignition.example.com", hash)).To(Succeed())
}

// ignitionOf is HyperShift's, with a user's key that tells one from another.
func ignitionOf(key string) []byte {
	return fmt.Appendf(nil, `{"ignition":{"version":"3.2.0"},"passwd":{"users":[{"name":"core","sshAuthorizedKeys":[%q]}]},"storage":{"files":[{"path":"/etc/ignition-machine-config-encapsulated.json","contents":{"source":"data:,%%7B%%22spec%%22%%3A%%7B%%22osImageURL%%22%%3A%%22a%%22%%7D%%7D"}}]}}`, key)
}

// template waits for the only template, which satisfies something.
func (w templateWorld) template(satisfies func(Gomega, corev1.ConfigMap)) (one corev1.ConfigMap) {
	w.t.Helper()
	w.Eventually(func(g Gomega) {
		all := &corev1.ConfigMapList{}
		g.Expect(w.api.List(w.ctx, all, client.InNamespace(w.dpf), client.MatchingLabels{dpf.LabelTemplate: "true"})).To(Succeed())
		g.Expect(all.Items).To(HaveLen(1), w.said)
		satisfies(g, all.Items[0])
		one = all.Items[0]
	}).Should(Succeed())
	return one
}

// said is what the bridge says of templates.
func (w templateWorld) said() string {
	b := named(&dpuv1.DPUHCPBridge{}, w.ns, "b1")
	_ = w.api.Get(w.ctx, client.ObjectKeyFromObject(b), b)
	return fmt.Sprint(meta.FindStatusCondition(b.Status.Conditions, dpuv1.ConditionIgnitionConfigured))
}

// served is a bridge with its template.
func (w templateWorld) served() corev1.ConfigMap {
	w.t.Helper()
	w.granted()
	return w.template(func(g Gomega, m corev1.ConfigMap) { g.Expect(m.Data[dpf.TemplateKey]).To(ContainSubstring("1a2b3c4d")) })
}

// granted is a bridge that lacks nothing but the ignition.
func (w templateWorld) granted() {
	w.t.Helper()
	b := w.bridge()
	b.Spec.DPUDeploymentRef = &dpuv1.DPUDeploymentReference{Name: v1alpha1.ObjectName("ovn")}
	w.grants()
	w.creates(w.dpuCluster("d1", "example.com/hosted"), b)
	w.hyperShift("b1", "first")
	at := w.ignites("b1")
	w.rolledOut("b1", release, "1a2b3c4d")
	w.Expect(w.saysOf("b1", dpuv1.ConditionIgnitionConfigured, metav1.ConditionFalse, "NamespaceNotGranted")).To(ContainSubstring("kubectl apply -n " + at + " -k config/components/dpu-bridge"))
	w.appliesRole("dpu-bridge", at)
	if !w.groups.VLAN { // else the operator may write ConfigMaps anywhere
		w.Eventually(w.said).Should(ContainSubstring("kubectl apply -n " + w.dpf + " -k config/components/dpu-bridge"))
		w.appliesRole("dpu-bridge", w.dpf)
	}
}

func TestABridgeMakesTheTemplateFromWhichDPFInstallsItsDPUs(t *testing.T) {
	w := newTemplateWorld(t)
	first := w.served()
	w.Expect(json.Valid([]byte(first.Data[dpf.TemplateKey]))).To(BeTrue())
	for key, value := range map[string]string{
		"cluster-name": "d1", "cluster-namespace": w.ns, "bfb-name": "rhcos", "bfb-namespace": w.ns, "dpuflavor-name": "plain", "dpuflavor-namespace": w.ns,
	} {
		w.Expect(first.Annotations).To(HaveKeyWithValue(dpf.LabelTemplate+"-"+key, value))
	}
	w.saysOf("b1", dpuv1.ConditionIgnitionConfigured, metav1.ConditionTrue, "Configured")
	for _, address := range w.server.Dialed() {
		w.Expect(address).To(Equal("ignition-server-proxy." + w.controlPlane("b1") + ".svc:443"))
	}

	// Neither this manager nor the next writes anything more.
	before := w.silent()
	w.stop()
	w.start()
	w.Expect(w.silent()).To(Equal(before), "written: %v", w.calls.written())

	// What it is made from changes, or it.
	w.Expect(w.api.Delete(w.ctx, w.flavor(""))).To(Succeed())
	w.saysOf("b1", dpuv1.ConditionIgnitionConfigured, metav1.ConditionFalse, "DPUFlavorNotFound")
	w.gone(&first)
	w.creates(w.flavor("false"))
	changed := w.template(func(g Gomega, m corev1.ConfigMap) { g.Expect(m.Data).NotTo(Equal(first.Data)) })
	w.changes(&changed, func() { changed.Data[dpf.TemplateKey] = "mine" })
	w.template(func(g Gomega, m corev1.ConfigMap) { g.Expect(m.Data[dpf.TemplateKey]).To(ContainSubstring("1a2b3c4d")) })
	w.warned("DriftCorrected", changed.Name)

	// A DPU that is to be installed with another flavor gets a template of its own, once that is there.
	card := w.dpu("card", "d1")
	card.Object["spec"].(map[string]any)["bfb"], card.Object["spec"].(map[string]any)["dpuFlavor"] = "rhcos", "other"
	other := w.flavor("true")
	other.SetName("other")
	w.creates(card)
	w.saysOf("b1", dpuv1.ConditionIgnitionConfigured, metav1.ConditionFalse, "DPUFlavorNotFound")
	w.creates(other)
	w.saysOf("b1", dpuv1.ConditionIgnitionConfigured, metav1.ConditionTrue, "Configured")
	w.Expect(w.api.Delete(w.ctx, card)).To(Succeed())
	w.template(func(g Gomega, m corev1.ConfigMap) { g.Expect(m.Name).To(Equal(changed.Name)) })

	// A foreign one would stop installations.
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.dpf, Name: "theirs", Labels: map[string]string{dpf.LabelTemplate: "true"}, Annotations: changed.Annotations}}
	w.creates(theirs)
	config := w.foreign(dpf.OperatorGroupVersion.String(), "DPFOperatorConfig", w.dpf, "dpf", nil)
	w.changes(config, func() {
		w.Expect(unstructured.SetNestedField(config.Object, int64(9000), "spec", "networking", "highSpeedMTU")).To(Succeed())
	})
	w.saysOf("b1", dpuv1.ConditionIgnitionConfigured, metav1.ConditionFalse, dpuv1.ReasonTemplatesAmbiguous)

	// The bridge makes none beside it, and no event tells of its deletion.
	w.Expect(w.api.Delete(w.ctx, &changed)).To(Succeed())
	w.gone(&changed)
	w.silent()
	w.saysOf("b1", dpuv1.ConditionIgnitionConfigured, metav1.ConditionFalse, dpuv1.ReasonTemplatesAmbiguous)
	w.Expect(w.api.Delete(w.ctx, theirs)).To(Succeed())
	w.template(func(g Gomega, m corev1.ConfigMap) { g.Expect(m.Name).To(Equal(changed.Name)) })
	w.saysOf("b1", dpuv1.ConditionIgnitionConfigured, metav1.ConditionTrue, "Configured")
}

func TestZeroTrustDPUsDownloadFromTheNodePortOfDPFsRegistry(t *testing.T) {
	w := newTemplateWorld(t)
	first := w.served()
	config := w.foreign(dpf.OperatorGroupVersion.String(), "DPFOperatorConfig", w.dpf, "dpf", nil)
	w.changes(config, func() {
		w.Expect(unstructured.SetNestedField(config.Object, dpf.ModeZeroTrust, "spec", "deploymentMode")).To(Succeed())
		w.Expect(unstructured.SetNestedMap(config.Object, map[string]any{}, "spec", "provisioningController", "installInterface", "installViaRedfish")).To(Succeed())
	})
	w.saysOf("b1", dpuv1.ConditionIgnitionConfigured, metav1.ConditionFalse, "RegistryInvalid")
	w.creates(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: w.dpf, Name: "bfb-registry"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80}}}})
	w.changes(config, func() { config.SetLabels(map[string]string{"seen": "again"}) }) // else it is looked for in five minutes
	second := w.template(func(g Gomega, m corev1.ConfigMap) { g.Expect(m.Data).NotTo(Equal(first.Data)) })
	w.saysOf("b1", dpuv1.ConditionIgnitionConfigured, metav1.ConditionTrue, "Configured")

	certificate, _, err := envtest.SelfSigned("dpf")
	w.Expect(err).NotTo(HaveOccurred())
	w.creates(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.dpf, Name: "dpf-ca-trust-bundle"}, Data: map[string]string{dpf.TrustBundleKey: string(certificate)}})
	w.changes(config, func() { config.SetLabels(map[string]string{"seen": "with-its-CA"}) })
	w.template(func(g Gomega, m corev1.ConfigMap) { g.Expect(m.Data).NotTo(Equal(second.Data)) })
}

func TestTemplatesOfOthersAreLookedForWhileAnyAreWanted(t *testing.T) {
	b := &dpuv1.DPUHCPBridge{}
	seen := observe.Bridge{Input: bridge.Input{Bridge: b}}
	NewWithT(t).Expect(controller.RetryForeign(seen)).To(BeZero())
	b.Spec.DPUDeploymentRef = &dpuv1.DPUDeploymentReference{Name: "ovn"}
	NewWithT(t).Expect(controller.RetryForeign(seen)).To(Equal(5 * time.Minute))
}

func TestATemplateIsWithdrawnForAnUpgrade(t *testing.T) {
	w := newTemplateWorld(t)
	w.appliesRole("metallb", w.alone())
	first := w.served()
	b := w.bridge()
	w.changes(b, func() { b.Spec.OCPReleaseImage = newRelease })
	w.gone(&first)
	w.saysOf("b1", dpuv1.ConditionIgnitionConfigured, metav1.ConditionFalse, "ControlPlaneProgressing")
	w.rolledOut("b1", newRelease, "5e6f7a8b")
	next := w.template(func(g Gomega, m corev1.ConfigMap) { g.Expect(m.Data[dpf.TemplateKey]).To(ContainSubstring("5e6f7a8b")) })
	w.Expect(next.Annotations).To(HaveKeyWithValue(names.AnnotationTemplateRelease, newRelease))
	w.saysOf("b1", dpuv1.ConditionIgnitionConfigured, metav1.ConditionTrue, "Configured")

	// It goes before the hosted cluster does.
	w.changes(&next, func() { next.Finalizers = []string{finalizer} })
	w.Expect(w.api.Delete(w.ctx, b)).To(Succeed())
	sees(w.world, &next, func(g Gomega, m *corev1.ConfigMap) { g.Expect(m.DeletionTimestamp).NotTo(BeNil()) })
	w.silent()
	w.Expect(sees(w.world, named(&hyperv1.HostedCluster{}, w.ns, "b1"), there).DeletionTimestamp).To(BeNil())
	w.changes(&next, func() { next.Finalizers = nil })
	w.tearsDown("b1")
	w.gone(b)
	w.Expect(w.left()).To(BeEmpty())
}

// What keeps a template from being withdrawn is told, and keeps the hosted cluster at the release that it was made for.
func TestTheReleaseWaitsUntilItsTemplatesAreWithdrawn(t *testing.T) {
	w := newTemplateWorld(t)
	w.appliesRole("metallb", w.alone())
	first := w.served()
	w.saysOf("b1", dpuv1.ConditionIgnitionConfigured, metav1.ConditionTrue, "Configured")
	staysAt := func(release string) {
		t.Helper()
		w.Expect(sees(w.world, named(&hyperv1.HostedCluster{}, w.ns, "b1"), there).Spec.Release.Image).To(Equal(release))
	}

	// The Role is gone.
	w.Expect(w.api.Delete(w.ctx, named(&rbacv1.RoleBinding{}, w.dpf, "oooi-dpu-bridge"))).To(Succeed())
	b := w.bridge()
	w.changes(b, func() { b.Spec.OCPReleaseImage = newRelease })
	sees(w.world, b, func(g Gomega, b *dpuv1.DPUHCPBridge) {
		g.Expect(b.Status.ObservedGeneration).To(Equal(b.Generation))
		g.Expect(meta.FindStatusCondition(b.Status.Conditions, dpuv1.ConditionReady)).To(HaveField("Status", metav1.ConditionFalse))
	})
	w.Expect(w.saysOf("b1", dpuv1.ConditionIgnitionConfigured, metav1.ConditionFalse, "ControlPlaneProgressing")).To(ContainSubstring("kubectl apply -n " + w.dpf + " -k config/components/dpu-bridge"))
	staysAt(release)

	// So is a finalizer, and a stranger's ConfigMap is not a template: the operator may not delete it.
	stranger := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns + "-stranger", Name: "x", Labels: map[string]string{
		names.LabelManagedBy: names.ManagedBy, dpf.LabelTemplate: "true", names.LabelBridge: "b1", names.LabelBridgeNamespace: w.ns, names.LabelOwnerUID: "of-nobody",
	}}}
	w.creates(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: stranger.Namespace}}, stranger)
	w.changes(&first, func() { first.Finalizers = []string{finalizer} })
	w.appliesRole("dpu-bridge", w.dpf)
	w.Expect(w.saysOf("b1", dpuv1.ConditionReady, metav1.ConditionFalse, "TemplateTerminating")).To(ContainSubstring(finalizer))
	staysAt(release)
	w.changes(&first, func() { first.Finalizers = nil })
	w.rolledOut("b1", newRelease, "5e6f7a8b")
	w.saysOf("b1", dpuv1.ConditionIgnitionConfigured, metav1.ConditionTrue, "Configured")
	w.Expect(sees(w.world, stranger, there).DeletionTimestamp).To(BeNil())
}

func TestTemplatesStayWhileAKindThatTheyAreMadeFromIsNotFound(t *testing.T) {
	w := newTemplateWorld(t)
	first := w.served()
	w.saysOf("b1", dpuv1.ConditionIgnitionConfigured, metav1.ConditionTrue, "Configured")
	w.stop()
	w.faults.hide("/apis/" + dpf.ServiceGroupVersion.String())
	w.start()
	w.Expect(w.saysOf("b1", dpuv1.ConditionIgnitionConfigured, metav1.ConditionFalse, "DPFNotInstalled")).To(ContainSubstring("does not serve DPUDeployments"))
	w.faults.hide("")
	w.saysOf("b1", dpuv1.ConditionIgnitionConfigured, metav1.ConditionTrue, "Configured")
	w.Expect(w.template(func(Gomega, corev1.ConfigMap) {}).UID).To(Equal(first.UID))
}

func TestBugs241And258NoHostedClusterIsUpgradedBesideItsOldTemplate(t *testing.T) {
	w := newTemplateWorld(t)
	first := w.served()
	w.faults.refuse("/configmaps/" + first.Name)
	b, hc := w.bridge(), named(&hyperv1.HostedCluster{}, w.ns, "b1")
	w.changes(b, func() { b.Spec.OCPReleaseImage = newRelease })
	w.Eventually(w.said).Should(ContainSubstring("the operator tries again: deleting ConfigMap " + w.dpf + "/" + first.Name))
	w.Expect(sees(w.world, hc, there).Spec.Release.Image).To(Equal(release))
	w.faults.refuse("")
	w.gone(&first)
	sees(w.world, hc, func(g Gomega, hc *hyperv1.HostedCluster) { g.Expect(hc.Spec.Release.Image).To(Equal(newRelease)) })
}
