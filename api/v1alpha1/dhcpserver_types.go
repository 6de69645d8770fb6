package v1alpha1

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// UnknownClients says whether clients are served that have no reservation and are no VM of vmNamespace.
// +kubebuilder:validation:Enum=Pool;Ignore
type UnknownClients string

const (
	// UnknownClientsPool serves every client from the pool.
	UnknownClientsPool UnknownClients = "Pool"
	// UnknownClientsIgnore serves only clients with a reservation and VMs of vmNamespace.
	UnknownClientsIgnore UnknownClients = "Ignore"
)

// Reservation is a fixed address for one client.
// +kubebuilder:validation:XValidation:rule="has(self.mac) != has(self.clientID)",message="set exactly one of mac and clientID, e.g. mac: 52:54:00:00:01:01"
type Reservation struct {
	// The address; inside the CIDR, in the pool or not. A running machine keeps its address: the machine that has this address, and
	// the one that it is reserved for, change at their next boot (event ReservationPending). To free the address of a
	// machine that runs, reserve it for the machine that needs it and restart both; of one that is gone, oooi leases release IP.
	// Deleting a DHCPLease does not free it: the server writes it again.
	IP IPv4Address `json:"ip"`
	// MAC address of the client, with colons or hyphens, in upper or lower case.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!self.matches('^(00[:-]){5}00$') && self.matches('^.[02468aceACE]')",message="no network card can have this address: it is all zero or multicast; the second digit must be even, e.g. 52:54:00:00:01:01"
	MAC ClientMAC `json:"mac,omitempty"`
	// Client identifier (option 61) in hex with colons, in upper or lower case, type octet first, e.g. 01:52:54:00:00:01:01.
	// +optional
	// +kubebuilder:validation:MaxLength=764
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9a-fA-F]{2}:)+[0-9a-fA-F]{2}$')",message="must be octets in hex with colons, the type first, e.g. 01:52:54:00:00:01:01"
	ClientID string `json:"clientID,omitempty"`
	// Host name for this client (option 12), without domain. Default: the name of its VM, if known.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be one label of a name in lower case, without a domain, e.g. worker-1"
	Hostname string `json:"hostname,omitempty"`
}

// Identifier is the client identifier in lower case.
func (r Reservation) Identifier() string { return strings.ToLower(r.ClientID) }

// DHCPOption is a further option that the server sends. Codes that the server sets itself are refused.
// +kubebuilder:validation:XValidation:rule="!(self.code in [1, 3, 6, 12, 15, 26, 42, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 61, 81, 82, 119, 121])",message="this code is the server's or the protocol's own; use the field where one is made for it (3: gateway, 6: dnsServers, 26: mtu, 42: ntpServers, 51: leaseTime, 119: searchDomains, 121: routes), else another code, e.g. 66"
// +kubebuilder:validation:XValidation:rule="self.type != 'IPv4List' || self.value.split(',').all(v, isIP(v.trim()) && ip(v.trim()).family() == 4)",message="value of type IPv4List must be IPv4 addresses separated by commas, e.g. 192.168.100.5,192.168.100.6"
// +kubebuilder:validation:XValidation:rule="self.type != 'Hex' || self.value.matches('^([0-9a-fA-F]{2}:?)+$')",message="value of type Hex must be octets, e.g. 01:0a:ff"
// +kubebuilder:validation:XValidation:rule="self.type != 'Bool' || self.value in ['true','false']",message="value of type Bool must be true or false, e.g. \"true\" in quotes"
// +kubebuilder:validation:XValidation:rule="!(self.type in ['UInt8','UInt16','UInt32']) || self.value.matches('^[0-9]{1,10}$') && int(self.value) <= (self.type == 'UInt8' ? 255 : self.type == 'UInt16' ? 65535 : 4294967295)",message="value must be a whole number that fits the type, e.g. 42"
type DHCPOption struct {
	// Option code, 1 to 254 (RFC 2132), except those that the server sets itself.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=254
	Code int32 `json:"code"`
	// Encoding of value.
	// +kubebuilder:validation:Enum=IPv4List;String;UInt8;UInt16;UInt32;Bool;Hex
	Type string `json:"type"`
	// The value as text. IPv4List: addresses separated by commas. Bool: true or false. Hex: octets, e.g. 01:0a:ff.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value"`
}

// DHCPNetworkConfig is the VLAN of the server, and what the server sends to clients.
// +kubebuilder:validation:XValidation:rule="!isCIDR(self.cidr) || cidr(self.cidr).ip().family() == 4",message="cidr must be IPv4, e.g. 192.168.100.0/24; there is no DHCPv6 yet"
// +kubebuilder:validation:XValidation:rule="!isCIDR(self.cidr) || !isIP(self.serverIP) || cidr(self.cidr).containsIP(self.serverIP)",message="serverIP must lie inside cidr, e.g. 192.168.100.2 in 192.168.100.0/24"
// +kubebuilder:validation:XValidation:rule="!has(self.gateway) || !isCIDR(self.cidr) || !isIP(self.gateway) || cidr(self.cidr).containsIP(self.gateway)",message="gateway must lie inside cidr, e.g. 192.168.100.1 in 192.168.100.0/24"
// +kubebuilder:validation:XValidation:rule="!has(self.routes) || !isCIDR(self.cidr) || self.routes.all(r, !isIP(r.gateway) || cidr(self.cidr).containsIP(r.gateway))",message="the gateway of every route must lie inside cidr, e.g. 192.168.100.1 in 192.168.100.0/24"
// +kubebuilder:validation:XValidation:rule="!has(self.additionalServerIPs) || self.additionalServerIPs.all(a, a != self.serverIP && (!isCIDR(self.cidr) || !isIP(a) || cidr(self.cidr).containsIP(a)))",message="additionalServerIPs must lie inside cidr and differ from serverIP, e.g. 192.168.100.3 beside 192.168.100.2 in 192.168.100.0/24"
// +kubebuilder:validation:XValidation:rule="!has(self.gateway) || !has(self.additionalServerIPs) || !(self.gateway in self.additionalServerIPs)",message="gateway is an address of the server's own; leave it out on an isolated VLAN, or set the router's, e.g. 192.168.100.1"
// +kubebuilder:validation:XValidation:rule="!has(self.gateway) || self.gateway != self.serverIP",message="gateway is the server's own address; leave it out on an isolated VLAN, or set the router's, e.g. 192.168.100.1"
type DHCPNetworkConfig struct {
	Attachment `json:",inline"`
	// Subnet of the VLAN, IPv4. Its mask is sent as option 1.
	CIDR Subnet `json:"cidr"`
	// Address of the server on the VLAN (option 54); must lie inside cidr.
	ServerIP IPv4Address `json:"serverIP"`
	// Address of a second instance, inside cidr: a pod of its own, on another node if there is one, with the same pool and leases.
	// If the NetworkAttachmentDefinition itself names the pod's address, the second pod attaches to the one with the same name and
	// -1. Default: one instance.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1
	AdditionalServerIPs []IPv4Address `json:"additionalServerIPs,omitempty"`
	// Default router (option 3); must lie inside cidr. Default: none, for an isolated VLAN.
	// +optional
	Gateway IPv4Address `json:"gateway,omitempty"`
	// DNS servers (option 6). Default: not sent.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:XValidation:rule="!isIP(self) || ip(self).isGlobalUnicast() || ip(self).isLinkLocalUnicast()",message="must be the address of a server: not 0.0.0.0, loopback or multicast, e.g. 10.0.0.53"
	DNSServers []IPv4Address `json:"dnsServers,omitempty"`
	// NTP servers (option 42). Default: not sent.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:XValidation:rule="!isIP(self) || ip(self).isGlobalUnicast() || ip(self).isLinkLocalUnicast()",message="must be the address of a server: not 0.0.0.0, loopback or multicast, e.g. 10.0.0.53"
	NTPServers []IPv4Address `json:"ntpServers,omitempty"`
	// MTU in bytes (option 26). Default: not sent.
	// +optional
	// +kubebuilder:validation:Minimum=576
	// +kubebuilder:validation:Maximum=65535
	MTU int32 `json:"mtu,omitempty"`
	// Domain name (option 15). Default: not sent.
	// +optional
	Domain DNSName `json:"domain,omitempty"`
	// DNS search domains (option 119, RFC 3397). Default: not sent.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	SearchDomains []DNSName `json:"searchDomains,omitempty"`
	// Static routes (option 121, RFC 3442), including those to captured addresses. The server adds the default route to them.
	// Default: not sent.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(r, self.exists_one(o, o.destination == r.destination))",message="routes has one destination twice; keep one of them, e.g. one entry for 10.20.0.0/16"
	Routes []Route `json:"routes,omitempty"`
}

// ServerIPs are the addresses of all instances, the first's first.
func (n DHCPNetworkConfig) ServerIPs() []IPv4Address {
	return append([]IPv4Address{n.ServerIP}, n.AdditionalServerIPs...)
}

// DHCPLeaseConfig is the pool.
// +kubebuilder:validation:XValidation:rule="![self.rangeStart, self.rangeEnd].all(a, isIP(a) && ip(a).family() == 4) || (int(self.rangeStart.split('.')[0])*16777216 + int(self.rangeStart.split('.')[1])*65536 + int(self.rangeStart.split('.')[2])*256 + int(self.rangeStart.split('.')[3])) <= (int(self.rangeEnd.split('.')[0])*16777216 + int(self.rangeEnd.split('.')[1])*65536 + int(self.rangeEnd.split('.')[2])*256 + int(self.rangeEnd.split('.')[3]))",message="rangeEnd lies before rangeStart; swap them, e.g. rangeStart: 192.168.100.10, rangeEnd: 192.168.100.200"
type DHCPLeaseConfig struct {
	// First address of the pool.
	RangeStart IPv4Address `json:"rangeStart"`
	// Last address of the pool.
	RangeEnd IPv4Address `json:"rangeEnd"`
	// Lease time (option 51), from 2m to 8760h. Default: 24h. A client whose lease expires during an outage of DHCP loses its
	// address.
	// +optional
	// +kubebuilder:default="24h0m0s"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,8}([.][0-9]{1,9})?(h|m|s))+$') && duration(self) >= duration('2m') && duration(self) <= duration('8760h')",message="leaseTime must be between 2m and 8760h, in hours (h), minutes (m) and seconds (s), e.g. 24h"
	LeaseTime metav1.Duration `json:"leaseTime,omitempty"`
}

// DHCPServerSpec configures one DHCP server.
// +kubebuilder:validation:XValidation:rule="!isCIDR(self.networkConfig.cidr) || [self.leaseConfig.rangeStart, self.leaseConfig.rangeEnd].all(a, !isIP(a) || cidr(self.networkConfig.cidr).containsIP(a))",message="leaseConfig.rangeStart and rangeEnd must lie inside networkConfig.cidr, e.g. 192.168.100.10 and 192.168.100.200 in 192.168.100.0/24"
// +kubebuilder:validation:XValidation:rule="!has(self.excludeRanges) || !isCIDR(self.networkConfig.cidr) || self.excludeRanges.all(r, [r.start, r.end].all(a, !isIP(a) || cidr(self.networkConfig.cidr).containsIP(a)))",message="every range of excludeRanges must lie inside networkConfig.cidr, e.g. 192.168.100.90 to 192.168.100.99 in 192.168.100.0/24"
// +kubebuilder:validation:XValidation:rule="!has(self.reservations) || !isCIDR(self.networkConfig.cidr) || self.reservations.all(r, !isIP(r.ip) || cidr(self.networkConfig.cidr).containsIP(r.ip))",message="every reservation's ip must lie inside networkConfig.cidr, e.g. 192.168.100.50 in 192.168.100.0/24"
// +kubebuilder:validation:XValidation:rule="!has(self.unknownClients) || self.unknownClients != 'Ignore' || has(self.vmNamespace) || has(self.reservations)",message="unknownClients Ignore serves nobody without reservations or vmNamespace, e.g. vmNamespace: clusters-c1"
type DHCPServerSpec struct {
	// The VLAN, and the network options that clients get.
	NetworkConfig DHCPNetworkConfig `json:"networkConfig"`
	// The pool.
	LeaseConfig DHCPLeaseConfig `json:"leaseConfig"`
	// Addresses of the pool that are never leased. Default: none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	ExcludeRanges []AddressRange `json:"excludeRanges,omitempty"`
	// Reservations: fixed addresses for certain clients. Default: none.
	// +optional
	// +listType=map
	// +listMapKey=ip
	// +kubebuilder:validation:MaxItems=512
	Reservations []Reservation `json:"reservations,omitempty"`
	// Which clients get an address. Pool (default): every client. Ignore: only clients with a reservation and VMs of vmNamespace.
	// +optional
	// +kubebuilder:default=Pool
	UnknownClients UnknownClients `json:"unknownClients,omitempty"`
	// Further DHCP options to send. Default: none.
	// +optional
	// +listType=map
	// +listMapKey=code
	// +kubebuilder:validation:MaxItems=64
	Options []DHCPOption `json:"options,omitempty"`
	// DHCP relays that are served, by the address in their giaddr field: addresses or networks, e.g. 192.168.100.1. Default: none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Relays []IPv4AddressOrCIDR `json:"relays,omitempty"`
	// Namespace of the workers' VirtualMachines. The server looks VMs up by MAC address and sends their name (option 12). Default:
	// no lookup.
	// +optional
	VMNamespace ObjectName `json:"vmNamespace,omitempty"`
	// Image of the daemon, of the operator's release or newer. Refused unless the operator runs with --allow-image-override.
	// Default: the operator's image.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`
	// On which nodes the pods run.
	// +optional
	Placement `json:",inline"`
}

// DHCPServerStatus is what the operator and the daemon report.
type DHCPServerStatus struct {
	// Conditions: Accepted, Ready, Progressing, ConfigAccepted, AddressesLeft, ClockSteady; of a second instance ConfigAccepted1,
	// AddressesLeft1, ClockSteady1.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Addresses of the server, and the workload of each.
	// +optional
	// +listType=map
	// +listMapKey=ip
	// +kubebuilder:validation:MaxItems=4
	Instances []Instance `json:"instances,omitempty"`
	// Leases in state Bound whose durableUntilTime has not passed.
	// +optional
	ActiveLeases int32 `json:"activeLeases,omitempty"`
	// Leases in any state.
	// +optional
	TotalLeases int32 `json:"totalLeases,omitempty"`
	// Number of addresses that the pool can lease.
	// +optional
	PoolSize int32 `json:"poolSize,omitempty"`
	// Generation of the spec that this status was computed from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// ServesWith are the instances that the one at an address says it knows of.
func (s DHCPServerStatus) ServesWith(at IPAddress) []IPAddress {
	return InstanceAt(s.Instances, at).ServesWith
}

// DHCPServer is one DHCP server on one VLAN.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=odhcp,categories=oooi
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 47 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="the name may have at most 47 characters a-z, 0-9 and -, a letter first: names of pods and Services are made from it; choose another, e.g. lab-dhcp"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 45 || !has(self.spec.networkConfig.additionalServerIPs) || self.spec.networkConfig.additionalServerIPs.size() == 0",message="with additionalServerIPs the name may have at most 45 characters: the second StatefulSet's is longer; choose another, e.g. lab-dhcp"
// +kubebuilder:printcolumn:name="Server",type=string,JSONPath=`.spec.networkConfig.serverIP`
// +kubebuilder:printcolumn:name="First",type=string,JSONPath=`.spec.leaseConfig.rangeStart`
// +kubebuilder:printcolumn:name="Last",type=string,JSONPath=`.spec.leaseConfig.rangeEnd`
// +kubebuilder:printcolumn:name="Leases",type=integer,JSONPath=`.status.activeLeases`
// +kubebuilder:printcolumn:name="Pool",type=integer,JSONPath=`.status.poolSize`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type DHCPServer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec DHCPServerSpec `json:"spec"`
	// +optional
	Status DHCPServerStatus `json:"status,omitempty"`
}

// DHCPServerList is a list of DHCPServer.
// +kubebuilder:object:root=true
type DHCPServerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DHCPServer `json:"items"`
}

func init() { schemeBuilder.Register(known(&DHCPServer{}, &DHCPServerList{})) }
