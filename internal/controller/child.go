package controller

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/observe"
	"github.com/cldmnky/oooi/internal/plan/workload"
	"github.com/cldmnky/oooi/internal/status"
)

// kind is what the three kinds of children differ in.
type kind[T client.Object] struct {
	app   string // as label app has it
	fresh func() T
	list  func() client.ObjectList
	refs  func(T) observe.References
	plan  func(workload.Child[T]) workload.ChildPlan
	// state is the status as it is and as the controller's part should be, and the conditions of both.
	state func(observe.Child[T], status.Outcome, time.Time) (has, want any, before, after []metav1.Condition)
	// workload kind beside those that all have.
	workload []schema.GroupVersionKind
}

// childReconciler makes of one child the workload that serves it.
type childReconciler[T client.Object] struct {
	parts
	kind kind[T]
}

// Reconcile is observe, plan, apply, status.
func (r childReconciler[T]) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	r.turn.await(ctx)
	seen, err := observe.ReadChild(ctx, r.observe, r.kind.app, req.NamespacedName, r.kind.fresh(), r.kind.list(), r.kind.refs)
	if err != nil || !seen.Found || seen.Server.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, err // what it owns goes by ownerReference
	}
	if r.status.Overtook(seen.Server) {
		return ctrl.Result{}, nil
	}
	p, out, err := r.next(ctx, seen)
	if err != nil && mayNotPull(out) {
		seen.Now.PullOver = true
		p, out, err = r.next(ctx, seen)
	}
	if out.Wrote { // what was read of the workload is from before; its change brings us back
		return soonest(retryWritten), err
	}
	has, want, before, after := r.kind.state(seen, out, time.Now())
	return retry(out, seen.Pause, lookAgain(seen.Rollout, r.observe.Now()), waiting(p)), errors.Join(err, r.status.Child(ctx, seen.Server, before, after, has, want))
}

// lookAgain at a pod that is being created, or may not be: of events nothing tells us, and of a node only its pod's own condition.
func lookAgain(r observe.Rollout, now time.Time) time.Duration {
	awaited := r.Exists && !r.Ready && !r.Stopped
	switch p := r.Pod; {
	case p != nil && now.Sub(p.CreationTimestamp.Time) < time.Minute, p == nil && awaited && r.Refused == "":
		return retryCreated
	case p != nil || awaited:
		return retryHeldUp
	}
	return 0
}

// next plans and applies, with a changed template when it is its turn.
func (r childReconciler[T]) next(ctx context.Context, seen observe.Child[T]) (workload.ChildPlan, status.Outcome, error) {
	p := r.kind.plan(seen.Child)
	switch {
	case seen.Pause.Holds():
		r.turnstile.passes(group(seen))
	case p.AwaitsTurn && r.turnstile.take(ctx, group(seen), r.workload(seen)):
		defer r.turnstile.applied()
		seen.Now.Turn = true
		p = r.kind.plan(seen.Child)
	}
	out, err := r.do(ctx, seen, p)
	return p, out, err
}

// group is whose pods are replaced together: the Infra's, or a child's that stands alone.
func group[T client.Object](seen observe.Child[T]) types.NamespacedName {
	if seen.Child.Infra != nil {
		return client.ObjectKeyFromObject(seen.Child.Infra)
	}
	return types.NamespacedName{Namespace: seen.Server.GetNamespace(), Name: string(seen.Server.GetUID())}
}

func (r childReconciler[T]) workload(seen observe.Child[T]) observe.Workload {
	return observe.Workload{Component: r.kind.app, NamespacedName: types.NamespacedName{Namespace: seen.Server.GetNamespace(), Name: seen.Rollout.Workload}}
}

// mayNotPull: a pod that pulls images was refused, by a quota for one. The images are then pulled when the pod before is gone.
func mayNotPull(out status.Outcome) bool {
	return slices.ContainsFunc(out.Findings, func(f finding.Finding) bool { return f.Reason == "Rejected" && f.Of.Kind == "Pod" })
}

// waiting is when to look again at what no event tells of: whose turn it is, and that a pull has had its time.
func waiting(p workload.ChildPlan) time.Duration {
	switch {
	case p.AwaitsTurn:
		return retryTurn
	case p.AwaitsImages:
		return retryHeldUp
	}
	return 0
}

func (r childReconciler[T]) do(ctx context.Context, seen observe.Child[T], p workload.ChildPlan) (status.Outcome, error) {
	out := status.Outcome{Findings: p.Findings, Held: p.Held || seen.Pause.Holds(), Paused: seen.Pause.Reason}
	if out.Held {
		return out, nil
	}
	applied, err := r.apply.To(ctx, r.owner(seen), p.Objects)
	out.Findings, out.Wrote = append(out.Findings, applied.Findings...), applied.Wrote
	return out, err
}

func (p parts) dhcpServer() error {
	return addChild(p, kind[*v1alpha1.DHCPServer]{
		app: names.DHCP, workload: statefulSet, plan: workload.DHCP,
		fresh: func() *v1alpha1.DHCPServer { return &v1alpha1.DHCPServer{} }, list: func() client.ObjectList { return &v1alpha1.DHCPServerList{} },
		refs: func(s *v1alpha1.DHCPServer) observe.References {
			return observe.References{Attachment: s.Spec.NetworkConfig.Attachment, Namespaces: []string{string(s.Spec.VMNamespace)}}
		},
		state: func(seen observe.Child[*v1alpha1.DHCPServer], out status.Outcome, now time.Time) (any, any, []metav1.Condition, []metav1.Condition) {
			want := status.DHCP(seen, out, now)
			return seen.Server.Status, want, seen.Server.Status.Conditions, want.Conditions
		},
	})
}

func (p parts) dnsServer() error {
	return addChild(p, kind[*v1alpha1.DNSServer]{
		app: names.DNS, workload: statefulSet, plan: workload.DNS,
		fresh: func() *v1alpha1.DNSServer { return &v1alpha1.DNSServer{} }, list: func() client.ObjectList { return &v1alpha1.DNSServerList{} },
		refs: func(s *v1alpha1.DNSServer) observe.References {
			return observe.References{Attachment: s.Spec.NetworkConfig.Attachment, Addresses: workload.Upstreams(s.Spec)}
		},
		state: func(seen observe.Child[*v1alpha1.DNSServer], out status.Outcome, now time.Time) (any, any, []metav1.Condition, []metav1.Condition) {
			want := status.DNS(seen, out, now)
			return seen.Server.Status, want, seen.Server.Status.Conditions, want.Conditions
		},
	})
}

func (p parts) proxyServer() error {
	return addChild(p, kind[*v1alpha1.ProxyServer]{
		app: names.Proxy, workload: deployment, plan: workload.Proxy,
		fresh: func() *v1alpha1.ProxyServer { return &v1alpha1.ProxyServer{} }, list: func() client.ObjectList { return &v1alpha1.ProxyServerList{} },
		refs: func(s *v1alpha1.ProxyServer) observe.References {
			refs := observe.References{Attachment: s.Spec.NetworkConfig.Attachment}
			for _, b := range s.Spec.Backends {
				refs.Namespaces = append(refs.Namespaces, string(b.TargetNamespace))
			}
			services, addresses := workload.Targets(s.Spec)
			refs.Services, refs.Addresses = slices.Collect(maps.Keys(services)), addresses
			return refs
		},
		state: func(seen observe.Child[*v1alpha1.ProxyServer], out status.Outcome, now time.Time) (any, any, []metav1.Condition, []metav1.Condition) {
			want := status.Proxy(seen, out, now)
			return seen.Server.Status, want, seen.Server.Status.Conditions, want.Conditions
		},
	})
}
