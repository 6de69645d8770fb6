package dhcp

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/leaselog"
)

// copied is a store with a copy of its leases on the pod's emptyDir: a container that restarts while the API server is away
// renews from it.
type copied struct {
	lease.Store
	copy *leaselog.Log
	log  *slog.Logger
}

// Create implements lease.Store.
func (c copied) Create(ctx context.Context, r lease.Record) (lease.Record, error) {
	stored, err := c.Store.Create(ctx, r)
	if err == nil {
		c.keep(ctx, stored)
	}
	return stored, err
}

// Update implements lease.Store. If a binding ends, the copy forgets it durably before the store is written: a server that reads
// Released with our address in dropped[] may give the address away (dhcp-rules.md#lease-2).
func (c copied) Update(ctx context.Context, r lease.Record) (lease.Record, error) {
	if r.State != lease.Bound {
		if err := c.copy.Forget(ctx, r.IP); err != nil {
			return lease.Record{}, fmt.Errorf("forgetting the copy of a lease before it is released: %w", err)
		}
	}
	stored, err := c.Store.Update(ctx, r)
	if err == nil {
		c.keep(ctx, stored)
	}
	return stored, err
}

// keep copies what may be renewed. A copy that fails costs a renewal after a restart, never a promise.
func (c copied) keep(ctx context.Context, r lease.Record) {
	if r.State != lease.Bound {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := c.copy.Keep(ctx, r); err != nil {
		c.log.Warn("the local copy of a lease is not kept", "ip", r.IP, "error", err)
	}
}
