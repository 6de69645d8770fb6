package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/boot"
	"github.com/cldmnky/oooi/internal/clusterapi"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/observe"
)

func init() { metrics.Registry.MustRegister(boot.Times()) }

// joins notes in the leases of workers that their Nodes are Ready, as their Machines say, and counts these boots.
type joins struct {
	parts
	// noted are the Machines whose leases were looked up, of each Infra: Cluster API writes them again and again.
	noted map[types.NamespacedName]lookedUp
}

// lookedUp has when each Machine is looked up again; the zero time of one that need not be.
type lookedUp map[types.UID]time.Time

// shortestPause before the lease of a Machine that had none is looked up again.
const shortestPause = time.Minute

// joins watches Infras, whose status says of each change of what they may refer to, and Machines.
func (p parts) joins() error {
	c, err := ctrl.NewControllerManagedBy(p.manager).Named("joins").
		WithOptions(controller.Options{MaxConcurrentReconciles: 1}). // what was noted has no lock
		For(&v1alpha1.Infra{}).Build(joins{p, map[types.NamespacedName]lookedUp{}})
	if err != nil {
		return err
	}
	p.late.watch(c, &clusterapi.Machine{}, p.mapped(p.runBy))
	return nil
}

// runBy maps a Machine to the Infras whose control plane is in its namespace, as far as they say.
func (p parts) runBy(ctx context.Context, o client.Object) ([]types.NamespacedName, error) {
	return p.infras(ctx, client.MatchingFields{observe.IndexControlPlane: o.GetNamespace()})
}

// Reconcile looks at the Machines of an Infra.
func (j joins) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	key, infra := req.NamespacedName, &v1alpha1.Infra{}
	var machines []clusterapi.Machine
	followed := false
	err := client.IgnoreNotFound(j.manager.GetClient().Get(ctx, key, infra))
	if err == nil {
		machines, followed, err = j.observe.Machines(ctx, infra)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if !followed {
		delete(j.noted, key)
		boot.Forget(key.String(), boot.LeaseToReady)
		return ctrl.Result{}, nil
	}
	boot.WillCount(key.String(), boot.LeaseToReady)
	return j.look(ctx, key, machines)
}

// look notes each Machine that has joined, once. One whose lease cannot be read or written is not counted, and looked at again. One without a lease
// is, too, since DHCP may learn only at a renewal which virtual machine it has: after as long as its Node is there, so that workers with addresses of
// their own cost a few requests each, and none for what else changes in a Machine.
func (j joins) look(ctx context.Context, infra types.NamespacedName, machines []clusterapi.Machine) (ctrl.Result, error) {
	before, now, noted := j.noted[infra], j.observe.Now(), lookedUp{}
	j.noted[infra] = noted
	var again []time.Duration
	var errs []error
	for i := range machines {
		m := &machines[i]
		n, is := joinedAt(m, now)
		if !is {
			continue
		}
		due, known := before[m.UID]
		if !known || !due.IsZero() && !now.Before(due) {
			has, err := j.note(ctx, infra, m, n)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			if due = (time.Time{}); !has {
				due = now.Add(max(shortestPause, now.Sub(n.node)))
			}
		}
		if noted[m.UID] = due; !due.IsZero() {
			again = append(again, due.Sub(now))
		}
	}
	switch err := errors.Join(errs...); {
	case apierrors.IsConflict(err): // daemons write the same lease
		return soonest(retryTurn), nil
	case err != nil:
		return ctrl.Result{}, err
	}
	return soonest(again...), nil
}

// note writes into the lease of a Machine's virtual machine; false if it has none. Leases are read live, and by that name: no cache has them.
func (j joins) note(ctx context.Context, infra types.NamespacedName, m *clusterapi.Machine, n joined) (has bool, err error) {
	all := &v1alpha1.DHCPLeaseList{}
	err = j.observe.Live.List(ctx, all, client.InNamespace(infra.Namespace),
		client.MatchingFields{v1alpha1.LeaseFieldServer: names.DHCPServer(infra.Name), v1alpha1.LeaseFieldVirtualMachine: m.VirtualMachine()})
	if err != nil {
		return false, fmt.Errorf("looking up the lease of virtual machine %s/%s, whose Node is Ready: %w", m.Namespace, m.VirtualMachine(), err)
	}
	lease := leaseOf(m, all.Items)
	if lease == nil {
		return false, nil
	}
	stage, took, is := becameReady(lease, n)
	if !is {
		return true, nil
	}
	if err := j.status.Stage(ctx, lease, stage); err != nil {
		return false, fmt.Errorf("noting in DHCPLease %s that its worker's Node is Ready: %w", client.ObjectKeyFromObject(lease), err)
	}
	boot.Count(infra.String(), boot.LeaseToReady, took)
	return true, nil
}

// leaseOf is the lease that a Machine's virtual machine has; of several that which began last, whatever it says already, so that one boot is not
// counted of two.
func leaseOf(m *clusterapi.Machine, all []v1alpha1.DHCPLease) *v1alpha1.DHCPLease {
	var found *v1alpha1.DHCPLease
	for i, l := range all {
		vm, since := l.Spec.VMRef, l.Spec.LastTransitionTime
		if vm == nil || string(vm.Namespace) != m.Namespace || since == nil || l.Spec.State != v1alpha1.LeaseBound {
			continue
		}
		if found == nil || since.After(found.Spec.LastTransitionTime.Time) {
			found = &all[i]
		}
	}
	return found
}

// joined is a worker's Node that is Ready.
type joined struct {
	node, ready time.Time // since when it is there, and Ready
	seen        time.Time // when we saw that
}

// joinedAt is false of a worker whose Node is not Ready, or came too long ago: it joined before we wrote that, or its lease is of a later start.
func joinedAt(m *clusterapi.Machine, now time.Time) (joined, bool) {
	node, ready, is := m.Joined()
	return joined{node, ready, now}, is && m.VirtualMachine() != "" && now.Sub(node) <= boot.Longest
}

// becameReady is the stage of a lease's holder, and how long it took for it; false if it is noted, or the Node is older than the lease. It is never
// earlier than the lease, nor later than we saw it: two nodes' clocks may differ.
func becameReady(l *v1alpha1.DHCPLease, n joined) (s v1alpha1.Stage, took time.Duration, is bool) {
	since := l.Spec.LastTransitionTime.Time
	if _, noted := l.Stages()[v1alpha1.StageNodeReady]; noted || n.node.Before(since) {
		return s, 0, false
	}
	at := slices.MinFunc([]time.Time{n.ready, n.seen}, time.Time.Compare)
	if at.Before(since) {
		at = n.seen
	}
	return v1alpha1.Stage{Name: v1alpha1.StageNodeReady, FirstTime: metav1.NewMicroTime(at)}, at.Sub(since), true
}
