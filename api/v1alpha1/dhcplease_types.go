package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// LeaseState is where a lease stands.
// +kubebuilder:validation:Enum=Bound;Declined;Released
type LeaseState string

const (
	// LeaseBound: promised to the client until the horizon.
	LeaseBound LeaseState = "Bound"
	// LeaseDeclined: the client found the address in use; nobody gets it until the horizon.
	LeaseDeclined LeaseState = "Declined"
	// LeaseReleased: given back; free once every instance has dropped it.
	LeaseReleased LeaseState = "Released"
)

// DHCPLeaseSpec is the promise of one address to one client. Only DHCP daemons write it.
type DHCPLeaseSpec struct {
	// The address, canonical.
	IP IPv4Address `json:"ip"`
	// Hardware address of the client; the key of the lease. Lower case with colons.
	// +optional
	MAC MACAddress `json:"mac,omitempty"`
	// Option 61 as it was sent, in hex with colons. The key only where the client has no hardware address.
	// +optional
	// +kubebuilder:validation:MaxLength=764
	ClientID string `json:"clientID,omitempty"`
	// Option 12 that the client was told, without domain.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Hostname string `json:"hostname,omitempty"`
	// The KubeVirt VirtualMachine that owns the hardware address.
	// +optional
	VMRef *VMReference `json:"vmRef,omitempty"`
	// The DHCPServer whose pool the address is from.
	ServerRef ServerReference `json:"serverRef"`
	// Bound, Declined or Released.
	State LeaseState `json:"state"`
	// The horizon: no other client gets the address before this time plus the grace of max(10 min, leaseTime/10).
	// It is the only fence, and is never lowered for its holder.
	DurableUntilTime metav1.MicroTime `json:"durableUntilTime"`
	// When the lease last told to the client ends, as far as known. For people; nothing decides by it.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ExpirationTime string `json:"expirationTime,omitempty"`
	// Instances (by server address) that have forgotten a Released binding.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=4
	Dropped []IPv4Address `json:"dropped,omitempty"`
}

// VMReference names a KubeVirt VirtualMachine.
type VMReference struct {
	// Namespace of the VirtualMachine.
	Namespace ObjectName `json:"namespace"`
	// Name of the VirtualMachine.
	Name ObjectName `json:"name"`
	// UID of the VirtualMachine; another machine of the same name is another owner.
	UID types.UID `json:"uid"`
}

// ServerReference names a DHCPServer of the same namespace.
type ServerReference struct {
	// Name of the DHCPServer.
	Name ObjectName `json:"name"`
}

// DHCPLease is one address promised to one client: allocation lock and record at once. Named by DHCPServer and address.
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=olease,categories=oooi
// +kubebuilder:selectablefield:JSONPath=`.spec.ip`
// +kubebuilder:selectablefield:JSONPath=`.spec.mac`
// +kubebuilder:selectablefield:JSONPath=`.spec.serverRef.name`
// +kubebuilder:printcolumn:name="IP",type=string,JSONPath=`.spec.ip`
// +kubebuilder:printcolumn:name="MAC",type=string,JSONPath=`.spec.mac`
// +kubebuilder:printcolumn:name="Hostname",type=string,JSONPath=`.spec.hostname`
// +kubebuilder:printcolumn:name="VM",type=string,JSONPath=`.spec.vmRef.name`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.spec.state`
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=`.spec.expirationTime`
type DHCPLease struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec DHCPLeaseSpec `json:"spec"`
}

// DHCPLeaseList is a list of DHCPLease.
// +kubebuilder:object:root=true
type DHCPLeaseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DHCPLease `json:"items"`
}
