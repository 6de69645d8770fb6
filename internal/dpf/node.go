package dpf

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// DPUNode is a host with its cards. DPF, or an admin, makes it before there are DPUs (api/provisioning/v1alpha1/dpunode_types.go).
type DPUNode struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec DPUNodeSpec `json:"spec,omitempty"`
}

// DPUNodeSpec has the fields that we read.
type DPUNodeSpec struct {
	// DPUs are its DPUDevices.
	DPUs []DPUReference `json:"dpus,omitempty"`
}

// DPUReference names a DPUDevice in the DPUNode's namespace.
type DPUReference struct {
	Name string `json:"name,omitempty"`
}

// DPUName is that of the DPU that DPF makes for a DPUDevice (internal/provisioning/controllers/util, GenerateDPUName).
func (n *DPUNode) DPUName(device string) string { return n.Name + "-" + device }

// DPUNodeList is a list of DPUNode.
type DPUNodeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DPUNode `json:"items"`
}

// DeepCopyObject copies n.
func (n *DPUNode) DeepCopyObject() runtime.Object {
	out := &DPUNode{TypeMeta: n.TypeMeta, ObjectMeta: *n.ObjectMeta.DeepCopy(), Spec: n.Spec}
	out.Spec.DPUs = slices.Clone(n.Spec.DPUs)
	return out
}

// DeepCopyObject copies l.
func (l *DPUNodeList) DeepCopyObject() runtime.Object {
	out := &DPUNodeList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*DPUNode))
	}
	return out
}
