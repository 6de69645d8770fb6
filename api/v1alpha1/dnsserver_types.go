package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// DNSEntry is one A or AAAA record that the server is authoritative for.
type DNSEntry struct {
	// Name, without trailing dot. May begin with "*." (RFC 4592).
	Hostname DNSNameOrWildcard `json:"hostname"`
	// Address: an IPv4 address becomes an A record, an IPv6 address an AAAA record.
	IP IPAddress `json:"ip"`
}

// DNSHealthCheck is an address that names with several addresses have only while it is healthy.
type DNSHealthCheck struct {
	// Address.
	IP IPAddress `json:"ip"`
	// TCP port that accepts connections while the address is healthy. Default: none; the address is healthy while a host there
	// refuses connections.
	// +optional
	Port Port `json:"port,omitempty"`
}

// DNSNetworkConfig describes the VLAN of the server.
// +kubebuilder:validation:XValidation:rule="!has(self.additionalServerIPs) || self.additionalServerIPs.all(a, a != self.serverIP && (!isCIDR(self.secondaryNetworkCIDR) || !isIP(a) || cidr(self.secondaryNetworkCIDR).containsIP(a)))",message="additionalServerIPs must lie inside secondaryNetworkCIDR and differ from serverIP, e.g. 192.168.100.4 beside 192.168.100.3 in 192.168.100.0/24"
// +kubebuilder:validation:XValidation:rule="!isCIDR(self.secondaryNetworkCIDR) || !isIP(self.serverIP) || cidr(self.secondaryNetworkCIDR).containsIP(self.serverIP)",message="serverIP must lie inside secondaryNetworkCIDR, e.g. 192.168.100.3 in 192.168.100.0/24"
type DNSNetworkConfig struct {
	Attachment `json:",inline"`
	// Address of the server on the VLAN; must lie inside secondaryNetworkCIDR.
	ServerIP IPAddress `json:"serverIP"`
	// Address of a second instance, inside secondaryNetworkCIDR: a pod of its own, on another node if there is one. If the
	// NetworkAttachmentDefinition itself names the pod's address, the second pod attaches to the one with the same name and -1.
	// Default: one instance.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1
	AdditionalServerIPs []IPAddress `json:"additionalServerIPs,omitempty"`
	// Subnet of the VLAN. Queries to the VLAN address from other networks are REFUSED, except from clientCIDRs.
	SecondaryNetworkCIDR Subnet `json:"secondaryNetworkCIDR"`
	// Networks behind the VLAN's router whose clients are answered too. Default: none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	ClientCIDRs []CIDR `json:"clientCIDRs,omitempty"`
}

// ServerIPs are the addresses of all instances, the first's first.
func (n DNSNetworkConfig) ServerIPs() []IPAddress {
	return append([]IPAddress{n.ServerIP}, n.AdditionalServerIPs...)
}

// DNSServerSpec configures one DNS server with two views. The address that a query is sent to selects the view.
// +kubebuilder:validation:XValidation:rule="!has(self.upstreamDNS) || !(self.networkConfig.serverIP in self.upstreamDNS) && (!has(self.networkConfig.additionalServerIPs) || self.networkConfig.additionalServerIPs.all(a, !(a in self.upstreamDNS)))",message="upstreamDNS names the server itself, which would ask itself; name the resolver behind it, e.g. 10.0.0.53"
type DNSServerSpec struct {
	// The VLAN of the server.
	NetworkConfig DNSNetworkConfig `json:"networkConfig"`
	// Domain of the hosted cluster, e.g. c1.example.com. Host names of DHCP leases are answered below it.
	HostedClusterDomain DNSName `json:"hostedClusterDomain"`
	// Records of the VLAN view. An address on the VLAN is answered with its name in return (PTR), unless a lease has it: of several names with
	// that of the API, else with the first one here.
	// +optional
	// +listType=map
	// +listMapKey=hostname
	// +listMapKey=ip
	// +kubebuilder:validation:MaxItems=512
	StaticEntries []DNSEntry `json:"staticEntries,omitempty"`
	// Addresses of staticEntries to which the server connects several times a second. For a name with several addresses, it leaves
	// out one that does not accept the connection while another one does, or has no health check. Default: none.
	// +optional
	// +listType=map
	// +listMapKey=ip
	// +kubebuilder:validation:MaxItems=4
	HealthChecks []DNSHealthCheck `json:"healthChecks,omitempty"`
	// Records of the pod-network view. All other names are REFUSED there.
	// +optional
	// +listType=map
	// +listMapKey=hostname
	// +listMapKey=ip
	// +kubebuilder:validation:MaxItems=256
	InternalEntries []DNSEntry `json:"internalEntries,omitempty"`
	// Zones that are answered with NXDOMAIN on the VLAN, e.g. the management cluster's own domain and the reverse zones of its
	// networks.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	DeniedZones []DNSName `json:"deniedZones,omitempty"`
	// Upstream resolvers for all other names in the VLAN view. The server's own address is refused. Default: the resolvers of the
	// node.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:XValidation:rule="!isIP(self) || ip(self).isGlobalUnicast() || ip(self).isLinkLocalUnicast()",message="must be the address of a server: not 0.0.0.0, loopback or multicast, e.g. 10.0.0.53"
	UpstreamDNS []IPAddress `json:"upstreamDNS,omitempty"`
	// Maximum time that answers from upstream are cached, from 1s to 168h. Default: 1h.
	// +optional
	// +kubebuilder:default="1h0m0s"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,8}([.][0-9]{1,9})?(h|m|s|ms))+$') && duration(self) >= duration('1s') && duration(self) <= duration('168h')",message="cacheTTL must be between 1s and 168h, in hours (h), minutes (m) and seconds (s), e.g. 1h"
	CacheTTL metav1.Duration `json:"cacheTTL,omitempty"`
	// Image of the daemon, of the operator's release or newer. Refused unless the operator runs with --allow-image-override.
	// Default: the operator's image.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`
	// On which nodes the pods run.
	// +optional
	Placement `json:",inline"`
}

// DNSServerStatus is what the operator and the daemon report.
type DNSServerStatus struct {
	// Conditions: Accepted, Ready, Progressing, ConfigAccepted, ResolversAnswer; of a second instance ConfigAccepted1,
	// ResolversAnswer1.
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
	// StatefulSet that runs the first instance.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	DeploymentName string `json:"deploymentName,omitempty"`
	// Service of the pod-network view.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ServiceName string `json:"serviceName,omitempty"`
	// Cluster IP of that Service. Forward the hosted cluster's domain to it from the management cluster's DNS.
	// +optional
	// +kubebuilder:validation:MaxLength=45
	ServiceClusterIP string `json:"serviceClusterIP,omitempty"`
	// Generation of the spec that this status was computed from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// DNSServer is one split-horizon DNS server on one VLAN.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=odns,categories=oooi
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 47 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="the name may have at most 47 characters a-z, 0-9 and -, a letter first: names of pods and Services are made from it; choose another, e.g. lab-dns"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 46 || !has(self.spec.networkConfig.additionalServerIPs) || self.spec.networkConfig.additionalServerIPs.size() == 0",message="with additionalServerIPs the name may have at most 46 characters: the second StatefulSet's is longer; choose another, e.g. lab-dns"
// +kubebuilder:printcolumn:name="Server",type=string,JSONPath=`.spec.networkConfig.serverIP`
// +kubebuilder:printcolumn:name="Domain",type=string,JSONPath=`.spec.hostedClusterDomain`
// +kubebuilder:printcolumn:name="Service-IP",type=string,JSONPath=`.status.serviceClusterIP`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type DNSServer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec DNSServerSpec `json:"spec"`
	// +optional
	Status DNSServerStatus `json:"status,omitempty"`
}

// DNSServerList is a list of DNSServer.
// +kubebuilder:object:root=true
type DNSServerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DNSServer `json:"items"`
}

func init() { schemeBuilder.Register(known(&DNSServer{}, &DNSServerList{})) }
