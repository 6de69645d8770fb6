package v1alpha1

import (
	"cmp"

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
	// When the lease ends, as the client was told when this object was last written. Most renewals write nothing, so a client that renews has
	// its lease for longer: until durableUntilTime at most, which decides.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ExpirationTime string `json:"expirationTime,omitempty"`
	// Server addresses of the instances that have dropped a Released lease.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=4
	Dropped []IPv4Address `json:"dropped,omitempty"`
	// When the client got the address, gave it back or declined it; renewals do not change it. Absent: an older release wrote that.
	// +optional
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`
	// Leases of the address that have ended, the last one last, 16 at most. The write that ends a lease adds it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	History []FormerLease `json:"history,omitempty"`
}

// LeaseEnd is how a lease ended.
// +kubebuilder:validation:Enum=Released;Declined;Expired;Replaced
type LeaseEnd string

const (
	// LeaseEndReleased: the client gave the address back or got another one, its virtual machine is gone, or an admin released it.
	LeaseEndReleased LeaseEnd = "Released"
	// LeaseEndDeclined: the client found the address in use.
	LeaseEndDeclined LeaseEnd = "Declined"
	// LeaseEndExpired: its time was over, before another client got the address or somebody released it.
	LeaseEndExpired LeaseEnd = "Expired"
	// LeaseEndReplaced: its virtual machine started with another MAC address, or the MAC address is another machine's.
	LeaseEndReplaced LeaseEnd = "Replaced"
)

// FormerLease is a lease of the address that has ended.
type FormerLease struct {
	// MAC address of the client, in lower case with colons.
	// +optional
	MAC MACAddress `json:"mac,omitempty"`
	// Client identifier (option 61) as the client sent it, in hex with colons.
	// +optional
	// +kubebuilder:validation:MaxLength=764
	ClientID string `json:"clientID,omitempty"`
	// Host name that the server sent to the client (option 12), without domain.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Hostname string `json:"hostname,omitempty"`
	// KubeVirt VirtualMachine that had this MAC address.
	// +optional
	VMRef *VMReference `json:"vmRef,omitempty"`
	// When the client got the address. Absent: not recorded, because an older release leased it.
	// +optional
	FromTime *metav1.Time `json:"fromTime,omitempty"`
	// When the lease ended: when the client gave the address back or declined it, or its last durableUntilTime.
	UntilTime metav1.Time `json:"untilTime"`
	// Released: the client gave the address back or got another one, its VirtualMachine is gone, or an admin released the lease.
	// Declined: the client found the address in use. Expired: its time was over, before another client got the address or somebody released it. Replaced: the
	// VirtualMachine started with another MAC address, or the MAC address is another VirtualMachine's.
	Ended LeaseEnd `json:"ended"`
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

// StageName is a step of a worker's boot that a daemon or the operator sees.
// +kubebuilder:validation:Enum=NameAsked;IgnitionHello;APIHello;KonnectivityHello;NodeReady;UnmatchedHello
type StageName string

const (
	// StageNameAsked: DNS answered it a name of its hosted cluster.
	StageNameAsked StageName = "NameAsked"
	// StageIgnitionHello: it sent the proxy a TLS ClientHello for Ignition.
	StageIgnitionHello StageName = "IgnitionHello"
	// StageAPIHello: it sent one for the hosted cluster's API.
	StageAPIHello StageName = "APIHello"
	// StageKonnectivityHello: it sent one for konnectivity.
	StageKonnectivityHello StageName = "KonnectivityHello"
	// StageNodeReady: its new Node in the hosted cluster is Ready.
	StageNodeReady StageName = "NodeReady"
	// StageUnmatchedHello: it sent one with a server name that no backend of the proxy has, or without any.
	StageUnmatchedHello StageName = "UnmatchedHello"
)

// BootStages are all stages, in the order of a boot.
var BootStages = [...]StageName{StageNameAsked, StageIgnitionHello, StageAPIHello, StageKonnectivityHello, StageNodeReady, StageUnmatchedHello}

// StageResult is what became of a hello.
// +kubebuilder:validation:Enum=Forwarded;NoTarget
type StageResult string

const (
	// StageForwarded: a target of the backend accepted the connection.
	StageForwarded StageResult = "Forwarded"
	// StageNoTarget: none did.
	StageNoTarget StageResult = "NoTarget"
)

// MuchReceived is the number of bytes that no TLS handshake and no refusal has. The smallest Ignition config that we know, the lab's, takes 10 KiB.
const MuchReceived = 8 << 10

// Stage is one step of a worker's boot. It is written when it is first seen, and again only when a hello gets further: first no
// target, then one, then bytes, then 8 KiB of them.
type Stage struct {
	// NameAsked: DNS answered a name of the hosted cluster. IgnitionHello, APIHello, KonnectivityHello: the proxy received a TLS
	// ClientHello for that backend. UnmatchedHello: it received one for no backend. NodeReady: the worker's new Node is Ready, as Cluster
	// API says of its Machine; only of virtual machines.
	Name StageName `json:"name"`
	// When it was first seen, by the clock of the daemon's node. Of NodeReady: when Cluster API saw it, but not later than the
	// operator did, nor earlier than the lease began.
	FirstTime metav1.MicroTime `json:"firstTime"`
	// The name that the worker asked DNS for, or sent the proxy as its server name (SNI), when firstTime was written.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	ServerName string `json:"serverName,omitempty"`
	// Of a hello: Forwarded to a target of the backend, or NoTarget, if none accepted the connection.
	// +optional
	Result StageResult `json:"result,omitempty"`
	// Bytes that the worker received in the first such connection that ended after it received any, or in the first with 8 KiB or
	// more, which no TLS handshake and no refusal has. TLS encrypts them, so they do not tell what was answered.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ReceivedBytes int64 `json:"receivedBytes,omitempty"`
}

// DHCPLeaseStatus is what the DNS servers and proxies of the Infra, and the operator, saw of the worker that has the lease. Nothing is
// decided by it.
type DHCPLeaseStatus struct {
	// Whom the stages are of: a MAC address or, of a client without, its client identifier. If the spec names another, the address has
	// changed hands, and the stages are none of its holder's.
	// +optional
	// +kubebuilder:validation:MaxLength=764
	Client string `json:"client,omitempty"`
	// UID of the KubeVirt VirtualMachine that the stages are of, if it was known.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	VMUID string `json:"vmUID,omitempty"`
	// The steps of the boot that were seen, each once.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Stages []Stage `json:"stages,omitempty"`
}

// Fields of a DHCPLease by which leases are selected.
const (
	LeaseFieldServer         = "spec.serverRef.name"
	LeaseFieldVirtualMachine = "spec.vmRef.name"
)

// DHCPLease is one address leased to one client: both the lock on the address and its record. Its name contains the DHCPServer and
// the address.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=olease,categories=oooi
// +kubebuilder:selectablefield:JSONPath=`.spec.ip`
// +kubebuilder:selectablefield:JSONPath=`.spec.mac`
// +kubebuilder:selectablefield:JSONPath=`.spec.serverRef.name`
// +kubebuilder:selectablefield:JSONPath=`.spec.vmRef.name`
// +kubebuilder:printcolumn:name="IP",type=string,JSONPath=`.spec.ip`
// +kubebuilder:printcolumn:name="MAC",type=string,JSONPath=`.spec.mac`
// +kubebuilder:printcolumn:name="Hostname",type=string,JSONPath=`.spec.hostname`
// +kubebuilder:printcolumn:name="VM",type=string,JSONPath=`.spec.vmRef.name`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.spec.state`
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=`.spec.expirationTime`
// +kubebuilder:printcolumn:name="Asked",type=date,priority=1,JSONPath=`.status.stages[?(@.name=="NameAsked")].firstTime`
// +kubebuilder:printcolumn:name="Ignition",type=date,priority=1,JSONPath=`.status.stages[?(@.name=="IgnitionHello")].firstTime`
// +kubebuilder:printcolumn:name="Ignition-Bytes",type=integer,priority=1,JSONPath=`.status.stages[?(@.name=="IgnitionHello")].receivedBytes`
// +kubebuilder:printcolumn:name="API",type=date,priority=1,JSONPath=`.status.stages[?(@.name=="APIHello")].firstTime`
// +kubebuilder:printcolumn:name="Konnectivity",type=date,priority=1,JSONPath=`.status.stages[?(@.name=="KonnectivityHello")].firstTime`
// +kubebuilder:printcolumn:name="Node-Ready",type=date,priority=1,JSONPath=`.status.stages[?(@.name=="NodeReady")].firstTime`
// +kubebuilder:printcolumn:name="Unmatched",type=string,priority=1,JSONPath=`.status.stages[?(@.name=="UnmatchedHello")].serverName`
type DHCPLease struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec DHCPLeaseSpec `json:"spec"`
	// +optional
	Status DHCPLeaseStatus `json:"status,omitempty"`
}

// Stages are those of the client that has the lease now, by name.
func (l *DHCPLease) Stages() map[StageName]Stage {
	stages := map[StageName]Stage{}
	if !l.Status.of(l.Spec) {
		return stages
	}
	for _, s := range l.Status.Stages {
		stages[s.Name] = s
	}
	return stages
}

// Holder is who has the lease, as Status.Client names it.
func (s DHCPLeaseSpec) Holder() string { return cmp.Or(string(s.MAC), s.ClientID) }

// HolderVM is the UID of the virtual machine that has the lease, as the spec, or else the status of the same client, has it; empty if neither has.
func (l *DHCPLease) HolderVM() string {
	switch {
	case l.Spec.VMRef != nil:
		return string(l.Spec.VMRef.UID)
	case l.Status.Client == l.Spec.Holder():
		return l.Status.VMUID
	}
	return "" // that is the last holder's
}

// HolderName is what people call the holder; empty if it has no name.
func (s DHCPLeaseSpec) HolderName() string {
	if s.VMRef != nil {
		return string(s.VMRef.Name)
	}
	return s.Hostname
}

// of says whether a status tells of the holder: of the same machine, as far as both know it.
func (s DHCPLeaseStatus) of(spec DHCPLeaseSpec) bool {
	return s.Client == spec.Holder() && (s.VMUID == "" || spec.VMRef == nil || string(spec.VMRef.UID) == s.VMUID)
}

// DHCPLeaseList is a list of DHCPLease.
// +kubebuilder:object:root=true
type DHCPLeaseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DHCPLease `json:"items"`
}
