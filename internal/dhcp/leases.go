package dhcp

import (
	"context"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/dhcp/leasekube"
	"github.com/cldmnky/oooi/internal/names"
)

func (i *instance) keepLeases(ctx context.Context) error {
	if i.client != nil && i.join(ctx) != nil || i.sync(ctx) != nil {
		return nil // the context ended
	}
	if i.client != nil {
		go i.watchLeases(ctx)
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if i.client == nil {
				_ = i.disk.Heal(ctx) // reports through diskHealth
			} else {
				i.kube.try(ctx)
			}
			if !i.leaving() {
				i.server.Expire(ctx)
			}
		}
	}
}

func (i *instance) sync(ctx context.Context) error {
	for pause := time.Second; ; pause = min(2*pause, 10*time.Second) {
		err := i.server.Sync(ctx)
		i.ready.Set(checkLeases, err)
		if err == nil {
			return nil
		}
		i.Log.Warn("leases not read; only known holders are renewed", "error", err, "again in", pause)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

func (i *instance) watchLeases(ctx context.Context) {
	store := &leasekube.Store{Namespace: i.Namespace, Server: i.Name, Labels: i.labels}
	learn := func(o any) {
		kept := o.(*v1alpha1.DHCPLease)
		r, err := store.Record(kept)
		kept.Labels, kept.Spec = nil, v1alpha1.DHCPLeaseSpec{IP: kept.Spec.IP} // the table has the rest: of 65,536 leases only one copy fits
		if err != nil {
			i.Log.Warn("lease not understood", "error", err)
			return
		}
		if i.server.Table.Learn(r) {
			i.server.Stored(r)
		}
	}
	daemon.Watch(ctx, i.client, &v1alpha1.DHCPLease{}, &v1alpha1.DHCPLeaseList{}, store.Selected(), cache.ResourceEventHandlerFuncs{
		AddFunc: learn, UpdateFunc: func(_, o any) { learn(o) },
		DeleteFunc: func(o any) {
			if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			if r, err := store.Record(o.(*v1alpha1.DHCPLease)); err == nil {
				i.server.Table.Lost(r)
			}
		},
	})
}

// labels of every lease: the Infra's, which the planner put on our object, and our own.
func (i *instance) labels() map[string]string {
	i.mu.Lock()
	defer i.mu.Unlock()
	labels := map[string]string{names.LabelServer: i.Name}
	for _, key := range []string{names.LabelInfra, names.LabelInfraNamespace, names.LabelOwnerUID} {
		if i.object != nil && i.object.Labels[key] != "" {
			labels[key] = i.object.Labels[key]
		}
	}
	return labels
}
