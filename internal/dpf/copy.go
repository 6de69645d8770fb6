package dpf

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// DeepCopy copies c.
func (c *DPUCluster) DeepCopy() *DPUCluster {
	if c == nil {
		return nil
	}
	out := &DPUCluster{TypeMeta: c.TypeMeta, ObjectMeta: *c.ObjectMeta.DeepCopy(), Spec: c.Spec, Status: c.Status}
	out.Status.Conditions = conditions(c.Status.Conditions)
	return out
}

// DeepCopyObject copies c.
func (c *DPUCluster) DeepCopyObject() runtime.Object { return c.DeepCopy() }

// DeepCopyObject copies l.
func (l *DPUClusterList) DeepCopyObject() runtime.Object {
	out := &DPUClusterList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopy())
	}
	return out
}

// DeepCopy copies d.
func (d *DPU) DeepCopy() *DPU {
	if d == nil {
		return nil
	}
	out := &DPU{TypeMeta: d.TypeMeta, ObjectMeta: *d.ObjectMeta.DeepCopy(), Spec: d.Spec, Status: d.Status}
	out.Status.Conditions, out.Status.Addresses = conditions(d.Status.Conditions), slices.Clone(d.Status.Addresses)
	out.Status.AgentStatus.Conditions = conditions(d.Status.AgentStatus.Conditions)
	return out
}

// DeepCopyObject copies d.
func (d *DPU) DeepCopyObject() runtime.Object { return d.DeepCopy() }

// DeepCopyObject copies l.
func (l *DPUList) DeepCopyObject() runtime.Object {
	out := &DPUList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopy())
	}
	return out
}

// conditions copies a list of conditions, whose only pointer is in the time, which nobody changes.
func conditions(all []metav1.Condition) []metav1.Condition { return slices.Clone(all) }
