// Package controller has thin reconcilers: observe, plan, apply, status. They watch everything that they read.
package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	routev1 "github.com/openshift/api/route/v1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/apply"
	"github.com/cldmnky/oooi/internal/clusterapi"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/guest/approve"
	"github.com/cldmnky/oooi/internal/guest/appsingress"
	"github.com/cldmnky/oooi/internal/ignition"
	"github.com/cldmnky/oooi/internal/metallb"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/observe"
	"github.com/cldmnky/oooi/internal/plan/bridge"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/registry"
	"github.com/cldmnky/oooi/internal/status"
)

// Scheme knows every kind that the manager reads or writes.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, dpuv1.AddToScheme, hyperv1.AddToScheme, routev1.AddToScheme, configv1.Install, nad.AddToScheme, dpf.AddToScheme, metallb.AddToScheme, clusterapi.AddToScheme} {
		utilruntime.Must(add(scheme))
	}
	return scheme
}

// parts are what every reconciler uses.
type parts struct {
	manager ctrl.Manager
	observe *observe.Observer
	apply   *apply.Writer
	status  *status.Writer
	hosted  *Hosted
	late    *lateKinds
	turn    *turn
	// turnstile limits the replacement of pods.
	turnstile *turnstile
}

// Hosted reads and writes outside the management cluster, which observe, apply and status do not.
type Hosted struct {
	// Guests read the Infras' hosted clusters, and maintain the Service of *.apps there.
	Guests *appsingress.Clusters
	// Approvals approve certificates in the bridges' hosted clusters; nil if bridges are switched off.
	Approvals *approve.Approvals
	// Downloads have the ignition of the bridges' NodePools; nil if bridges are switched off.
	Downloads *ignition.Downloads
	// Lookups ask registries for the bridges' images, OVN for OVN-Kubernetes of the hosts' release; nil if bridges are switched off.
	Lookups, OVN *registry.Lookups
}

// ClientOptions read Secrets from the API server itself: a cache would have to list all of them.
func ClientOptions() client.Options {
	return client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}}
}

// Groups are the groups of kinds that a manager serves. It needs no permission for a group that it does not serve.
type Groups struct {
	// VLAN is for Infras and their children.
	VLAN bool
	// Bridges is for bridges to DPUs; nil switches it off.
	Bridges *bridge.Settings
}

// Setup adds the controllers to a manager, and gives others the controllers' view of the management cluster and of hosted clusters.
func Setup(manager ctrl.Manager, settings input.Settings, groups Groups, others ...func(*observe.Observer, *Hosted) error) error {
	kinds, turns := observe.NewKinds(groups.VLAN, groups.Bridges != nil), newTurn()
	guests, err := hostedClusters(manager, turns)
	if err != nil {
		return err
	}
	resources, err := discovery.NewDiscoveryClientForConfigAndClient(manager.GetConfig(), manager.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("preparing to look for kinds: %w", err)
	}
	p := parts{
		manager: manager,
		observe: &observe.Observer{Reader: manager.GetClient(), Live: manager.GetAPIReader(), Settings: settings, Kinds: kinds, Listeners: observe.NewListeners(), Now: time.Now},
		apply:   &apply.Writer{Client: manager.GetClient(), Live: manager.GetAPIReader(), Partial: partial(manager.GetScheme())},
		status:  &status.Writer{Client: manager.GetClient(), Events: status.Recorder(manager.GetEventRecorder("oooi"))},
		hosted:  &Hosted{Guests: guests},
		late:    &lateKinds{kinds: kinds, discovery: resources, cache: manager.GetCache(), scheme: manager.GetScheme(), log: manager.GetLogger().WithName("kinds")},
		turn:    turns,
	}
	p.turnstile = &turnstile{served: p.observe.Served}
	if err := p.index(groups); err != nil {
		return err
	}
	for name, add := range p.controllers(groups) {
		if err := add(); err != nil {
			return fmt.Errorf("adding controller %s: %w", name, err)
		}
	}
	for _, add := range others {
		if err := add(p.observe, p.hosted); err != nil {
			return err
		}
	}
	p.late.look(context.Background())
	return manager.Add(p.late)
}

func (p parts) controllers(of Groups) map[string]func() error {
	all := map[string]func() error{}
	if of.VLAN {
		all = map[string]func() error{"infra": p.infra, "provision": p.provision, "joins": p.joins}
		for _, c := range component.All {
			all[childrenOf(c)] = func() error { return p.children(c) }
		}
	}
	if of.Bridges != nil {
		all["bridge"] = func() error { return p.bridge(*of.Bridges) }
	}
	return all
}

// hostedClusters reads the Infras' hosted clusters; a change there wakes the Infra.
func hostedClusters(manager ctrl.Manager, turns *turn) (*appsingress.Clusters, error) {
	secrets, err := typedcore.NewForConfigAndClient(manager.GetConfig(), manager.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("preparing to read kubeconfigs: %w", err)
	}
	all := appsingress.NewClusters(secrets, turns.wake)
	return all, manager.Add(all)
}

// index adds the cache's indexes; late kinds are indexed when they appear.
func (p parts) index(groups Groups) error {
	var kinds []client.Object
	var owned []schema.GroupVersionKind
	if groups.VLAN {
		kinds, owned = append(kinds, &v1alpha1.Infra{}), slices.Concat(infraKinds(), childKinds, workloadKinds())
	}
	if groups.Bridges != nil {
		owned = slices.Concat(owned, bridgeKinds, metallbKinds)
	}
	indexed := map[schema.GroupVersionKind]bool{}
	for _, gvk := range owned {
		if indexed[gvk] {
			continue
		}
		indexed[gvk] = true
		made, err := p.manager.GetScheme().New(gvk)
		if err != nil {
			return err
		}
		if kind := made.(client.Object); p.observe.Kinds.Served(kind) {
			kinds = append(kinds, kind)
		}
	}
	for _, kind := range kinds {
		if err := index(p.manager.GetFieldIndexer(), kind); err != nil {
			return fmt.Errorf("indexing %T: %w", kind, err)
		}
	}
	return nil
}

// index adds the indexes of one kind: those by which it is observed and, for what is pruned, that of its owner.
func index(indexer client.FieldIndexer, kind client.Object) error {
	all := map[string]client.IndexerFunc{apply.IndexNames: apply.NamedBy}
	switch kind.(type) {
	case *v1alpha1.Infra, *hyperv1.NodePool: // none is pruned
		clear(all)
	}
	maps.Copy(all, observe.Indexes(kind))
	for by, of := range all {
		if err := indexer.IndexField(context.Background(), kind, by, of); err != nil {
			return err
		}
	}
	return nil
}

// soonest requeues after the shortest of the durations that are set.
func soonest(pauses ...time.Duration) ctrl.Result {
	var result ctrl.Result
	for _, p := range pauses {
		if p > 0 && (result.RequeueAfter == 0 || p < result.RequeueAfter) {
			result.RequeueAfter = p
		}
	}
	return result
}
