package v1alpha1

import corev1 "k8s.io/api/core/v1"

// IPAddress is one IPv4 or IPv6 address in canonical form.
// +kubebuilder:validation:MinLength=2
// +kubebuilder:validation:MaxLength=45
// +kubebuilder:validation:XValidation:rule="isIP(self) && ip.isCanonical(self)",message="must be an IP address in canonical form, e.g. 192.168.100.10 or fd00:100::10"
type IPAddress string

// IPv4Address is one IPv4 address.
// +kubebuilder:validation:MinLength=7
// +kubebuilder:validation:MaxLength=15
// +kubebuilder:validation:XValidation:rule="isIP(self) && ip(self).family() == 4",message="must be an IPv4 address, e.g. 192.168.100.10"
type IPv4Address string

// CIDR is a network with its host bits zero.
// +kubebuilder:validation:MinLength=4
// +kubebuilder:validation:MaxLength=49
// +kubebuilder:validation:XValidation:rule="isCIDR(self) && cidr(self) == cidr(self).masked()",message="must be a network with its host bits zero, e.g. 192.168.100.0/24"
type CIDR string

// Subnet is the network of a VLAN: with its host bits zero, not wider than /8, of addresses that hosts may have
// (RFC 6890 has the others; ::/8 holds ::1 and the mapped ones). An Infra refuses 127.0.0.0/8 too, on which daemons are tried.
// +kubebuilder:validation:MinLength=4
// +kubebuilder:validation:MaxLength=49
// +kubebuilder:validation:XValidation:rule="isCIDR(self) && cidr(self) == cidr(self).masked()",message="must be a network with its host bits zero, e.g. 192.168.100.0/24"
// +kubebuilder:validation:XValidation:rule="!isCIDR(self) || (cidr(self).prefixLength() >= 8 && ['0.0.0.0/8', '169.254.0.0/16', '224.0.0.0/3', '::/8', 'fe80::/10', 'ff00::/8'].all(n, !cidr(n).containsIP(cidr(self).ip()) && !cidr(self).containsCIDR(n)))",message="no VLAN can have this network: it must be /8 or longer, and neither link-local nor multicast nor reserved, e.g. 192.168.100.0/24"
type Subnet string

// IPv4AddressOrCIDR is one IPv4 address, or an IPv4 network with its host bits zero.
// +kubebuilder:validation:MinLength=2
// +kubebuilder:validation:MaxLength=49
// +kubebuilder:validation:XValidation:rule="isIP(self) ? ip(self).family() == 4 : isCIDR(self) && cidr(self).ip().family() == 4 && cidr(self).prefixLength() > 0 && cidr(self) == cidr(self).masked()",message="must be an IPv4 address or a network with its host bits zero, and not all of IPv4, e.g. 192.168.100.1 or 192.168.100.0/28"
type IPv4AddressOrCIDR string

// MACAddress is an Ethernet address, lower case with colons.
// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9a-f]{2}:){5}[0-9a-f]{2}$')",message="must be an Ethernet address in lower case with colons, e.g. 52:54:00:00:01:01"
// +kubebuilder:validation:MaxLength=17
type MACAddress string

// DNSName is a DNS-1123 subdomain without a trailing dot.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be a DNS name in lower case without a dot at its end, e.g. c1.example.com"
type DNSName string

// DNSNameOrWildcard is a DNSName that may begin with "*." (RFC 4592).
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule="self.matches('^(\\\\*\\\\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be a DNS name in lower case, which may begin with *., e.g. *.apps.example.com"
type DNSNameOrWildcard string

// ObjectName is the name of a Kubernetes object or namespace.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be a name that Kubernetes accepts: lower case letters, digits, - and ., e.g. vlan100"
type ObjectName string

// Port is a TCP port, 1 to 65535.
// +kubebuilder:validation:Minimum=1
// +kubebuilder:validation:Maximum=65535
type Port int32

// AddressRange is a range of IPv4 addresses, both ends included.
// +kubebuilder:validation:XValidation:rule="![self.start, self.end].all(a, isIP(a) && ip(a).family() == 4) || (int(self.start.split('.')[0])*16777216 + int(self.start.split('.')[1])*65536 + int(self.start.split('.')[2])*256 + int(self.start.split('.')[3])) <= (int(self.end.split('.')[0])*16777216 + int(self.end.split('.')[1])*65536 + int(self.end.split('.')[2])*256 + int(self.end.split('.')[3]))",message="end lies before start; swap them, e.g. start: 192.168.100.90, end: 192.168.100.99"
type AddressRange struct {
	// First address of the range.
	Start IPv4Address `json:"start"`
	// Last address of the range.
	End IPv4Address `json:"end"`
}

// Route is one static route that DHCP hands out (option 121, RFC 3442).
type Route struct {
	// Network that is reached through the gateway, e.g. 10.20.0.0/16.
	// +kubebuilder:validation:XValidation:rule="!isCIDR(self) || cidr(self).ip().family() == 4",message="must be an IPv4 network: DHCP hands out no other routes, e.g. 10.20.0.0/16"
	Destination CIDR `json:"destination"`
	// Next hop; an address of the VLAN.
	Gateway IPv4Address `json:"gateway"`
}

// Placement says where a component's pods run and what they may use. A VLAN exists on some nodes only.
type Placement struct {
	// Labels that a node must carry. Default, of an Infra's components: spec.platform.kubevirt.nodeSelector of the NodePools
	// on the VLAN, where all say the same; else any node. A NodePool's reaches new pods, and those that run when they are next
	// replaced for another reason, or released. Whatever is said here, annotation k8s.v1.cni.cncf.io/resourceName of the
	// NetworkAttachmentDefinition, where it has one and a node has that resource, keeps pods to such nodes.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Taints that the pods tolerate. Default: none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// PriorityClass of the pods. Default: the cluster's default class.
	// +optional
	PriorityClassName ObjectName `json:"priorityClassName,omitempty"`
	// Requests and limits of the component's main container. Default: requests of 10m CPU and 32Mi memory for DHCP,
	// 20m and 48Mi for DNS, 50m and 128Mi for the proxy (Envoy); limits of 2 CPUs each and 128Mi, 256Mi and 512Mi.
	// The pod's second container asks for 5m and 16Mi (limit 64Mi) with DHCP and DNS, 10m and 32Mi (128Mi) with the proxy.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
}

// Attachment says how the pod joins the VLAN.
type Attachment struct {
	// NetworkAttachmentDefinition that the pod attaches to. It must be able to give the pod a static address:
	// an Infra fills in the one that it derives from the worker's.
	NetworkAttachmentDefinition ObjectName `json:"networkAttachmentDefinition"`
	// Namespace of the NetworkAttachmentDefinition. Default: the namespace of this object.
	// +optional
	NetworkAttachmentNamespace ObjectName `json:"networkAttachmentNamespace,omitempty"`
	// Ethernet address of the pod's VLAN interface. It stays when the pod is replaced, so that clients' neighbour
	// caches stay right. Default: derived from namespace, name and server address (locally administered).
	// +optional
	// +kubebuilder:validation:XValidation:rule="self != '00:00:00:00:00:00' && self.matches('^.[02468ace]')",message="no network card can have this address: it is all zero or multicast; the second digit must be even, e.g. 02:00:00:00:01:01"
	MACAddress MACAddress `json:"macAddress,omitempty"`
}

// Instance is one pod's worth of a component: an address and the workload that holds it.
type Instance struct {
	// Address on the VLAN.
	IP IPAddress `json:"ip"`
	// StatefulSet or Deployment that runs it.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Workload string `json:"workload,omitempty"`
	// True when its daemon says that it serves. DNS and proxy try their own sockets on the VLAN; DHCP holds its socket and
	// has read its leases, but nothing asks it for one.
	// +optional
	Ready bool `json:"ready,omitempty"`
	// What keeps it from serving, in its daemon's words; empty while it serves, and when its daemon cannot speak.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// Condition types. Each begins as Unknown. Each is true by its own definition, whatever the others say: what is refused is
// Accepted False and Ready False, and neither Progressing nor Degraded.
const (
	// ConditionAccepted: the spec is valid, permitted, and its VLAN is free.
	ConditionAccepted = "Accepted"
	// ConditionNetworkReady: the NetworkAttachmentDefinition exists and can be used.
	ConditionNetworkReady = "NetworkReady"
	// ConditionEndpointsResolved: the name, the port and the backend of every control-plane endpoint are known.
	ConditionEndpointsResolved = "EndpointsResolved"
	// ConditionDHCPReady: the DHCP server listens on the VLAN with its leases read, and has an address left for a new worker;
	// nothing asks it.
	ConditionDHCPReady = "DHCPReady"
	// ConditionDNSReady: the DNS server answers on the VLAN.
	ConditionDNSReady = "DNSReady"
	// ConditionProxyReady: Envoy runs with the accepted configuration.
	ConditionProxyReady = "ProxyReady"
	// ConditionBackendsHealthy: behind every name but *.apps, the proxy has a target that takes its connections. Present while
	// the proxy is on.
	ConditionBackendsHealthy = "BackendsHealthy"
	// ConditionAppsIngressReady: *.apps leads to the hosted cluster's routers. Present while appsIngress is enabled.
	ConditionAppsIngressReady = "AppsIngressReady"
	// ConditionProgressing: what the spec says is being rolled out, or waits for something outside.
	ConditionProgressing = "Progressing"
	// ConditionDegraded: something that is there does not serve, though it did before, or has had two minutes to.
	ConditionDegraded = "Degraded"
	// ConditionReady: a worker that boots now would join.
	ConditionReady = "Ready"
	// ConditionConfigAccepted: the daemon runs with the newest spec; else the message carries its own words (Envoy's NACK).
	ConditionConfigAccepted = "ConfigAccepted"
	// ConditionAddressesLeft: a new machine on the VLAN gets an address.
	ConditionAddressesLeft = "AddressesLeft"
	// ConditionClockSteady: the offset between this node's clock and the API server's does not jump.
	ConditionClockSteady = "ClockSteady"
)
