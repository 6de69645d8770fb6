package webhook_test

import (
	"context"
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/controller"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/plan/bridge"
	"github.com/cldmnky/oooi/internal/testkit/envtest"
)

const release = "quay.io/openshift-release-dev/ocp-release:4.20.4-multi"

// dpuWorld has all that a bridge needs except a StorageClass and a Node, for which it waits.
func dpuWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.creates(
		w.mapping(map[string]string{"4.20.4": "quay.io/example/bluefield:4.20.4"}), w.dpuCluster("dpus", "example.com/hosted"), w.dpuCluster("kamaji", dpf.TypeKamaji),
		w.holds("ssh", bridge.SSHKeyKey, "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"),
		w.holds("pull", bridge.PullSecretKey, `{"auths": {"quay.io": {"auth": "dTpw"}}}`),
		w.holds("private", bridge.SSHKeyKey, "-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2\n"),
		w.holds("text", bridge.PullSecretKey, "hunter2"),
	)
	return w
}

// mapping maps releases to images; each test has its own.
func (w *world) mapping(images map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: w.ns + "-images"}, Data: images}
}

func (w *world) creates(objects ...client.Object) {
	w.t.Helper()
	for _, o := range objects {
		w.Expect(w.api.Create(w.ctx, o)).To(Succeed())
	}
}

// grantsSecrets applies config/components/dpu-bridge for the user that the operator runs as in tests.
func (w *world) grantsSecrets() {
	w.t.Helper()
	text, err := os.ReadFile("../../config/components/dpu-bridge/namespace_role.yaml")
	w.Expect(err).NotTo(HaveOccurred())
	objects, err := envtest.Objects(text, controller.Scheme())
	w.Expect(err).NotTo(HaveOccurred())
	for _, o := range objects {
		o.SetNamespace(w.ns)
		if binding, is := o.(*rbacv1.RoleBinding); is {
			binding.Subjects = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "oooi-manager"}}
		}
		w.creates(o)
	}
}

func (w *world) dpuCluster(name, kind string) *dpf.DPUCluster {
	return &dpf.DPUCluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name}, Spec: dpf.DPUClusterSpec{Type: kind}}
}

func (w *world) holds(secret, key, text string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: secret}, Data: map[string][]byte{key: []byte(text)}}
}

func (w *world) bridge(name string) *dpuv1.DPUHCPBridge {
	return &dpuv1.DPUHCPBridge{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: name},
		Spec:       dpuv1.DPUHCPBridgeSpec{DPUClusterRef: dpuv1.DPUClusterReference{Name: "dpus"}, BaseDomain: "example.com", SSHKey: "ssh", PullSecret: "pull", OCPReleaseImage: release},
	}
}

// bridges waits until the webhook judges bridges with all that they need in its cache.
func (w *world) bridges() {
	w.t.Helper()
	w.asked()
	w.Eventually(func() error { return w.api.Create(w.ctx, w.bridge("dpu1"), client.DryRunAll) }).Should(Succeed())
	w.told.taken()
}

// admits makes a bridge of an operator that may read its Secrets, and waits until the webhook, which judges by its cache, knows it.
func (w *world) admits(name string) *dpuv1.DPUHCPBridge {
	w.t.Helper()
	w.grantsSecrets()
	w.operator()
	w.bridges()
	b := w.bridge(name)
	w.creates(b)
	w.t.Cleanup(w.forgetsBridges)
	w.Eventually(func() error { return w.api.Create(w.ctx, w.bridge("rival"), client.DryRunAll) }).Should(MatchError(ContainSubstring("already has DPUCluster")))
	return b
}

func TestABridgeThatCannotWorkIsRefused(t *testing.T) {
	w := dpuWorld(t)
	w.admits("first") // takes the DPUCluster, so that the others are refused
	w.creates(w.dpuCluster("free", "example.com/hosted"))
	for _, c := range []struct {
		says   []string
		change func(s *dpuv1.DPUHCPBridgeSpec)
	}{
		{[]string{"spec.ocpReleaseImage: ", "has no BlueField container image for quay.io/ocp/release:4.99.0", "(BlueFieldContainerImageAvailable=False, ImageNotMapped)"}, func(s *dpuv1.DPUHCPBridgeSpec) { s.OCPReleaseImage = "quay.io/ocp/release:4.99.0" }},
		{[]string{"spec.dpuClusterRef: ", "DPUCluster " + w.ns + "/none does not exist: create it", "(DPUClusterBound=False, DPUClusterNotFound)"}, func(s *dpuv1.DPUHCPBridgeSpec) { s.DPUClusterRef.Name = "none" }},
		{[]string{"spec.dpuClusterRef: ", "has type kamaji", "(DPUClusterBound=False, TypeUnsupported)"}, func(s *dpuv1.DPUHCPBridgeSpec) { s.DPUClusterRef.Name = "kamaji" }},
		{[]string{"spec.clusterType: the bridge is for type static, and DPUCluster " + w.ns + "/free is of type example.com/hosted", "(DPUClusterBound=False, TypeMismatch)"}, func(s *dpuv1.DPUHCPBridgeSpec) { s.ClusterType = "static" }},
		{[]string{"spec.dpuClusterRef: ", "kubectl annotate --overwrite -n default dpucluster free", "(DPUClusterBound=False, RefNotPermitted)"}, func(s *dpuv1.DPUHCPBridgeSpec) { s.DPUClusterRef.Namespace = "default" }},
		{[]string{"spec.dpuClusterRef: DPUHCPBridge first already has DPUCluster", "(DPUClusterBound=False, DPUClusterTaken)"}, func(s *dpuv1.DPUHCPBridgeSpec) { s.DPUClusterRef.Name = "dpus" }},
		{[]string{"spec.dpuClusterRef: ", "; spec.ocpReleaseImage: "}, func(s *dpuv1.DPUHCPBridgeSpec) {
			s.DPUClusterRef.Name, s.OCPReleaseImage = "none", "quay.io/ocp/release:4.99.0"
		}},
	} {
		b := w.bridge("dpu1")
		b.Spec.DPUClusterRef.Name = "free"
		w.Eventually(func() error { return w.api.Create(w.ctx, b.DeepCopy(), client.DryRunAll) }).Should(Succeed())
		c.change(&b.Spec)
		err := w.api.Create(w.ctx, b)
		w.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v: %v", c.says, err)
		for _, says := range c.says {
			w.Expect(err).To(MatchError(ContainSubstring(says)))
		}
	}
}

// A generated name is judged like a written one: the schema bounds its length, and we look at what it stands for. Nobody has it yet, so two
// such requests at once make two bridges, one of which has the DPUCluster (TestOfTwoBridgesForOneDPUClusterOneWins).
func TestABridgeIsJudgedByTheNameThatIsMadeUp(t *testing.T) {
	w := dpuWorld(t)
	w.admits("first")
	b := w.bridge("")
	b.GenerateName = "b-"
	w.Expect(w.api.Create(w.ctx, b.DeepCopy(), client.DryRunAll)).To(MatchError(ContainSubstring("DPUHCPBridge first already has DPUCluster")))
	w.creates(w.dpuCluster("free", "example.com/hosted"))
	b.Spec.DPUClusterRef.Name = "free"
	w.Eventually(func() error { return w.api.Create(w.ctx, b.DeepCopy(), client.DryRunAll) }).Should(Succeed())
	b.GenerateName = strings.Repeat("a", 60)
	w.Expect(w.api.Create(w.ctx, b, client.DryRunAll)).To(MatchError(ContainSubstring("the name may have at most 40 characters")))
}

func (w *world) forgetsBridges() {
	all := &dpuv1.DPUHCPBridgeList{}
	w.Expect(w.api.List(context.Background(), all, client.InNamespace(w.ns))).To(Succeed())
	for i := range all.Items {
		b := &all.Items[i]
		w.ctx = context.Background()
		w.Expect(client.IgnoreNotFound(w.api.Delete(w.ctx, b))).To(Succeed())
		w.Expect(client.IgnoreNotFound(w.changes(b, func() { b.Finalizers = nil }))).To(Succeed())
	}
}

// What does not exist yet may still be made: the writer is warned, not refused. That needs no permission on Secrets.
func TestWhatABridgeWaitsForIsWarnedOf(t *testing.T) {
	w := dpuWorld(t)
	w.operator()
	w.bridges()
	warned := func(change func(s *dpuv1.DPUHCPBridgeSpec)) []string {
		b := w.bridge("dpu1")
		change(&b.Spec)
		w.told.taken()
		w.Expect(w.api.Create(w.ctx, b, client.DryRunAll)).To(Succeed())
		return w.told.taken()
	}
	w.Expect(warned(func(*dpuv1.DPUHCPBridgeSpec) {})).To(ConsistOf(
		HavePrefix("StorageClassNotFound spec.etcdStorageClass: "), HavePrefix("NodeAddressUnknown spec.exposeThroughLoadBalancer: "),
		HavePrefix("ReachedAtOneNode spec.virtualIP: "),
	))
	w.Expect(client.IgnoreNotFound(w.api.Get(w.ctx, client.ObjectKey{Namespace: w.ns, Name: "dpu1"}, &dpuv1.DPUHCPBridge{}))).To(Succeed(), "a dry run leaves nothing")
}

// A bridge that lost what it was made of can still be mended, labelled and deleted; only what a request changes is judged.
func TestABridgeThatIsThereCanBeMended(t *testing.T) {
	w := dpuWorld(t)
	b := w.admits("dpu1")
	for _, lost := range []client.Object{w.mapping(nil), w.holds("pull", "", ""), w.dpuCluster("dpus", "")} {
		w.Expect(w.api.Delete(w.ctx, lost)).To(Succeed())
	}
	w.Expect(w.changes(b, func() { b.Spec.InfrastructureAvailabilityPolicy = dpuv1.SingleReplica })).To(Succeed())
	w.Expect(w.changes(b, func() { b.Spec.OCPReleaseImage = "quay.io/ocp/release:4.20.4" })).
		To(MatchError(And(ContainSubstring("spec.ocpReleaseImage: "), ContainSubstring("(BlueFieldContainerImageAvailable=False, MappingNotFound)"))))
	w.Expect(w.changes(b, func() { b.Labels = map[string]string{"a": "b"} })).To(Succeed())
	w.Expect(w.changes(b, func() { b.Finalizers = append(b.Finalizers, "example.com/hold") })).To(Succeed())
	w.Expect(w.api.Delete(w.ctx, b)).To(Succeed())
	w.Expect(w.changes(b, func() { b.Spec.OCPReleaseImage = "quay.io/ocp/release:4.20.4" })).To(Succeed(), "it is being deleted")
	w.Expect(w.changes(b, func() { b.Finalizers = nil })).To(Succeed())
	w.Eventually(func() error { return w.api.Get(w.ctx, client.ObjectKeyFromObject(b), b) }).Should(MatchError(apierrors.IsNotFound, "IsNotFound"))
}

// While reads fail, whoever writes a spec is warned; deleting, or removing a finalizer, does not ask the webhook at all.
func TestABridgeThatCannotBeJudgedStopsNobody(t *testing.T) {
	w := dpuWorld(t)
	b := w.admits("dpu1")
	w.told.taken()
	w.blind.Store(true)
	w.Expect(w.changes(b, func() { b.Spec.OCPReleaseImage = "quay.io/ocp/release:4.99.0" })).To(Succeed())
	w.Expect(w.told.taken()).To(And(Not(BeEmpty()), HaveEach(HavePrefix("NotJudged: "))), "once for each try: the operator writes the bridge too")
	w.Expect(w.changes(b, func() { b.Finalizers = append(b.Finalizers, "example.com/hold") })).To(Succeed())
	w.Expect(w.api.Delete(w.ctx, b)).To(Succeed())
	w.Expect(w.changes(b, func() { b.Spec.OCPReleaseImage = "quay.io/ocp/release:4.99.1" })).To(Succeed(), "it is being deleted")
	w.Expect(w.changes(b, func() { b.Finalizers = nil })).To(Succeed())
	w.Expect(w.told.taken()).To(BeEmpty())
	w.Eventually(func() error { return w.api.Get(w.ctx, client.ObjectKeyFromObject(b), b) }).Should(MatchError(apierrors.IsNotFound, "IsNotFound"))
}

// A write that went through unjudged while the operator was down gets the condition that the refusal would have named, in the same words.
func TestABridgeThatNobodyRefusedIsHeldBack(t *testing.T) {
	w := dpuWorld(t)
	w.grantsSecrets()
	stop := w.operator()
	w.bridges()
	b := w.bridge("dpu1")
	b.Spec.OCPReleaseImage = "quay.io/ocp/release:4.99.0"
	refusal := w.api.Create(w.ctx, b.DeepCopy())
	w.Expect(refusal).To(MatchError(apierrors.IsForbidden, "IsForbidden"))
	stop()
	w.creates(b)
	w.t.Cleanup(w.forgetsBridges)
	w.operator()
	w.Eventually(func(g Gomega) {
		c := meta.FindStatusCondition(stored(w, b).Status.Conditions, dpuv1.ConditionBlueFieldContainerImageAvailable)
		g.Expect(c).NotTo(BeNil())
		g.Expect(refusal).To(MatchError(ContainSubstring("%s (%s=%s, %s)", c.Message, c.Type, c.Status, c.Reason)))
	}).Should(Succeed())
}
