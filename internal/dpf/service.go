package dpf

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// DPUServiceTemplate says from which chart a service of DPUDeployments is installed. Its spec is not read.
type DPUServiceTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

// DPUServiceTemplateList is a list of DPUServiceTemplate.
type DPUServiceTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DPUServiceTemplate `json:"items"`
}

// DPUServiceConfiguration says how such a service is configured. Its spec is not read.
type DPUServiceConfiguration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

// DPUServiceConfigurationList is a list of DPUServiceConfiguration.
type DPUServiceConfigurationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DPUServiceConfiguration `json:"items"`
}

// DeepCopyObject copies t.
func (t *DPUServiceTemplate) DeepCopyObject() runtime.Object {
	return &DPUServiceTemplate{TypeMeta: t.TypeMeta, ObjectMeta: *t.ObjectMeta.DeepCopy()}
}

// DeepCopyObject copies l.
func (l *DPUServiceTemplateList) DeepCopyObject() runtime.Object {
	out := &DPUServiceTemplateList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*DPUServiceTemplate))
	}
	return out
}

// DeepCopyObject copies c.
func (c *DPUServiceConfiguration) DeepCopyObject() runtime.Object {
	return &DPUServiceConfiguration{TypeMeta: c.TypeMeta, ObjectMeta: *c.ObjectMeta.DeepCopy()}
}

// DeepCopyObject copies l.
func (l *DPUServiceConfigurationList) DeepCopyObject() runtime.Object {
	out := &DPUServiceConfigurationList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*DPUServiceConfiguration))
	}
	return out
}
