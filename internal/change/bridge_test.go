package change_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/change"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// oneBridge is a bridge whose plan has nothing to do, and whose status says that nothing keeps it from being written.
func oneBridge() change.BridgePicture {
	b := &dpuv1.DPUHCPBridge{ObjectMeta: metav1.ObjectMeta{Namespace: "dpf", Name: "b1", UID: "1"}}
	b.Spec.DPUClusterRef.Name, b.Spec.OCPReleaseImage = "d1", "quay.io/example/release:4.20.4"
	for _, kind := range []string{dpuv1.ConditionDPUClusterBound, dpuv1.ConditionSecretsValid, dpuv1.ConditionBlueFieldContainerImageAvailable, dpuv1.ConditionMetalLBConfigured} {
		meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Fine"})
	}
	return change.BridgePicture{Input: bridge.Input{Bridge: b, DPUCluster: &dpf.DPUCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "dpf", Name: "d1"}}}}
}

func hosted(edit func(*hyperv1.HostedCluster)) *hyperv1.HostedCluster {
	hc := &hyperv1.HostedCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "dpf", Name: "b1"}}
	hc.Spec.Release.Image, hc.Spec.ControllerAvailabilityPolicy = "quay.io/example/release:4.20.4", hyperv1.SingleReplica
	edit(hc)
	return hc
}

func did(c change.BridgeChange) (all []string) {
	for _, o := range c.Objects {
		all = append(all, fmt.Sprintf("%s %s %s/%s", o.Verb, o.Kind, o.Namespace, o.Name))
	}
	return all
}

func TestAHostedClusterThatIsTakenOverGetsLabelsFirst(t *testing.T) {
	g, after := NewWithT(t), oneBridge()
	after.Plan.Frozen = true
	after.Plan.Findings = []finding.Finding{finding.Wait(dpuv1.ConditionReady, "HostedClusterAdopted").Say("it is being taken over")}
	labels := map[string]string{names.LabelBridge: "b1"}
	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "dpf", Name: "key"}, Data: map[string][]byte{"key": []byte("hush")}}
	after.Plan.Adopts = []bridge.Adoption{{Object: key, Labels: labels}, {Object: &hyperv1.NodePool{ObjectMeta: metav1.ObjectMeta{Namespace: "dpf", Name: "b1"}}, Labels: labels}, {Object: hosted(func(*hyperv1.HostedCluster) {}), Labels: labels}}
	c := change.BetweenBridges(oneBridge(), after, nil)
	g.Expect(did(c)).To(Equal([]string{"update Secret dpf/key", "update NodePool dpf/b1", "update HostedCluster dpf/b1"}))
	g.Expect(c.Objects[0].Fields).To(ConsistOf(HaveField("To", "b1")))
	g.Expect(c.Stopped).To(BeEmpty())
	g.Expect(change.BetweenBridges(after, after, nil).None()).To(BeTrue(), "it was so before")
}

func TestAKubeconfigThatIsHandedOverIsForetold(t *testing.T) {
	g, after := NewWithT(t), oneBridge()
	after.Plan.Inject = &bridge.Injection{Refer: true}
	secret := bridge.InjectedKey(after.Bridge).Name
	c := change.BetweenBridges(oneBridge(), after, nil)
	g.Expect(did(c)).To(Equal([]string{"create Secret dpf/" + secret, "update DPUCluster dpf/d1"}))
	g.Expect(c.Objects[1].Fields).To(ConsistOf(change.Field{Path: "spec.kubeconfig", To: secret}))
	g.Expect(change.BetweenBridges(after, after, nil).None()).To(BeTrue(), "it was so before")
}

func TestAReleaseRollsTheControlPlane(t *testing.T) {
	const next = "quay.io/example/release:4.20.5"
	for name, c := range map[string]struct {
		edit func(*hyperv1.HostedCluster)
		says []string
	}{
		"one replica": {func(hc *hyperv1.HostedCluster) { hc.Spec.Release.Image = next }, []string{
			"HyperShift rolls it from release quay.io/example/release:4.20.4 to " + next, "it is SingleReplica: its API may be away while pods of it are replaced; for how long is not known here",
		}},
		"several": {func(hc *hyperv1.HostedCluster) {
			hc.Spec.Release.Image, hc.Spec.ControllerAvailabilityPolicy = next, hyperv1.HighlyAvailable
		}, []string{"HyperShift rolls it from release quay.io/example/release:4.20.4 to " + next}},
		"the same release": {func(hc *hyperv1.HostedCluster) { hc.Spec.InfrastructureAvailabilityPolicy = hyperv1.SingleReplica }, nil},
	} {
		w := change.Write{Kind: "HostedCluster", Before: hosted(func(*hyperv1.HostedCluster) {}), After: hosted(c.edit)}
		NewWithT(t).Expect(change.BetweenBridges(oneBridge(), oneBridge(), []change.Write{w}).ControlPlane).To(Equal(c.says), name)
	}
}

// What HyperShift renders the ignition from changes, and with the ignition the template, though not at once.
func TestATemplateIsMadeAnewAfterTheIgnition(t *testing.T) {
	template := corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "dpf-operator", Name: "t", UID: "t", Labels: map[string]string{
		names.LabelManagedBy: names.ManagedBy, names.LabelOwnerUID: "1", names.LabelBridge: "b1", names.LabelBridgeNamespace: "dpf",
	}, Annotations: map[string]string{
		dpf.LabelTemplate + "-bfb-name": "rhcos", dpf.LabelTemplate + "-bfb-namespace": "dpf", dpf.LabelTemplate + "-dpuflavor-name": "plain", dpf.LabelTemplate + "-dpuflavor-namespace": "dpf",
	}}}
	for field, edit := range map[string]func(*hyperv1.HostedCluster){
		"pullSecret": func(hc *hyperv1.HostedCluster) { hc.Spec.PullSecret.Name = "x" },
		"sshKey":     func(hc *hyperv1.HostedCluster) { hc.Spec.SSHKey.Name = "x" },
		"additionalTrustBundle": func(hc *hyperv1.HostedCluster) {
			hc.Spec.AdditionalTrustBundle = &corev1.LocalObjectReference{Name: "x"}
		},
	} {
		g, is := NewWithT(t), oneBridge()
		is.Templates.Existing = []corev1.ConfigMap{template}
		for i := range 7 {
			is.Templates.DPUs = append(is.Templates.DPUs, dpf.DPU{ObjectMeta: metav1.ObjectMeta{Namespace: "dpf", Name: fmt.Sprint("card", i)}})
		}
		c := change.BetweenBridges(is, is, []change.Write{{Kind: "HostedCluster", Before: hosted(func(*hyperv1.HostedCluster) {}), After: hosted(edit)}})
		g.Expect(c.Templates).To(ConsistOf(And(HaveField("Verb", change.Remake), HaveField("BFB", "dpf/rhcos"), HaveField("Flavor", "dpf/plain"))), field)
		g.Expect(did(c)).To(Equal([]string{"update HostedCluster dpf/b1"}), field)
		g.Expect(c.DPUs).To(HaveSuffix("dpf/card0, dpf/card1, dpf/card2, dpf/card3, dpf/card4 and 2 more"))
	}
	is := oneBridge()
	is.Templates.Existing = []corev1.ConfigMap{template}
	w := change.Write{Kind: "HostedCluster", Before: hosted(func(*hyperv1.HostedCluster) {}), After: hosted(func(hc *hyperv1.HostedCluster) { hc.Spec.InfrastructureAvailabilityPolicy = "x" })}
	NewWithT(t).Expect(change.BetweenBridges(is, is, []change.Write{w}).Templates).To(BeEmpty())
}

// The pause ends after the DPUCluster is gone: nothing is written but the deletion, and no finding says that the hosted cluster is kept.
func TestABridgeEndsWithItsDPUCluster(t *testing.T) {
	g, before, after := NewWithT(t), oneBridge(), oneBridge()
	after.Plan.End, after.Plan.Frozen = true, true
	after.Plan.Findings = []finding.Finding{finding.Wait(dpuv1.ConditionDPUClusterBound, "DPUClusterDeleted").Say("the hosted cluster is kept")}
	before.Plan, before.Paused = after.Plan, "it is paused"
	c := change.BetweenBridges(before, after, nil)
	g.Expect(did(c)).To(Equal([]string{"delete DPUHCPBridge dpf/b1"}))
	g.Expect(c.ControlPlane).To(ConsistOf("the bridge and its hosted cluster are deleted: DPUCluster dpf/d1 is gone, and dpuClusterDeletionPolicy is Delete"))
	g.Expect(c.Findings).To(BeEmpty())
	g.Expect(c.Stopped).To(BeEmpty())
	g.Expect(change.BetweenBridges(after, after, nil).None()).To(BeTrue(), "it ends without the change")
	after.Paused = "it is paused"
	g.Expect(change.BetweenBridges(before, after, nil).None()).To(BeTrue(), "the pause goes on")
}

// DPF reports no version, so that the plan of before has no DPUServiceTemplates; those that are there go all the same.
func TestServiceTemplatesThatGoAreToldWhateverWasPlanned(t *testing.T) {
	g, after := NewWithT(t), oneBridge()
	after.Plan.Services.Remove = []dpf.DPUServiceTemplate{{ObjectMeta: metav1.ObjectMeta{Namespace: "dpf", Name: "ovn"}}}
	g.Expect(did(change.BetweenBridges(oneBridge(), after, nil))).To(Equal([]string{"delete DPUServiceTemplate dpf/ovn"}))
	g.Expect(change.BetweenBridges(after, after, nil).None()).To(BeTrue(), "they go without the change")
	paused := after
	paused.Paused = "it is paused"
	g.Expect(did(change.BetweenBridges(paused, after, nil))).To(Equal([]string{"delete DPUServiceTemplate dpf/ovn"}))
}

// The registries had no image when the bridge was made, as its status says, so nothing was written of what is planned: the cluster decides.
func TestWhatABridgeSaysWasNotWrittenIsNotThere(t *testing.T) {
	g, before := NewWithT(t), oneBridge()
	before.Plan.Copies, before.Plan.Key = []string{"b1-pull-secret-1"}, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "dpf", Name: "b1-key"}}
	after := before
	g.Expect(did(change.BetweenBridges(before, after, nil))).To(BeEmpty())
	unsaid := func(kind, reason string) {
		before.Bridge = oneBridge().Bridge
		meta.SetStatusCondition(&before.Bridge.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason})
		after.Bridge = before.Bridge.DeepCopy()
	}
	unsaid(dpuv1.ConditionBlueFieldContainerImageAvailable, "ImageNotFound")
	g.Expect(did(change.BetweenBridges(before, after, nil))).To(BeEmpty(), "the registries' answer stays the same")
	after.Bridge.Spec.OCPReleaseImage = "quay.io/example/release:4.20.5"
	g.Expect(did(change.BetweenBridges(before, after, nil))).To(Equal([]string{"update DPUHCPBridge dpf/b1", "create Secret dpf/b1-pull-secret-1", "create Secret dpf/b1-key"}))
	unsaid(dpuv1.ConditionReady, "Provisioning")
	after.Bridge.Spec.OCPReleaseImage = "quay.io/example/release:4.20.5"
	g.Expect(did(change.BetweenBridges(before, after, nil))).To(Equal([]string{"update DPUHCPBridge dpf/b1"}), "Ready waits for HyperShift, too")
}
