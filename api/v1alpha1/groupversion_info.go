// Package v1alpha1 is the API hostedcluster.densityops.com/v1alpha1: Infra, which users write, and DHCPServer, DHCPLease, DNSServer
// and ProxyServer, which the operator and the daemons use.
//
// +kubebuilder:object:generate=true
// +kubebuilder:ac:generate=true
// +groupName=hostedcluster.densityops.com
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion of every kind in this package.
	GroupVersion = schema.GroupVersion{Group: "hostedcluster.densityops.com", Version: "v1alpha1"}
	// SchemeGroupVersion is GroupVersion under the name that generated code expects.
	SchemeGroupVersion = GroupVersion

	schemeBuilder = runtime.NewSchemeBuilder(known(&Infra{}, &InfraList{}, &DHCPLease{}, &DHCPLeaseList{}), func(s *runtime.Scheme) error {
		metav1.AddToGroupVersion(s, GroupVersion)
		return nil
	})
	// AddToScheme registers every kind of this package.
	AddToScheme = schemeBuilder.AddToScheme
)

// known registers a kind and its list. What a component is configured by registers itself, in its own file.
func known(types ...runtime.Object) func(*runtime.Scheme) error {
	return func(s *runtime.Scheme) error {
		s.AddKnownTypes(GroupVersion, types...)
		return nil
	}
}

// Resource returns the group-qualified resource, for errors.
func Resource(resource string) schema.GroupResource {
	return GroupVersion.WithResource(resource).GroupResource()
}
