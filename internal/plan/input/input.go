// Package input has what planning reads, and what a single object of it tells.
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
	"github.com/cldmnky/oooi/internal/ipam"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
)

// Input is everything from which one Infra is planned. It is read in two stages: while permission.Check has findings, the fields of the
// second stay empty, so that nothing is read without a reference grant.
type Input struct {
	Settings Settings
	Infra    *v1alpha1.Infra

	// First stage: what the Infra refers to. Nil means that it does not exist.

	// HostedCluster of HostedClusterKey.
	HostedCluster *hyperv1.HostedCluster
	// HostedControlPlane in ControlPlaneNamespace, as HostedControlPlaneOf finds it. Without hostedClusterRef it is read before the
	// HostedCluster, which it names.
	HostedControlPlane *hyperv1.HostedControlPlane
	// MadeNamespace is ControlPlaneNamespace if HyperShift derives it from the HostedCluster's name; nil if it does not exist, and for files.
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
	// Children that exist.
	Children Children
	// Leased are addresses that no second instance may get, because machines lease them.
	Leased []ipam.Range
	// Neighbours are the other Infras on its layer 2 that are not being deleted.
	Neighbours []Neighbour

	// Attachable are the NetworkAttachmentDefinitions on NAD's layer 2, including NAD, without those that we created.
	Attachable []nad.NetworkAttachmentDefinition

	// Second stage: the NodePools of the HostedCluster, and all objects of ControlPlaneNamespace.

	NodePools       []hyperv1.NodePool
	Services        []corev1.Service
	Routes          []routev1.Route
	EndpointSlices  []discoveryv1.EndpointSlice
	NetworkPolicies []networkingv1.NetworkPolicy

	// Guest is what was read in the hosted cluster; nil before the first read, and without apps ingress.
	Guest *Guest
}

// Neighbour is another Infra, which may be on the same layer 2.
type Neighbour struct {
	Infra    *v1alpha1.Infra
	NAD      *nad.NetworkAttachmentDefinition
	Children Children
	// OnOwnNetwork: NAD is in the namespace of the Infra's own control plane (permission.OnOwnNetwork).
	OnOwnNetwork bool
	// HostedCluster of the Infra: only for files, where no children exist. In a cluster the children tell.
	HostedCluster *hyperv1.HostedCluster
}

// References are the objects to read first.
type References struct {
	// HostedCluster of hostedClusterRef; empty without it.
	HostedCluster types.NamespacedName
	// ControlPlaneNamespace as the user wrote it. Without hostedClusterRef, its HostedControlPlane names the HostedCluster.
	ControlPlaneNamespace string
	// NAD of the workers.
	NAD types.NamespacedName
	// Namespaces whose annotations may have the reference grant.
	Namespaces []string
}

// Refs says what to read first for one Infra. It depends on its spec and namespace alone; the objects may be missing.
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

// HostedClusterKey names the HostedCluster: that of hostedClusterRef, else the one in the HostedControlPlane's annotation; false if there is
// neither (without HyperShift).
func (in Input) HostedClusterKey() (types.NamespacedName, bool) {
	if in.Infra.Spec.HostedClusterRef != nil {
		return Refs(in.Infra).HostedCluster, true
	}
	if in.HostedControlPlane == nil {
		return types.NamespacedName{}, false
	}
	return ClusterOf(in.HostedControlPlane)
}

// ClusterOf is the HostedCluster that a HostedControlPlane names; false if it names none.
func ClusterOf(hcp *hyperv1.HostedControlPlane) (types.NamespacedName, bool) {
	namespace, name, ok := strings.Cut(hcp.Annotations[names.AnnotationHostedCluster], "/")
	return types.NamespacedName{Namespace: namespace, Name: name}, ok
}

// HostedControlPlaneOf finds a HostedCluster's HostedControlPlane among those of a namespace, else takes the first, or nil: HyperShift puts
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

// Older says whether a was created before b; in the same second, UIDs decide. An object that is not stored yet is the younger one.
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

// Oldest is the HostedCluster that was created first; nil if there are none.
func Oldest(all ...*hyperv1.HostedCluster) (first *hyperv1.HostedCluster) {
	for _, hc := range all {
		if first == nil || Older(hc, first) {
			first = hc
		}
	}
	return first
}

// ControlPlane is what endpoints are read from.
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

// Network of the VLAN as the Infra specifies it; the gateway is not valid if there is none.
func Network(infra *v1alpha1.Infra) (cidr netip.Prefix, gateway netip.Addr) {
	cidr, _ = netip.ParsePrefix(string(infra.Spec.NetworkConfig.CIDR))
	gateway, _ = netip.ParseAddr(string(infra.Spec.NetworkConfig.Gateway))
	return cidr, gateway
}

// Platform of the HostedCluster if it is KubeVirt; nil for all others.
func (in Input) Platform() *hyperv1.KubevirtPlatformSpec {
	if in.HostedCluster == nil || in.HostedCluster.Spec.Platform.Type != hyperv1.KubevirtPlatform {
		return nil
	}
	if in.HostedCluster.Spec.Platform.Kubevirt == nil {
		return &hyperv1.KubevirtPlatformSpec{}
	}
	return in.HostedCluster.Spec.Platform.Kubevirt
}

// VMNamespace is where HyperShift creates the workers' VirtualMachines: beside their control plane. Empty on other platforms.
func (in Input) VMNamespace() string {
	if in.Platform() == nil {
		return ""
	}
	return in.ControlPlaneNamespace()
}

// LeasesByReservation says whether each worker needs a reservation, because only the MACs of KubeVirt's workers are known.
func (in Input) LeasesByReservation() bool { return in.HostedCluster != nil && in.VMNamespace() == "" }
