package bridge_test

import (
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// single has the management cluster run a release for one architecture, and be on its way to a later one.
func single(in *bridge.Input) {
	in.Services.Release.Status.Desired = configv1.Release{Version: "4.22.8", Image: "quay.io/openshift-release-dev/ocp-release@" + digest}
}

func TestWhereOVNForDPUsIsLookedUp(t *testing.T) {
	g, in := NewWithT(t), managing(t)
	g.Expect(in.OVNLookup()).To(BeNil(), "the hosts' image will do")
	single(&in)
	in.PullSecret.Data[bridge.PullSecretKey] = []byte(`{"auths":{"quay.io":{"auth":"x"}}}`)
	in.TagMirrors = []configv1.ImageTagMirrorSet{{Spec: configv1.ImageTagMirrorSetSpec{ImageTagMirrors: []configv1.ImageTagMirrors{{Source: "quay.io/openshift-release-dev", Mirrors: []configv1.ImageMirror{"mirror.example/ocp"}}}}}}
	quay := authority(t)
	trusts(&in, map[string]string{"quay.io": quay}, map[string]string{"ca-bundle.crt": quay})
	in.Proxy.Status.HTTPSProxy = "http://proxy.example:3128"
	g.Expect(in.OVNLookup()).To(HaveValue(Equal(bridge.Lookup{
		Component: "ovn-kubernetes", Repository: "quay.io/openshift-release-dev/ocp-release", Version: "4.22.7-aarch64",
		Releases:  []bridge.Place{{Repository: "mirror.example/ocp/ocp-release"}, {Repository: "quay.io/openshift-release-dev/ocp-release", Login: `{"auth":"x"}`, CA: quay}},
		TrustedCA: quay, Proxy: bridge.Proxy{HTTPS: "http://proxy.example:3128"},
	})), "of the release that the hosts run")

	in.TrustedCA = nil
	g.Expect(in.OVNLookup()).To(BeNil())
	g.Expect(toldOfServices(bridge.Of(in))).To(ContainElement(And(HavePrefix("HostReleaseNotMultiArch: "), ContainSubstring("openshift-config/all, which does not exist"), Not(ContainSubstring("mirror that release")))))
}

func TestWhenOVNForDPUsIsNotLookedUp(t *testing.T) {
	for name, is := range map[string]func(*bridge.Input){
		"the templates are others'":    func(in *bridge.Input) { in.Bridge.Spec.ManageDPUServiceTemplates = false },
		"the DPUDeployment is gone":    func(in *bridge.Input) { in.Templates.Deployment = nil },
		"there is no DaemonSet":        func(in *bridge.Input) { in.Services.Host = nil },
		"the hosts are older":          func(in *bridge.Input) { in.Services.Host.Annotations[bridge.AnnotationHostRelease] = "4.22.1" },
		"their release is no tag":      func(in *bridge.Input) { in.Services.Host.Annotations[bridge.AnnotationHostRelease] = "4.22.7/../x" },
		"there is no ClusterVersion":   func(in *bridge.Input) { in.Services.Release = nil },
		"DPF has no version":           func(in *bridge.Input) { in.Templates.Configs[0].Status.Version = "" },
		"nothing is made for that DPF": func(in *bridge.Input) { in.Templates.Configs[0].Status.Version = "24.10.0" },
		"ovn is another's": func(in *bridge.Input) {
			in.Services.Templates = []dpf.DPUServiceTemplate{{ObjectMeta: metav1.ObjectMeta{Namespace: "dpf-operator-system", Name: "ovn"}}}
		},
		"ClusterVersion is incomplete": func(in *bridge.Input) { in.Services.Release.Status.Desired.Image = "" },
	} {
		t.Run(name, func(t *testing.T) {
			in := managing(t)
			single(&in)
			NewWithT(t).Expect(in.OVNLookup()).NotTo(BeNil())
			is(&in)
			NewWithT(t).Expect(in.OVNLookup()).To(BeNil())
		})
	}
}

// A manager that has just started has not asked yet: what is there stays, and nothing is told.
func TestOVNOfASingleArchRelease(t *testing.T) {
	g, in, made := NewWithT(t), managing(t), keeping(t)
	single(&in)
	single(&made)
	g.Expect(makes(t, bridge.Of(in))).NotTo(HaveKey("ovn"))
	g.Expect(toldOfServices(bridge.Of(in))).To(ContainElement(And(HavePrefix("HostReleaseNotMultiArch: "), HaveSuffix("it is being looked up"))))
	g.Expect(makes(t, bridge.Of(made))).NotTo(HaveKey("ovn"))
	g.Expect(toldOfServices(bridge.Of(made))).To(BeEmpty())

	made.Services.Answer = bridge.Answer{Reason: bridge.RegistryUnauthorized, Message: "quay.io/ocp: not allowed (401)"}
	g.Expect(bridge.Of(made).Findings).To(ContainElement(And(HaveField("Condition", dpuv1.ConditionServiceTemplatesReady), HaveField("Severity", finding.Warning),
		HaveField("Message", ContainSubstring("of the aarch64 release: quay.io/ocp: not allowed (401);")))))

	in.Services.Answer = bridge.Answer{Image: "quay.io/art@" + digest}
	image, _, _ := unstructured.NestedMap(makes(t, bridge.Of(in))["ovn"], "helmChart", "values", "dpuManifests", "image")
	g.Expect(image).To(Equal(map[string]any{"repository": "quay.io/art@sha256", "tag": digest[len("sha256:"):]}))
	made.Services.Answer, made.Services.Host.Status.NumberAvailable = in.Services.Answer, 0
	g.Expect(makes(t, bridge.Of(made))).NotTo(HaveKey("ovn"), "once all hosts run the release")
}
