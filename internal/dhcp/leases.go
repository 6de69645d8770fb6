package dhcp

import (
	"context"
	"net/netip"
	"time"

	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/leasekube"
)

func (i *instance) keepLeases(ctx context.Context) error {
	if i.client != nil && i.join(ctx) != nil || i.sync(ctx) != nil {
		return nil // the context ended
	}
	if i.client != nil {
		go i.kube.Follow(ctx, i.client, i.server.list, i.server.learn, i.server.Table.Lost)
		go i.fillCopy(ctx)
	}
	daemon.Every(ctx, time.Second, func() {
		if i.client == nil {
			_ = i.disk.Heal(ctx) // reports through diskHealth
		} else {
			i.kube.try(ctx)
		}
		if !i.leaving() {
			i.server.Expire(ctx)
		}
	})
	return nil
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

// Sync reads all leases from the store. Until it has, only known holders are renewed (dhcp-rules.md#lease-2).
func (s *Server) Sync(ctx context.Context) error {
	if _, err := s.list(ctx); err != nil {
		return err
	}
	s.synced.Store(true)
	s.tellUnserved()
	return nil
}

// list takes in all that the store has, record by record, and what it has no more, and returns the version of the list.
func (s *Server) list(ctx context.Context) (version uint64, err error) {
	listed := map[netip.Addr]bool{}
	version, err = s.Store.List(ctx, func(r lease.Record) {
		listed[r.IP] = true
		s.learn(r)
	})
	if err == nil {
		s.Table.Listed(listed, version)
	}
	return version, err
}

// learn takes in a record that the store tells of. Those of the first list come too fast for a copy, which fill brings there.
func (s *Server) learn(r lease.Record) {
	if r.State == lease.Bound {
		s.discovers.forgets(r.Client)
	}
	if s.Table.Learn(r) && s.synced.Load() {
		s.Stored(r)
	}
}
