package leaselog

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/cldmnky/oooi/internal/dhcp/clock"
	"github.com/cldmnky/oooi/internal/dhcp/lease"
)

var _ lease.Store = (*Log)(nil)

// Create implements lease.Store.
func (l *Log) Create(ctx context.Context, r lease.Record) (lease.Record, error) {
	return l.put(ctx, r, func(l *Log) error {
		if _, exists := l.records[r.IP]; exists {
			return lease.ErrExists
		}
		return nil
	})
}

// Update implements lease.Store.
func (l *Log) Update(ctx context.Context, r lease.Record) (lease.Record, error) {
	return l.put(ctx, r, func(l *Log) error {
		if now, exists := l.records[r.IP]; !exists || now.Version != r.Version {
			return lease.ErrConflict
		}
		return nil
	})
}

func (l *Log) put(ctx context.Context, r lease.Record, check func(*Log) error) (lease.Record, error) {
	stored := r
	e := &entry{Record: &stored}
	err := l.ask(ctx, &request{entry: e, check: func(l *Log) error {
		if err := check(l); err != nil {
			return err
		}
		stored.Version, e.Past = l.last+1, lease.Succession(l.past[r.IP], l.records[r.IP], stored)
		return nil
	}})
	if err != nil {
		return lease.Record{}, fmt.Errorf("storing the lease of %s: %w", r.IP, err)
	}
	return stored, nil
}

// Get implements lease.Store.
func (l *Log) Get(ctx context.Context, ip netip.Addr) (lease.Record, error) {
	r, err := seen(ctx, l, func() *lease.Record {
		if r, found := l.records[ip]; found {
			return &r
		}
		return nil
	})
	switch {
	case err != nil:
		return lease.Record{}, err
	case r == nil:
		return lease.Record{}, lease.ErrNotFound
	}
	return *r, nil
}

// List implements lease.Store. take must not call the log. If the context ends, it may still be called.
func (l *Log) List(ctx context.Context, take func(lease.Record)) (uint64, error) {
	return seen(ctx, l, func() uint64 {
		for _, r := range l.records {
			take(r)
		}
		return l.last
	})
}

// seen reads what is durable. A caller that stops waiting gets nothing: the look may still be under way.
func seen[T any](ctx context.Context, l *Log, look func() T) (T, error) {
	var found T
	if err := l.ask(ctx, &request{look: func(*Log) { found = look() }}); err != nil {
		var nothing T
		return nothing, err
	}
	return found, nil
}

// Submit copies a record of another store, with that store's version, and does not wait until it is durable. False: too many wait.
func (l *Log) Submit(r lease.Record) bool {
	select {
	case l.requests <- &request{entry: &entry{Record: &r}, check: always, done: make(chan struct{})}:
		return true
	default:
		return false
	}
}

// Forget drops the copy of an address.
func (l *Log) Forget(ctx context.Context, ip netip.Addr) error {
	return l.ask(ctx, &request{entry: &entry{Gone: ip.String()}, check: always})
}

// SetClock makes the clock durable.
func (l *Log) SetClock(ctx context.Context, c clock.Saved) error {
	return l.ask(ctx, &request{entry: &entry{Clock: &c}, check: always})
}

// Clock is the clock that was set last.
func (l *Log) Clock(ctx context.Context) (clock.Saved, error) {
	return seen(ctx, l, func() clock.Saved { return l.clock })
}

// Heal tries to write again after a failure; without one it does nothing.
func (l *Log) Heal(ctx context.Context) error {
	return l.ask(ctx, &request{entry: nil, look: func(*Log) {}})
}

func always(*Log) error { return nil }
