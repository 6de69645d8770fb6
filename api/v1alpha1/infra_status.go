package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AssignedAddress is an address of one of the Infra's pods on the VLAN.
type AssignedAddress struct {
	// Component: dhcp, dns or proxy.
	// +kubebuilder:validation:MaxLength=16
	Component string `json:"component"`
	// Number of the instance, starting at 0.
	Instance int32 `json:"instance"`
	// The address.
	IP IPAddress `json:"ip"`
}

// EndpointStatus is one endpoint of the control plane, or an extra endpoint.
type EndpointStatus struct {
	// Name: api, ignition, oauth, konnectivity, …, or that of an extra endpoint.
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Names or addresses that workers connect to.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=253
	Hostnames []string `json:"hostnames,omitempty"`
	// Port that workers connect to.
	Port Port `json:"port"`
	// What the proxy forwards to, e.g. clusters-c1/kube-apiserver:6443.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Backend string `json:"backend,omitempty"`
	// Where the operator read name and port, e.g. HostedCluster.status.ignitionEndpoint.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Source string `json:"source,omitempty"`
}

// LeaseCount says how full the pool is.
type LeaseCount struct {
	// Addresses with a lease in state Bound.
	Active int32 `json:"active"`
	// Number of addresses that the pool can lease.
	PoolSize int32 `json:"poolSize"`
}

// InfraStatus is what the operator derived from the spec, and the state of it.
type InfraStatus struct {
	// Conditions: Accepted, NetworkReady, EndpointsResolved, DHCPReady, DNSReady, ProxyReady, BackendsHealthy, AppsIngressReady,
	// Progressing, Degraded, Ready. Each False one says in its message what to do.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Addresses of DHCP, DNS and the proxy on the VLAN.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Addresses []AssignedAddress `json:"addresses,omitempty"`
	// Endpoints that workers connect to through the proxy.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Endpoints []EndpointStatus `json:"endpoints,omitempty"`
	// How full the pool is. At most 2 s old; written at most once a second.
	// +optional
	Leases *LeaseCount `json:"leases,omitempty"`
	// Backends of the proxy with a target that answers, and all backends, e.g. 4/4. Backends of *.apps are not counted.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	HealthyBackends string `json:"healthyBackends,omitempty"`
	// State of *.apps; absent while it is not published.
	// +optional
	AppsIngress *AppsIngressStatus `json:"appsIngress,omitempty"`
	// Generation of the spec that this status was computed from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}
