package dhcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/pool"
)

// leaseCopy is a copy of the leases on the pod's emptyDir: a container that restarts while the API server is away renews from it. Submit and
// Forget take effect in the order of the calls.
type leaseCopy interface {
	Submit(lease.Record) bool
	Forget(context.Context, netip.Addr) error
	// Get waits for what was submitted before.
	Get(context.Context, netip.Addr) (lease.Record, error)
}

type copied struct {
	lease.Store
	copy  leaseCopy
	table *pool.Table
	log   *slog.Logger
	order *sync.Mutex // keeps Submit and Forget in order
}

func newCopied(store lease.Store, copy leaseCopy, table *pool.Table, log *slog.Logger) copied {
	return copied{store, copy, table, log, &sync.Mutex{}}
}

// Update implements lease.Store. If a binding ends, or its address goes to another client, the copy forgets it durably before the store is
// written: an instance that reads Released with our address in dropped[] may give the address away, and the ACK to the next client does not wait
// for the copy (dhcp-rules.md#lease-2).
func (c copied) Update(ctx context.Context, r lease.Record) (lease.Record, error) {
	c.order.Lock()
	stands := c.stands(r) // a record that keep found to stand is submitted by now
	c.order.Unlock()
	if !stands {
		if err := c.copy.Forget(ctx, r.IP); err != nil {
			return lease.Record{}, fmt.Errorf("forgetting the copy of a lease before it is released: %w", err)
		}
	}
	return c.Store.Update(ctx, r)
}

// stands says whether a record belongs in the copy.
func (c copied) stands(r lease.Record) bool { return r.State == lease.Bound && c.table.Stands(r) }

// keep copies a record that may be renewed, and waits for no disk. A copy that fails costs a renewal after a restart, never a promise. A binding
// that is about to end is not copied: the copy may have forgotten it already.
func (c copied) keep(r lease.Record) {
	c.order.Lock()
	defer c.order.Unlock()
	if c.stands(r) && !c.copy.Submit(r) {
		c.log.Warn("the local copy of a lease is not kept: the disk is too slow", "ip", r.IP)
	}
}

// fillAtOnce is less than a copy has waiting.
const fillAtOnce = 64

// fill copies what the copy lacks, some records at a time: that of a new pod is empty, and most leases are written once in a lease time.
func (c copied) fill(ctx context.Context) {
	for some := range slices.Chunk(c.table.Addresses(), fillAtOnce) {
		for _, r := range c.lacking(ctx, some) {
			c.keep(r)
		}
	}
}

func (c copied) lacking(ctx context.Context, of []netip.Addr) (records []lease.Record) {
	for _, ip := range of {
		r, known := c.table.Record(ip)
		has, err := c.copy.Get(ctx, ip)
		if known && (errors.Is(err, lease.ErrNotFound) || err == nil && has.Version != r.Version) {
			records = append(records, r)
		}
	}
	return records
}
