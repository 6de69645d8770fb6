// Package dpf has the few fields that we read of the objects of NVIDIA's DOCA Platform Framework (doca-platform: api/provisioning, api/operator
// and api/dpuservice, v1alpha1 of each). They must be patched, never updated, because an update would lose the other fields.
package dpf

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// GroupVersion of the kinds.
var GroupVersion = schema.GroupVersion{Group: "provisioning.dpu.nvidia.com", Version: "v1alpha1"}

const (
	// TypeKamaji is the type of the DPUClusters whose control plane DPF creates.
	TypeKamaji = "kamaji"
	// TypeStatic is the type whose control plane somebody else creates.
	TypeStatic = "static"
	// ConditionCreated of a DPUCluster is set by the manager of its type; DPF has managers for kamaji and static only. Without it, a
	// DPUCluster never becomes Ready (dpucluster_controller.go).
	ConditionCreated = "Created"
	// ConditionOSInstalled of a DPU is True once its operating system is installed. We do not read phases, whose names change between
	// versions.
	ConditionOSInstalled = "OSInstalled"
	// ConditionClusterReady of a DPU is True once its Node is Ready in the DPUCluster: its kubelet starts in the BlueField layer, after that is pulled.
	ConditionClusterReady = "DPUClusterReady"
	// ConditionReady of a DPU is True once DPF has done all with it (api/provisioning/v1alpha1/dpu_types.go).
	ConditionReady = "Ready"
	// KubeconfigKey is the only key that DPF reads in the Secret that DPUCluster.spec.kubeconfig names.
	KubeconfigKey = "super-admin.conf"
)

// DPUCluster is the cluster that DPUs join as Nodes.
type DPUCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   DPUClusterSpec   `json:"spec,omitempty"`
	Status DPUClusterStatus `json:"status,omitempty"`
}

// DPUClusterSpec has the fields that we read.
type DPUClusterSpec struct {
	Type string `json:"type"`
	// Kubeconfig is the name of a Secret in the DPUCluster's namespace. Once set, it may only be removed.
	Kubeconfig string `json:"kubeconfig,omitempty"`
}

// DPUClusterStatus has the fields that we read and, for types without a manager in DPF, write.
type DPUClusterStatus struct {
	Phase      string             `json:"phase,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// DPUClusterList is a list of DPUCluster.
type DPUClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DPUCluster `json:"items"`
}

// DPU is one card. Its Node has the same name.
type DPU struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   DPUSpec   `json:"spec,omitempty"`
	Status DPUStatus `json:"status,omitempty"`
}

// DPUSpec has the fields that we read.
type DPUSpec struct {
	DPUNodeName string    `json:"dpuNodeName,omitempty"`
	Cluster     Reference `json:"cluster,omitempty"`
	// BFB and DPUFlavor, in the DPU's namespace, are what it is installed with.
	BFB       string `json:"bfb,omitempty"`
	DPUFlavor string `json:"dpuFlavor,omitempty"`
}

// Reference names the DPUCluster of a DPU.
type Reference struct {
	Name      string `json:"name,omitempty"`
	Namespace string `json:"namespace,omitempty"`
}

// DPUStatus has the fields that we read.
type DPUStatus struct {
	Phase      string               `json:"phase,omitempty"`
	Conditions []metav1.Condition   `json:"conditions,omitempty"`
	Addresses  []corev1.NodeAddress `json:"addresses,omitempty"`
	// AgentStatus is new in DPF 26.4. Its conditions may be among Conditions, too.
	AgentStatus AgentStatus `json:"agentStatus,omitempty"`
}

// AgentStatus is what a DPU reports of itself, through the agent of its host.
type AgentStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// DPUList is a list of DPU.
type DPUList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []DPU `json:"items"`
}

// Joins says whether a DPU belongs to a DPUCluster.
func (d *DPU) Joins(cluster types.NamespacedName) bool {
	return d.Spec.Cluster == Reference{Name: cluster.Name, Namespace: cluster.Namespace}
}

// AddToScheme registers the kinds.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &DPUCluster{}, &DPUClusterList{}, &DPU{}, &DPUList{}, &DPUFlavor{}, &DPUFlavorList{}, &BFB{}, &BFBList{}, &DPUNode{}, &DPUNodeList{})
	scheme.AddKnownTypes(ServiceGroupVersion, &DPUDeployment{}, &DPUDeploymentList{},
		&DPUServiceTemplate{}, &DPUServiceTemplateList{}, &DPUServiceConfiguration{}, &DPUServiceConfigurationList{})
	scheme.AddKnownTypes(OperatorGroupVersion, &DPFOperatorConfig{}, &DPFOperatorConfigList{})
	for _, version := range []schema.GroupVersion{GroupVersion, ServiceGroupVersion, OperatorGroupVersion} {
		metav1.AddToGroupVersion(scheme, version)
	}
	return nil
}
