package dhcp

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/cldmnky/oooi/internal/dhcp/clock"
	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/leasekube"
	"github.com/cldmnky/oooi/internal/dhcp/leaselog"
	"github.com/cldmnky/oooi/internal/dhcp/pool"
)

// open opens the store: the cluster's leases with a copy on disk, or the lease file alone.
func (i *instance) open(ctx context.Context) error {
	path := i.LeaseFile
	if i.client != nil && i.StateDir != "" {
		path = filepath.Join(i.StateDir, "leases.db")
	}
	if path != "" {
		var err error
		if i.disk, err = leaselog.Open(path, i.Log, i.diskHealth); err != nil {
			return err
		}
	}
	table := pool.NewTable(i.machines)
	if i.client == nil {
		i.server = newServer(table, i.disk, i.Clock, i.Log)
		return i.startAlone(ctx)
	}
	i.kube = &refusing{
		Store: &leasekube.Store{Client: i.client, Namespace: i.Namespace, Server: i.Name, Labels: i.labels, Log: i.Log},
		told:  func(problem error) { i.ready.Set(checkLeases, problem) },
	}
	i.server = newServer(table, i.kube, i.Clock, i.Log)
	i.server.Away, i.server.Cut = i.kube.Away, i.kube.Cut
	if i.disk == nil {
		return nil
	}
	copied := newCopied(i.kube, i.disk, table, i.Log)
	i.server.Store, i.server.Stored, i.fillCopy = copied, copied.keep, copied.fill
	return i.startFromCopy(ctx)
}

// startAlone restores the clock from the lease file, and notes there when the server first served.
func (i *instance) startAlone(ctx context.Context) error {
	saved, err := i.disk.Clock(ctx)
	if err != nil {
		return err
	}
	if jump := i.Clock.Alone(saved, time.Now()); jump != 0 {
		i.Log.Warn("the wall clock is far from the time that was seen last: for one lease time no expired address is given to another client; check the clock of this machine",
			"jump", jump, "seen", saved.Latest)
	}
	if !saved.Born.IsZero() {
		return nil
	}
	now, _ := i.Clock.Save()
	now.Born = now.Latest
	if err := i.disk.SetClock(ctx, now); err != nil { // no reason not to start: the disk reports its failure and is tried again
		i.Log.Warn("the clock is not kept", "error", err)
	}
	return nil
}

// startFromCopy learns from the copy, before the API server answers, which holders may be renewed (dhcp-rules.md#lease-2).
func (i *instance) startFromCopy(ctx context.Context) error {
	saved, err := i.disk.Clock(ctx)
	if err != nil {
		return err
	}
	i.Clock.Restore(saved)
	_, err = i.disk.List(ctx, func(r lease.Record) { i.server.Table.Learn(r) })
	return err
}

func (i *instance) close() {
	if err := i.disk.Close(); err != nil {
		i.Log.Warn("closing the lease file", "error", err)
	}
}

func (i *instance) diskHealth(problem error) {
	if i.client == nil { // a copy that fails costs nothing while the API server answers
		i.ready.Set(checkLeases, problem)
	}
}

// keepClock saves the clock: as soon as the time is known, then every minute.
func (i *instance) keepClock(ctx context.Context) error {
	if i.disk == nil {
		return nil
	}
	for pause := time.Second; ; {
		if now, ok := i.Clock.Save(); ok {
			pause = time.Minute
			i.saveClock(ctx, now)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

func (i *instance) saveClock(ctx context.Context, now clock.Saved) {
	saved, err := i.disk.Clock(ctx)
	now.Born = saved.Born
	if err = errors.Join(err, i.disk.SetClock(ctx, now)); err != nil && ctx.Err() == nil {
		i.Log.Warn("the clock is not kept", "error", err)
	}
}
