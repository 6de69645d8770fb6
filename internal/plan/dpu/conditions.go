package dpu

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/internal/dpf"
)

// conditionError is a condition of a DPU that DPF sets (doca-platform: api/provisioning/v1alpha1/dpu_types.go).
const conditionError = "Error"

// since is when a condition became True.
func since(d *dpf.DPU, condition string) *metav1.Time {
	c := meta.FindStatusCondition(d.Status.Conditions, condition)
	if c == nil || c.Status != metav1.ConditionTrue {
		return nil
	}
	return &c.LastTransitionTime
}

// lost is the condition Ready of a DPU that was Ready and is not, as while it starts anew; else nil. DPF writes it only of DPUs that have joined
// (doca-platform: internal/provisioning/controllers/dpu/state/ready.go).
func lost(d *dpf.DPU) *metav1.Condition {
	c := meta.FindStatusCondition(d.Status.Conditions, dpf.ConditionReady)
	if c == nil || c.Status != metav1.ConditionFalse {
		return nil
	}
	return c
}
