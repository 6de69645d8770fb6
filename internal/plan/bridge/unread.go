package bridge

import (
	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/kept"
)

// UnreadDPUs reports DPUs that are kept only in part. Approval continues for the others; before anything is approved, all are read anew and
// whole.
func UnreadDPUs(all []dpf.DPU) []finding.Finding {
	var large []string
	for i := range all {
		if _, inPart := kept.InPart(&all[i]); inPart {
			large = append(large, all[i].Namespace+"/"+all[i].Name)
		}
	}
	if large == nil {
		return nil
	}
	return one(finding.Warn(dpuv1.ConditionCSRAutoApprovalActive, "ObjectTooLarge").
		Say("DPUs that are too large to be read: %s; their certificates may have to wait: take away labels, or entries of their lists, that nobody needs", finding.Some(large)))
}
