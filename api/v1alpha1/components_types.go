package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// DHCPConfig configures the DHCP server.
// +kubebuilder:validation:XValidation:rule="!has(self.additionalServerIPs) || self.additionalServerIPs.size() == 0 || !has(self.replicas) || self.replicas == 2",message="additionalServerIPs is the address of a second instance; omit it, or have two, e.g. replicas: 2"
// +kubebuilder:validation:XValidation:rule="has(self.rangeStart) == has(self.rangeEnd)",message="set both rangeStart and rangeEnd, or neither, e.g. 192.168.100.10 and 192.168.100.200"
// +kubebuilder:validation:XValidation:rule="!has(self.rangeStart) || !has(self.rangeEnd) || ![self.rangeStart, self.rangeEnd].all(a, isIP(a) && ip(a).family() == 4) || (int(self.rangeStart.split('.')[0])*16777216 + int(self.rangeStart.split('.')[1])*65536 + int(self.rangeStart.split('.')[2])*256 + int(self.rangeStart.split('.')[3])) <= (int(self.rangeEnd.split('.')[0])*16777216 + int(self.rangeEnd.split('.')[1])*65536 + int(self.rangeEnd.split('.')[2])*256 + int(self.rangeEnd.split('.')[3]))",message="rangeEnd lies before rangeStart; swap them, e.g. rangeStart: 192.168.100.10, rangeEnd: 192.168.100.200"
type DHCPConfig struct {
	// False removes the DHCP server and keeps its leases. Default: true.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// Address of the server on the VLAN, inside networkConfig.cidr. Default: a free address of the CIDR, which does not change
	// afterwards.
	// +optional
	ServerIP IPv4Address `json:"serverIP,omitempty"`
	// Number of instances, 1 or 2, each with an address and a pod of its own, on different nodes if there are several. They lease
	// from one pool, and any of them renews every lease. With 1, a node's failure stops DHCP on the VLAN until the pod runs on
	// another node. If the VLAN has no free address for a second instance, there is one (OneInstanceServes). Default: 2.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2
	Replicas int32 `json:"replicas,omitempty"`
	// Address of the second instance, inside networkConfig.cidr. Default: a free address of the CIDR, which does not change
	// afterwards.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1
	AdditionalServerIPs []IPv4Address `json:"additionalServerIPs,omitempty"`
	// First address of the pool; set rangeEnd too. Default: the first address after those of DHCP, DNS and the proxy.
	// +optional
	RangeStart IPv4Address `json:"rangeStart,omitempty"`
	// Last address of the pool; set rangeStart too. Default: the last usable address of the CIDR.
	// +optional
	RangeEnd IPv4Address `json:"rangeEnd,omitempty"`
	// Lease time (option 51), from 2m to 8760h. Default: 24h. A worker whose lease expires during an outage of DHCP loses its
	// address.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,8}([.][0-9]{1,9})?(h|m|s))+$') && duration(self) >= duration('2m') && duration(self) <= duration('8760h')",message="leaseTime must be between 2m and 8760h, in hours (h), minutes (m) and seconds (s), e.g. 24h"
	LeaseTime *metav1.Duration `json:"leaseTime,omitempty"`
	// Addresses that are never leased, e.g. those of machines with static addresses. Default: none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	ExcludeRanges []AddressRange `json:"excludeRanges,omitempty"`
	// Reservations: fixed addresses for certain clients. Default: none.
	// +optional
	// +listType=map
	// +listMapKey=ip
	// +kubebuilder:validation:MaxItems=512
	Reservations []Reservation `json:"reservations,omitempty"`
	// Which clients get an address. Pool (default): every client. Ignore: only clients with a reservation and the hosted cluster's
	// VMs.
	// +optional
	UnknownClients UnknownClients `json:"unknownClients,omitempty"`
	// DHCP relays that are served, by the address in their giaddr field: addresses or networks, e.g. 192.168.100.1. Default: none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Relays []IPv4AddressOrCIDR `json:"relays,omitempty"`
	// Further DHCP options to send. Default: none.
	// +optional
	// +listType=map
	// +listMapKey=code
	// +kubebuilder:validation:MaxItems=64
	Options []DHCPOption `json:"options,omitempty"`
	// Image of the daemon, of the operator's release or newer. Refused unless the operator runs with --allow-image-override.
	// Default: the operator's image.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`
	// +optional
	Placement `json:",inline"`
}

// DNSConfig configures the DNS server.
// +kubebuilder:validation:XValidation:rule="!has(self.additionalServerIPs) || self.additionalServerIPs.size() == 0 || !has(self.replicas) || self.replicas == 2",message="additionalServerIPs is the address of a second instance; omit it, or have two, e.g. replicas: 2"
type DNSConfig struct {
	// False removes the DNS server. Default: true.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// Address of the server on the VLAN, inside networkConfig.cidr. Default: a free address of the CIDR, which does not change
	// afterwards.
	// +optional
	ServerIP IPAddress `json:"serverIP,omitempty"`
	// Number of instances, 1 or 2, each with an address and a pod of its own, on different nodes if there are several. DHCP
	// sends both addresses. With 1, a node's failure stops name resolution on the VLAN until the pod runs on another node. If
	// the VLAN has no free address for a second instance, there is one (OneInstanceServes). Default: 2.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2
	Replicas int32 `json:"replicas,omitempty"`
	// Address of the second instance, inside networkConfig.cidr. Default: a free address of the CIDR, which does not change
	// afterwards.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1
	AdditionalServerIPs []IPAddress `json:"additionalServerIPs,omitempty"`
	// Base domain of the hosted cluster, e.g. example.com. Default: read from the HostedCluster. Required without hostedClusterRef.
	// +optional
	BaseDomain DNSName `json:"baseDomain,omitempty"`
	// Name of the hosted cluster; its domain is clusterName.baseDomain. Default: read from the HostedCluster. Required without
	// hostedClusterRef.
	// +optional
	ClusterName DNSName `json:"clusterName,omitempty"`
	// Further names that workers can resolve, e.g. of a mirror registry on the VLAN. A name of an endpoint, e.g. api.c1.example.com,
	// keeps the proxy's address (StaticEntryIgnored). An address on the VLAN is answered with the first of its names (PTR). Default: none.
	// +optional
	// +listType=map
	// +listMapKey=hostname
	// +listMapKey=ip
	// +kubebuilder:validation:MaxItems=256
	StaticEntries []DNSEntry `json:"staticEntries,omitempty"`
	// Image of the daemon, of the operator's release or newer. Refused unless the operator runs with --allow-image-override.
	// Default: the operator's image.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`
	// +optional
	Placement `json:",inline"`
}

// ProxyConfig configures the proxy.
// +kubebuilder:validation:XValidation:rule="!has(self.additionalServerIPs) || self.additionalServerIPs.size() == 0 || !has(self.replicas) || self.replicas == 2",message="additionalServerIPs is the address of a second instance; omit it, or have two, e.g. replicas: 2"
type ProxyConfig struct {
	// False removes the proxy. Default: true.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// Address of the proxy on the VLAN, inside networkConfig.cidr. Default: a free address of the CIDR, which does not change
	// afterwards.
	// +optional
	ServerIP IPAddress `json:"serverIP,omitempty"`
	// Number of instances, 1 or 2, each with an address and a pod of its own, on different nodes if there are several. DNS answers
	// with both addresses, and leaves out one that accepts no connection while the other does. With 1, a node's failure stops
	// the proxy until its pod runs on another node. If the VLAN has no free address for a second instance, there is one
	// (OneInstanceServes). Default: 2.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2
	Replicas int32 `json:"replicas,omitempty"`
	// Address of the second instance, inside networkConfig.cidr. Default: a free address of the CIDR, which does not change
	// afterwards.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1
	AdditionalServerIPs []IPAddress `json:"additionalServerIPs,omitempty"`
	// Namespace of the hosted control plane. Default: <namespace>-<name> of the HostedCluster. Required without hostedClusterRef.
	// +optional
	ControlPlaneNamespace ObjectName `json:"controlPlaneNamespace,omitempty"`
	// Image of Envoy. Refused unless the operator runs with --allow-image-override. Default: the operator's Envoy image.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	ProxyImage string `json:"proxyImage,omitempty"`
	// Image of the xDS sidecar, of the operator's release or newer. Refused unless the operator runs with --allow-image-override.
	// Default: the operator's image.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	ManagerImage string `json:"managerImage,omitempty"`
	// +optional
	Placement `json:",inline"`
}

// InfraComponents configures the three services on the VLAN. A component that is left out is enabled, with defaults.
type InfraComponents struct {
	// DHCP server.
	// +optional
	DHCP DHCPConfig `json:"dhcp,omitempty"`
	// DNS server.
	// +optional
	DNS DNSConfig `json:"dns,omitempty"`
	// Proxy (Envoy).
	// +optional
	Proxy ProxyConfig `json:"proxy,omitempty"`
}
