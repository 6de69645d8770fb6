package v1alpha1

import "github.com/cldmnky/oooi/api/v1alpha1"

// ClusterNetworking are the networks of a hosted cluster, as HyperShift's HostedCluster has them.
type ClusterNetworking struct {
	// Network of pods; one entry. Default: 10.132.0.0/14. Immutable.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1
	ClusterNetwork []ClusterNetworkEntry `json:"clusterNetwork,omitempty"`
	// Network of Services; one entry. Default: 172.31.0.0/16. Immutable.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1
	ServiceNetwork []NetworkEntry `json:"serviceNetwork,omitempty"`
	// Network of the DPUs' own addresses; one entry. Default: none. Immutable.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1
	MachineNetwork []NetworkEntry `json:"machineNetwork,omitempty"`
}

// NetworkEntry is one network.
type NetworkEntry struct {
	// Network, e.g. 172.31.0.0/16.
	CIDR v1alpha1.CIDR `json:"cidr"`
}

// ClusterNetworkEntry is one network of pods.
// +kubebuilder:validation:XValidation:rule="!has(self.hostPrefix) || !isCIDR(self.cidr) || (self.hostPrefix > cidr(self.cidr).prefixLength() && self.hostPrefix <= (cidr(self.cidr).ip().family() == 4 ? 32 : 128))",message="hostPrefix is the size of each DPU's share of the network: it must be longer than that of cidr, e.g. 23"
type ClusterNetworkEntry struct {
	// Network, e.g. 10.132.0.0/14.
	CIDR v1alpha1.CIDR `json:"cidr"`
	// Prefix length of the part of the network that each DPU gets, e.g. 23. Default: HyperShift's.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=128
	HostPrefix int32 `json:"hostPrefix,omitempty"`
}

// NodeLabelValue is the value of a Node's label.
// +kubebuilder:validation:MaxLength=63
type NodeLabelValue string
