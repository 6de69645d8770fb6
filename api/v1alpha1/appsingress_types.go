package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AppsIngressMode says what carries *.apps of the hosted cluster to its routers.
// +kubebuilder:validation:Enum=LoadBalancer;NodePort;HostNetwork
type AppsIngressMode string

const (
	// AppsLoadBalancer makes a Service of type LoadBalancer in the hosted cluster; its MetalLB gives the address.
	AppsLoadBalancer AppsIngressMode = "LoadBalancer"
	// AppsNodePort needs nothing in the hosted cluster: the proxy spreads over the workers' addresses and the router's node ports.
	AppsNodePort AppsIngressMode = "NodePort"
	// AppsHostNetwork leads to routers that listen on their workers' own addresses, and needs nothing in the hosted cluster either.
	AppsHostNetwork AppsIngressMode = "HostNetwork"
)

// AppsIngressPhase says how far *.apps got.
// +kubebuilder:validation:Enum=Pending;Ready;Degraded
type AppsIngressPhase string

const (
	// AppsPending: no address has ever been there.
	AppsPending AppsIngressPhase = "Pending"
	// AppsReady: names and proxy lead to the address.
	AppsReady AppsIngressPhase = "Ready"
	// AppsDegraded: the address is gone, is refused, or cannot be seen; names and proxy stay as they were.
	AppsDegraded AppsIngressPhase = "Degraded"
)

// AddressOrRange is a network (192.168.100.192/28) or a range (192.168.100.200-192.168.100.220), as MetalLB's pools have them.
// +kubebuilder:validation:MinLength=3
// +kubebuilder:validation:MaxLength=87
// +kubebuilder:validation:XValidation:rule="isCIDR(self) || (self.split('-').size() == 2 && self.split('-').all(a, isIP(a)))",message="must be a network or a range of addresses, e.g. 192.168.100.192/28 or 192.168.100.200-192.168.100.220"
type AddressOrRange string

// AppsMetalLB is what is known of the hosted cluster's MetalLB, which is the user's: nothing of it is installed.
type AppsMetalLB struct {
	// IPAddressPool to take the address from (annotation metallb.io/address-pool). Default: MetalLB's choice.
	// +optional
	AddressPoolName ObjectName `json:"addressPoolName,omitempty"`
	// Addresses of that pool. The address given must be one of them, and none of them is leased by DHCP. Default: not checked.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	IPAddressPoolRange []AddressOrRange `json:"ipAddressPoolRange,omitempty"`
	// L2Advertisement that announces the pool; must exist in the hosted cluster. Default: not checked.
	// +optional
	L2AdvertisementName ObjectName `json:"l2AdvertisementName,omitempty"`
	// Class that MetalLB serves (its --lb-class). Default: read from the hosted cluster's MetalLB. On KubeVirt there must be one:
	// HyperShift's own cloud provider takes every Service without a class.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",message="must be a label-style name, e.g. metallb.io/metallb"
	LoadBalancerClass string `json:"loadBalancerClass,omitempty"`
}

// AppsService is the Service that is made in the hosted cluster.
type AppsService struct {
	// Default: <cluster>-apps.
	// +optional
	Name ObjectName `json:"name,omitempty"`
	// Default: openshift-ingress, where the routers are. The Service selects them, so another namespace must hold routers of its own.
	// +optional
	Namespace ObjectName `json:"namespace,omitempty"`
}

// AppsPorts are the ports of *.apps.
// +kubebuilder:validation:XValidation:rule="(has(self.http) ? self.http : 80) != (has(self.https) ? self.https : 443)",message="http and https need two ports, e.g. http: 80 and https: 443"
type AppsPorts struct {
	// HTTP, passed on whatever the Host. Default 80.
	// +optional
	HTTP Port `json:"http,omitempty"`
	// HTTPS, passed on by server name; TLS is never terminated. Default 443.
	// +optional
	HTTPS Port `json:"https,omitempty"`
}

// AppsIngress publishes *.apps.<cluster>.<base domain> on the VLAN and in the management cluster.
// +kubebuilder:validation:XValidation:rule="!has(self.metallb) || !has(self.mode) || self.mode == 'LoadBalancer'",message="modes NodePort and HostNetwork use no MetalLB: remove metallb, or set e.g. mode: LoadBalancer"
type AppsIngress struct {
	// True publishes *.apps. Default false; false again takes away what was made, in the hosted cluster too.
	// +optional
	Enabled bool `json:"enabled,omitempty"`
	// Domain of the hosted cluster, to which *.apps. is put, e.g. c1.example.com. Default: read from the HostedCluster.
	// +optional
	BaseDomain DNSName `json:"baseDomain,omitempty"`
	// Hosted cluster. Must equal spec.hostedClusterRef. Default: that.
	// +optional
	HostedClusterRef *HostedClusterReference `json:"hostedClusterRef,omitempty"`
	// LoadBalancer: by a Service in the hosted cluster, to which its MetalLB gives an address. NodePort: by the proxy, to the node
	// ports of the hosted cluster's routers. HostNetwork: by the proxy, to routers that listen on their workers' own addresses, at
	// whatever ports. Default: HostNetwork where the hosted cluster's IngressController says so, or before it is there the
	// HostedCluster (endpointPublishingStrategy), metallb is left out and serves nothing yet; else LoadBalancer.
	// +optional
	Mode AppsIngressMode `json:"mode,omitempty"`
	// The hosted cluster's MetalLB. Default: all is found there.
	// +optional
	MetalLB *AppsMetalLB `json:"metallb,omitempty"`
	// The Service in the hosted cluster.
	// +optional
	Service AppsService `json:"service,omitempty"`
	// Ports of *.apps. Default 80 and 443.
	// +optional
	Ports AppsPorts `json:"ports,omitempty"`
}

// AppsIngressStatus says how *.apps stands.
type AppsIngressStatus struct {
	// Pending, Ready or Degraded.
	Phase AppsIngressPhase `json:"phase"`
	// First of externalIPs.
	// +optional
	ExternalIP IPAddress `json:"externalIP,omitempty"`
	// Addresses that *.apps has on the VLAN: the Service's external IPs or, in the other modes, the proxy's.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	ExternalIPs []IPAddress `json:"externalIPs,omitempty"`
	// When this last changed.
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
