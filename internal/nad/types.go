// Package nad knows NetworkAttachmentDefinitions: the few fields that are read, what their CNI configuration means, and how to derive one
// that assigns a pod a static address from one that assigns none.
package nad

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	acmeta "k8s.io/client-go/applyconfigurations/meta/v1"
)

const kind = "NetworkAttachmentDefinition"

// ResourceName is the annotation with the resource of nodes that have the network; a device plugin or bridge-marker publishes it.
const ResourceName = "k8s.v1.cni.cncf.io/resourceName"

// GroupVersion of the kind, which k8snetworkplumbingwg owns.
var GroupVersion = schema.GroupVersion{Group: "k8s.cni.cncf.io", Version: "v1"}

// NetworkAttachmentDefinition is the subset of the kind that we read.
type NetworkAttachmentDefinition struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec Spec `json:"spec"`
}

// Layer2 is the segment that the network is on; empty for nil, or where its configuration does not tell.
func (n *NetworkAttachmentDefinition) Layer2() string {
	if n == nil {
		return ""
	}
	config, err := Parse(n.Spec.Config)
	if err != nil {
		return ""
	}
	return config.Layer2()
}

// Resource is what a pod requests to run on a node that has the network; empty if none is named, or the name is not valid. Multus only
// looks up the device of such a request (k8sclient.go, getKubernetesDelegate). KubeVirt makes the request for machines (pkg/network/multus,
// NetworkToResource); for other pods network-resources-injector would, which few clusters have.
func (n *NetworkAttachmentDefinition) Resource() string {
	if n == nil {
		return ""
	}
	name := n.Annotations[ResourceName]
	if !strings.Contains(name, "/") || len(validation.IsQualifiedName(name)) > 0 {
		return ""
	}
	return name
}

// Renderer is the object whose controller renders this one, and reverts other changes to it.
type Renderer struct{ Kind, Name string }

// OperatorNetwork is the kind, of operator.openshift.io, whose additionalNetworks OpenShift's network operator renders.
const OperatorNetwork = "Network"

// Renderer finds the UserDefinedNetwork or ClusterUserDefinedNetwork from which OVN-Kubernetes made this one
// (clustermanager/userdefinednetwork/template, util/multi_network.go GenerateCUDNNetworkName), or the Network from which OpenShift's
// network operator did (cluster-network-operator, pkg/network/additional_networks.go). A user's own has none.
func (n *NetworkAttachmentDefinition) Renderer() (Renderer, bool) {
	if ref := metav1.GetControllerOf(n); ref != nil {
		group, _, _ := strings.Cut(ref.APIVersion, "/")
		if group == "k8s.ovn.org" || group == "operator.openshift.io" && ref.Kind == OperatorNetwork {
			return Renderer{ref.Kind, ref.Name}, true
		}
	}
	config, err := Parse(n.Spec.Config)
	if err != nil {
		return Renderer{}, false
	}
	if name, ok := strings.CutPrefix(config.name(), "cluster_udn_"); ok && config.IsOVN() {
		return Renderer{"ClusterUserDefinedNetwork", name}, true
	}
	_, labelled := n.Labels["k8s.ovn.org/user-defined-network"]
	return Renderer{"UserDefinedNetwork", n.Name}, labelled
}

// Spec holds the CNI configuration as JSON: one plugin, or a list of them.
type Spec struct {
	Config string `json:"config,omitempty"`
}

// List is a list of NetworkAttachmentDefinition.
type List struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NetworkAttachmentDefinition `json:"items"`
}

// AddToScheme registers the kind.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypeWithName(GroupVersion.WithKind(kind), &NetworkAttachmentDefinition{})
	scheme.AddKnownTypeWithName(GroupVersion.WithKind(kind+"List"), &List{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// DeepCopy copies n.
func (n *NetworkAttachmentDefinition) DeepCopy() *NetworkAttachmentDefinition {
	if n == nil {
		return nil
	}
	out := &NetworkAttachmentDefinition{TypeMeta: n.TypeMeta, Spec: n.Spec}
	n.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return out
}

// DeepCopyObject copies n.
func (n *NetworkAttachmentDefinition) DeepCopyObject() runtime.Object { return n.DeepCopy() }

// DeepCopyObject copies l.
func (l *List) DeepCopyObject() runtime.Object {
	out := &List{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopy())
	}
	return out
}

// ApplyConfiguration has the fields that we apply to a NetworkAttachmentDefinition of ours.
type ApplyConfiguration struct {
	acmeta.TypeMetaApplyConfiguration    `json:",inline"`
	*acmeta.ObjectMetaApplyConfiguration `json:"metadata,omitempty"`

	Spec Spec `json:"spec"`
}

// Apply begins the apply configuration of one NetworkAttachmentDefinition.
func Apply(namespace, name string, config Config) *ApplyConfiguration {
	a := &ApplyConfiguration{ObjectMetaApplyConfiguration: acmeta.ObjectMeta().WithNamespace(namespace).WithName(name), Spec: Spec{Config: config.String()}}
	a.WithAPIVersion(GroupVersion.String()).WithKind(kind)
	return a
}

// IsApplyConfiguration marks the type.
func (a *ApplyConfiguration) IsApplyConfiguration() {}

// GetKind returns the kind.
func (a *ApplyConfiguration) GetKind() *string { return a.Kind }

// GetAPIVersion returns group and version.
func (a *ApplyConfiguration) GetAPIVersion() *string { return a.APIVersion }

// GetName returns the name.
func (a *ApplyConfiguration) GetName() *string { return a.Name }

// GetNamespace returns the namespace.
func (a *ApplyConfiguration) GetNamespace() *string { return a.Namespace }
