package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AssignedAddress is one address that the Infra uses on the VLAN.
type AssignedAddress struct {
	// dhcp, dns or proxy.
	// +kubebuilder:validation:MaxLength=16
	Component string `json:"component"`
	// Number of the instance, from 0.
	Instance int32 `json:"instance"`
	// The address.
	IP IPAddress `json:"ip"`
}

// EndpointStatus is one row of the endpoint table and where it was read.
type EndpointStatus struct {
	// api, ignition, oauth, konnectivity, …, or the name of an extra endpoint.
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Names or literals that workers dial.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=253
	Hostnames []string `json:"hostnames,omitempty"`
	// Port that workers dial.
	Port Port `json:"port"`
	// Where the proxy leads them, e.g. clusters-c1/kube-apiserver:6443.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Backend string `json:"backend,omitempty"`
	// Where name and port were read, e.g. HostedCluster.status.ignitionEndpoint.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Source string `json:"source,omitempty"`
}

// LeaseCount says how full the pool is.
type LeaseCount struct {
	// Addresses bound now.
	Active int32 `json:"active"`
	// Addresses that the pool can lease.
	PoolSize int32 `json:"poolSize"`
}

// InfraStatus is what was derived, and how it stands.
type InfraStatus struct {
	// Accepted, NetworkReady, EndpointsResolved, DHCPReady, DNSReady, ProxyReady, BackendsHealthy, AppsIngressReady, Progressing,
	// Degraded, Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Addresses in use.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Addresses []AssignedAddress `json:"addresses,omitempty"`
	// The endpoint table.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Endpoints []EndpointStatus `json:"endpoints,omitempty"`
	// How full the pool is, less than 2 s ago; a change is written at most once a second.
	// +optional
	Leases *LeaseCount `json:"leases,omitempty"`
	// How many backends of the proxy have a target that answers, of how many, e.g. 4/4. Those of *.apps do not count.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	HealthyBackends string `json:"healthyBackends,omitempty"`
	// How *.apps stands; absent while it is not published.
	// +optional
	AppsIngress *AppsIngressStatus `json:"appsIngress,omitempty"`
	// Generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}
