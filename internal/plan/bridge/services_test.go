package bridge_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

func inDPF(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "dpf", Name: name} }

// serving is a bridge whose DPUDeployment has two services, for which everything exists.
func serving(t *testing.T) bridge.Input {
	t.Helper()
	in := served(t)
	in.Templates.Deployment.Spec.Services = map[string]dpf.DeployedService{
		"ovn": {ServiceTemplate: "ovn", ServiceConfiguration: "ovn-conf"}, "blueman": {ServiceTemplate: "bm", ServiceConfiguration: "bm-conf"},
	}
	in.Services = bridge.Services{
		Templates:      []dpf.DPUServiceTemplate{{ObjectMeta: inDPF("bm")}, {ObjectMeta: inDPF("ovn")}},
		Configurations: []dpf.DPUServiceConfiguration{{ObjectMeta: inDPF("ovn-conf")}, {ObjectMeta: inDPF("bm-conf")}},
	}
	return in
}

// toldOfServices are the findings about services, as REASON: message.
func toldOfServices(p bridge.Plan) (all []string) {
	for _, f := range p.Findings {
		if f.Condition == dpuv1.ConditionServiceTemplatesReady {
			all = append(all, f.Reason+": "+f.Message)
		}
	}
	return all
}

func TestWhatTheServicesOfADPUDeploymentLackIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		is   func(*bridge.Input)
		says []string
	}{
		"nothing": {func(*bridge.Input) {}, nil},
		"both templates": {func(in *bridge.Input) { in.Services.Templates = nil },
			[]string{"ServiceTemplateNotFound: DPUDeployment dpf/ovn needs DPUServiceTemplate bm, ovn, which namespace dpf does not have"}},
		"one that goes": {func(in *bridge.Input) { in.Services.Templates[1].DeletionTimestamp = &metav1.Time{} },
			[]string{"ServiceTemplateNotFound: DPUDeployment dpf/ovn needs DPUServiceTemplate ovn, which"}},
		"one of another namespace": {func(in *bridge.Input) { in.Services.Templates[0].Namespace = "theirs" },
			[]string{"ServiceTemplateNotFound: DPUDeployment dpf/ovn needs DPUServiceTemplate bm, which"}},
		"a configuration": {func(in *bridge.Input) { in.Services.Configurations = in.Services.Configurations[1:] },
			[]string{"ServiceConfigurationNotFound: DPUDeployment dpf/ovn needs DPUServiceConfiguration ovn-conf, which"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := serving(t)
			c.is(&in)
			p := bridge.Of(in)
			told := toldOfServices(p)
			g.Expect(told).To(HaveLen(len(c.says)))
			for i := range c.says {
				g.Expect(told[i]).To(HavePrefix(c.says[i]))
			}
			g.Expect(p.Services.Deployment.String()).To(Equal("dpf/ovn"))
			g.Expect(p.Frozen).To(BeFalse())
			g.Expect(p.Templates).To(Equal(bridge.Templating{Served: 1}), "templates stay")
			g.Expect(finding.Worst(p.Findings, dpuv1.ConditionIgnitionConfigured)).To(Equal(finding.Warning))
		})
	}
}

func TestNothingIsSaidOfServicesWithoutADPUDeployment(t *testing.T) {
	for name, is := range map[string]func(*bridge.Input){
		"none is named": func(in *bridge.Input) { in.Bridge.Spec.DPUDeploymentRef, in.Templates.Deployment = nil, nil },
		"it is gone":    func(in *bridge.Input) { in.Templates.Deployment = nil },
		"it goes":       func(in *bridge.Input) { in.Templates.Deployment.DeletionTimestamp = &metav1.Time{} },
		"it is not ours": func(in *bridge.Input) {
			in.Bridge.Spec.DPUDeploymentRef.Namespace, in.Templates.Deployment.Namespace = "theirs", "theirs"
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := serving(t)
			in.Services = bridge.Services{}
			is(&in)
			p := bridge.Of(in)
			NewWithT(t).Expect(toldOfServices(p)).To(BeEmpty())
			NewWithT(t).Expect(p.Services).To(Equal(bridge.Servicing{}))
		})
	}
}
