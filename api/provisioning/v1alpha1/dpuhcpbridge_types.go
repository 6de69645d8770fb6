package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
)

// AvailabilityPolicy says how many instances of a component HyperShift runs.
// +kubebuilder:validation:Enum=SingleReplica;HighlyAvailable
type AvailabilityPolicy string

const (
	// SingleReplica runs one instance; it is down while its node is down.
	SingleReplica AvailabilityPolicy = "SingleReplica"
	// HighlyAvailable runs three instances of etcd and of what needs a quorum, two or three of the rest.
	HighlyAvailable AvailabilityPolicy = "HighlyAvailable"
)

// DPUClusterDeletionPolicy says what happens to the hosted cluster when its DPUCluster is deleted.
// +kubebuilder:validation:Enum=Retain;Delete
type DPUClusterDeletionPolicy string

const (
	// RetainHostedCluster keeps the hosted cluster, but stops CSR approval and kubeconfig injection.
	RetainHostedCluster DPUClusterDeletionPolicy = "Retain"
	// DeleteHostedCluster deletes the bridge, and with it the hosted cluster.
	DeleteHostedCluster DPUClusterDeletionPolicy = "Delete"
)

// RebootstrapPolicy says whether a DPU whose Node exists may bootstrap again.
// +kubebuilder:validation:Enum=Allow;Never
type RebootstrapPolicy string

const (
	// AllowRebootstrap approves its CSR once the Node is inactive.
	AllowRebootstrap RebootstrapPolicy = "Allow"
	// NeverRebootstrap never approves its CSR.
	NeverRebootstrap RebootstrapPolicy = "Never"
)

// ReleaseImage is an image with a tag or a digest; there is no default tag.
// +kubebuilder:validation:MinLength=3
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9][-A-Za-z0-9.]*(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+(:[A-Za-z0-9_][-A-Za-z0-9_.]{0,127}|(:[A-Za-z0-9_][-A-Za-z0-9_.]{0,127})?@sha256:[0-9a-f]{64})$')",message="must be an image with its registry and a tag or digest, e.g. quay.io/openshift-release-dev/ocp-release:4.20.4-multi"
type ReleaseImage string

// SecretName is the name of a Secret in the namespace of the bridge.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of a Secret in this namespace, not a file: the operator cannot read your disk; oooi bridge create makes the Secret from a file, e.g. dpu1-pull-secret"
type SecretName string

// DPUClusterReference names a DPUCluster.
type DPUClusterReference struct {
	// Name of the DPUCluster.
	Name v1alpha1.ObjectName `json:"name"`
	// Namespace of the DPUCluster. Default: the bridge's namespace. A DPUCluster in another namespace needs the annotation
	// hostedcluster.densityops.com/allowed-namespaces, which must list the bridge's namespace.
	// +optional
	Namespace v1alpha1.ObjectName `json:"namespace,omitempty"`
}

// DPUDeploymentReference names a DPUDeployment.
type DPUDeploymentReference struct {
	// Name of the DPUDeployment.
	Name v1alpha1.ObjectName `json:"name"`
	// Namespace of the DPUDeployment. Default: the bridge's namespace. A DPUDeployment in another namespace needs the annotation
	// hostedcluster.densityops.com/allowed-namespaces, which must list the bridge's namespace.
	// +optional
	Namespace v1alpha1.ObjectName `json:"namespace,omitempty"`
}

// DPUHCPBridgeSpec describes the hosted cluster that the DPUs of a DPUCluster join.
// +kubebuilder:validation:XValidation:rule="has(self.dpuClusterRef) == has(oldSelf.dpuClusterRef) && (!has(self.dpuClusterRef) || self.dpuClusterRef == oldSelf.dpuClusterRef)",message="dpuClusterRef is set once; make another bridge for another one, e.g. metadata.name: dpu2"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.dpuDeploymentRef) || (has(self.dpuDeploymentRef) && self.dpuDeploymentRef == oldSelf.dpuDeploymentRef)",message="dpuDeploymentRef is set once; make another bridge for another one, e.g. metadata.name: dpu2"
// +kubebuilder:validation:XValidation:rule="has(self.baseDomain) == has(oldSelf.baseDomain) && (!has(self.baseDomain) || self.baseDomain == oldSelf.baseDomain)",message="baseDomain is set once; make another bridge for another one, e.g. metadata.name: dpu2"
// +kubebuilder:validation:XValidation:rule="has(self.etcdStorageClass) == has(oldSelf.etcdStorageClass) && (!has(self.etcdStorageClass) || self.etcdStorageClass == oldSelf.etcdStorageClass)",message="etcdStorageClass is set once; make another bridge for another one, e.g. metadata.name: dpu2"
// +kubebuilder:validation:XValidation:rule="has(self.controlPlaneAvailabilityPolicy) == has(oldSelf.controlPlaneAvailabilityPolicy) && (!has(self.controlPlaneAvailabilityPolicy) || self.controlPlaneAvailabilityPolicy == oldSelf.controlPlaneAvailabilityPolicy)",message="controlPlaneAvailabilityPolicy is set once; make another bridge for another one, e.g. metadata.name: dpu2"
// +kubebuilder:validation:XValidation:rule="has(self.clusterType) == has(oldSelf.clusterType) && (!has(self.clusterType) || self.clusterType == oldSelf.clusterType)",message="clusterType is set once; make another bridge for another one, e.g. metadata.name: dpu2"
// +kubebuilder:validation:XValidation:rule="has(self.metalLBVirtualIP) == has(oldSelf.metalLBVirtualIP) && (!has(self.metalLBVirtualIP) || self.metalLBVirtualIP == oldSelf.metalLBVirtualIP)",message="metalLBVirtualIP is set once; make another bridge for another one, e.g. metadata.name: dpu2"
// +kubebuilder:validation:XValidation:rule="has(self.virtualIP) == has(oldSelf.virtualIP) && (!has(self.virtualIP) || self.virtualIP == oldSelf.virtualIP)",message="virtualIP is set once; make another bridge for another one, e.g. metadata.name: dpu2"
// +kubebuilder:validation:XValidation:rule="has(self.flannelEnabled) == has(oldSelf.flannelEnabled) && (!has(self.flannelEnabled) || self.flannelEnabled == oldSelf.flannelEnabled)",message="flannelEnabled is set once; make another bridge for another one, e.g. metadata.name: dpu2"
// +kubebuilder:validation:XValidation:rule="has(self.networking) == has(oldSelf.networking) && (!has(self.networking) || self.networking == oldSelf.networking)",message="networking is set once; make another bridge for another one, e.g. metadata.name: dpu2"
// +kubebuilder:validation:XValidation:rule="has(self.nodeSelector) == has(oldSelf.nodeSelector) && (!has(self.nodeSelector) || self.nodeSelector == oldSelf.nodeSelector)",message="nodeSelector is set once; make another bridge for another one, e.g. metadata.name: dpu2"
// +kubebuilder:validation:XValidation:rule="(has(self.exposeThroughLoadBalancer) && self.exposeThroughLoadBalancer) == (has(oldSelf.exposeThroughLoadBalancer) && oldSelf.exposeThroughLoadBalancer)",message="exposeThroughLoadBalancer is set once: HyperShift does not move a cluster's endpoints; make another bridge, e.g. metadata.name: dpu2"
// +kubebuilder:validation:XValidation:rule="!has(self.metalLBVirtualIP) || (has(self.exposeThroughLoadBalancer) && self.exposeThroughLoadBalancer)",message="metalLBVirtualIP is a load balancer's: remove it, or write e.g. exposeThroughLoadBalancer: true"
// +kubebuilder:validation:XValidation:rule="!has(self.exposeThroughLoadBalancer) || !self.exposeThroughLoadBalancer || self.controlPlaneAvailabilityPolicy != 'HighlyAvailable' || has(self.metalLBVirtualIP) || has(self.virtualIP)",message="a HighlyAvailable control plane behind a load balancer needs an address that stays: set metalLBVirtualIP, e.g. 192.0.2.10"
// +kubebuilder:validation:XValidation:rule="!has(self.virtualIP) || !has(self.metalLBVirtualIP) || self.virtualIP == self.metalLBVirtualIP",message="virtualIP and metalLBVirtualIP are two names of one field: write one of them, e.g. virtualIP: 192.0.2.10"
// +kubebuilder:validation:XValidation:rule="!has(self.virtualIP) || !has(self.exposeThroughLoadBalancer) || self.exposeThroughLoadBalancer",message="virtualIP publishes the API through a load balancer: remove exposeThroughLoadBalancer, or write e.g. exposeThroughLoadBalancer: true"
// +kubebuilder:validation:XValidation:rule="!has(self.machineOSImage) || !has(self.machineOSURL) || self.machineOSImage == self.machineOSURL",message="machineOSURL is another name for machineOSImage, and the two differ: remove one, e.g. machineOSURL"
// +kubebuilder:validation:XValidation:rule="!has(self.manageDPUServiceTemplates) || !self.manageDPUServiceTemplates || has(self.dpuDeploymentRef)",message="manageDPUServiceTemplates is about the services of a DPUDeployment: name it, e.g. dpuDeploymentRef: {name: ovn-hbn}"
type DPUHCPBridgeSpec struct {
	// DPUCluster whose DPUs join the hosted cluster. A DPUCluster can have one bridge: if several name it, the one that has created
	// its hosted cluster is used, else the oldest. Immutable.
	DPUClusterRef DPUClusterReference `json:"dpuClusterRef"`
	// DPUDeployment whose DPUs join the hosted cluster. The bridge makes the template (ConfigMap with BF_CFG_TEMPLATE) from which DPF
	// installs DPUs of its BFB and DPUFlavor, so that the first DPU can be installed. Default: none; templates are then made only for
	// the BFBs and DPUFlavors of the DPUCluster's DPUs. May be added later; immutable once set.
	// +optional
	DPUDeploymentRef *DPUDeploymentReference `json:"dpuDeploymentRef,omitempty"`
	// True has the bridge make the DPUServiceTemplates ovn, hbn and doca-telemetry-service in the namespace of dpuDeploymentRef, for the
	// version of DPF that DPFOperatorConfig reports (26.4 is known). Ones that exist and are not the bridge's are left alone. ovn has
	// the image that the hosts run (DaemonSet openshift-ovn-kubernetes/ovnkube-node-dpu-host), of release 4.22.2 or later, or if that is
	// not multi-arch, the one of the same release for aarch64, which registries are asked for; an ovn that exists is
	// changed only once all hosts run the same image. The templates are
	// deleted with the bridge, and when this becomes false. Requires dpuDeploymentRef. Default: false. May be changed.
	// +optional
	ManageDPUServiceTemplates bool `json:"manageDPUServiceTemplates,omitempty"`
	// Base domain of the hosted cluster, e.g. example.com. The API is api.<name of the bridge>.<base domain>. Immutable.
	// +kubebuilder:validation:XValidation:rule="!self.contains('.') || self.matches('\\\\.[a-z]{2,}$')",message="HyperShift takes only domains whose last label is two or more letters, e.g. example.com"
	BaseDomain v1alpha1.DNSName `json:"baseDomain"`
	// Secret in this namespace with the public SSH keys for user core on the DPUs: key id_rsa.pub, in authorized_keys format. `oooi
	// bridge create --ssh-key FILE` creates it. A change applies to DPUs that are provisioned afterwards.
	SSHKey SecretName `json:"sshKey"`
	// Secret in this namespace (type kubernetes.io/dockerconfigjson) with the pull secret for OpenShift's images: key
	// .dockerconfigjson. `oooi bridge create --pull-secret FILE` creates it. A change is copied to the hosted cluster.
	PullSecret SecretName `json:"pullSecret"`
	// Release image of OpenShift. It must be multi-arch or arm64, because a BlueField is aarch64. Changing it upgrades the hosted
	// cluster.
	OCPReleaseImage ReleaseImage `json:"ocpReleaseImage"`
	// StorageClass of etcd's volumes (8Gi each). Default: the management cluster's default StorageClass. Immutable.
	// +optional
	EtcdStorageClass v1alpha1.ObjectName `json:"etcdStorageClass,omitempty"`
	// Availability of the control plane: SingleReplica or HighlyAvailable. Default: HighlyAvailable. Immutable.
	// +optional
	// +kubebuilder:default=HighlyAvailable
	ControlPlaneAvailabilityPolicy AvailabilityPolicy `json:"controlPlaneAvailabilityPolicy,omitempty"`
	// Availability of OpenShift's services on the DPUs: SingleReplica or HighlyAvailable. Default: HighlyAvailable.
	// +optional
	// +kubebuilder:default=HighlyAvailable
	InfrastructureAvailabilityPolicy AvailabilityPolicy `json:"infrastructureAvailabilityPolicy,omitempty"`
	// True publishes the API through a LoadBalancer Service, and OAuth, Konnectivity and ignition through Routes. False publishes
	// all four through node ports. Default: true with virtualIP, else false. Immutable.
	// +optional
	ExposeThroughLoadBalancer bool `json:"exposeThroughLoadBalancer,omitempty"`
	// Type of the DPUCluster; must equal its spec.type, e.g. example.com/hypershift. kamaji is refused, because DPF creates that
	// control plane itself. Default: spec.type of the DPUCluster. Immutable.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self != 'kamaji'",message="DPF makes the control plane of a kamaji DPUCluster itself; make the DPUCluster with a type that DPF leaves alone, e.g. example.com/hypershift"
	// +kubebuilder:validation:XValidation:rule="self in ['kamaji', 'static'] || self.matches('^[^/]+/.*$')",message="must be a type that a DPUCluster can have: static, or one with a prefix, e.g. example.com/hypershift"
	ClusterType string `json:"clusterType,omitempty"`
	// Address that MetalLB assigns to the API; must lie inside the operator's --bridge-virtual-ips. Required with
	// exposeThroughLoadBalancer and a HighlyAvailable control plane. Default with SingleReplica: MetalLB chooses. Immutable.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!isIP(self) || ip(self).isGlobalUnicast()",message="must be an address that DPUs can reach: not loopback, link-local or multicast, e.g. 192.0.2.10"
	MetalLBVirtualIP v1alpha1.IPAddress `json:"metalLBVirtualIP,omitempty"`
	// The same as metalLBVirtualIP with exposeThroughLoadBalancer: true, under the name that a DPFHCPProvisioner has for it. Immutable.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!isIP(self) || ip(self).isGlobalUnicast()",message="must be an address that DPUs can reach: not loopback, link-local or multicast, e.g. 192.0.2.10"
	VirtualIP v1alpha1.IPAddress `json:"virtualIP,omitempty"`
	// True has the hosted cluster give each Node a part of the pods' network (allocateNodeCIDRs), which DPF's flannel needs. Set it to
	// false for another network plugin. Default: true for a new hosted cluster; an existing one keeps what it has. Immutable.
	// +optional
	FlannelEnabled *bool `json:"flannelEnabled,omitempty"`
	// Networks of the hosted cluster. They must not overlap each other, nor those of pods and Services of the management cluster
	// (machineNetwork may). Default: see each. Immutable.
	// +optional
	Networking *ClusterNetworking `json:"networking,omitempty"`
	// Labels of the management cluster's Nodes on which the control plane may run, e.g. node-role.kubernetes.io/control-plane: "".
	// Nodes with a taint that HyperShift's pods do not tolerate take none of it. Default: any Node; an existing hosted cluster keeps
	// what it has. Immutable.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=20
	// +kubebuilder:validation:XValidation:rule="self.all(k, !format.qualifiedName().validate(k).hasValue() && !format.labelValue().validate(self[k]).hasValue())",message="must be labels of Nodes, e.g. node-role.kubernetes.io/control-plane: \"\""
	NodeSelector map[string]NodeLabelValue `json:"nodeSelector,omitempty"`
	// What happens to the hosted cluster when the DPUCluster is deleted. Retain keeps it, but stops CSR approval and kubeconfig
	// injection. Delete deletes the bridge and everything that it created. Default: Retain.
	// +optional
	// +kubebuilder:default=Retain
	DPUClusterDeletionPolicy DPUClusterDeletionPolicy `json:"dpuClusterDeletionPolicy,omitempty"`
	// Whether a DPU whose Node exists may bootstrap again, e.g. after it was reinstalled. Allow approves its bootstrap CSR if the
	// Node is not Ready and its kubelet has not reported for five minutes, and warns (event NodeRebootstrapped). Anybody with the
	// token in a worker's Ignition can then replace a DPU that is switched off. Never approves no CSR while the Node exists: to let
	// the DPU join again, delete its Node in the hosted cluster. Default: Allow.
	// +optional
	// +kubebuilder:default=Allow
	Rebootstrap RebootstrapPolicy `json:"rebootstrap,omitempty"`
	// OS image that Ignition pins on the DPUs. It is used as written, for every release: change or remove it when you change
	// ocpReleaseImage. Default: the BlueField container image for ocpReleaseImage, by ConfigMap ocp-bluefield-images of the operator's
	// namespace, which has it or names the repository where the operator looks it up.
	// +optional
	MachineOSImage ReleaseImage `json:"machineOSImage,omitempty"`
	// Another name for machineOSImage: the field's name in a DPFHCPProvisioner. Set one of the two.
	// +optional
	MachineOSURL ReleaseImage `json:"machineOSURL,omitempty"`
}

// DPUHCPBridgeStatus is the state of the bridge and its hosted cluster.
type DPUHCPBridgeStatus struct {
	// Conditions of the HostedCluster: HostedClusterAvailable, HostedClusterProgressing, HostedClusterDegraded,
	// InfrastructureReady, KubeAPIServerAvailable, EtcdAvailable, ValidReleaseInfo, IgnitionEndpointAvailable,
	// IgnitionServerValidReleaseInfo, ValidReleaseImage, EtcdRecoveryActive, HostedClusterRestoredFromBackup,
	// DataPlaneConnectionAvailable. Conditions of the bridge: DPUClusterBound, SecretsValid, BlueFieldContainerImageAvailable,
	// MetalLBConfigured, IgnitionConfigured, KubeconfigInjected, CSRAutoApprovalActive, PrivilegedPodsAllowed,
	// ServiceTemplatesReady,
	// HostedClusterCleanup, Ready.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=32
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// OS image that Ignition pins: machineOSImage, else the BlueField container image for ocpReleaseImage.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	BlueFieldContainerImage string `json:"blueFieldContainerImage,omitempty"`
	// Generation of the spec that this status was computed from.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Certificate requests of kubelets in the hosted cluster: first those that wait, of each host and kind the newest, DPUs' before others', and then
	// those that the operator approved since it last began to read the hosted cluster, the newest first; 20 of each at most. If they change often, this is written once a minute.
	// Whoever has the token in a DPU's Ignition can make requests in any host's name.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=40
	CertificateRequests []CertificateRequest `json:"certificateRequests,omitempty"`
}

// CertificateRequestKind is what a certificate is for.
// +kubebuilder:validation:Enum=Bootstrap;Serving
type CertificateRequestKind string

const (
	// BootstrapRequest is for the certificate with which a DPU becomes a Node.
	BootstrapRequest CertificateRequestKind = "Bootstrap"
	// ServingRequest is for the certificate with which a Node answers the API server.
	ServingRequest CertificateRequestKind = "Serving"
)

// CertificateRequest is a CertificateSigningRequest of the hosted cluster, and what the operator decided.
type CertificateRequest struct {
	// Name of the CertificateSigningRequest.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Host that the certificate is for.
	// +kubebuilder:validation:MaxLength=253
	Host string `json:"host"`
	// Bootstrap: with the certificate, a DPU becomes a Node. Serving: with it, a Node answers the API server.
	Kind CertificateRequestKind `json:"kind"`
	// When it was created.
	CreationTime metav1.Time `json:"creationTime"`
	// When the operator approved it. Absent: it waits.
	// +optional
	ApprovalTime *metav1.Time `json:"approvalTime,omitempty"`
	// First rule that it breaks, as oooi csr explain names it. Absent: it is approved, or no rule refuses it; why it waits then, CSRAutoApprovalActive says.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	RefusedBy string `json:"refusedBy,omitempty"`
}

// DPUHCPBridge creates a hosted cluster for the DPUs of one DPUCluster, gives DPF its kubeconfig, and lets the DPUs join it.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=dpuhcp,categories=oooi
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 40 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="the name may have at most 40 characters a-z, 0-9 and -, a letter first: the HostedCluster has the same, and names of Secrets are made from it; choose another, e.g. dpu1"
// +kubebuilder:printcolumn:name="DPUCluster",type=string,JSONPath=`.spec.dpuClusterRef.name`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Available",type=string,JSONPath=`.status.conditions[?(@.type=="HostedClusterAvailable")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Release",type=string,priority=1,JSONPath=`.spec.ocpReleaseImage`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type DPUHCPBridge struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec DPUHCPBridgeSpec `json:"spec"`
	// +optional
	Status DPUHCPBridgeStatus `json:"status,omitempty"`
}

// DPUHCPBridgeList is a list of DPUHCPBridge.
// +kubebuilder:object:root=true
type DPUHCPBridgeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DPUHCPBridge `json:"items"`
}
