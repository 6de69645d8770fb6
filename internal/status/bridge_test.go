package status

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/observe"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

func TestApprovalStaysAsItIsUntilTheHostedClusterIsLookedInto(t *testing.T) {
	watching := metav1.Condition{Type: dpuv1.ConditionCSRAutoApprovalActive, Status: metav1.ConditionTrue, Reason: "Watching", Message: "as before"}
	for name, c := range map[string]struct {
		before []metav1.Condition
		reason string
		want   metav1.ConditionStatus
	}{
		"the first time":              {nil, "Connecting", metav1.ConditionFalse},
		"after a restart":             {[]metav1.Condition{watching}, "Connecting", metav1.ConditionTrue},
		"what is found is said":       {[]metav1.Condition{watching}, "HostedClusterUnreachable", metav1.ConditionFalse},
		"what was wrong is not known": {[]metav1.Condition{{Type: watching.Type, Status: metav1.ConditionFalse, Reason: "NotGranted"}}, "Connecting", metav1.ConditionFalse},
	} {
		t.Run(name, func(t *testing.T) {
			b := &dpuv1.DPUHCPBridge{Status: dpuv1.DPUHCPBridgeStatus{Conditions: c.before}}
			out := Outcome{Findings: []finding.Finding{finding.Wait(watching.Type, c.reason).Say("of this pass")}}
			got := Bridge(observe.Bridge{Input: bridge.Input{Bridge: b}}, bridge.Plan{Approve: &bridge.Approval{}}, out, time.Now())
			NewWithT(t).Expect(got.Conditions).To(ContainElement(And(HaveField("Type", watching.Type), HaveField("Status", c.want))))
		})
	}
}
