package controller

import (
	"context"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	routev1 "github.com/openshift/api/route/v1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/apply"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/observe"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/workload"
)

// infra watches everything that observe.Infra reads and apply writes for it.
func (p parts) infra() error {
	specChanged := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	b := ctrl.NewControllerManagedBy(p.manager).Named("infra").
		// One at a time, so that the next Infra on the same VLAN sees the addresses that the one before was given.
		WithOptions(controller.Options{MaxConcurrentReconciles: 1, NewQueue: p.turn.queue}).
		For(&v1alpha1.Infra{}).
		Watches(&v1alpha1.Infra{}, p.mapped(p.neighbours), builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, judgedDifferently))).
		Watches(&rbacv1.Role{}, p.mapped(labelled)).
		Watches(&rbacv1.RoleBinding{}, p.mapped(labelled)).
		Watches(&networkingv1.NetworkPolicy{}, p.mapped(labelled)).
		Watches(&networkingv1.NetworkPolicy{}, p.mapped(p.listeners)).
		Watches(&corev1.Service{}, p.mapped(p.listeners)).
		Watches(&discoveryv1.EndpointSlice{}, p.mapped(p.listeners)).
		Watches(&corev1.Namespace{}, p.mapped(p.listenersOfNamespace)).
		Watches(&corev1.ConfigMap{}, p.mapped(p.allowlist))
	for _, c := range component.All {
		b = b.Watches(c.New(), p.mapped(labelled)).Watches(c.New(), p.mapped(p.neighboursOfOwner), specChanged)
	}
	if len(p.observe.Settings.PodCIDRs) == 0 {
		b = b.Watches(&corev1.Node{}, p.mapped(p.everyone), builder.WithPredicates(podNetworkChanged))
	}
	c, err := b.Build(infraReconciler{p})
	if err != nil {
		return err
	}
	p.late.watch(c, &hyperv1.HostedCluster{}, p.mapped(p.bridgedTo))
	p.late.watch(c, &hyperv1.NodePool{}, p.mapped(p.leasingTo))
	p.late.watch(c, &hyperv1.HostedControlPlane{}, p.mapped(p.listeners))
	p.late.watch(c, &routev1.Route{}, p.mapped(p.listeners))
	p.late.watch(c, &nad.NetworkAttachmentDefinition{}, p.mapped(labelled))
	p.late.watch(c, &nad.NetworkAttachmentDefinition{}, p.mapped(p.attachedTo))
	p.late.watch(c, &networkingv1.ServiceCIDR{}, p.mapped(p.everyone))
	p.late.watch(c, &configv1.Network{}, p.mapped(p.everyone))
	return nil
}

// podNetworkChanged ignores what Nodes report every few minutes, and Nodes that exist before the first reconcile.
var podNetworkChanged = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return !slices.Equal(e.ObjectOld.(*corev1.Node).Spec.PodCIDRs, e.ObjectNew.(*corev1.Node).Spec.PodCIDRs)
	},
}

// judgedDifferently passes a change of whether an Infra is refused: a refused one blocks no other.
var judgedDifferently = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		return input.Refused(e.ObjectOld.(*v1alpha1.Infra)) != input.Refused(e.ObjectNew.(*v1alpha1.Infra))
	},
}

// concerned returns the Infras or children that an object's change concerns.
type concerned func(context.Context, client.Object) ([]types.NamespacedName, error)

func (p parts) mapped(who concerned) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []ctrl.Request {
		keys, err := who(ctx, o)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "finding whom a change concerns", "object", client.ObjectKeyFromObject(o))
		}
		var requests []ctrl.Request
		for _, key := range keys {
			requests = append(requests, ctrl.Request{NamespacedName: key})
		}
		return requests
	})
}

// labelled maps an object to the Infra that its labels name.
func labelled(_ context.Context, o client.Object) ([]types.NamespacedName, error) {
	key := types.NamespacedName{Namespace: o.GetLabels()[names.LabelInfraNamespace], Name: o.GetLabels()[names.LabelInfra]}
	if key.Name == "" || o.GetLabels()[names.LabelInstance] != "" {
		return nil, nil
	}
	return []types.NamespacedName{key}, nil
}

// listeners maps an object to the Infras that read its namespace.
func (p parts) listeners(_ context.Context, o client.Object) ([]types.NamespacedName, error) {
	return p.observe.Listeners.Of(o.GetNamespace()), nil
}

func (p parts) listenersOfNamespace(_ context.Context, o client.Object) ([]types.NamespacedName, error) {
	return p.observe.Listeners.Of(o.GetName()), nil
}

// neighbours maps a changed Infra to the others on its layer 2, where the free addresses have changed.
func (p parts) neighbours(ctx context.Context, o client.Object) ([]types.NamespacedName, error) {
	return p.observe.OnSameLayer2(ctx, o.(*v1alpha1.Infra))
}

func (p parts) neighboursOfOwner(ctx context.Context, o client.Object) ([]types.NamespacedName, error) {
	keys, err := labelled(ctx, o)
	if err != nil || len(keys) == 0 {
		return nil, err
	}
	infra := &v1alpha1.Infra{}
	if err := p.observe.Reader.Get(ctx, keys[0], infra); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return p.neighbours(ctx, infra)
}

// bridgedTo maps a HostedCluster to its Infras, and to those of other HostedClusters with the same control-plane namespace.
func (p parts) bridgedTo(ctx context.Context, o client.Object) ([]types.NamespacedName, error) {
	return p.infras(ctx, client.MatchingFields{observe.IndexControlPlane: endpoint.ControlPlaneNamespaceOf(client.ObjectKeyFromObject(o))})
}

// leasingTo maps a NodePool to the Infras of its HostedCluster.
func (p parts) leasingTo(ctx context.Context, o client.Object) ([]types.NamespacedName, error) {
	hc := &hyperv1.HostedCluster{}
	hc.Namespace, hc.Name = o.GetNamespace(), o.(*hyperv1.NodePool).Spec.ClusterName
	return p.bridgedTo(ctx, hc)
}

// attachedTo maps a NetworkAttachmentDefinition to the Infras whose workers use it, and to all on its layer 2, since their NodePools may name
// it. An update is mapped from the old and the new object, so a layer 2 that it leaves counts too.
func (p parts) attachedTo(ctx context.Context, o client.Object) ([]types.NamespacedName, error) {
	users, err := p.infras(ctx, client.MatchingFields{observe.IndexNAD: client.ObjectKeyFromObject(o).String()})
	if err != nil || o.GetLabels()[names.LabelManagedBy] == names.ManagedBy {
		return users, err
	}
	neighbours, err := p.observe.OnLayer2Of(ctx, o.(*nad.NetworkAttachmentDefinition))
	return append(users, neighbours...), err
}

// allowlist returns all Infras if the sysctls that Multus allows change.
func (p parts) allowlist(ctx context.Context, o client.Object) ([]types.NamespacedName, error) {
	if client.ObjectKeyFromObject(o) != nad.SysctlAllowlist {
		return nil, nil
	}
	return p.everyone(ctx, o)
}

// everyone returns all Infras: the management cluster's own networks concern each.
func (p parts) everyone(ctx context.Context, _ client.Object) ([]types.NamespacedName, error) {
	return p.infras(ctx)
}

func (p parts) infras(ctx context.Context, of ...client.ListOption) ([]types.NamespacedName, error) {
	all := &v1alpha1.InfraList{}
	if err := p.observe.Reader.List(ctx, all, append(of, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, err
	}
	var keys []types.NamespacedName
	for i := range all.Items {
		keys = append(keys, client.ObjectKeyFromObject(&all.Items[i]))
	}
	return keys, nil
}

// childrenOf names the controller of a component's children.
func childrenOf(c component.Component) string { return string(c.Name) + "server" }

// children watches everything that observe.Child reads and apply writes for a component's children.
func (p parts) children(of component.Component) error {
	r := childReconciler{p, of}
	b := ctrl.NewControllerManagedBy(p.manager).Named(childrenOf(of)).For(of.New()).
		Watches(&v1alpha1.Infra{}, p.mapped(r.ofInfra)).
		Watches(&corev1.Namespace{}, p.mapped(r.naming)).
		Watches(&corev1.Pod{}, p.mapped(r.ofPod)).
		Watches(&v1alpha1.DNSServer{}, p.mapped(r.lookedAt)).
		Watches(&corev1.Service{}, p.mapped(r.reaching), builder.WithPredicates(waysChanged)).
		Watches(&discoveryv1.EndpointSlice{}, p.mapped(r.reachingBehind), builder.WithPredicates(waysChanged))
	for _, gvk := range r.owner(observe.Child{Child: workload.Child[component.Server]{Server: of.New()}}).Kinds {
		owned, err := p.manager.GetScheme().New(gvk)
		if err != nil {
			return err
		}
		b = b.Owns(owned.(client.Object))
	}
	c, err := b.Build(r)
	if err != nil {
		return err
	}
	p.late.watch(c, &nad.NetworkAttachmentDefinition{}, p.mapped(r.attached))
	return nil
}

// ofInfra maps an Infra to its children: its pause and permission apply to them.
func (r childReconciler) ofInfra(ctx context.Context, o client.Object) ([]types.NamespacedName, error) {
	named := client.MatchingFields{apply.IndexNames: apply.NameOf("infra", o.GetNamespace(), o.GetName())}
	return r.childrenThat(ctx, func(component.Server) bool { return true }, named, client.InNamespace(o.GetNamespace()))
}

// ofPod maps a pod to the child that it serves.
func (r childReconciler) ofPod(_ context.Context, o client.Object) ([]types.NamespacedName, error) {
	if o.GetLabels()[names.LabelApp] != string(r.of.Name) {
		return nil, nil
	}
	return []types.NamespacedName{{Namespace: o.GetNamespace(), Name: o.GetLabels()[names.LabelInstance]}}, nil
}

// lookedAt maps a DNSServer to the proxy of its Infra, on which it looks.
func (r childReconciler) lookedAt(_ context.Context, o client.Object) ([]types.NamespacedName, error) {
	infra := o.GetLabels()[names.LabelInfra]
	if r.of.Name != component.Proxy || infra == "" {
		return nil, nil
	}
	return []types.NamespacedName{{Namespace: o.GetNamespace(), Name: names.ProxyServer(infra)}}, nil
}

// naming maps a Namespace to the children that refer to it.
func (r childReconciler) naming(ctx context.Context, o client.Object) ([]types.NamespacedName, error) {
	return r.childrenThat(ctx, func(child component.Server) bool {
		return slices.Contains(workload.Refer(r.of.Name, child).Namespaces, o.GetName())
	})
}

// attached maps a NetworkAttachmentDefinition to the children whose pods use it; a second instance may have one of its own.
func (r childReconciler) attached(ctx context.Context, o client.Object) ([]types.NamespacedName, error) {
	return r.childrenThat(ctx, func(child component.Server) bool {
		at := observe.AttachedTo(workload.Refer(r.of.Name, child).Attachment, child.GetNamespace())
		numbered := func(instance int) bool { return o.GetName() == names.Numbered(at.Name, instance) }
		return o.GetNamespace() == at.Namespace && (numbered(0) || len(r.of.Written(child).AdditionalServerIPs) > 0 && numbered(1))
	})
}

// reaching maps a Service to the children whose pods may dial it.
func (r childReconciler) reaching(ctx context.Context, o client.Object) ([]types.NamespacedName, error) {
	return r.childrenThat(ctx, func(child component.Server) bool {
		return workload.Refer(r.of.Name, child).Reaches(o.(*corev1.Service))
	})
}

func (r childReconciler) reachingBehind(ctx context.Context, o client.Object) ([]types.NamespacedName, error) {
	s := &corev1.Service{}
	err := r.observe.Reader.Get(ctx, types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetLabels()[discoveryv1.LabelServiceName]}, s)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return r.reaching(ctx, s)
}

// waysChanged ignores Services and EndpointSlices that exist before the first reconcile, and all changes but those of addresses and ports:
// endpoints come and go with every pod.
var waysChanged = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList },
	UpdateFunc: func(e event.UpdateEvent) bool {
		switch before := e.ObjectOld.(type) {
		case *corev1.Service:
			now := e.ObjectNew.(*corev1.Service)
			return !equality.Semantic.DeepEqual(before.Spec.Ports, now.Spec.Ports) || !slices.Equal(workload.AddressesOf(before), workload.AddressesOf(now))
		case *discoveryv1.EndpointSlice:
			return !equality.Semantic.DeepEqual(before.Ports, e.ObjectNew.(*discoveryv1.EndpointSlice).Ports)
		}
		return true
	},
}

func (r childReconciler) childrenThat(ctx context.Context, match func(component.Server) bool, of ...client.ListOption) ([]types.NamespacedName, error) {
	all := r.of.NewList()
	if err := r.observe.Reader.List(ctx, all, append(of, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, err
	}
	var keys []types.NamespacedName
	err := meta.EachListItem(all, func(o runtime.Object) error {
		if child := o.(component.Server); match(child) {
			keys = append(keys, types.NamespacedName{Namespace: child.GetNamespace(), Name: child.GetName()})
		}
		return nil
	})
	return keys, err
}
