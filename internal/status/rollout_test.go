package status

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// The child's sentence, including the command that applies the update, is on the Infra too.
func TestAnInfraSaysWhatItsChildSaysOfItsTemplate(t *testing.T) {
	for reason, c := range map[string]struct {
		found       finding.Finding
		progressing metav1.ConditionStatus
	}{
		"TemplateUpdatePending": {finding.Warn(v1alpha1.ConditionProgressing, "TemplateUpdatePending").Say("what it says"), metav1.ConditionFalse},
		"PullingImages":         {finding.Wait(v1alpha1.ConditionProgressing, "PullingImages").Say("what it says"), metav1.ConditionTrue},
		"WaitingForTurn":        {finding.Wait(v1alpha1.ConditionProgressing, "WaitingForTurn").Say("what it says"), metav1.ConditionTrue},
		"WaitingForLostPod":     {finding.Wait(v1alpha1.ConditionProgressing, "WaitingForLostPod").Say("what it says"), metav1.ConditionTrue},
		"ImagePullFailed":       {finding.Fail(v1alpha1.ConditionProgressing, "ImagePullFailed").Say("what it says"), metav1.ConditionFalse},
	} {
		t.Run(reason, func(t *testing.T) {
			g := NewWithT(t)
			of := child{meta: &v1alpha1.ProxyServer{}, out: Outcome{Findings: []finding.Finding{c.found}}}.progressing(verdict{}, nil)
			g.Expect(of).To(Equal(verdict{v1alpha1.ConditionProgressing, c.progressing, reason, "what it says"}))

			proxy := &v1alpha1.ProxyServer{}
			proxy.Name, proxy.Status.Conditions = "c1-proxy", []metav1.Condition{{Type: of.Type, Status: of.Status, Reason: of.Reason, Message: of.Message}}
			g.Expect(progressing(&v1alpha1.Infra{}, input.Children{}, Outcome{Findings: rollouts(input.Children{component.Proxy: proxy})}, nil)).
				To(Equal(verdict{v1alpha1.ConditionProgressing, c.progressing, reason, "ProxyServer c1-proxy: what it says"}))
		})
	}
}
