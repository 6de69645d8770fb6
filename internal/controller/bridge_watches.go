package controller

import (
	"context"
	"errors"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	appsv1 "k8s.io/api/apps/v1"
	authnv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/guest/approve"
	"github.com/cldmnky/oooi/internal/ignition"
	"github.com/cldmnky/oooi/internal/metallb"
	"github.com/cldmnky/oooi/internal/namedwatch"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/observe"
	"github.com/cldmnky/oooi/internal/plan/bridge"
	"github.com/cldmnky/oooi/internal/registry"
)

// bridgeController is the name of the controller (operator-rules.md#names).
const bridgeController = "DPFHCPBridgeController"

// bridgesAtOnce is how many bridges are reconciled concurrently; claims serialise those that want the same thing.
const bridgesAtOnce = 4

// bridge watches everything that observe.Bridge reads and apply writes for it.
func (p parts) bridge(settings bridge.Settings) error {
	core, err := typedcore.NewForConfigAndClient(p.manager.GetConfig(), p.manager.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("preparing to follow Secrets: %w", err)
	}
	wake := &waker{}
	watches := namedwatch.New(core, wake.wake)
	p.hosted.Lookups, p.hosted.OVN = registry.New(tokens(core), wake.wake), registry.New(nil, wake.wake)
	r := bridgeReconciler{p, &observe.Bridges{Observer: p.observe, Settings: settings, Watches: watches, Lookups: p.hosted.Lookups, OVN: p.hosted.OVN, Versions: p.late.versions}, &claims{taken: map[any]bool{}}}
	p.hosted.Approvals = approve.NewApprovals(core, r.observe, r.told, wake.wake)
	p.hosted.Downloads = ignition.New(core, wake.wake)
	if err := errors.Join(p.manager.Add(watches), p.manager.Add(p.hosted.Approvals), p.manager.Add(p.hosted.Downloads), p.manager.Add(p.hosted.Lookups), p.manager.Add(p.hosted.OVN)); err != nil {
		return err
	}
	c, err := ctrl.NewControllerManagedBy(p.manager).Named(bridgeController).
		WithOptions(controller.Options{MaxConcurrentReconciles: bridgesAtOnce, NewQueue: wake.queue}).
		For(&dpuv1.DPUHCPBridge{}).
		Watches(&dpuv1.DPUHCPBridge{}, p.mapped(r.rivals)).
		Watches(&corev1.Namespace{}, p.mapped(r.inNamespace)).
		Watches(&corev1.ConfigMap{}, p.mapped(bridged)).
		Watches(&corev1.Node{}, p.mapped(r.onNodes), builder.WithPredicates(reachedDifferently)).
		Watches(&appsv1.DaemonSet{}, p.mapped(r.managing)).
		Watches(&storagev1.StorageClass{}, p.mapped(r.unstored)).
		Build(r)
	if err != nil {
		return err
	}
	p.late.tell = append(p.late.tell, func() { r.wakeAll(wake) })
	late := func(to func(context.Context, client.Object) ([]types.NamespacedName, error), kinds ...client.Object) {
		for _, kind := range kinds {
			p.late.watch(c, kind, p.mapped(to))
		}
	}
	p.late.watch(c, &hyperv1.NodePool{}, &handler.EnqueueRequestForObject{})
	late(r.neighbours, &hyperv1.HostedCluster{})
	late(r.bound, &dpf.DPUCluster{})
	late(r.joined, &dpf.DPU{})
	late(r.templating, &dpf.DPUDeployment{}, &dpf.DPFOperatorConfig{}, &dpf.DPUServiceTemplate{}, &dpf.DPUServiceConfiguration{})
	late(r.installing, &dpf.DPUFlavor{}, &dpf.BFB{})
	late(r.managing, &configv1.ClusterVersion{})
	late(bridged, &metallb.IPAddressPool{}, &metallb.L2Advertisement{})
	late(r.asking, &configv1.ImageDigestMirrorSet{}, &configv1.ImageTagMirrorSet{}, &configv1.Proxy{})
	late(r.all, &configv1.Image{})
	return nil
}

// tokens are of ServiceAccounts, for as long as an image may take to be copied.
func tokens(core typedcore.ServiceAccountsGetter) func(context.Context, types.NamespacedName) (string, error) {
	return func(ctx context.Context, of types.NamespacedName) (string, error) {
		request := &authnv1.TokenRequest{Spec: authnv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(7200))}}
		token, err := core.ServiceAccounts(of.Namespace).CreateToken(ctx, of.Name, request, metav1.CreateOptions{})
		if err != nil {
			return "", err
		}
		return token.Status.Token, nil
	}
}

// wakeAll queues all bridges: any may wait for a kind that has just appeared. Before the cache syncs, each has its first reconcile to come.
func (r bridgeReconciler) wakeAll(wake *waker) {
	keys, err := r.all(context.Background(), nil)
	if err != nil {
		return
	}
	for _, key := range keys {
		wake.wake(key)
	}
}

// bridged maps an object to the bridge that its labels name.
func bridged(_ context.Context, o client.Object) ([]types.NamespacedName, error) {
	if o.GetLabels()[names.LabelBridge] == "" {
		return nil, nil
	}
	return []types.NamespacedName{{Namespace: o.GetLabels()[names.LabelBridgeNamespace], Name: o.GetLabels()[names.LabelBridge]}}, nil
}

// rivals maps a changed bridge to the other bridges with the same DPUCluster or virtual IP.
func (r bridgeReconciler) rivals(ctx context.Context, o client.Object) ([]types.NamespacedName, error) {
	changed := o.(*dpuv1.DPUHCPBridge)
	return r.bridgesThat(ctx, func(b *dpuv1.DPUHCPBridge) bool { return bridge.Rivals(b, changed) })
}

// neighbours maps a HostedCluster to the bridges with the same control-plane namespace, its own among them.
func (r bridgeReconciler) neighbours(ctx context.Context, o client.Object) ([]types.NamespacedName, error) {
	return r.at(ctx, endpoint.ControlPlaneNamespaceOf(client.ObjectKeyFromObject(o)))
}

// inNamespace maps a Namespace to the bridges whose control planes would be there.
func (r bridgeReconciler) inNamespace(ctx context.Context, o client.Object) ([]types.NamespacedName, error) {
	return r.at(ctx, o.GetName())
}

func (r bridgeReconciler) at(ctx context.Context, namespace string) ([]types.NamespacedName, error) {
	return r.bridgesThat(ctx, func(b *dpuv1.DPUHCPBridge) bool { return bridge.ControlPlane(b) == namespace })
}

func (r bridgeReconciler) bound(ctx context.Context, o client.Object) ([]types.NamespacedName, error) {
	return r.of(ctx, client.ObjectKeyFromObject(o))
}

func (r bridgeReconciler) joined(ctx context.Context, o client.Object) ([]types.NamespacedName, error) {
	cluster := o.(*dpf.DPU).Spec.Cluster
	return r.of(ctx, types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name})
}

func (r bridgeReconciler) of(ctx context.Context, cluster types.NamespacedName) ([]types.NamespacedName, error) {
	return r.bridgesThat(ctx, func(b *dpuv1.DPUHCPBridge) bool { return bridge.ClusterKey(b) == cluster })
}

// onNodes maps a Node to the bridges whose control plane is or will be reached through Nodes, and those whose virtual IP a Node may have.
func (r bridgeReconciler) onNodes(ctx context.Context, _ client.Object) ([]types.NamespacedName, error) {
	return r.bridgesThat(ctx, func(b *dpuv1.DPUHCPBridge) bool {
		return !bridge.Exposed(b) || bridge.VirtualIP(b).IsValid()
	})
}

// unstored maps a StorageClass to the bridges without a hosted cluster; StorageClasses matter to no others.
func (r bridgeReconciler) unstored(ctx context.Context, _ client.Object) ([]types.NamespacedName, error) {
	return r.bridgesThat(ctx, func(b *dpuv1.DPUHCPBridge) bool { return !bridge.Reported(b) })
}

// all maps to all bridges what says where the CAs of registries are: DPUs are installed with them.
func (r bridgeReconciler) all(ctx context.Context, _ client.Object) ([]types.NamespacedName, error) {
	return r.bridgesThat(ctx, func(*dpuv1.DPUHCPBridge) bool { return true })
}

// asking maps the cluster's mirrors, proxy and CAs to the bridges for which registries may be asked.
func (r bridgeReconciler) asking(ctx context.Context, _ client.Object) ([]types.NamespacedName, error) {
	return r.bridgesThat(ctx, func(b *dpuv1.DPUHCPBridge) bool { return bridge.OwnImage(b) == "" || b.Spec.ManageDPUServiceTemplates })
}

func (r bridgeReconciler) bridgesThat(ctx context.Context, is func(*dpuv1.DPUHCPBridge) bool) ([]types.NamespacedName, error) {
	all := &dpuv1.DPUHCPBridgeList{}
	if err := r.observe.Reader.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	var keys []types.NamespacedName
	for i := range all.Items {
		if is(&all.Items[i]) {
			keys = append(keys, client.ObjectKeyFromObject(&all.Items[i]))
		}
	}
	return keys, nil
}

// reachedDifferently ignores what Nodes report every few minutes: of a Node's status the cache keeps only what reached returns.
var reachedDifferently = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList },
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*corev1.Node).Status, e.ObjectNew.(*corev1.Node).Status
		return !equality.Semantic.DeepEqual(before, after)
	},
}
