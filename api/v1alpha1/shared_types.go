package v1alpha1

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

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

// CIDR is a network; its host bits must be zero.
// +kubebuilder:validation:MinLength=4
// +kubebuilder:validation:MaxLength=49
// +kubebuilder:validation:XValidation:rule="isCIDR(self) && cidr(self) == cidr(self).masked()",message="must be a network with its host bits zero, e.g. 192.168.100.0/24"
type CIDR string

// Subnet is the network of a VLAN. Its host bits must be zero, and its prefix /8 or longer. Refused are ranges that hosts cannot
// use (RFC 6890; ::/8 contains ::1 and the IPv4-mapped addresses). An Infra refuses 127.0.0.0/8 too; daemons are tested on it.
// +kubebuilder:validation:MinLength=4
// +kubebuilder:validation:MaxLength=49
// +kubebuilder:validation:XValidation:rule="isCIDR(self) && cidr(self) == cidr(self).masked()",message="must be a network with its host bits zero, e.g. 192.168.100.0/24"
// +kubebuilder:validation:XValidation:rule="!isCIDR(self) || (cidr(self).prefixLength() >= 8 && ['0.0.0.0/8', '169.254.0.0/16', '224.0.0.0/3', '::/8', 'fe80::/10', 'ff00::/8'].all(n, !cidr(n).containsIP(cidr(self).ip()) && !cidr(self).containsCIDR(n)))",message="no VLAN can have this network: it must be /8 or longer, and neither link-local nor multicast nor reserved, e.g. 192.168.100.0/24"
type Subnet string

// IPv4AddressOrCIDR is an IPv4 address, or an IPv4 network; its host bits must be zero.
// +kubebuilder:validation:MinLength=2
// +kubebuilder:validation:MaxLength=49
// +kubebuilder:validation:XValidation:rule="isIP(self) ? ip(self).family() == 4 : isCIDR(self) && cidr(self).ip().family() == 4 && cidr(self).prefixLength() > 0 && cidr(self) == cidr(self).masked()",message="must be an IPv4 address or a network with its host bits zero, and not all of IPv4, e.g. 192.168.100.1 or 192.168.100.0/28"
type IPv4AddressOrCIDR string

// MACAddress is an Ethernet address in lower case, with colons.
// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9a-f]{2}:){5}[0-9a-f]{2}$')",message="must be an Ethernet address in lower case with colons, e.g. 52:54:00:00:01:01"
// +kubebuilder:validation:MaxLength=17
type MACAddress string

// ClientMAC is an Ethernet address as people write it: with colons or hyphens, in upper or lower case.
// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}$')",message="must be an Ethernet address with colons or hyphens, e.g. 52:54:00:00:01:01"
// +kubebuilder:validation:MaxLength=17
type ClientMAC string

// Address is the MAC address in lower case with colons.
func (m ClientMAC) Address() MACAddress {
	return MACAddress(strings.ToLower(strings.ReplaceAll(string(m), "-", ":")))
}

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

// StandsFor says whether a host has this name, or one that the wildcard covers.
func (n DNSNameOrWildcard) StandsFor(host string) bool {
	suffix, wildcard := strings.CutPrefix(string(n), "*")
	return string(n) == host || wildcard && strings.HasSuffix(host, suffix)
}

// ObjectName is the name of a Kubernetes object or namespace.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be a name that Kubernetes accepts: lower case letters, digits, - and ., e.g. vlan100"
type ObjectName string

// Port is a TCP port, 1 to 65535.
// +kubebuilder:validation:Minimum=1
// +kubebuilder:validation:Maximum=65535
type Port int32

// AddressRange is a range of IPv4 addresses, including both ends.
// +kubebuilder:validation:XValidation:rule="![self.start, self.end].all(a, isIP(a) && ip(a).family() == 4) || (int(self.start.split('.')[0])*16777216 + int(self.start.split('.')[1])*65536 + int(self.start.split('.')[2])*256 + int(self.start.split('.')[3])) <= (int(self.end.split('.')[0])*16777216 + int(self.end.split('.')[1])*65536 + int(self.end.split('.')[2])*256 + int(self.end.split('.')[3]))",message="end lies before start; swap them, e.g. start: 192.168.100.90, end: 192.168.100.99"
type AddressRange struct {
	// First address of the range.
	Start IPv4Address `json:"start"`
	// Last address of the range.
	End IPv4Address `json:"end"`
}

// Route is a static route that DHCP sends (option 121, RFC 3442).
type Route struct {
	// Destination network, IPv4, e.g. 10.20.0.0/16.
	// +kubebuilder:validation:XValidation:rule="!isCIDR(self) || cidr(self).ip().family() == 4",message="must be an IPv4 network: DHCP hands out no other routes, e.g. 10.20.0.0/16"
	Destination CIDR `json:"destination"`
	// Next hop; must lie inside the VLAN's cidr.
	Gateway IPv4Address `json:"gateway"`
}

// Placement says on which nodes a component's pods run, and which resources they get. Some VLANs exist on some nodes only.
type Placement struct {
	// Labels that a node must have to run the pods. Default for an Infra: spec.platform.kubevirt.nodeSelector of the NodePools on
	// the VLAN if it is the same in all of them, else any node. A change of a NodePool applies to new pods; running pods keep their
	// node until they are replaced for another reason or you update them. If the NetworkAttachmentDefinition has annotation
	// k8s.v1.cni.cncf.io/resourceName and a node has that resource, pods run on such nodes only, in addition to this selector.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Tolerations of the pods. Default: none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// PriorityClass of the pods. Default: the cluster's default.
	// +optional
	PriorityClassName ObjectName `json:"priorityClassName,omitempty"`
	// Requests and limits of the component's main container. Default requests: 10m CPU and 32Mi memory for DHCP, 20m and 48Mi for
	// DNS, 50m and 128Mi for the proxy (Envoy). Default limits: 2 CPUs, and 128Mi, 256Mi and 2Gi. The second container of the pod
	// requests 5m and 16Mi (limit 64Mi) for DHCP and DNS, 10m and 32Mi (limit 128Mi) for the proxy. Envoy accepts a connection for each
	// 416Ki of its memory limit above 64Mi: 4,883 by default.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
}

// Attachment says how the pod is connected to the VLAN.
type Attachment struct {
	// NetworkAttachmentDefinition of the pod. It must support a static address for the pod. An Infra sets the one that it derives
	// from the workers' NetworkAttachmentDefinition.
	NetworkAttachmentDefinition ObjectName `json:"networkAttachmentDefinition"`
	// Namespace of the NetworkAttachmentDefinition. Default: the namespace of this object.
	// +optional
	NetworkAttachmentNamespace ObjectName `json:"networkAttachmentNamespace,omitempty"`
	// MAC address of the pod's VLAN interface. It does not change when the pod is replaced, so clients' neighbour caches stay
	// valid. Default: a locally administered address, derived from namespace, name and server address.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self != '00:00:00:00:00:00' && self.matches('^.[02468ace]')",message="no network card can have this address: it is all zero or multicast; the second digit must be even, e.g. 02:00:00:00:01:01"
	MACAddress MACAddress `json:"macAddress,omitempty"`
}

// HealthState is what a DNS instance finds out about an address by connecting to it over the VLAN.
// +kubebuilder:validation:Enum=Answers;Silent;Lost;Confirmed
type HealthState string

const (
	// HealthAnswers: a connection is accepted or refused, by this port or another.
	HealthAnswers HealthState = "Answers"
	// HealthSilent: nothing has come back for two seconds.
	HealthSilent HealthState = "Silent"
	// HealthLost: and no other instance has said for two more that it is Confirmed.
	HealthLost HealthState = "Lost"
	// HealthConfirmed: it answers, though another instance says that it is Silent or Lost.
	HealthConfirmed HealthState = "Confirmed"
)

// Health is that of one address.
type Health struct {
	// Address, one of the DNSServer's healthChecks.
	IP IPAddress `json:"ip"`
	// Answers: a connection is accepted or refused. Silent: nothing has come back for two seconds. Lost: and for two more no other
	// instance has said that it is Confirmed. Confirmed: it answers, though another instance says that it is Silent or Lost.
	State HealthState `json:"state"`
}

// Instance is one pod of a component: its address on the VLAN and its workload.
type Instance struct {
	// Address on the VLAN.
	IP IPAddress `json:"ip"`
	// StatefulSet or Deployment that runs it.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Workload string `json:"workload,omitempty"`
	// True if the daemon reports that it serves. DNS and proxy test their own sockets on the VLAN. DHCP has its socket open and its
	// leases read, but nothing requests a lease from it as a test.
	// +optional
	Ready bool `json:"ready,omitempty"`
	// Why it does not serve, as its daemon reports it. Empty while it serves, or if the daemon cannot report.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// Addresses of all instances that lease from the pool with this one, itself included, as it knows them (DHCP only). An instance
	// begins to serve when every other one that reports lists it: an address that is released goes to another client only after
	// each instance has forgotten its holder.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	ServesWith []IPAddress `json:"servesWith,omitempty"`
	// Node of the pod that has the address and is Ready. Empty with one instance, or while none is.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node,omitempty"`
	// What this instance finds on the VLAN at the addresses of healthChecks (DNS only). The operator replaces a proxy's pod that is
	// Lost to one instance, and Confirmed by none, on another node.
	// +optional
	// +listType=map
	// +listMapKey=ip
	// +kubebuilder:validation:MaxItems=4
	Health []Health `json:"health,omitempty"`
}

// InstanceCondition is the type of a condition that each instance of a daemon has for itself.
func InstanceCondition(kind string, instance int) string {
	if instance == 0 {
		return kind
	}
	return fmt.Sprint(kind, instance)
}

// Condition types. Each begins as Unknown. Each has its own definition and does not depend on the others: an Infra that is refused
// is Accepted False and Ready False, and neither Progressing nor Degraded.
const (
	// ConditionAccepted: the spec is valid, its references are granted, and its VLAN is free.
	ConditionAccepted = "Accepted"
	// ConditionNetworkReady: the NetworkAttachmentDefinition exists and can be used.
	ConditionNetworkReady = "NetworkReady"
	// ConditionEndpointsResolved: the name, the port and the backend of every control-plane endpoint are known.
	ConditionEndpointsResolved = "EndpointsResolved"
	// ConditionDHCPReady: the DHCP server listens on the VLAN, has read its leases, and has a free address for a new worker.
	ConditionDHCPReady = "DHCPReady"
	// ConditionDNSReady: the DNS server answers on the VLAN.
	ConditionDNSReady = "DNSReady"
	// ConditionProxyReady: Envoy runs with the accepted configuration.
	ConditionProxyReady = "ProxyReady"
	// ConditionBackendsHealthy: for every name except *.apps, the proxy has a target that accepts connections. Present while the
	// proxy is enabled.
	ConditionBackendsHealthy = "BackendsHealthy"
	// ConditionAppsIngressReady: *.apps reaches the hosted cluster's routers. Present while appsIngress is enabled.
	ConditionAppsIngressReady = "AppsIngressReady"
	// ConditionProgressing: a change is being rolled out, or waits for something outside.
	ConditionProgressing = "Progressing"
	// ConditionDegraded: a component has stopped serving, or has not begun to within two minutes.
	ConditionDegraded = "Degraded"
	// ConditionReady: a worker that boots now can join.
	ConditionReady = "Ready"
	// ReasonProbeFails of an Infra's BackendsHealthy and Ready: all backends answer, and the proxy's probe finds that a worker refuses what one of
	// them serves. Both stay True, since nobody here can tell for whom a tenant's certificate is meant, nor may the operator do anything about it.
	ReasonProbeFails = "ProbeFails"
	// ConditionConfigAccepted: the daemon runs with the newest spec. If not, the message has the daemon's error (Envoy's NACK).
	// A second instance has its own, as InstanceCondition names it.
	ConditionConfigAccepted = "ConfigAccepted"
	// ConditionAddressesLeft: the pool has an address for a new machine on the VLAN.
	ConditionAddressesLeft = "AddressesLeft"
	// ConditionResolversAnswer: one of the upstream resolvers answers. Ready does not need it: a worker joins without.
	ConditionResolversAnswer = "ResolversAnswer"
	// ConditionClockSteady: the offset between this node's clock and the API server's does not jump.
	ConditionClockSteady = "ClockSteady"
)
