package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// LeaseState is the state of a lease.
// +kubebuilder:validation:Enum=Bound;Declined;Released
type LeaseState string

const (
	// LeaseBound: the client has the address until durableUntilTime.
	LeaseBound LeaseState = "Bound"
	// LeaseDeclined: the client found the address in use; nobody gets it until durableUntilTime.
	LeaseDeclined LeaseState = "Declined"
	// LeaseReleased: the client gave the address back; it is free once every instance has dropped the lease.
	LeaseReleased LeaseState = "Released"
)

// DHCPLeaseSpec is one address leased to one client. Only DHCP daemons write it.
type DHCPLeaseSpec struct {
	// The leased address.
	IP IPv4Address `json:"ip"`
	// MAC address of the client, in lower case with colons. It identifies the client.
	// +optional
	MAC MACAddress `json:"mac,omitempty"`
	// Client identifier (option 61) as the client sent it, in hex with colons. It identifies the client only if there is no MAC
	// address.
	// +optional
	// +kubebuilder:validation:MaxLength=764
	ClientID string `json:"clientID,omitempty"`
	// Host name that the server sent to the client (option 12), without domain.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Hostname string `json:"hostname,omitempty"`
	// KubeVirt VirtualMachine with this MAC address.
	// +optional
	VMRef *VMReference `json:"vmRef,omitempty"`
	// DHCPServer that leases the address.
	ServerRef ServerReference `json:"serverRef"`
	// Bound: the client has the address. Declined: the client found the address in use. Released: the client gave it back.
	State LeaseState `json:"state"`
	// No other client gets the address before this time plus a grace period of max(10 min, leaseTime/10). Only this time protects
	// the lease; it never moves back for the same client.
	DurableUntilTime metav1.MicroTime `json:"durableUntilTime"`
	// When the client's lease ends, as far as known. For information only: durableUntilTime decides.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ExpirationTime string `json:"expirationTime,omitempty"`
	// Server addresses of the instances that have dropped a Released lease.
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
	// UID of the VirtualMachine; it tells two machines of the same name apart.
	UID types.UID `json:"uid"`
}

// ServerReference names a DHCPServer in the same namespace.
type ServerReference struct {
	// Name of the DHCPServer.
	Name ObjectName `json:"name"`
}

// DHCPLease is one address leased to one client: both the lock on the address and its record. Its name contains the DHCPServer and
// the address.
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
