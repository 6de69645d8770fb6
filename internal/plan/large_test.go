package plan_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	routev1 "github.com/openshift/api/route/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/kept"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/plan"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// swollen is what the manager keeps of an object with too many labels.
func swollen[T kept.Object](object T) T {
	labels := map[string]string{discoveryv1.LabelServiceName: object.GetLabels()[discoveryv1.LabelServiceName]}
	for i := range 500 {
		labels[fmt.Sprintf("example.com/%d", i)] = strings.Repeat("x", 63)
	}
	object.SetLabels(labels)
	return kept.Of(object).(T)
}

// An object in the control-plane namespace that is too large to be kept freezes the plan, or gives a warning, if the Infra needs it; the
// finding says what to do. Other objects give none.
func TestWhatIsTooLargeOfAControlPlaneIsTold(t *testing.T) {
	for what, c := range map[string]struct {
		swells    func(*input.Input)
		of        string
		condition string
		severity  finding.Severity
	}{
		"the API's Service": {func(in *input.Input) { in.Services[0] = *swollen(&in.Services[0]) }, "Service clusters-c1/kube-apiserver", v1alpha1.ConditionEndpointsResolved, finding.Refused},
		"a Route":           {func(in *input.Input) { in.Routes[2] = *swollen(&in.Routes[2]) }, "Route clusters-c1/konnectivity-server", v1alpha1.ConditionEndpointsResolved, finding.Refused},
		"an EndpointSlice": {func(in *input.Input) { in.EndpointSlices[1] = *swollen(&in.EndpointSlices[1]) },
			"EndpointSlice clusters-c1/oauth-openshift-x", v1alpha1.ConditionEndpointsResolved, finding.Refused},
		"the allow-list": {func(in *input.Input) {
			in.SysctlAllowlist = &corev1.ConfigMap{}
			in.SysctlAllowlist.Namespace, in.SysctlAllowlist.Name = nad.SysctlAllowlist.Namespace, nad.SysctlAllowlist.Name
			in.SysctlAllowlist = swollen(in.SysctlAllowlist)
		}, "ConfigMap " + nad.SysctlAllowlist.String(), v1alpha1.ConditionNetworkReady, finding.Refused},
		"a policy":        {func(in *input.Input) { in.NetworkPolicies[0] = *swollen(&in.NetworkPolicies[0]) }, "NetworkPolicy clusters-c1/same-namespace", v1alpha1.ConditionEndpointsResolved, finding.Warning},
		"another Service": {func(in *input.Input) { in.Services = append(in.Services, *swollen(unneeded(&corev1.Service{}))) }, "", "", 0},
		"another Route":   {func(in *input.Input) { in.Routes = append(in.Routes, *swollen(unneeded(&routev1.Route{}))) }, "", "", 0},
		"another EndpointSlice": {func(in *input.Input) {
			in.EndpointSlices = append(in.EndpointSlices, *swollen(unneeded(&discoveryv1.EndpointSlice{})))
		}, "", "", 0},
	} {
		t.Run(what, func(t *testing.T) {
			g, in := NewWithT(t), load(t, "testdata/loadbalancer-with-hostname/in.yaml").Inputs(settings())[0]
			g.Expect(in.NetworkPolicies).To(ContainElement(BeAssignableToTypeOf(networkingv1.NetworkPolicy{})))
			c.swells(&in)
			p := plan.Infra(in)
			var told []finding.Finding
			for _, f := range p.Findings {
				if f.Reason == "ObjectTooLarge" {
					told = append(told, f)
				}
			}
			g.Expect(p.Frozen).To(Equal(c.severity == finding.Refused))
			if c.of == "" {
				g.Expect(told).To(BeEmpty())
				return
			}
			g.Expect(told).To(ConsistOf(And(HaveField("Condition", c.condition), HaveField("Severity", c.severity),
				HaveField("Message", And(HavePrefix(c.of+" is too large to be read: it takes "), ContainSubstring(" KiB of memory, and may take 32; "))))))
		})
	}
}

func unneeded[T kept.Object](object T) T {
	object.SetNamespace("clusters-c1")
	object.SetName("example")
	return object
}

// A child's plan is frozen if its workload, or a Service that it names, is too large to be kept: otherwise it would lose what it has.
func TestAChildIsHeldByWhatIsTooLarge(t *testing.T) {
	g, c := NewWithT(t), childOf(t, "proxy")
	g.Expect(c.plan().Frozen).To(BeFalse())
	workload := unneeded(&appsv1.Deployment{})
	c.proxy.InPart = []kept.Object{swollen(workload)}
	p := c.plan()
	g.Expect(p.Frozen).To(BeTrue())
	g.Expect(p.Objects).To(BeEmpty())
	g.Expect(p.Findings).To(ConsistOf(And(HaveField("Condition", v1alpha1.ConditionAccepted), HaveField("Reason", "ObjectTooLarge"),
		HaveField("Message", HavePrefix("Deployment clusters-c1/example is too large to be read: it takes ")))))
}
