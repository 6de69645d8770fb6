package dpf

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ServiceGroupVersion is that of DPUDeployments and their services (api/dpuservice/v1alpha1).
var ServiceGroupVersion = schema.GroupVersion{Group: "svc.dpu.nvidia.com", Version: "v1alpha1"}

// DPUDeployment says which DPUs are installed with what.
type DPUDeployment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec DPUDeploymentSpec `json:"spec,omitempty"`
}

// DPUDeploymentSpec has the fields that we read.
type DPUDeploymentSpec struct {
	DPUs DeployedDPUs `json:"dpus,omitempty"`
	// Services of the DPUs, by name.
	Services map[string]DeployedService `json:"services,omitempty"`
}

// DeployedDPUs name a BFB and a DPUFlavor in the namespace of the DPUDeployment.
type DeployedDPUs struct {
	BFB    string `json:"bfb,omitempty"`
	Flavor string `json:"flavor,omitempty"`
}

// DeployedService names what DPF needs before it makes a DPUSet (dpudeployment_controller.go, getDependencies), in the namespace of the
// DPUDeployment.
type DeployedService struct {
	ServiceTemplate      string `json:"serviceTemplate,omitempty"`
	ServiceConfiguration string `json:"serviceConfiguration,omitempty"`
}

// DPUDeploymentList is a list of DPUDeployment.
type DPUDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DPUDeployment `json:"items"`
}

// DeepCopyObject copies d.
func (d *DPUDeployment) DeepCopyObject() runtime.Object {
	out := &DPUDeployment{TypeMeta: d.TypeMeta, ObjectMeta: *d.ObjectMeta.DeepCopy(), Spec: d.Spec}
	out.Spec.Services = maps.Clone(d.Spec.Services)
	return out
}

// DeepCopyObject copies l.
func (l *DPUDeploymentList) DeepCopyObject() runtime.Object {
	out := &DPUDeploymentList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*DPUDeployment))
	}
	return out
}
