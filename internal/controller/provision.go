package controller

import (
	"context"
	"time"

	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/apply"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/observe"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/provision"
	"github.com/cldmnky/oooi/internal/status"
)

// provisionReconciler makes the Infra that a HostedCluster requests by annotation. Both have the same name and namespace, so one request
// stands for either. It reports by Events, and writes nothing to the HostedCluster.
type provisionReconciler struct {
	parts
	tell *status.Teller
}

// Reconcile observes, plans, applies and sends Events.
func (r provisionReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	seen, err := r.observe.Provisioning(ctx, req.NamespacedName)
	if err != nil || seen.Gone() {
		r.tell.Forget(req.NamespacedName)
		return ctrl.Result{}, err
	}
	findings, err := r.do(ctx, seen, provision.Of(seen.Input))
	again := r.tell.Tell(seen.HostedCluster, findings, time.Now())
	return retry(status.Outcome{}, seen.Pause, again), err
}

// do applies a plan unless it is frozen, and returns the findings to report.
func (r provisionReconciler) do(ctx context.Context, seen observe.Provisioning, p provision.Plan) ([]finding.Finding, error) {
	hc := seen.HostedCluster
	owner := apply.Owner{
		UID: hc.UID, Names: apply.NameOf("hostedcluster", hc.Namespace, hc.Name),
		Exists: func(uid types.UID) bool { return uid == hc.UID }, // no other HostedCluster has its name
	}
	switch {
	case seen.Pause.Active():
		return nil, nil
	case p.Release:
		if err := r.apply.Disown(ctx, seen.Infra, owner); err != nil {
			return nil, err
		}
	case p.Infra != nil:
		applied, err := r.apply.Share(ctx, owner, p.Infra)
		if applied.Wrote && seen.Infra == nil {
			p.Findings = append(p.Findings, p.Made())
		}
		return append(p.Findings, applied.Findings...), err
	}
	return p.Findings, nil
}

// provision watches everything that observe.Provisioning reads.
func (p parts) provision() error {
	c, err := ctrl.NewControllerManagedBy(p.manager).Named("provision").For(&v1alpha1.Infra{}).
		Watches(&v1alpha1.Infra{}, p.mapped(p.withoutSubnet), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Build(provisionReconciler{p, &status.Teller{Events: p.status.Events}})
	if err != nil {
		return err
	}
	p.late.watch(c, &hyperv1.HostedCluster{}, &handler.EnqueueRequestForObject{})
	p.late.watch(c, &hyperv1.NodePool{}, p.mapped(clusterOf))
	p.late.watch(c, &nad.NetworkAttachmentDefinition{}, p.mapped(p.withoutSubnet))
	p.late.watch(c, &hyperv1.HostedControlPlane{}, p.mapped(p.awaiting))
	return nil
}

// awaiting maps a HostedControlPlane to its HostedCluster if that has no subnet yet: only now is it known whether a network is its own.
func (p parts) awaiting(ctx context.Context, o client.Object) ([]types.NamespacedName, error) {
	key, named := input.ClusterOf(o.(*hyperv1.HostedControlPlane))
	hc := &hyperv1.HostedCluster{}
	if !named || !p.observe.Kinds.Served(hc) {
		return nil, nil
	}
	err := p.observe.Reader.Get(ctx, key, hc)
	if err != nil || !provision.AwaitsSubnet(hc) {
		return nil, client.IgnoreNotFound(err)
	}
	return []types.NamespacedName{key}, nil
}

// withoutSubnet are the HostedClusters that request an Infra and may get their subnet from networks, or from other Infras on them.
func (p parts) withoutSubnet(ctx context.Context, o client.Object) ([]types.NamespacedName, error) {
	all := &hyperv1.HostedClusterList{}
	if o.GetLabels()[names.LabelInfra] != "" || !p.observe.Kinds.Served(all) {
		return nil, nil // our own networks tell no subnet
	}
	if err := p.observe.Reader.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	var keys []types.NamespacedName
	for i := range all.Items {
		if provision.AwaitsSubnet(&all.Items[i]) {
			keys = append(keys, client.ObjectKeyFromObject(&all.Items[i]))
		}
	}
	return keys, nil
}

// clusterOf maps a NodePool to its HostedCluster.
func clusterOf(_ context.Context, o client.Object) ([]types.NamespacedName, error) {
	return []types.NamespacedName{{Namespace: o.GetNamespace(), Name: o.(*hyperv1.NodePool).Spec.ClusterName}}, nil
}
