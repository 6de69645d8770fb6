package dhcp

import (
	"context"
	"time"

	"github.com/cldmnky/oooi/internal/dhcp/leasekube"
)

func (i *instance) keepLeases(ctx context.Context) error {
	if i.client != nil && i.join(ctx) != nil || i.sync(ctx) != nil {
		return nil // the context ended
	}
	if i.client != nil {
		go i.kube.Follow(ctx, i.client, i.server.list, i.server.learn, i.server.Table.Lost)
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

func (i *instance) labels() map[string]string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return leasekube.Labels(i.Name, i.object)
}
