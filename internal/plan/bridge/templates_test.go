package bridge_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	accore "k8s.io/client-go/applyconfigurations/core/v1"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

const encapsulated = "data:,%7B%22spec%22%3A%7B%22osImageURL%22%3A%22example.com%2Fos%3A1%22%7D%7D"

// ignition is HyperShift's, as far as a template needs it; version tells one from another.
func ignition(version string) []byte {
	return fmt.Appendf(nil, `{"ignition":{"version":"3.2.0"},"passwd":{"users":[{"name":"core","sshAuthorizedKeys":[%q]}]},"storage":{"files":[{"path":"/etc/ignition-machine-config-encapsulated.json","contents":{"source":%q}}]}}`, version, encapsulated)
}

// templating is a bridge whose hosted cluster works, and whose DPUDeployment has a BFB and a flavor.
func templating(t *testing.T) bridge.Input {
	t.Helper()
	in := load(t, "testdata/loadbalancer/in.yaml")
	made(&in)
	release := string(in.Bridge.Spec.OCPReleaseImage)
	in.HostedCluster.Spec.Release.Image = release
	in.HostedCluster.Status.IgnitionEndpoint = "ignition.example.com"
	in.HostedCluster.Status.Conditions = []metav1.Condition{{Type: string(hyperv1.HostedClusterProgressing), Status: "False", Reason: "AsExpected"}}
	in.NodePool.Annotations = map[string]string{names.AnnotationConfigVersion: "1a2b3c4d"}
	in.Bridge.Spec.DPUDeploymentRef = &dpuv1.DPUDeploymentReference{Name: "ovn"}
	at := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "dpf", Name: name} }
	skips := at("f1")
	skips.Annotations = map[string]string{dpf.AnnotationSkipSizeCheck: ""}
	in.Templates = bridge.Templates{
		Deployment: &dpf.DPUDeployment{ObjectMeta: at("ovn"), Spec: dpf.DPUDeploymentSpec{DPUs: dpf.DeployedDPUs{BFB: "b1", Flavor: "f1"}}},
		Flavors:    []dpf.DPUFlavor{{ObjectMeta: skips}},
		BFBs:       []dpf.BFB{{ObjectMeta: at("b1")}},
		Configs:    []dpf.DPFOperatorConfig{{ObjectMeta: metav1.ObjectMeta{Namespace: "dpf-operator-system", Name: "config"}}},
		Payload:    bridge.Payload{Content: ignition("one"), Release: release},
	}
	return in
}

// applied are the plan's templates, as the cache shows them once they are applied.
func applied(p bridge.Plan) (all []corev1.ConfigMap) {
	for _, o := range p.Templates.Apply {
		c := o.(*accore.ConfigMapApplyConfiguration)
		m := corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: *c.Namespace, Name: *c.Name, Labels: c.Labels, Annotations: c.Annotations}, Data: map[string]string{}}
		for key, text := range c.Data {
			m.Data[key] = bridge.TemplateDigest(text)
		}
		all = append(all, m)
	}
	return all
}

// served is the same bridge once its template is there.
func served(t *testing.T) bridge.Input {
	t.Helper()
	in := templating(t)
	in.Templates.Existing = applied(bridge.Of(in))
	NewWithT(t).Expect(in.Templates.Existing).To(HaveLen(1))
	return in
}

func toldOfTemplates(p bridge.Plan) (all []string) {
	for _, f := range p.Findings {
		if f.Condition == dpuv1.ConditionIgnitionConfigured {
			all = append(all, f.Reason)
		}
	}
	return all
}

func TestATemplateIsMadeForEachPair(t *testing.T) {
	g := NewWithT(t)
	in := templating(t)
	dpu := func(namespace, bfb, flavor, cluster string) dpf.DPU {
		return dpf.DPU{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: bfb + flavor}, Spec: dpf.DPUSpec{BFB: bfb, DPUFlavor: flavor, Cluster: dpf.Reference{Namespace: "dpf", Name: cluster}}}
	}
	in.Templates.DPUs = []dpf.DPU{dpu("dpf", "b1", "f1", "d1"), dpu("dpf", "b1", "f2", "d1"), dpu("dpf", "", "f2", "d1"), dpu("theirs", "b1", "f1", "d1"), dpu("dpf", "b2", "f2", "d2")}
	second := *in.Templates.Flavors[0].DeepCopy()
	second.Name = "f2"
	in.Templates.Flavors = append(in.Templates.Flavors, second)
	p := bridge.Of(in)
	g.Expect(toldOfTemplates(p)).To(Equal([]string{"DPUIncomplete"}), "of the one without a BFB")
	all := applied(p)
	g.Expect(all).To(HaveLen(2), "not for another DPUCluster's DPU, nor for one that a stranger made")
	for i, flavor := range []string{"f1", "f2"} {
		g.Expect(all[i].Namespace).To(Equal("dpf-operator-system"))
		g.Expect(all[i].Name).To(MatchRegexp("^bfcfg-b1-[0-9a-f]{10}$"))
		g.Expect(all[i].Data).To(HaveKey("BF_CFG_TEMPLATE"))
		g.Expect(all[i].Labels).To(And(HaveKeyWithValue("provisioning.dpu.nvidia.com/bfcfg-template", "true"), HaveKeyWithValue(names.LabelBridge, "b1"), HaveKeyWithValue(names.LabelOwnerUID, string(in.Bridge.UID))))
		for key, value := range map[string]string{"cluster-name": "d1", "cluster-namespace": "dpf", "bfb-name": "b1", "bfb-namespace": "dpf", "dpuflavor-name": flavor, "dpuflavor-namespace": "dpf"} {
			g.Expect(all[i].Annotations).To(HaveKeyWithValue("provisioning.dpu.nvidia.com/bfcfg-template-"+key, value))
		}
	}
	g.Expect(all[0].Name).NotTo(Equal(all[1].Name))
}

func TestATemplateIsMadeAnewIfAnythingChanges(t *testing.T) {
	for name, change := range map[string]func(*bridge.Input){
		"the ignition": func(in *bridge.Input) { in.Templates.Payload.Content = ignition("two") },
		"the OS image": func(in *bridge.Input) { in.Bridge.Spec.MachineOSImage = "example.com/os:9" },
		"the flavor":   func(in *bridge.Input) { in.Templates.Flavors[0].Spec.OVS.RawConfigScript = "ovs-vsctl show" },
		"the MTU":      func(in *bridge.Input) { in.Templates.Configs[0].Spec.Networking.HighSpeedMTU = 9000 },
		"the CA": func(in *bridge.Input) {
			trusts(in, map[string]string{"quay.io": someCA}, map[string]string{"ca-bundle.crt": someCA})
		},
		"the mode":     zeroTrust("zero-trust", ""),
		"the flavor's": zeroTrust("", "zero-trust"),
		"its text": func(in *bridge.Input) {
			in.Templates.Existing[0].Data["BF_CFG_TEMPLATE"] = bridge.TemplateDigest("mine")
		},
		"its annotations": func(in *bridge.Input) {
			delete(in.Templates.Existing[0].Annotations, "provisioning.dpu.nvidia.com/bfcfg-template-bfb-name")
		},
		"our version": func(in *bridge.Input) {
			in.Templates.Existing[0].Annotations[names.AnnotationTemplateInputs] = "of another version"
		},
		"its labels": func(in *bridge.Input) {
			delete(in.Templates.Existing[0].Labels, "provisioning.dpu.nvidia.com/bfcfg-template")
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := served(t)
			g.Expect(bridge.Of(in).Templates).To(Equal(bridge.Templating{Served: 1}), "nothing has changed")
			change(&in)
			p := bridge.Of(in)
			g.Expect(toldOfTemplates(p)).To(BeEmpty())
			g.Expect(applied(p)).To(HaveLen(1))
			g.Expect(applied(p)[0].Name).To(Equal(in.Templates.Existing[0].Name))
			g.Expect(p.Templates.Withdraw).To(BeEmpty())
		})
	}
}

// Who has to name another BFB need not be who reads the bridge.
func TestWhatIsGoneIsToldWithTheFieldThatNamesIt(t *testing.T) {
	deployed := func(*bridge.Input) {}
	made := func(in *bridge.Input) {
		in.Templates.Deployment.Spec.DPUs = dpf.DeployedDPUs{}
		card := dpf.DPU{ObjectMeta: metav1.ObjectMeta{Namespace: "dpf", Name: "card"}, Spec: dpf.DPUSpec{BFB: "b1", DPUFlavor: "f1", Cluster: dpf.Reference{Namespace: "dpf", Name: "d1"}}}
		another := card
		another.Name = "another"
		in.Templates.DPUs = []dpf.DPU{card, another}
	}
	noBFB, noFlavor := func(in *bridge.Input) { in.Templates.BFBs = nil }, func(in *bridge.Input) { in.Templates.Flavors = nil }
	for want, changes := range map[string][2]func(*bridge.Input){
		"BFB dpf/b1 does not exist, or is being deleted, and DPUDeployment dpf/ovn has it in spec.dpus.bfb: create it":          {deployed, noBFB},
		"DPUFlavor dpf/f1 does not exist, or is being deleted, and DPUDeployment dpf/ovn has it in spec.dpus.flavor: create it": {deployed, noFlavor},
		"BFB dpf/b1 does not exist, or is being deleted, and DPU dpf/card has it in spec.bfb: create it":                        {made, noBFB},
		"DPUFlavor dpf/f1 does not exist, or is being deleted, and DPU dpf/card has it in spec.dpuFlavor: create it":            {made, noFlavor},
	} {
		in := served(t)
		changes[0](&in)
		changes[1](&in)
		var all []string
		for _, f := range bridge.Of(in).Findings {
			if strings.Contains(f.Message, "does not exist") {
				all = append(all, f.Message)
			}
		}
		NewWithT(t).Expect(all).To(HaveExactElements(HavePrefix(want)))
	}
}

func zeroTrust(deployment, flavor string) func(*bridge.Input) {
	return func(in *bridge.Input) {
		in.Templates.Configs[0].Spec.DeploymentMode, in.Templates.Flavors[0].Spec.DpuMode = deployment, flavor
		in.Templates.Configs[0].Spec.ProvisioningController.Registry.Address = "http://192.0.2.7:5000"
	}
}

func TestWhenATemplateIsWithdrawn(t *testing.T) {
	const other = "quay.io/openshift-release-dev/ocp-release:4.20.9-multi"
	version := func(state configv1.UpdateState, version string) func(*bridge.Input) {
		return func(in *bridge.Input) {
			in.Templates.Version.History = []bridge.ControlPlaneUpdate{{State: state, Version: version}}
		}
	}
	progressing := func(status metav1.ConditionStatus, reason string, generation int64) func(*bridge.Input) {
		return func(in *bridge.Input) {
			c := &in.HostedCluster.Status.Conditions[0]
			c.Status, c.Reason, in.HostedCluster.Generation = status, reason, generation
		}
	}
	for name, c := range map[string]struct {
		is     func(*bridge.Input)
		leaves bool
		told   []string
	}{
		"nothing is wrong": {func(*bridge.Input) {}, true, nil},
		"an upgrade begins": {func(in *bridge.Input) {
			in.Bridge.Spec.OCPReleaseImage, in.Mapping.Data["4.20.9"] = other, "quay.io/example/bluefield:4.20.9"
		}, false, []string{"ControlPlaneProgressing"}},
		"an upgrade cannot begin": {func(in *bridge.Input) { in.Bridge.Spec.OCPReleaseImage = other }, true, nil},
		"it cannot, and the control plane upgrades": {func(in *bridge.Input) {
			progressing("True", "Progressing", 0)(in)
			in.Bridge.Spec.OCPReleaseImage = other
		}, false, []string{"ControlPlaneProgressing"}},
		"the control plane upgrades":          {progressing("True", "Progressing", 0), false, []string{"ControlPlaneProgressing"}},
		"HyperShift has not looked yet":       {progressing("False", "AsExpected", 1), true, nil},
		"HyperShift is blocked":               {progressing("False", "Blocked", 0), true, nil},
		"a first install, by the newer field": {version("Partial", "4.20.4"), false, []string{"ControlPlaneProgressing"}},
		"it is done, by the newer field":      {version("Completed", "4.20.4"), true, nil},
		"another is done, by the newer field": {version("Completed", "4.20.3"), true, nil},
		"the hosted cluster goes":             {func(in *bridge.Input) { in.HostedCluster.DeletionTimestamp = &metav1.Time{} }, false, []string{"ControlPlaneProgressing"}},
		"the hosted cluster is gone":          {func(in *bridge.Input) { in.HostedCluster = nil }, false, nil},
		"it was of another release": {func(in *bridge.Input) {
			in.Templates.Existing[0].Annotations[names.AnnotationTemplateRelease] = other
			in.Templates.Payload.Release = other
		}, false, []string{"WaitingForIgnition"}},
		"its ignition is another release's": {func(in *bridge.Input) { in.Templates.Payload.Release = other }, true, nil},
		"the flavor is gone":                {func(in *bridge.Input) { in.Templates.Flavors = nil }, false, []string{"DPUFlavorNotFound"}},
		"the flavor goes":                   {func(in *bridge.Input) { in.Templates.Flavors[0].DeletionTimestamp = &metav1.Time{} }, false, []string{"DPUFlavorNotFound"}},
		"the BFB is gone":                   {func(in *bridge.Input) { in.Templates.BFBs = nil }, false, []string{"BFBNotFound"}},
		"the DPUDeployment names no BFB":    {func(in *bridge.Input) { in.Templates.Deployment.Spec.DPUs.BFB = "" }, false, []string{"DPUDeploymentIncomplete"}},
		"it names no flavor":                {func(in *bridge.Input) { in.Templates.Deployment.Spec.DPUs.Flavor = "" }, false, []string{"DPUDeploymentIncomplete"}},
		"a DPU names no BFB": {func(in *bridge.Input) {
			in.Templates.DPUs = []dpf.DPU{{ObjectMeta: metav1.ObjectMeta{Namespace: "dpf", Name: "card"}, Spec: dpf.DPUSpec{DPUFlavor: "f1", Cluster: dpf.Reference{Namespace: "dpf", Name: "d1"}}}}
		}, true, []string{"DPUIncomplete"}},
		"the DPUDeployment is gone":     {func(in *bridge.Input) { in.Templates.Deployment = nil }, false, []string{"DPUDeploymentNotFound"}},
		"the DPUCluster is another's":   {func(in *bridge.Input) { in.DPUCluster.Spec.Kubeconfig = "mine" }, false, nil},
		"there is no DPFOperatorConfig": {func(in *bridge.Input) { in.Templates.Configs = nil }, true, []string{"DPFOperatorConfigNotFound"}},
		"there are two":                 {func(in *bridge.Input) { in.Templates.Configs = append(in.Templates.Configs, in.Templates.Configs[0]) }, true, []string{"DPFOperatorConfigNotUnique"}},
		"DPF looks elsewhere": {func(in *bridge.Input) {
			in.Templates.Configs[0].Namespace = "elsewhere"
			in.Templates.Payload = bridge.Payload{}
		}, true, []string{"WaitingForIgnition"}},
		"the manager has restarted": {func(in *bridge.Input) { in.Templates.Payload = bridge.Payload{} }, true, nil},
		"and the ignition server does not answer": {func(in *bridge.Input) {
			in.Templates.Payload = bridge.Payload{Reason: "IgnitionServerUnreachable", Message: "it is down"}
		}, true, []string{"IgnitionServerUnreachable"}},
		"the ignition is none": {func(in *bridge.Input) { in.Templates.Payload.Content = []byte("{") }, true, []string{"IgnitionInvalid"}},
		"DPUDeployments are not served": {func(in *bridge.Input) {
			in.Templates.Unserved, in.Templates.Deployment = []string{"DPUDeployments"}, nil
		}, true, []string{"DPFNotInstalled"}},
		"DPUFlavors are not served": {func(in *bridge.Input) {
			in.Templates.Unserved, in.Templates.Flavors = []string{"DPUFlavors"}, nil
		}, true, []string{"DPFNotInstalled"}},
		"DPF is not served": {func(in *bridge.Input) { in.Served.DPF = false }, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := served(t)
			c.is(&in)
			p := bridge.Of(in)
			g.Expect(p.Templates.Apply).To(BeEmpty())
			g.Expect(p.Templates.Withdraw).To(HaveLen(map[bool]int{true: 0, false: 1}[c.leaves]))
			g.Expect(toldOfTemplates(p)).To(Equal(c.told))
		})
	}
}

// While the hosted cluster keeps its release, its templates stay, and a template of the old release must not outlive that.
func TestTheReleaseDoesNotChangeBesideATemplateThatStays(t *testing.T) {
	const next = "quay.io/openshift-release-dev/ocp-release:4.20.9-multi"
	upgrade := func(in *bridge.Input) {
		in.Bridge.Spec.OCPReleaseImage, in.Mapping.Data["4.20.9"] = next, "quay.io/example/bluefield:4.20.9"
	}
	foreign := func(in *bridge.Input) {
		in.Templates.Foreign = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Namespace: "dpf-operator-system", Name: "bfcfg-d1.cfg", Annotations: in.Templates.Existing[0].Annotations}}}
	}
	for name, c := range map[string]struct {
		is              func(*bridge.Input)
		frozen          bool
		leaves          int
		reason, message string
	}{
		"nothing is in the way": {upgrade, false, 0, "", ""},
		"another's template": {func(in *bridge.Input) {
			upgrade(in)
			foreign(in)
		}, true, 1, dpuv1.ReasonTemplatesAmbiguous, "keeps release quay.io/openshift-release-dev/ocp-release:4.20.4-multi: DPF could go on installing that on DPUs from ConfigMap dpf-operator-system/bfcfg-d1.cfg"},
		"another's template, and no other release": {foreign, false, 1, "", ""},
		"what cannot be withdrawn": {func(in *bridge.Input) {
			upgrade(in)
			in.Templates.Unserved = []string{"DPFOperatorConfigs"}
		}, true, 1, "DPFNotInstalled", "does not serve DPFOperatorConfigs"},
		"what cannot be read, and no other release": {func(in *bridge.Input) { in.Templates.Unserved = []string{"DPFOperatorConfigs"} }, false, 1, "", ""},
		"what finalizers keep": {func(in *bridge.Input) {
			upgrade(in)
			in.Templates.Existing[0].DeletionTimestamp, in.Templates.Existing[0].Finalizers = &metav1.Time{}, []string{"example.com/mine"}
		}, true, 0, "TemplateTerminating", "its finalizers (example.com/mine) keep it"},
	} {
		t.Run(name, func(t *testing.T) {
			g, in := NewWithT(t), served(t)
			c.is(&in)
			p := bridge.Of(in)
			g.Expect(p.Frozen).To(Equal(c.frozen), "%v", p.Findings)
			g.Expect(p.Templates.Apply).To(BeEmpty())
			g.Expect(p.Templates.Withdraw).To(HaveLen(1 - c.leaves))
			if c.reason != "" {
				g.Expect(p.Findings).To(ContainElement(And(HaveField("Condition", dpuv1.ConditionReady), HaveField("Reason", c.reason), HaveField("Message", ContainSubstring(c.message)))))
			}
		})
	}
}

func TestNoTemplateIsMadeForAReleaseThatTheHostedClusterLeaves(t *testing.T) {
	g, in := NewWithT(t), templating(t)
	in.Bridge.Spec.OCPReleaseImage = "quay.io/openshift-release-dev/ocp-release:4.20.9-multi" // whose image is not known
	p := bridge.Of(in)
	g.Expect(p.Templates).To(Equal(bridge.Templating{}))
	g.Expect(p.Findings).To(ContainElement(And(HaveField("Reason", "ControlPlaneProgressing"), HaveField("Message", ContainSubstring("does not get release quay.io/openshift-release-dev/ocp-release:4.20.9-multi yet")))))
}

func TestATemplateElsewhereThanDPFReadsThemIsLeftAlone(t *testing.T) {
	g, in := NewWithT(t), served(t)
	forged := *in.Templates.Existing[0].DeepCopy()
	forged.Namespace, forged.Labels = "strangers", maps.Clone(forged.Labels)
	forged.Labels[names.LabelOwnerUID] = "none"
	in.Templates.Existing = append(in.Templates.Existing, forged)
	p := bridge.Of(in)
	g.Expect(p.Templates).To(Equal(bridge.Templating{Served: 1}))
	in.Bridge.Spec.DPUDeploymentRef, in.Templates.Deployment = nil, nil
	g.Expect(bridge.Of(in).Templates.Withdraw).To(HaveExactElements(HaveField("Namespace", "dpf-operator-system")))
}

func TestNoTemplateIsMadeBeforeItsTime(t *testing.T) {
	for name, is := range map[string]func(*bridge.Input){
		"not looked at yet": func(in *bridge.Input) { in.HostedCluster.Generation = 1 },
		"not rolled out":    func(in *bridge.Input) { in.HostedCluster.Status.Conditions = nil },
		"another release":   func(in *bridge.Input) { in.Templates.Payload.Release = "another" },
		"not downloaded":    func(in *bridge.Input) { in.Templates.Payload = bridge.Payload{} },
		"another's, completed": func(in *bridge.Input) {
			in.Templates.Version.History = []bridge.ControlPlaneUpdate{{State: "Completed", Version: "4.20.3"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := templating(t)
			is(&in)
			p := bridge.Of(in)
			NewWithT(t).Expect(p.Templates).To(Equal(bridge.Templating{}))
			NewWithT(t).Expect(toldOfTemplates(p)).To(HaveLen(1))
		})
	}
}

func TestAnothersTemplateForTheSameDPUsIsToldOf(t *testing.T) {
	g := NewWithT(t)
	in := templating(t)
	says := dpf.TemplateOf(types.NamespacedName{Namespace: "dpf", Name: "d1"}, types.NamespacedName{Namespace: "dpf", Name: "b1"}, types.NamespacedName{Namespace: "dpf", Name: "f1"})
	other := metav1.ObjectMeta{Namespace: "dpf-operator-system", Name: "bfcfg-d1.cfg", Annotations: says}
	in.Templates.Foreign = []metav1.PartialObjectMetadata{{ObjectMeta: other}}
	p := bridge.Of(in)
	g.Expect(toldOfTemplates(p)).To(Equal([]string{dpuv1.ReasonTemplatesAmbiguous}))
	g.Expect(p.Templates).To(Equal(bridge.Templating{}), "a second one would stop all installations")

	in = served(t)
	forged := *in.Templates.Existing[0].DeepCopy()
	forged.Name, forged.Labels = "forged", maps.Clone(forged.Labels)
	forged.Labels[names.LabelOwnerUID] = "u2"
	in.Templates.Existing = append(in.Templates.Existing, forged)
	p = bridge.Of(in)
	g.Expect(toldOfTemplates(p)).To(Equal([]string{dpuv1.ReasonTemplatesAmbiguous}))
	g.Expect(p.Templates).To(Equal(bridge.Templating{Served: 1}), "what is not ours is left alone")
}

// Wherever DPF does not look, anybody can make one with the bridge's labels, and the operator may not be allowed to delete it: the hosted
// cluster would wait for that.
func TestATemplateIsLeftAloneWhereDPFDoesNotLook(t *testing.T) {
	for _, uid := range []string{"", "of-no-bridge"} {
		in := served(t)
		forged := *in.Templates.Existing[0].DeepCopy()
		forged.Namespace, forged.Annotations[names.AnnotationTemplateRelease] = "theirs", "another"
		if uid != "" {
			forged.Labels[names.LabelOwnerUID] = uid
		}
		in.Templates.Existing = append(in.Templates.Existing, forged)
		p := bridge.Of(in)
		NewWithT(t).Expect(toldOfTemplates(p)).To(BeEmpty())
		NewWithT(t).Expect(p.Templates).To(Equal(bridge.Templating{Served: 1}))
	}
}

func TestADPUDeploymentOfAnotherNamespaceNeedsItsGrant(t *testing.T) {
	g := NewWithT(t)
	in := templating(t)
	in.Bridge.Spec.DPUDeploymentRef.Namespace, in.Templates.Deployment.Namespace = "theirs", "theirs"
	in.Templates.Flavors[0].Namespace, in.Templates.BFBs[0].Namespace = "theirs", "theirs"
	p := bridge.Of(in)
	g.Expect(toldOfTemplates(p)).To(Equal([]string{"RefNotPermitted"}))
	g.Expect(p.Templates.Apply).To(BeEmpty())
	in.Templates.Deployment.Annotations = map[string]string{names.AnnotationAllowedNamespaces: in.Bridge.Namespace}
	p = bridge.Of(in)
	g.Expect(toldOfTemplates(p)).To(BeEmpty())
	g.Expect(p.Templates.Apply).To(HaveLen(1))
}

func TestTemplatesAreWithdrawnBeforeAnythingElseGoes(t *testing.T) {
	in := served(t)
	end := bridge.End(bridge.Remains{Input: in, Others: []bridge.Object{&in.Templates.Existing[0]}})
	NewWithT(t).Expect(end.Others).To(HaveLen(1))
	NewWithT(t).Expect(end.Cluster).To(BeNil())
	stranger := in.Templates.Existing[0].DeepCopy()
	stranger.Labels[names.LabelOwnerUID] = "u2"
	end = bridge.End(bridge.Remains{Input: in, Others: []bridge.Object{stranger}})
	NewWithT(t).Expect(end.Others).To(BeEmpty())
	NewWithT(t).Expect(end.Cluster).NotTo(BeNil())
}

func TestWhatIsDownloadedForABridge(t *testing.T) {
	g := NewWithT(t)
	in := templating(t)
	g.Expect(*in.Download()).To(Equal(bridge.Download{
		NodePool: types.NamespacedName{Namespace: "dpf", Name: "b1"}, Hash: "1a2b3c4d", Host: "ignition.example.com",
		CA: types.NamespacedName{Namespace: "dpf-b1", Name: "ignition-server-ca-cert"}, Token: types.NamespacedName{Namespace: "dpf-b1", Name: "token-b1-1a2b3c4d"},
		Servers: []string{"ignition-server-proxy.dpf-b1.svc:443", "router-internal-default.openshift-ingress.svc:443"},
	}))
	for name, is := range map[string]func(*bridge.Input){
		"the HostedCluster is another's": func(in *bridge.Input) { in.HostedCluster.Labels = nil },
		"the NodePool is another's":      func(in *bridge.Input) { in.NodePool.Labels = nil },
		"the namespace is another's": func(in *bridge.Input) {
			first := in.HostedCluster.DeepCopy()
			first.UID, first.CreationTimestamp, in.HostedCluster.CreationTimestamp = "0", metav1.Unix(1, 0), metav1.Unix(2, 0)
			in.Neighbours = []*hyperv1.HostedCluster{first}
		},
		"no hash":     func(in *bridge.Input) { in.NodePool.Annotations = nil },
		"no endpoint": func(in *bridge.Input) { in.HostedCluster.Status.IgnitionEndpoint = "" },
	} {
		in := templating(t)
		is(&in)
		g.Expect(in.Download()).To(BeNil(), name)
	}
}
