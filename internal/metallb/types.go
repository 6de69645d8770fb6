// Package metallb has the two kinds of MetalLB that a bridge makes (metallb, api/v1beta1).
package metallb

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of the kinds.
var GroupVersion = schema.GroupVersion{Group: "metallb.io", Version: "v1beta1"}

// IPAddressPool is a set of addresses that MetalLB gives to Services.
type IPAddressPool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PoolSpec `json:"spec"`
}

// PoolSpec says which addresses, and which Services may have them.
type PoolSpec struct {
	Addresses  []string    `json:"addresses"`
	AutoAssign bool        `json:"autoAssign"`
	AllocateTo *Allocation `json:"serviceAllocation,omitempty"`
}

// Allocation restricts a pool to Services of some namespaces.
type Allocation struct {
	Namespaces []string `json:"namespaces,omitempty"`
}

// IPAddressPoolList is a list of IPAddressPool.
type IPAddressPoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []IPAddressPool `json:"items"`
}

// L2Advertisement announces the addresses of pools on the network's segment.
type L2Advertisement struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec AdvertisementSpec `json:"spec"`
}

// AdvertisementSpec names the pools; without any, all are announced.
type AdvertisementSpec struct {
	IPAddressPools []string `json:"ipAddressPools,omitempty"`
}

// L2AdvertisementList is a list of L2Advertisement.
type L2AdvertisementList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []L2Advertisement `json:"items"`
}

// AddToScheme registers the kinds.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &IPAddressPool{}, &IPAddressPoolList{}, &L2Advertisement{}, &L2AdvertisementList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// DeepCopy copies p.
func (p *IPAddressPool) DeepCopy() *IPAddressPool {
	if p == nil {
		return nil
	}
	out := &IPAddressPool{TypeMeta: p.TypeMeta, ObjectMeta: *p.ObjectMeta.DeepCopy(), Spec: p.Spec}
	out.Spec.Addresses = slices.Clone(p.Spec.Addresses)
	if p.Spec.AllocateTo != nil {
		out.Spec.AllocateTo = &Allocation{Namespaces: slices.Clone(p.Spec.AllocateTo.Namespaces)}
	}
	return out
}

// DeepCopyObject copies p.
func (p *IPAddressPool) DeepCopyObject() runtime.Object { return p.DeepCopy() }

// DeepCopyObject copies l.
func (l *IPAddressPoolList) DeepCopyObject() runtime.Object {
	out := &IPAddressPoolList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopy())
	}
	return out
}

// DeepCopy copies a.
func (a *L2Advertisement) DeepCopy() *L2Advertisement {
	if a == nil {
		return nil
	}
	out := &L2Advertisement{TypeMeta: a.TypeMeta, ObjectMeta: *a.ObjectMeta.DeepCopy()}
	out.Spec.IPAddressPools = slices.Clone(a.Spec.IPAddressPools)
	return out
}

// DeepCopyObject copies a.
func (a *L2Advertisement) DeepCopyObject() runtime.Object { return a.DeepCopy() }

// DeepCopyObject copies l.
func (l *L2AdvertisementList) DeepCopyObject() runtime.Object {
	out := &L2AdvertisementList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopy())
	}
	return out
}
