// Package input is what planning reads, and what can be read from a single object of it.
package input

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	routev1 "github.com/openshift/api/route/v1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
)

// Input is everything that planning one Infra looks at. It is read in two stages: the fields of the second stay empty as long as
// permission.Check has findings, so that nothing is read without permission.
type Input struct {
	Settings Settings
	Infra    *v1alpha1.Infra

	// First stage: what the Infra refers to. Nil means that it is not there.

	// HostedCluster of HostedClusterKey.
	HostedCluster *hyperv1.HostedCluster
	// HostedControlPlane in ControlPlaneNamespace, as HostedControlPlaneOf has it. In the seeds' form it is read before the
	// HostedCluster, which it names.
	HostedControlPlane *hyperv1.HostedControlPlane
	// MadeNamespace is ControlPlaneNamespace where that follows from the HostedCluster's name; nil while it is not there, and of files.
	MadeNamespace *corev1.Namespace
	// Sharing are other HostedClusters whose control planes HyperShift puts into ControlPlaneNamespace.
	Sharing []*hyperv1.HostedCluster
	// Namespaces that Refs lists.
	Namespaces []corev1.Namespace
	// NAD of Refs.
	NAD *nad.NetworkAttachmentDefinition
	// SysctlAllowlist is nad.SysctlAllowlist.
	SysctlAllowlist *corev1.ConfigMap
	// OpenShift: the cluster has a Network of config.openshift.io, whose operator keeps that list on the nodes.
	OpenShift bool
	// Children as they are, nil where there is none.
	Children Children
	// Neighbours are the other Infras on its layer 2 that are not being deleted.
	Neighbours []Neighbour

	// Attachable are the NetworkAttachmentDefinitions on the layer 2 of NAD, itself among them, but none that we made.
	Attachable []nad.NetworkAttachmentDefinition

	// Second stage: the NodePools of the HostedCluster, and all objects of ControlPlaneNamespace.

	NodePools       []hyperv1.NodePool
	Services        []corev1.Service
	Routes          []routev1.Route
	EndpointSlices  []discoveryv1.EndpointSlice
	NetworkPolicies []networkingv1.NetworkPolicy

	// Guest is what is seen in the hosted cluster; nil as long as nobody has looked, and without apps ingress.
	Guest *Guest
}

// Neighbour is another Infra, which may be on the same layer 2.
type Neighbour struct {
	Infra    *v1alpha1.Infra
	NAD      *nad.NetworkAttachmentDefinition
	Children Children
	// OnOwnNetwork: NAD lies in the namespace of the Infra's own control plane, as OnOwnNetwork has it.
	OnOwnNetwork bool
	// HostedCluster of the Infra: only of files, before anything is created. In a cluster the children tell.
	HostedCluster *hyperv1.HostedCluster
}

// References are what to read first.
type References struct {
	// HostedCluster of hostedClusterRef; empty in the seeds' form.
	HostedCluster types.NamespacedName
	// ControlPlaneNamespace as the user wrote it; its HostedControlPlane leads to the HostedCluster in the seeds' form.
	ControlPlaneNamespace string
	// NAD of the workers.
	NAD types.NamespacedName
	// Namespaces whose annotations decide over permission.
	Namespaces []string
}

// Refs says what to read first for one Infra. It looks at its spec and namespace alone, and what it names need not be there.
func Refs(infra *v1alpha1.Infra) References {
	r := References{
		ControlPlaneNamespace: string(infra.Spec.InfraComponents.Proxy.ControlPlaneNamespace),
		NAD: types.NamespacedName{
			Namespace: cmp.Or(string(infra.Spec.NetworkConfig.NetworkAttachmentNamespace), infra.Namespace),
			Name:      string(infra.Spec.NetworkConfig.NetworkAttachmentDefinition),
		},
	}
	if ref := infra.Spec.HostedClusterRef; ref != nil {
		r.HostedCluster = types.NamespacedName{Namespace: cmp.Or(string(ref.Namespace), infra.Namespace), Name: string(ref.Name)}
	}
	add := func(namespace string) {
		if namespace != "" && namespace != infra.Namespace && !slices.Contains(r.Namespaces, namespace) {
			r.Namespaces = append(r.Namespaces, namespace)
		}
	}
	add(r.ControlPlaneNamespace)
	for _, e := range infra.Spec.ExtraEndpoints {
		add(string(e.Target.Namespace))
	}
	return r
}

// HostedClusterKey names the HostedCluster: that of hostedClusterRef, else the one that the HostedControlPlane's
// annotation names. False when there is neither (the seeds' form without HyperShift).
func (in Input) HostedClusterKey() (types.NamespacedName, bool) {
	if in.Infra.Spec.HostedClusterRef != nil {
		return Refs(in.Infra).HostedCluster, true
	}
	if in.HostedControlPlane == nil {
		return types.NamespacedName{}, false
	}
	return ClusterOf(in.HostedControlPlane)
}

// ClusterOf is the HostedCluster that a HostedControlPlane names.
func ClusterOf(hcp *hyperv1.HostedControlPlane) (types.NamespacedName, bool) {
	namespace, name, ok := strings.Cut(hcp.Annotations[names.AnnotationHostedCluster], "/")
	return types.NamespacedName{Namespace: namespace, Name: name}, ok
}

// HostedControlPlaneOf finds a HostedCluster's among the HostedControlPlanes of a namespace, else takes the first: HyperShift puts
// those of a/b-c and a-b/c into one namespace.
func HostedControlPlaneOf(of types.NamespacedName, all []hyperv1.HostedControlPlane) *hyperv1.HostedControlPlane {
	if len(all) == 0 {
		return nil
	}
	return &all[max(0, slices.IndexFunc(all, func(hcp hyperv1.HostedControlPlane) bool {
		theirs, named := ClusterOf(&hcp)
		return named && theirs == of
	}))]
}

// ControlPlaneNamespace is where the control plane's Services are; empty while unknown.
func (in Input) ControlPlaneNamespace() string {
	if written := Refs(in.Infra).ControlPlaneNamespace; written != "" {
		return written
	}
	if in.HostedCluster == nil {
		return ""
	}
	return endpoint.ControlPlaneNamespace(in.HostedCluster)
}

// Older says which of two objects was created first. Of two created in the same second it is always the same one. One that is not
// stored yet is the younger.
func Older(a, b metav1.Object) bool {
	one, other := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	if one.IsZero() != other.IsZero() {
		return other.IsZero()
	}
	if !one.Equal(&other) {
		return one.Before(&other)
	}
	return a.GetUID() < b.GetUID()
}

// Oldest of some HostedClusters; nil of none.
func Oldest(all ...*hyperv1.HostedCluster) (first *hyperv1.HostedCluster) {
	for _, hc := range all {
		if first == nil || Older(hc, first) {
			first = hc
		}
	}
	return first
}

// ControlPlane is what its endpoints are read from.
func (in Input) ControlPlane() endpoint.ControlPlane {
	dns := in.Infra.Spec.InfraComponents.DNS
	return endpoint.ControlPlane{
		Namespace: in.ControlPlaneNamespace(), HostedCluster: in.HostedCluster, HostedControlPlane: in.HostedControlPlane, ClusterName: string(dns.ClusterName), BaseDomain: string(dns.BaseDomain),
		Services: in.Services, Routes: in.Routes, Policies: in.NetworkPolicies,
	}
}

// Domain of the hosted cluster; empty where it is not known.
func (in Input) Domain() string { return in.ControlPlane().Domain() }

// Endpoints of the control plane, and those that the Infra adds.
func (in Input) Endpoints() endpoint.Table {
	return endpoint.Read(in.ControlPlane()).With(in.Infra.Spec.ExtraEndpoints, in.Infra.Namespace, in.Settings.ExtraEndpointCIDRs)
}

// Network of the VLAN as the Infra says it; the gateway is not valid where there is none.
func Network(infra *v1alpha1.Infra) (cidr netip.Prefix, gateway netip.Addr) {
	cidr, _ = netip.ParsePrefix(string(infra.Spec.NetworkConfig.CIDR))
	gateway, _ = netip.ParseAddr(string(infra.Spec.NetworkConfig.Gateway))
	return cidr, gateway
}

// Platform of the HostedCluster where that is KubeVirt; nil on all others.
func (in Input) Platform() *hyperv1.KubevirtPlatformSpec {
	if in.HostedCluster == nil || in.HostedCluster.Spec.Platform.Type != hyperv1.KubevirtPlatform {
		return nil
	}
	if in.HostedCluster.Spec.Platform.Kubevirt == nil {
		return &hyperv1.KubevirtPlatformSpec{}
	}
	return in.HostedCluster.Spec.Platform.Kubevirt
}

// VMNamespace is where HyperShift keeps the workers' VirtualMachines: beside their control plane.
func (in Input) VMNamespace() string {
	if in.Platform() == nil {
		return ""
	}
	return in.ControlPlaneNamespace()
}

// LeasesByReservation says whether the workers are not KubeVirt's, whose MACs are known: each then needs a reservation.
func (in Input) LeasesByReservation() bool { return in.HostedCluster != nil && in.VMNamespace() == "" }
