package csrcli

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/csr"
)

func TestNothingWouldBeApprovedWhereApprovalIsStopped(t *testing.T) {
	approving := func(status metav1.ConditionStatus, reason, message string) *dpuv1.DPUHCPBridge {
		b := &dpuv1.DPUHCPBridge{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "dpu1"}}
		b.Status.Conditions = []metav1.Condition{{Type: dpuv1.ConditionCSRAutoApprovalActive, Status: status, Reason: reason, Message: message}}
		return b
	}
	going := approving(metav1.ConditionTrue, "Watching", "")
	going.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	for name, c := range map[string]struct {
		bridge  *dpuv1.DPUHCPBridge
		stopped string
	}{
		"it approves":     {approving(metav1.ConditionTrue, "Watching", ""), ""},
		"it is going":     {going, "Deleting: the bridge is being deleted"},
		"it is new":       {&dpuv1.DPUHCPBridge{}, "NotReported: the operator has not set condition CSRAutoApprovalActive yet"},
		"it is not bound": {approving(metav1.ConditionFalse, "DPUClusterTaken", "nothing is approved while the DPUCluster is not bound"), "DPUClusterTaken: nothing is approved while the DPUCluster is not bound"},
		"it is not known": {approving(metav1.ConditionUnknown, "Connecting", "the hosted cluster has not been read yet"), "Connecting: the hosted cluster has not been read yet"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := reportOf("csr-7x2kq", c.bridge, csr.Decision{Approve: true})
			g.Expect(r.Stopped).To(Equal(c.stopped))
			g.Expect(r.Approve).To(Equal(c.stopped == ""))
		})
	}
}
