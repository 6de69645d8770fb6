package dpf

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// BFB is an image that DPUs boot to be installed. Of it we read only that it exists.
type BFB struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

// BFBList is a list of BFB.
type BFBList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BFB `json:"items"`
}

// DeepCopyObject copies b.
func (b *BFB) DeepCopyObject() runtime.Object {
	return &BFB{TypeMeta: b.TypeMeta, ObjectMeta: *b.ObjectMeta.DeepCopy()}
}

// DeepCopyObject copies l.
func (l *BFBList) DeepCopyObject() runtime.Object {
	out := &BFBList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*BFB))
	}
	return out
}
