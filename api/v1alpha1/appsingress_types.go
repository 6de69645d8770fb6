package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AppsIngressMode says how *.apps reaches the hosted cluster's routers.
// +kubebuilder:validation:Enum=LoadBalancer;NodePort;HostNetwork
type AppsIngressMode string

const (
	// AppsLoadBalancer creates a Service of type LoadBalancer in the hosted cluster, whose MetalLB assigns the address.
	AppsLoadBalancer AppsIngressMode = "LoadBalancer"
	// AppsNodePort creates nothing in the hosted cluster: the proxy balances over the workers' addresses, at the routers' node
	// ports.
	AppsNodePort AppsIngressMode = "NodePort"
	// AppsHostNetwork creates nothing in the hosted cluster: the proxy forwards to routers that listen on the addresses of their
	// workers.
	AppsHostNetwork AppsIngressMode = "HostNetwork"
)

// AppsIngressPhase is the state of *.apps.
// +kubebuilder:validation:Enum=Pending;Ready;Degraded
type AppsIngressPhase string

const (
	// AppsPending: there has been no address yet.
	AppsPending AppsIngressPhase = "Pending"
	// AppsReady: DNS and proxy use the address.
	AppsReady AppsIngressPhase = "Ready"
	// AppsDegraded: the address was lost, is refused, or cannot be read. DNS and proxy keep the last one.
	AppsDegraded AppsIngressPhase = "Degraded"
)

// AddressOrRange is a network (192.168.100.192/28) or a range (192.168.100.200-192.168.100.220), as in MetalLB's IPAddressPool.
// +kubebuilder:validation:MinLength=3
// +kubebuilder:validation:MaxLength=87
// +kubebuilder:validation:XValidation:rule="isCIDR(self) || (self.split('-').size() == 2 && self.split('-').all(a, isIP(a)))",message="must be a network or a range of addresses, e.g. 192.168.100.192/28 or 192.168.100.200-192.168.100.220"
type AddressOrRange string

// AppsMetalLB describes the hosted cluster's MetalLB, which you install and configure; the operator does not.
type AppsMetalLB struct {
	// IPAddressPool for the address (annotation metallb.io/address-pool). Default: MetalLB chooses.
	// +optional
	AddressPoolName ObjectName `json:"addressPoolName,omitempty"`
	// Addresses of that pool. The assigned address must be one of them (else ExternalIPOutsidePool), and DHCP leases none of them.
	// Default: not checked.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	IPAddressPoolRange []AddressOrRange `json:"ipAddressPoolRange,omitempty"`
	// L2Advertisement that announces the pool. It must exist in the hosted cluster (else L2AdvertisementNotFound). Default: not
	// checked.
	// +optional
	L2AdvertisementName ObjectName `json:"l2AdvertisementName,omitempty"`
	// Load balancer class that MetalLB serves (its --lb-class). Default: read from the hosted cluster's MetalLB. KubeVirt needs
	// one, because HyperShift's cloud provider takes every Service without a class (MetalLBClassNotSet).
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="must be a label-style name, e.g. metallb.io/metallb"
	LoadBalancerClass string `json:"loadBalancerClass,omitempty"`
}

// AppsService names the Service that the operator creates in the hosted cluster.
type AppsService struct {
	// Name of the Service. Default: <cluster>-apps.
	// +optional
	Name ObjectName `json:"name,omitempty"`
	// Namespace of the Service. Default: openshift-ingress. The Service selects the router pods, so any other namespace must have
	// routers too.
	// +optional
	Namespace ObjectName `json:"namespace,omitempty"`
}

// AppsPorts are the ports of *.apps.
// +kubebuilder:validation:XValidation:rule="(has(self.http) ? self.http : 80) != (has(self.https) ? self.https : 443)",message="http and https need two ports, e.g. http: 80 and https: 443"
type AppsPorts struct {
	// Port of HTTP. Requests are forwarded whatever their Host header is. Default: 80.
	// +optional
	HTTP Port `json:"http,omitempty"`
	// Port of HTTPS. Connections are forwarded by server name (SNI); TLS is never terminated. Default: 443.
	// +optional
	HTTPS Port `json:"https,omitempty"`
}

// AppsIngress publishes *.apps.<cluster>.<base domain> on the VLAN and in the management cluster.
// +kubebuilder:validation:XValidation:rule="!has(self.metallb) || !has(self.mode) || self.mode == 'LoadBalancer'",message="modes NodePort and HostNetwork use no MetalLB: remove metallb, or set e.g. mode: LoadBalancer"
type AppsIngress struct {
	// True publishes *.apps. Setting it back to false removes what was created, also in the hosted cluster. Default: false.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
	// Domain of the hosted cluster, without *.apps, e.g. c1.example.com. Default: read from the HostedCluster.
	// +optional
	BaseDomain DNSName `json:"baseDomain,omitempty"`
	// The HostedCluster. If set, it must equal spec.hostedClusterRef. Default: spec.hostedClusterRef.
	// +optional
	HostedClusterRef *HostedClusterReference `json:"hostedClusterRef,omitempty"`
	// How *.apps reaches the routers. LoadBalancer: the operator creates a Service in the hosted cluster, whose MetalLB assigns the
	// address. NodePort: the proxy forwards to the node ports of the routers. HostNetwork: the proxy forwards to routers that
	// listen on the addresses of their workers, at any ports. Default: HostNetwork, if endpointPublishingStrategy says HostNetwork
	// (in the hosted cluster's IngressController; before that exists, in the HostedCluster), metallb is not set, and MetalLB does
	// not serve *.apps already; else LoadBalancer.
	// +optional
	Mode AppsIngressMode `json:"mode,omitempty"`
	// The hosted cluster's MetalLB, for mode LoadBalancer. Default: everything is read from the hosted cluster.
	// +optional
	MetalLB *AppsMetalLB `json:"metallb,omitempty"`
	// The Service in the hosted cluster, for mode LoadBalancer.
	// +optional
	Service AppsService `json:"service,omitempty"`
	// Ports of *.apps; none may be a port of another endpoint (PortInUse). Default: 80 and 443.
	// +optional
	Ports AppsPorts `json:"ports,omitempty"`
}

// AppsIngressStatus is the state of *.apps.
type AppsIngressStatus struct {
	// Pending: there has been no address yet. Ready: DNS and proxy use the address. Degraded: the address was lost, is refused, or
	// cannot be read; DNS and proxy keep the last one.
	Phase AppsIngressPhase `json:"phase"`
	// First of externalIPs.
	// +optional
	ExternalIP IPAddress `json:"externalIP,omitempty"`
	// Addresses of *.apps on the VLAN: the Service's external IPs with mode LoadBalancer, else the proxy's address.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	ExternalIPs []IPAddress `json:"externalIPs,omitempty"`
	// Time of the last change of this status.
	// +optional
	LastSyncTime *metav1.Time `json:"lastSyncTime,omitempty"`
	// Reason of the condition AppsIngressReady.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`
	// Message of the condition AppsIngressReady.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Message string `json:"message,omitempty"`
}
