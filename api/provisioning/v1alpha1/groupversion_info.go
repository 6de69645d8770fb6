// Package v1alpha1 is the API provisioning.dpu.hcp.io/v1alpha1: DPUHCPBridge, which connects a DPUCluster of DPF to a hosted
// cluster of HyperShift.
//
// +kubebuilder:object:generate=true
// +kubebuilder:ac:generate=true
// +groupName=provisioning.dpu.hcp.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion of every kind in this package.
	GroupVersion = schema.GroupVersion{Group: "provisioning.dpu.hcp.io", Version: "v1alpha1"}
	// SchemeGroupVersion is GroupVersion under the name that generated code expects.
	SchemeGroupVersion = GroupVersion

	schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	// AddToScheme registers every kind of this package.
	AddToScheme = schemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &DPUHCPBridge{}, &DPUHCPBridgeList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// Resource returns the group-qualified resource, for errors.
func Resource(resource string) schema.GroupResource {
	return GroupVersion.WithResource(resource).GroupResource()
}
