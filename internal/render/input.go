package render

import (
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	routev1 "github.com/openshift/api/route/v1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/kept"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/permission"
	"github.com/cldmnky/oooi/internal/plan/provision"
)

// openShiftNetwork is the one Network of an OpenShift cluster. Only this object tells that it is OpenShift: HyperShift runs elsewhere too.
var openShiftNetwork = named("", "cluster")

// Inputs are the inputs of each Infra's plan, in the order of the files.
func (o Objects) Inputs(settings input.Settings) []input.Input {
	o = o.asKept()
	infras := pick[v1alpha1.Infra](o, "")
	on := o.segments(infras)
	if network := find[configv1.Network](o, openShiftNetwork); network != nil {
		settings = settings.In(network)
	}
	var all []input.Input
	for _, infra := range infras {
		all = append(all, o.input(infra, on, settings))
	}
	return all
}

// asKept reduces objects that are too large to what the operator keeps of them in memory.
func (o Objects) asKept() Objects {
	all := slices.Clone(o)
	for i, object := range all {
		if _, kubernetes := object.(interface{ Size() int }); kubernetes {
			continue
		}
		outline := kept.AsWritten(object.(kept.Object))
		if _, inPart := kept.InPart(outline); inPart {
			all[i] = outline
		}
	}
	return all
}

// segments are the Infras on each layer 2, by its name, and the networks that lead there except those that we made. Each plan takes only
// those of its own, as in observe: reading all others for each would cost too much.
type segments struct {
	infras   map[string][]input.Neighbour
	networks map[string][]nad.NetworkAttachmentDefinition
}

func (o Objects) segments(infras []*v1alpha1.Infra) segments {
	on := segments{map[string][]input.Neighbour{}, map[string][]nad.NetworkAttachmentDefinition{}}
	for _, n := range pick[nad.NetworkAttachmentDefinition](o, "") {
		if at := n.Layer2(); at != "" && n.Labels[names.LabelManagedBy] != names.ManagedBy {
			on.networks[at] = append(on.networks[at], *n)
		}
	}
	for _, infra := range infras {
		n := input.Neighbour{Infra: infra, NAD: o.nadOf(infra), Children: o.children(infra)}
		if ref := infra.Spec.HostedClusterRef; ref != nil {
			n.HostedCluster = find[hyperv1.HostedCluster](o, input.Refs(infra).HostedCluster)
		}
		n.OnOwnNetwork = permission.OnOwnNetwork(o.references(infra))
		if at := n.NAD.Layer2(); at != "" {
			on.infras[at] = append(on.infras[at], n)
		}
	}
	return on
}

// references reads what an Infra refers to.
func (o Objects) references(infra *v1alpha1.Infra) input.Input {
	refs := input.Refs(infra)
	in := input.Input{Infra: infra, NAD: o.nadOf(infra)}
	in.HostedControlPlane = o.controlPlane(refs.ControlPlaneNamespace, refs.HostedCluster)
	if key, ok := in.HostedClusterKey(); ok {
		in.HostedCluster = find[hyperv1.HostedCluster](o, key)
		in.HostedControlPlane = o.controlPlane(in.ControlPlaneNamespace(), key)
		in.Sharing = slices.DeleteFunc(o.sharing(in.ControlPlaneNamespace()), func(hc *hyperv1.HostedCluster) bool { return hc == in.HostedCluster })
	}
	for _, name := range refs.Namespaces {
		if ns := find[corev1.Namespace](o, named("", name)); ns != nil {
			in.Namespaces = append(in.Namespaces, *ns)
		}
	}
	return in
}

func (o Objects) input(infra *v1alpha1.Infra, on segments, settings input.Settings) input.Input {
	in := o.references(infra)
	in.Settings, in.Children = settings, o.children(infra)
	in.SysctlAllowlist = find[corev1.ConfigMap](o, nad.SysctlAllowlist)
	in.OpenShift = find[configv1.Network](o, openShiftNetwork) != nil
	if at := in.NAD.Layer2(); at != "" {
		in.Attachable = on.networks[at]
		in.Neighbours = slices.DeleteFunc(slices.Clone(on.infras[at]), func(n input.Neighbour) bool { return n.Infra == infra })
	}
	if len(permission.Check(in)) > 0 || in.ControlPlaneNamespace() == "" {
		return in
	}
	namespace := in.ControlPlaneNamespace()
	in.Services = values(pick[corev1.Service](o, namespace))
	in.Routes = values(pick[routev1.Route](o, namespace))
	in.EndpointSlices = values(pick[discoveryv1.EndpointSlice](o, namespace))
	in.NetworkPolicies = values(pick[networkingv1.NetworkPolicy](o, namespace))
	if key, ok := in.HostedClusterKey(); ok {
		in.NodePools = o.nodePools(key)
	}
	return in
}

// provisioning is the input from which a HostedCluster's annotations are planned.
func (o Objects) provisioning(hc *hyperv1.HostedCluster, settings input.Settings) provision.Input {
	key := named(hc.Namespace, hc.Name)
	in := provision.Input{HostedCluster: hc, NodePools: o.nodePools(key), Infra: find[v1alpha1.Infra](o, key), AllowedNamespaces: settings.NADSourceNamespaces,
		ControlPlane: endpoint.ControlPlaneNamespace(hc)}
	in.NAD = find[nad.NetworkAttachmentDefinition](o, in.Attachment())
	if at := in.NAD.Layer2(); at != "" {
		in.OnVLAN = o.segments(pick[v1alpha1.Infra](o, "")).infras[at]
	}
	return in
}

// Provisionings are those inputs for all HostedClusters of the files.
func (o Objects) Provisionings(settings input.Settings) []provision.Input {
	var all []provision.Input
	o = o.asKept()
	for _, hc := range pick[hyperv1.HostedCluster](o, "") {
		all = append(all, o.provisioning(hc, settings))
	}
	return all
}

// Asking are the objects as if each HostedCluster asked for an Infra, where its machines can be on a VLAN.
func (o Objects) Asking() Objects {
	all := slices.Clone(o)
	for i, object := range all {
		if hc, ok := object.(*hyperv1.HostedCluster); ok && !input.Elsewhere(hc.Spec.Platform.Type) {
			hc = hc.DeepCopy()
			metav1.SetMetaDataAnnotation(&hc.ObjectMeta, names.AnnotationInfra, names.InfraAuto)
			all[i] = hc
		}
	}
	return all
}

// Unasked are the HostedClusters whose machines can be on a VLAN, but which neither ask for an Infra nor are served by one.
func (o Objects) Unasked(served map[types.NamespacedName]bool) (all []types.NamespacedName) {
	for _, hc := range pick[hyperv1.HostedCluster](o, "") {
		key := named(hc.Namespace, hc.Name)
		if _, asks := hc.Annotations[names.AnnotationInfra]; !asks && !served[key] && hc.DeletionTimestamp == nil && !input.Elsewhere(hc.Spec.Platform.Type) {
			all = append(all, key)
		}
	}
	return all
}

func (o Objects) nodePools(hc types.NamespacedName) []hyperv1.NodePool {
	return slices.DeleteFunc(values(pick[hyperv1.NodePool](o, hc.Namespace)), func(p hyperv1.NodePool) bool { return p.Spec.ClusterName != hc.Name })
}

// controlPlane is the HostedControlPlane of a namespace: that of the given HostedCluster, or else of the oldest. If the files have only
// HostedClusters, it is as HyperShift will make it.
func (o Objects) controlPlane(namespace string, of types.NamespacedName) *hyperv1.HostedControlPlane {
	if namespace == "" {
		return nil
	}
	hc := input.Oldest(o.sharing(namespace)...)
	if of.Name == "" && hc != nil {
		of = named(hc.Namespace, hc.Name)
	}
	if made := input.HostedControlPlaneOf(of, values(pick[hyperv1.HostedControlPlane](o, namespace))); made != nil || hc == nil {
		return made
	}
	whose := map[string]string{names.AnnotationHostedCluster: hc.Namespace + "/" + hc.Name}
	return &hyperv1.HostedControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: hc.Name, Annotations: whose}}
}

// sharing are the HostedClusters whose control planes HyperShift puts into this namespace.
func (o Objects) sharing(namespace string) []*hyperv1.HostedCluster {
	return slices.DeleteFunc(pick[hyperv1.HostedCluster](o, ""), func(hc *hyperv1.HostedCluster) bool { return endpoint.ControlPlaneNamespace(hc) != namespace })
}

func (o Objects) nadOf(infra *v1alpha1.Infra) *nad.NetworkAttachmentDefinition {
	return find[nad.NetworkAttachmentDefinition](o, input.Refs(infra).NAD)
}

func (o Objects) children(infra *v1alpha1.Infra) input.Children {
	all := input.Children{}
	for _, c := range component.All {
		for _, one := range o {
			server, is := one.(component.Server)
			if is && c.Serves(server) && server.GetNamespace() == infra.Namespace && server.GetName() == names.Child(infra.Name, string(c.Name)) {
				all[c.Name] = server
				break
			}
		}
	}
	return all
}

func named(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// object is a pointer to T with metadata.
type object[T any] interface {
	*T
	metav1.Object
}

// pick returns the objects of one kind, in one namespace or (empty) in all.
func pick[T any, P object[T]](o Objects, namespace string) []*T {
	var all []*T
	for _, one := range o {
		if typed, ok := any(one).(P); ok && (namespace == "" || typed.GetNamespace() == namespace) {
			all = append(all, typed)
		}
	}
	return all
}

func find[T any, P object[T]](o Objects, key types.NamespacedName) *T {
	for _, one := range pick[T, P](o, key.Namespace) {
		if P(one).GetName() == key.Name {
			return one
		}
	}
	return nil
}

func values[T any](list []*T) []T {
	var all []T
	for _, one := range list {
		all = append(all, *one)
	}
	return all
}
