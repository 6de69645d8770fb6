package observe

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	routev1 "github.com/openshift/api/route/v1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/permission"
)

// Infra is one Infra as it is.
type Infra struct {
	input.Input
	// Exists says whether a UID is that of an Infra.
	Exists func(types.UID) bool
	// Pause says why writes are stopped; empty if they are not.
	Pause Pause
}

// Gone says that there is no such Infra (any more).
func (i Infra) Gone() bool { return i.Input.Infra == nil }

// Infra reads one Infra and all that planning it uses, except its hosted cluster.
func (o *Observer) Infra(ctx context.Context, key types.NamespacedName) (Infra, error) {
	infra, err := get[v1alpha1.Infra](ctx, o, key)
	if err != nil || infra == nil {
		return Infra{}, err
	}
	return o.Around(ctx, infra)
}

// Around reads all that planning an Infra uses, except the Infra itself, which may not be stored yet.
func (o *Observer) Around(ctx context.Context, infra *v1alpha1.Infra) (Infra, error) {
	settings, err := o.networks(ctx)
	if err != nil {
		return Infra{}, err
	}
	seen := Infra{Input: input.Input{Settings: settings, Infra: infra}, Exists: o.exists(ctx, &v1alpha1.InfraList{})}
	refs := input.Refs(infra)
	o.Listeners.Hear(client.ObjectKeyFromObject(infra), append(refs.Namespaces, controlPlanes(infra)...)...)
	for _, read := range []func(context.Context, *Infra) error{o.references, o.owner, o.surroundings, o.neighbours, o.controlPlane} {
		if err := read(ctx, &seen); err != nil {
			return Infra{}, err
		}
	}
	seen.Pause = o.pause(infra.Annotations, permission.HostedCluster(seen.Input))
	return seen, nil
}

// references reads what the Infra names; package permission decides what of it may be used.
func (o *Observer) references(ctx context.Context, seen *Infra) (err error) {
	refs := input.Refs(seen.Input.Infra)
	if seen.Namespaces, err = o.namespaces(ctx, refs.Namespaces); err != nil {
		return err
	}
	if refs.HostedCluster.Name == "" {
		if seen.HostedControlPlane, err = o.leading(ctx, refs.ControlPlaneNamespace); err != nil {
			return err
		}
	}
	if hc, known := seen.HostedClusterKey(); known {
		if seen.HostedCluster, err = get[hyperv1.HostedCluster](ctx, o, hc); err != nil {
			return err
		}
	}
	if seen.NAD, err = get[nad.NetworkAttachmentDefinition](ctx, o, refs.NAD); err != nil {
		return err
	}
	of, _ := seen.HostedClusterKey()
	seen.Sharing, err = o.sharing(ctx, seen.ControlPlaneNamespace(), of)
	return err
}

// owner reads whose the control-plane namespace is, if the Infra may refer to all that it names.
func (o *Observer) owner(ctx context.Context, seen *Infra) error {
	namespace := seen.ControlPlaneNamespace()
	if namespace == "" || len(permission.Check(seen.Input)) > 0 {
		return nil
	}
	return o.whose(ctx, seen, namespace)
}

// whose reads the HostedControlPlane, which tells whose a control-plane namespace is. An existing namespace without one is nobody's, unless it
// was the Infra's before.
func (o *Observer) whose(ctx context.Context, seen *Infra, namespace string) (err error) {
	of, known := seen.HostedClusterKey()
	if seen.HostedControlPlane == nil {
		seen.HostedControlPlane, err = o.hostedControlPlane(ctx, namespace, of)
	}
	if err != nil || seen.HostedControlPlane != nil || !known || endpoint.ControlPlaneNamespaceOf(of) != namespace || !o.seesControlPlanes() {
		return err
	}
	made, err := o.madeNamespace(ctx, namespace)
	if made == nil || err != nil {
		return err
	}
	if made.Labels[endpoint.ControlPlaneLabel] == "true" {
		if was, err := o.granted(ctx, seen.Input.Infra, namespace); was || err != nil {
			return err
		}
	}
	seen.MadeNamespace = made
	return nil
}

// madeNamespace reads a namespace, from the API server if the cache lacks it: one that was just made must not count as missing.
func (o *Observer) madeNamespace(ctx context.Context, name string) (*corev1.Namespace, error) {
	made, err := get[corev1.Namespace](ctx, o, types.NamespacedName{Name: name})
	if made != nil || err != nil {
		return made, err
	}
	all := &corev1.NamespaceList{}
	if err := o.Live.List(ctx, all, client.MatchingFields{"metadata.name": name}); err != nil {
		return nil, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	if len(all.Items) == 0 {
		return nil, nil
	}
	return &all.Items[0], nil
}

// seesControlPlanes says whether HyperShift's kinds are seen: without them, or before that, nobody can tell whose a namespace is.
func (o *Observer) seesControlPlanes() bool {
	return o.Kinds.Served(&hyperv1.HostedCluster{}) && o.Kinds.Served(&hyperv1.HostedControlPlane{})
}

// granted says whether an Infra's daemons have a Role from us in a namespace that HyperShift has labelled: its control plane was there. Only
// we and the namespace's admin write Roles there, so an Infra keeps its place when its control plane is recreated, or restored late.
func (o *Observer) granted(ctx context.Context, infra *v1alpha1.Infra, namespace string) (bool, error) {
	roles, err := list[rbacv1.RoleList](ctx, o, namespace, client.MatchingLabels{names.LabelInfra: infra.Name, names.LabelInfraNamespace: infra.Namespace}, client.UnsafeDisableDeepCopy)
	return err == nil && roles != nil && len(roles.Items) > 0, err
}

// leading is the HostedControlPlane by which a namespace leads to a HostedCluster: that of the oldest one there.
func (o *Observer) leading(ctx context.Context, namespace string) (*hyperv1.HostedControlPlane, error) {
	all, err := o.sharing(ctx, namespace, types.NamespacedName{})
	if err != nil {
		return nil, err
	}
	var of types.NamespacedName
	if first := input.Oldest(all...); first != nil {
		of = client.ObjectKeyFromObject(first)
	}
	return o.hostedControlPlane(ctx, namespace, of)
}

// sharing are the HostedClusters, except beside, whose control planes HyperShift puts into a namespace. They are shared with the cache.
func (o *Observer) sharing(ctx context.Context, namespace string, beside types.NamespacedName) (others []*hyperv1.HostedCluster, err error) {
	all, err := list[hyperv1.HostedClusterList](ctx, o, "", client.MatchingFields{IndexControlPlane: namespace}, client.UnsafeDisableDeepCopy)
	if err != nil || all == nil {
		return nil, err
	}
	for i := range all.Items {
		if client.ObjectKeyFromObject(&all.Items[i]) != beside {
			others = append(others, &all.Items[i])
		}
	}
	return others, nil
}

// Withdrawn are those of the namespaces whose owners no longer grant the Infra. Changes of the others wake the Infra from now on.
func (o *Observer) Withdrawn(ctx context.Context, in input.Input, namespaces []string) ([]string, error) {
	if !o.seesControlPlanes() {
		return nil, nil
	}
	o.Listeners.Hear(client.ObjectKeyFromObject(in.Infra), namespaces...)
	var all []string
	for _, name := range namespaces {
		other, err := o.otherNamespace(ctx, name)
		if err != nil {
			return nil, err
		}
		if permission.Withdrawn(in, other) {
			all = append(all, name)
		}
	}
	return all, nil
}

func (o *Observer) otherNamespace(ctx context.Context, name string) (other permission.OtherNamespace, err error) {
	if other.Namespace, err = get[corev1.Namespace](ctx, o, types.NamespacedName{Name: name}); err != nil {
		return other, err
	}
	all, err := list[hyperv1.HostedControlPlaneList](ctx, o, name)
	if err != nil || all == nil || len(all.Items) == 0 {
		return other, err
	}
	other.HostedControlPlane = &all.Items[0]
	key, named := input.ClusterOf(other.HostedControlPlane)
	if named && len(all.Items) == 1 { // HyperShift puts clusters a/b-c and a-b/c into one namespace: nobody can tell whose it is
		other.HostedCluster, err = get[hyperv1.HostedCluster](ctx, o, key)
	}
	return other, err
}

// hostedControlPlane reads the one that input.HostedControlPlaneOf selects in a namespace.
func (o *Observer) hostedControlPlane(ctx context.Context, namespace string, of types.NamespacedName) (*hyperv1.HostedControlPlane, error) {
	all, err := list[hyperv1.HostedControlPlaneList](ctx, o, namespace)
	if err != nil || all == nil {
		return nil, err
	}
	return input.HostedControlPlaneOf(of, all.Items), nil
}

func (o *Observer) surroundings(ctx context.Context, seen *Infra) (err error) {
	if seen.SysctlAllowlist, err = get[corev1.ConfigMap](ctx, o, nad.SysctlAllowlist); err != nil {
		return err
	}
	network, err := get[configv1.Network](ctx, o, openShiftNetwork)
	if err != nil {
		return err
	}
	seen.OpenShift = network != nil
	seen.Children, err = o.children(ctx, seen.Input.Infra)
	return err
}

// Leased are those of these addresses that machines lease from an Infra's DHCPServer. The manager keeps no leases.
func (o *Observer) Leased(ctx context.Context, infra *v1alpha1.Infra, addresses ...netip.Addr) (leased []netip.Addr, err error) {
	for _, at := range addresses {
		lease := &metav1.PartialObjectMetadata{}
		lease.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("DHCPLease"))
		switch err := o.Live.Get(ctx, types.NamespacedName{Namespace: infra.Namespace, Name: names.Lease(names.DHCPServer(infra.Name), at)}, lease); {
		case err == nil:
			leased = append(leased, at)
		case !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("reading the lease of %s, which a second instance would get: %w", at, err)
		}
	}
	return leased, nil
}

func (o *Observer) children(ctx context.Context, infra *v1alpha1.Infra, more ...client.GetOption) (input.Children, error) {
	all := input.Children{}
	for _, c := range component.All {
		key, server := types.NamespacedName{Namespace: infra.Namespace, Name: names.Child(infra.Name, string(c.Name))}, c.New()
		switch err := o.Reader.Get(ctx, key, server, more...); {
		case err == nil:
			all[c.Name] = server
		case !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("reading %s %s: %w", KindOf(server), key, err)
		}
	}
	return all, nil
}

// controlPlane reads the control-plane namespace, if the Infra may use it.
func (o *Observer) controlPlane(ctx context.Context, seen *Infra) error {
	namespace := seen.ControlPlaneNamespace()
	if namespace == "" || len(permission.Check(seen.Input)) > 0 {
		return nil
	}
	o.Listeners.Hear(client.ObjectKeyFromObject(seen.Input.Infra), namespace)
	services, err := list[corev1.ServiceList](ctx, o, namespace)
	if err != nil {
		return err
	}
	endpoints, err := list[discoveryv1.EndpointSliceList](ctx, o, namespace)
	if err != nil {
		return err
	}
	policies, err := list[networkingv1.NetworkPolicyList](ctx, o, namespace)
	if err != nil {
		return err
	}
	routes, err := list[routev1.RouteList](ctx, o, namespace)
	if err != nil {
		return err
	}
	seen.Services, seen.EndpointSlices, seen.NetworkPolicies = byName(services.Items), byName(endpoints.Items), byName(policies.Items)
	if routes != nil {
		seen.Routes = byName(routes.Items)
	}
	if key, known := seen.HostedClusterKey(); known {
		seen.NodePools, err = o.nodePools(ctx, key)
	}
	return err
}

// byName sorts what the cache returns in no order: findings in another order would be another status, and would be written.
func byName[T any, P interface {
	*T
	client.Object
}](all []T) []T {
	slices.SortFunc(all, func(a, b T) int {
		return cmp.Or(cmp.Compare(P(&a).GetNamespace(), P(&b).GetNamespace()), cmp.Compare(P(&a).GetName(), P(&b).GetName()))
	})
	return all
}

// list reads all objects of a namespace; nil if their kind is not served.
func list[T any, P interface {
	*T
	client.ObjectList
}](ctx context.Context, o *Observer, namespace string, more ...client.ListOption) (P, error) {
	all := P(new(T))
	if !o.Kinds.Served(all) {
		return nil, nil
	}
	if err := o.Reader.List(ctx, all, append(more, client.InNamespace(namespace))...); err != nil {
		return nil, fmt.Errorf("listing %s of namespace %s: %w", KindOf(all), namespace, err)
	}
	return all, nil
}
