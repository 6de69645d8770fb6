package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Protocol says how the proxy routes a connection.
// +kubebuilder:validation:Enum=TCP;TLS
type Protocol string

const (
	// ProtocolTCP routes by port alone.
	ProtocolTCP Protocol = "TCP"
	// ProtocolTLS routes by server name (SNI). TLS is never terminated.
	ProtocolTLS Protocol = "TLS"
)

// Views says on which networks the proxy serves a backend.
// +kubebuilder:validation:Enum=VLAN;VLANAndPods
type Views string

const (
	// ViewVLAN serves the backend on the VLAN only.
	ViewVLAN Views = "VLAN"
	// ViewVLANAndPods serves it on the pod network too, through the proxy's Service.
	ViewVLANAndPods Views = "VLANAndPods"
)

// CapturedAddress is a control-plane address that workers connect to, which the proxy's pod has as an additional address.
type CapturedAddress struct {
	// The address.
	IP IPAddress `json:"ip"`
	// Ports of the address that the proxy serves.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Ports []Port `json:"ports"`
}

// ProxyNetworkConfig describes the VLAN and the addresses of the proxy.
// +kubebuilder:validation:XValidation:rule="!has(self.additionalServerIPs) || self.additionalServerIPs.all(a, a != self.serverIP && (!has(self.capturedAddresses) || self.capturedAddresses.all(c, c.ip != a)))",message="additionalServerIPs must differ from serverIP and capturedAddresses, e.g. 192.168.100.6 beside 192.168.100.4"
type ProxyNetworkConfig struct {
	Attachment `json:",inline"`
	// Address of the proxy on the VLAN.
	ServerIP IPAddress `json:"serverIP"`
	// Address of a second instance: a pod of its own, on another node if there is one, with the same backends. If the
	// NetworkAttachmentDefinition itself names the pod's address, the second pod attaches to the one with the same name and -1.
	// Default: one instance.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1
	AdditionalServerIPs []IPAddress `json:"additionalServerIPs,omitempty"`
	// Captured addresses: addresses of the control plane that the first instance's pod has in addition to serverIP. Default: none.
	// +optional
	// +listType=map
	// +listMapKey=ip
	// +kubebuilder:validation:MaxItems=8
	CapturedAddresses []CapturedAddress `json:"capturedAddresses,omitempty"`
}

// ServerIPs are the addresses of all instances, the first's first.
func (n ProxyNetworkConfig) ServerIPs() []IPAddress {
	return append([]IPAddress{n.ServerIP}, n.AdditionalServerIPs...)
}

// ProxyBackend is one service that clients reach through the proxy.
// +kubebuilder:validation:XValidation:rule="has(self.targetService) != has(self.targetAddresses)",message="set exactly one of targetService (with targetPort and targetNamespace) and targetAddresses, e.g. targetAddresses: [10.20.0.5:443]"
// +kubebuilder:validation:XValidation:rule="!has(self.targetService) || (has(self.targetPort) && has(self.targetNamespace))",message="targetService needs targetPort and targetNamespace, e.g. targetPort: 6443 and targetNamespace: clusters-c1"
// +kubebuilder:validation:XValidation:rule="self.protocol != 'TLS' || has(self.hostname) || (has(self.catchAll) && self.catchAll)",message="a TLS backend needs a hostname, or catchAll: true, e.g. hostname: registry.example.com"
// +kubebuilder:validation:XValidation:rule="self.protocol != 'TCP' || !has(self.alternateHostnames)",message="alternateHostnames need protocol TLS: plain TCP carries no name; remove them, or set e.g. protocol: TLS"
// +kubebuilder:validation:XValidation:rule="!has(self.hostname) || !has(self.alternateHostnames) || !(self.hostname in self.alternateHostnames)",message="alternateHostnames has the hostname once more; remove it there, e.g. hostname: a.example.com and alternateHostnames: [b.example.com]"
type ProxyBackend struct {
	// Name, unique in the list; also the name of the Envoy cluster.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be lower case letters, digits and -, e.g. ignition"
	Name string `json:"name"`
	// Server name (SNI) of this backend; may begin with "*.". Optional with protocol TCP and with catchAll.
	// +optional
	Hostname DNSNameOrWildcard `json:"hostname,omitempty"`
	// Further server names.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	AlternateHostnames []DNSNameOrWildcard `json:"alternateHostnames,omitempty"`
	// True: connections without a server name, or with an unknown one, go to this backend too. At most one backend per port.
	// Default: false.
	// +optional
	CatchAll bool `json:"catchAll,omitempty"`
	// Port that the proxy listens on.
	Port Port `json:"port"`
	// Service of the backend; the proxy connects to its ready endpoints. Set either targetService with targetPort, or
	// targetAddresses.
	// +optional
	TargetService ObjectName `json:"targetService,omitempty"`
	// Port of the Service; required with targetService.
	// +optional
	TargetPort Port `json:"targetPort,omitempty"`
	// Namespace of the Service; required with targetService. A namespace other than this object's needs a reference grant
	// (docs/PROXY_SETUP.md).
	// +optional
	TargetNamespace ObjectName `json:"targetNamespace,omitempty"`
	// Addresses as ip:port, [ip]:port for IPv6, in place of a Service. Each must lie inside the operator's --extra-endpoint-cidrs.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=53
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^(\\\\[[0-9a-f:.]+\\\\]|[0-9.]+):[0-9]{1,5}$')",message="must be address:port, e.g. 10.20.0.5:443 or [fd00::5]:443"
	TargetAddresses []string `json:"targetAddresses,omitempty"`
	// TCP (default) routes by port, TLS by server name (SNI). The protocol of a port in use cannot change.
	// +optional
	// +kubebuilder:default=TCP
	Protocol Protocol `json:"protocol,omitempty"`
	// Timeout of the three connection attempts together, in seconds, 1 to 300. Default: 30. An attempt takes at most 500 ms, so
	// that a client leaves a dead target within 2 s. With 1 an attempt takes at most 333 ms; all values from 2 on have the same
	// effect.
	// +optional
	// +kubebuilder:default=30
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=300
	TimeoutSeconds int32 `json:"timeoutSeconds,omitempty"`
	// Where the backend is served: VLAN (default), or VLANAndPods for the pod network too.
	// +optional
	// +kubebuilder:default=VLAN
	Views Views `json:"views,omitempty"`
}

// ProxyServerSpec configures one Envoy with its xDS sidecar.
// +kubebuilder:validation:XValidation:rule="self.backends.all(b, !has(b.catchAll) || !b.catchAll || self.backends.exists_one(o, o.port == b.port && has(o.catchAll) && o.catchAll))",message="at most one backend per port may have catchAll; give the other another port, e.g. 8443"
// +kubebuilder:validation:XValidation:rule="self.backends.all(b, b.protocol != 'TCP' || self.backends.exists_one(o, o.port == b.port))",message="a TCP backend needs its port for itself; give the other backend another port, e.g. 8443"
// +kubebuilder:validation:XValidation:rule="self.backends.all(b, !has(b.hostname) || self.backends.exists_one(o, o.port == b.port && has(o.hostname) && o.hostname == b.hostname))",message="two backends on one port have the same hostname; remove one, or give one another port, e.g. 8443"
// +kubebuilder:validation:XValidation:rule="self.backends.all(b, !has(b.alternateHostnames) || self.backends.all(o, o.port != b.port || o.name == b.name || ((!has(o.hostname) || !(o.hostname in b.alternateHostnames)) && (!has(o.alternateHostnames) || !sets.intersects(o.alternateHostnames, b.alternateHostnames)))))",message="two backends on one port share a name in alternateHostnames; remove it from one, or give one another port, e.g. 8443"
// +kubebuilder:validation:XValidation:rule="self.backends.all(b, !has(oldSelf.backends) || oldSelf.backends.all(o, o.port != b.port || o.protocol == b.protocol))",message="the protocol of a port in use cannot change: Envoy would drain it; remove the port first, or use another, e.g. 8443"
type ProxyServerSpec struct {
	// The VLAN and the addresses of the proxy.
	NetworkConfig ProxyNetworkConfig `json:"networkConfig"`
	// Services that clients reach through the proxy.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Backends []ProxyBackend `json:"backends"`
	// Image of Envoy. Refused unless the operator runs with --allow-image-override. Default: the operator's Envoy image.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	ProxyImage string `json:"proxyImage,omitempty"`
	// Image of the xDS sidecar. Refused unless the operator runs with --allow-image-override. Default: the operator's image.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	ManagerImage string `json:"managerImage,omitempty"`
	// On which nodes the pods run.
	// +optional
	Placement `json:",inline"`
}

// FaultReason says what is wrong with the answer of a backend.
// +kubebuilder:validation:Enum=NoHandshake;CertificateNotYetValid;CertificateExpired;CertificateForAnotherName;IgnitionFails
type FaultReason string

const (
	// FaultNoHandshake is a TLS handshake that fails, or takes too long.
	FaultNoHandshake FaultReason = "NoHandshake"
	// FaultNotYetValid is a certificate that is valid only later, by the clock of the proxy's node.
	FaultNotYetValid FaultReason = "CertificateNotYetValid"
	// FaultExpired is a certificate that is valid no more.
	FaultExpired FaultReason = "CertificateExpired"
	// FaultAnotherName is a certificate without the name that workers connect to.
	FaultAnotherName FaultReason = "CertificateForAnotherName"
	// FaultIgnition is an ignition server that answers a request with a 5xx status, or not at all.
	FaultIgnition FaultReason = "IgnitionFails"
)

// BackendFault is what a probe found: a connection from the proxy's pod to its own address on the VLAN, through Envoy to the backend.
type BackendFault struct {
	// What is wrong, in one word.
	Reason FaultReason `json:"reason"`
	// What is wrong, in a sentence. The certificate's names and dates come from the backend.
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message"`
}

// BackendStatus counts the targets of a backend.
type BackendStatus struct {
	// Name of the backend.
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Targets that answer.
	Healthy int32 `json:"healthy"`
	// All targets.
	Total int32 `json:"total"`
	// Why no target answers, or what the proxy does not know of them. Empty while it knows all of them, and one answers.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// What keeps a worker from using this backend although a target answers, by the last probe (docs/PROXY_SETUP.md). Empty while the
	// probe finds nothing, for TCP, and for names with "*.".
	// +optional
	Fault *BackendFault `json:"fault,omitempty"`
}

// MostUnmatched is how many unmatched names one instance reports.
const MostUnmatched = 5

// UnmatchedName is a server name for which the proxy has no backend. Guests choose it.
type UnmatchedName struct {
	// Server name (SNI) that a client on the VLAN asked for, in lower case.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Port of the proxy on which it asked.
	Port Port `json:"port"`
	// Address of the instance that was asked.
	IP IPAddress `json:"ip"`
	// When it was asked for last, to ten minutes, by the clock of the proxy's node.
	LastTime metav1.Time `json:"lastTime"`
}

// ProxyServerStatus is what the operator and the sidecar report.
type ProxyServerStatus struct {
	// Conditions: Accepted, BackendsHealthy, Ready, Progressing, ConfigAccepted (False with Envoy's error).
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Instances, each with its address and workload.
	// +optional
	// +listType=map
	// +listMapKey=ip
	// +kubebuilder:validation:MaxItems=4
	Instances []Instance `json:"instances,omitempty"`
	// ConfigMap with the template of the first instance's Envoy bootstrap.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ConfigMapName string `json:"configMapName,omitempty"`
	// Deployment that runs the first instance's Envoy.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	DeploymentName string `json:"deploymentName,omitempty"`
	// Service for clients on the pod network.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ServiceName string `json:"serviceName,omitempty"`
	// Cluster IP of that Service.
	// +optional
	// +kubebuilder:validation:MaxLength=45
	ServiceIP string `json:"serviceIP,omitempty"`
	// Number of configured backends.
	// +optional
	BackendCount int32 `json:"backendCount,omitempty"`
	// Targets of each backend, as the first instance sees them.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Backends []BackendStatus `json:"backends,omitempty"`
	// Server names that clients on the VLAN asked for and no backend has: of each instance the last 5, since its pod started. A change is
	// written at once up to three times, then every five minutes. Who asks for more names pushes out others' here, not in their leases.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +listMapKey=port
	// +listMapKey=ip
	// +kubebuilder:validation:MaxItems=10
	UnmatchedNames []UnmatchedName `json:"unmatchedNames,omitempty"`
	// Backends with a target that answers, and all backends, e.g. 4/4. Backends of *.apps are not counted.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	HealthyBackends string `json:"healthyBackends,omitempty"`
	// Generation of the spec that this status was computed from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// ProxyServer is a proxy on one VLAN: one or two Envoys, configured over xDS.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=oproxy,categories=oooi
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 52 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="the name may have at most 52 characters a-z, 0-9 and -, a letter first: names of pods and Services are made from it; choose another, e.g. lab-proxy"
// +kubebuilder:printcolumn:name="Server",type=string,JSONPath=`.spec.networkConfig.serverIP`
// +kubebuilder:printcolumn:name="Healthy",type=string,JSONPath=`.status.healthyBackends`
// +kubebuilder:printcolumn:name="Service-IP",type=string,JSONPath=`.status.serviceIP`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ProxyServer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ProxyServerSpec `json:"spec"`
	// +optional
	Status ProxyServerStatus `json:"status,omitempty"`
}

// ProxyServerList is a list of ProxyServer.
// +kubebuilder:object:root=true
type ProxyServerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ProxyServer `json:"items"`
}

func init() { schemeBuilder.Register(known(&ProxyServer{}, &ProxyServerList{})) }
