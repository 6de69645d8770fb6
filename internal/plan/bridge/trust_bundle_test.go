package bridge_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	accore "k8s.io/client-go/applyconfigurations/core/v1"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/managedfields"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// bundled is the bundle that a plan makes, and the name that its HostedCluster refers to.
func bundled(t *testing.T, in bridge.Input) (bundle *accore.ConfigMapApplyConfiguration, refers string) {
	t.Helper()
	for _, o := range bridge.Of(in).Objects {
		if m, is := o.(*accore.ConfigMapApplyConfiguration); is && m.Data["ca-bundle.crt"] != "" {
			bundle = m
		}
		u, err := managedfields.Intent(o)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		if spec, is := u.Object["spec"].(map[string]any); is && u.GetKind() == "HostedCluster" && spec["additionalTrustBundle"] != nil {
			refers = spec["additionalTrustBundle"].(map[string]any)["name"].(string)
		}
	}
	return bundle, refers
}

func TestDPUsTrustWhatTheClusterTrusts(t *testing.T) {
	g, in := NewWithT(t), load(t, "testdata/loadbalancer/in.yaml")
	bundle, refers := bundled(t, in)
	g.Expect(bundle).To(BeNil(), "the administrator trusts none")
	g.Expect(refers).To(BeEmpty())

	first := authority(t)
	trusts(&in, nil, map[string]string{"ca-bundle.crt": first})
	bundle, refers = bundled(t, in)
	g.Expect(bundle.Data).To(Equal(map[string]string{"ca-bundle.crt": first}))
	g.Expect(refers).To(And(Equal(*bundle.Name), HavePrefix("b1-trust-bundle-")))

	made(&in)
	in.HostedCluster.Spec.AdditionalTrustBundle = &corev1.LocalObjectReference{Name: refers}
	in.TrustedCA.Data["ca-bundle.crt"] = authority(t)
	bundle, another := bundled(t, in)
	g.Expect(another).To(And(Equal(*bundle.Name), Not(Equal(refers))), "HyperShift makes new ignition for another name only")

	in.HostedCluster.Spec.AdditionalTrustBundle.Name = "b1-theirs"
	bundle, refers = bundled(t, in)
	g.Expect(bundle).To(BeNil(), "what somebody else has it trust stays")
	g.Expect(refers).To(BeEmpty())
}

func TestAHostedClusterKeepsWhatItTrusts(t *testing.T) {
	for name, c := range map[string]struct {
		is   func(in *bridge.Input)
		says string
	}{
		"gone":     {func(in *bridge.Input) { in.TrustedCA = nil }, "TrustedCANotFound"},
		"empty":    {func(in *bridge.Input) { in.TrustedCA.Data = nil }, "TrustedCAInvalid"},
		"nonsense": {func(in *bridge.Input) { in.TrustedCA.Data["ca-bundle.crt"] = "nonsense" }, "TrustedCAInvalid"},
	} {
		t.Run(name, func(t *testing.T) {
			g, in := NewWithT(t), load(t, "testdata/loadbalancer/in.yaml")
			trusts(&in, nil, map[string]string{"ca-bundle.crt": authority(t)})
			g.Expect(bridge.Of(in).Frozen).To(BeFalse())
			c.is(&in)
			p := bridge.Of(in)
			g.Expect(p.Frozen).To(BeTrue())
			g.Expect(p.Findings).To(ContainElement(And(HaveField("Condition", dpuv1.ConditionReady), HaveField("Reason", c.says))))

			made(&in)
			in.HostedCluster.Spec.AdditionalTrustBundle = &corev1.LocalObjectReference{Name: "b1-trust-bundle-0123456789"}
			g.Expect(bridge.Of(in).Frozen).To(BeTrue(), "the ConfigMap that it refers to stays")
			in.HostedCluster.Spec.AdditionalTrustBundle.Name = "b1-theirs"
			p = bridge.Of(in)
			g.Expect(p.Frozen).To(BeFalse(), "%v", p.Findings)
			g.Expect(p.Findings).NotTo(ContainElement(HaveField("Reason", c.says)), "ours is not used")
		})
	}
}
