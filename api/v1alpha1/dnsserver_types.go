package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// DNSEntry is one address record that the server answers with authority.
type DNSEntry struct {
	// The name, without trailing dot; may begin with "*." (RFC 4592).
	Hostname DNSNameOrWildcard `json:"hostname"`
	// The address: an A or AAAA record by its family.
	IP IPAddress `json:"ip"`
}

// DNSNetworkConfig is what the server knows of its two networks.
// +kubebuilder:validation:XValidation:rule="!isCIDR(self.secondaryNetworkCIDR) || !isIP(self.serverIP) || cidr(self.secondaryNetworkCIDR).containsIP(self.serverIP)",message="serverIP must lie inside secondaryNetworkCIDR, e.g. 192.168.100.3 in 192.168.100.0/24"
type DNSNetworkConfig struct {
	Attachment `json:",inline"`
	// Address of the server on the VLAN.
	ServerIP IPAddress `json:"serverIP"`
	// The VLAN's subnet. Queries to the VLAN address from elsewhere are REFUSED, but for clientCIDRs.
	SecondaryNetworkCIDR Subnet `json:"secondaryNetworkCIDR"`
	// Off-link clients of a routed VLAN that are answered too.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	ClientCIDRs []CIDR `json:"clientCIDRs,omitempty"`
}

// DNSServerSpec is the configuration of one DNS daemon with two views, chosen by the local address of a query.
// +kubebuilder:validation:XValidation:rule="!has(self.upstreamDNS) || !(self.networkConfig.serverIP in self.upstreamDNS)",message="upstreamDNS names the server itself, which would ask itself; name the resolver behind it, e.g. 10.0.0.53"
type DNSServerSpec struct {
	// The two networks.
	NetworkConfig DNSNetworkConfig `json:"networkConfig"`
	// The hosted cluster's domain, e.g. c1.example.com; names of leases are answered under it.
	HostedClusterDomain DNSName `json:"hostedClusterDomain"`
	// Names of the VLAN view.
	// +optional
	// +listType=map
	// +listMapKey=hostname
	// +listMapKey=ip
	// +kubebuilder:validation:MaxItems=256
	StaticEntries []DNSEntry `json:"staticEntries,omitempty"`
	// Names of the pod-network view. Everything else is REFUSED there.
	// +optional
	// +listType=map
	// +listMapKey=hostname
	// +listMapKey=ip
	// +kubebuilder:validation:MaxItems=256
	InternalEntries []DNSEntry `json:"internalEntries,omitempty"`
	// Zones that are NXDOMAIN on the VLAN: the management cluster's own domain and the reverse zones of its networks.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	DeniedZones []DNSName `json:"deniedZones,omitempty"`
	// Resolvers for all other names of the VLAN view. Default: the node's own.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:XValidation:rule="!isIP(self) || ip(self).isGlobalUnicast() || ip(self).isLinkLocalUnicast()",message="must be the address of a server: not 0.0.0.0, loopback or multicast, e.g. 10.0.0.53"
	UpstreamDNS []IPAddress `json:"upstreamDNS,omitempty"`
	// How long answers from upstream are kept at most. Default 1h.
	// +optional
	// +kubebuilder:default="1h0m0s"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,8}([.][0-9]{1,9})?(h|m|s|ms))+$') && duration(self) >= duration('1s') && duration(self) <= duration('168h')",message="cacheTTL must be between 1s and 168h, in hours (h), minutes (m) and seconds (s), e.g. 1h"
	CacheTTL metav1.Duration `json:"cacheTTL,omitempty"`
	// Image of the daemon, of the operator's release or a newer one. Refused unless the operator runs with --allow-image-override.
	// Default: the operator's own.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`
	// Where the pods run.
	// +optional
	Placement `json:",inline"`
}

// DNSServerStatus is what the controller and the daemon report.
type DNSServerStatus struct {
	// Accepted, Ready, Progressing, ConfigAccepted.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// The addresses that are served and by which workload.
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
	// Address to forward to from the management cluster's DNS.
	// +optional
	// +kubebuilder:validation:MaxLength=45
	ServiceClusterIP string `json:"serviceClusterIP,omitempty"`
	// Generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// DNSServer is one split-horizon DNS server on one VLAN.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=odns,categories=oooi
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 47 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="the name may have at most 47 characters a-z, 0-9 and -, a letter first: names of pods and Services are made from it; choose another, e.g. lab-dns"
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
