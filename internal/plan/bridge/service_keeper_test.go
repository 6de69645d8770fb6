package bridge_test

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

const hostImage = "quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:0123"

// managing is a bridge that keeps DPUServiceTemplates, none of which exists yet, beside hosts with a multi-arch release.
func managing(t *testing.T) bridge.Input {
	t.Helper()
	in := serving(t)
	in.Bridge.Spec.ManageDPUServiceTemplates = true
	delete(in.Templates.Deployment.Spec.Services, "blueman")
	in.Services.Templates = nil
	in.Templates.Configs[0].Status.Version = "v26.4.1"
	in.Services.Host = &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Generation: 1, Annotations: map[string]string{bridge.AnnotationHostRelease: "4.22.7"}}}
	in.Services.Host.Spec.Template.Spec.Containers = []corev1.Container{{Name: "kube-rbac-proxy-node", Image: "other:1"}, {Name: "ovnkube-controller", Image: hostImage}}
	in.Services.Host.Status = appsv1.DaemonSetStatus{ObservedGeneration: 1, DesiredNumberScheduled: 2, UpdatedNumberScheduled: 2, NumberAvailable: 2}
	in.Services.Release = &configv1.ClusterVersion{Status: configv1.ClusterVersionStatus{Desired: configv1.Release{Architecture: configv1.ClusterVersionArchitectureMulti}}}
	return in
}

// keeping is the same bridge once it has made them.
func keeping(t *testing.T) bridge.Input {
	t.Helper()
	in := managing(t)
	for _, name := range []string{"doca-telemetry-service", "hbn", "ovn"} {
		meta := inDPF(name)
		meta.Labels = ours(in.Bridge)
		in.Services.Templates = append(in.Services.Templates, dpf.DPUServiceTemplate{ObjectMeta: meta})
	}
	return in
}

// makes are the DPUServiceTemplates that a plan applies, by name.
func makes(t *testing.T, p bridge.Plan) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	for _, o := range p.Services.Apply {
		var made unstructured.Unstructured
		text, err := json.Marshal(o)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(json.Unmarshal(text, &made.Object)).To(Succeed())
		NewWithT(t).Expect(made.GetKind() + " " + made.GetNamespace()).To(Equal("DPUServiceTemplate dpf"))
		NewWithT(t).Expect(made.GetLabels()).To(HaveKeyWithValue(names.LabelBridge, "b1"))
		all[made.GetName()] = made.Object["spec"].(map[string]any)
	}
	return all
}

func TestTheDPUServiceTemplatesOfABridge(t *testing.T) {
	g := NewWithT(t)
	all := makes(t, bridge.Of(managing(t)))
	g.Expect(all).To(HaveLen(3))
	for name, chart := range map[string]string{"doca-telemetry-service": "doca-telemetry", "hbn": "doca-hbn", "ovn": "ovn-kubernetes-chart"} {
		g.Expect(all[name]).To(HaveKeyWithValue("deploymentServiceName", name))
		source, _, _ := unstructured.NestedMap(all[name], "helmChart", "source")
		g.Expect(source).To(HaveKeyWithValue("chart", chart))
	}
	image, _, _ := unstructured.NestedMap(all["ovn"], "helmChart", "values", "dpuManifests", "image")
	g.Expect(image).To(Equal(map[string]any{"repository": "quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256", "tag": "0123"}))
}

// Each says what is wrong, as a reason to wait while DPUs lack a template, else as a warning.
func TestWhyADPUServiceTemplateIsNotMadeOrChanged(t *testing.T) {
	setImage := func(image string) func(*bridge.Input) {
		return func(in *bridge.Input) { in.Services.Host.Spec.Template.Spec.Containers[1].Image = image }
	}
	setRelease := func(release string) func(*bridge.Input) {
		return func(in *bridge.Input) { in.Services.Host.Annotations[bridge.AnnotationHostRelease] = release }
	}
	setVersion := func(version string) func(*bridge.Input) {
		return func(in *bridge.Input) { in.Templates.Configs[0].Status.Version = version }
	}
	for name, c := range map[string]struct {
		is     func(*bridge.Input)
		reason string
		left   int // how many of the three are applied
	}{
		"nothing is wrong":         {func(*bridge.Input) {}, "", 3},
		"DPF's version is unknown": {setVersion(""), "DPFVersionUnknown", 0},
		"DPF is another":           {setVersion("v26.7.0"), "DPFVersionUnsupported", 0},
		"DPF's version is none":    {setVersion("26"), "DPFVersionUnsupported", 0},
		"there is no DaemonSet":    {func(in *bridge.Input) { in.Services.Host = nil }, "OVNImageUnknown", 2},
		"it has no such container": {func(in *bridge.Input) { in.Services.Host.Spec.Template.Spec.Containers = nil }, "OVNImageUnknown", 2},
		"its image has no tag":     {setImage("example.com:5000/ovn"), "OVNImageUnknown", 2},
		"the hosts are older":      {setRelease("4.22.1"), "HostReleaseUnsupported", 2},
		"their release is unknown": {setRelease(""), "HostReleaseUnsupported", 2},
		"a candidate will do":      {setRelease("4.22.2-rc.1"), "", 3},
		"the hosts are x86 only, and no other image is found": {func(in *bridge.Input) {
			single(in)
			in.Services.Answer = bridge.Answer{Reason: bridge.ImageNotFound, Message: "does not exist"}
		}, "HostReleaseNotMultiArch", 2},
		"the hosts are x86 only, and the other is found": {func(in *bridge.Input) {
			single(in)
			in.Services.Answer = bridge.Answer{Image: hostImage}
		}, "", 3},
		"ClusterVersion names no release": {func(in *bridge.Input) {
			single(in)
			in.Services.Release.Status.Desired.Image = ""
		}, "HostReleaseNotMultiArch", 2},
		"there is no ClusterVersion": {func(in *bridge.Input) { in.Services.Release = nil }, "HostReleaseNotMultiArch", 2},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			for severity, in := range map[finding.Severity]bridge.Input{finding.Waiting: managing(t), finding.Warning: keeping(t)} {
				c.is(&in)
				p := bridge.Of(in)
				g.Expect(makes(t, p)).To(HaveLen(c.left))
				told := HaveLen(0)
				if c.reason != "" {
					told = ContainElement(And(HaveField("Condition", dpuv1.ConditionServiceTemplatesReady), HaveField("Reason", c.reason), HaveField("Severity", severity)))
					g.Expect(p.Findings).To(told)
				} else if severity == finding.Warning {
					g.Expect(toldOfServices(p)).To(told)
				}
				g.Expect(p.Services.Remove).To(BeEmpty())
			}
		})
	}
}

// The hosts' pods cannot run before DPF has installed the DPUs, and DPF installs none without the template: if each waits for the other, nothing
// is ever installed (bug 189 of the public operator).
func TestBug189OVNIsMadeBeforeItsHostsAreRolledOutAndChangedAfterwards(t *testing.T) {
	for name, roll := range map[string]func(*appsv1.DaemonSet){
		"no pod is up":             func(d *appsv1.DaemonSet) { d.Status.NumberAvailable = 0 },
		"pods of the old template": func(d *appsv1.DaemonSet) { d.Status.UpdatedNumberScheduled = 1 },
		"it has just changed":      func(d *appsv1.DaemonSet) { d.Generation = 2 },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			first, later := managing(t), keeping(t)
			roll(first.Services.Host)
			roll(later.Services.Host)
			g.Expect(makes(t, bridge.Of(first))).To(HaveKey("ovn"))
			p := bridge.Of(later)
			g.Expect(makes(t, p)).To(And(HaveLen(2), Not(HaveKey("ovn"))))
			g.Expect(p.Findings).To(ContainElement(And(HaveField("Reason", "HostsRollingOut"), HaveField("Severity", finding.Warning))))
		})
	}
}

func TestADPUServiceTemplateOfSomebodyElseIsLeftAlone(t *testing.T) {
	g := NewWithT(t)
	in := keeping(t)
	in.Services.Templates[1].Labels = nil
	in.Services.Templates[2].Labels[names.LabelOwnerUID] = "u2"
	p := bridge.Of(in)
	g.Expect(makes(t, p)).To(HaveLen(1))
	g.Expect(toldOfServices(p)).To(HaveExactElements(HavePrefix("NameTaken: DPUServiceTemplate dpf/hbn is not"), HavePrefix("NameTaken: DPUServiceTemplate dpf/ovn is not")))
	in.Bridge.Spec.ManageDPUServiceTemplates = false
	g.Expect(bridge.Of(in).Services.Remove).To(HaveExactElements(HaveField("Name", "doca-telemetry-service")))
}

func TestWhenNoDPUServiceTemplateIsMadeOrRemoved(t *testing.T) {
	for name, is := range map[string]func(*bridge.Input){
		"the DPUDeployment is gone": func(in *bridge.Input) { in.Templates.Deployment = nil },
		"it is not granted": func(in *bridge.Input) {
			in.Bridge.Spec.DPUDeploymentRef.Namespace, in.Templates.Deployment.Namespace = "theirs", "theirs"
		},
		"the DPUCluster is another's": func(in *bridge.Input) { in.DPUCluster.Spec.Kubeconfig = "mine" },
	} {
		t.Run(name, func(t *testing.T) {
			in := keeping(t)
			is(&in)
			p := bridge.Of(in)
			NewWithT(t).Expect(p.Services.Apply).To(BeEmpty())
			NewWithT(t).Expect(p.Services.Remove).To(BeEmpty())
		})
	}
}

func TestDPUServiceTemplatesGoWithTheirBridgeAfterTheHostedCluster(t *testing.T) {
	in := keeping(t)
	in.Services.Templates[0].Labels = nil
	others := []bridge.Object{&in.Services.Templates[0], &in.Services.Templates[1]}
	NewWithT(t).Expect(bridge.End(bridge.Remains{Input: in, Others: others}).Others).To(BeEmpty())
	in.HostedCluster, in.NodePool = nil, nil
	NewWithT(t).Expect(bridge.End(bridge.Remains{Input: in, Others: others}).Others).To(HaveExactElements(HaveField("ObjectMeta.Name", "hbn")))
}
