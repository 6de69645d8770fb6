package leasecli

import (
	"context"
	"errors"
	"io/fs"
	"net/netip"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
)

// Trial opens a store that has the pool's leases and forgets what is written to it. A lease file may be missing.
func (p Pool) Trial(ctx context.Context) func() (lease.Store, func() error, error) {
	return func() (lease.Store, func() error, error) {
		t := trial{}
		err := p.Read(ctx, func(r lease.Record, _ []lease.Past) { t[r.IP] = r })
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return t, func() error { return nil }, err
	}
}

// trial is a store in memory, for one user at a time.
type trial map[netip.Addr]lease.Record

func (t trial) Create(_ context.Context, r lease.Record) (lease.Record, error) {
	if _, exists := t[r.IP]; exists {
		return lease.Record{}, lease.ErrExists
	}
	t[r.IP] = r
	return r, nil
}

func (t trial) Update(_ context.Context, r lease.Record) (lease.Record, error) {
	t[r.IP] = r
	return r, nil
}

func (t trial) Get(_ context.Context, ip netip.Addr) (lease.Record, error) {
	r, exists := t[ip]
	if !exists {
		return r, lease.ErrNotFound
	}
	return r, nil
}

func (t trial) List(_ context.Context, take func(lease.Record)) (uint64, error) {
	for _, r := range t {
		take(r)
	}
	return 0, nil
}
