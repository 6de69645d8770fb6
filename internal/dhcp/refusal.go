package dhcp

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/leasekube"
)

// triedEvery is how often a store that refuses leases is asked whether it would take one: nobody may boot meanwhile.
const triedEvery = 5 * time.Second

// refusing is a store of the cluster's that knows whether the API server refuses leases (a quota, a Role that is gone): no new machine
// gets an address then. What fails otherwise passes by itself, and known holders are renewed meanwhile.
type refusing struct {
	*leasekube.Store
	told func(error) // of the first refusal, and with nil of its end

	mu  sync.Mutex
	now bool
	at  time.Time // of the last trial
}

// Create implements lease.Store.
func (r *refusing) Create(ctx context.Context, record lease.Record) (lease.Record, error) {
	stored, err := r.Store.Create(ctx, record)
	r.judge(err)
	return stored, err
}

// Update implements lease.Store.
func (r *refusing) Update(ctx context.Context, record lease.Record) (lease.Record, error) {
	stored, err := r.Store.Update(ctx, record)
	r.judge(err)
	return stored, err
}

// judge what came of a write. One that was taken proves nothing of those that were refused: a quota counts what is made.
func (r *refusing) judge(err error) {
	if !apierrors.IsForbidden(err) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.now {
		r.now, r.at = true, time.Now()
		r.told(fmt.Errorf("the API server takes no lease, so no new machine gets an address: %w", err))
	}
}

// try whether the API server takes leases again, if it is time.
func (r *refusing) try(ctx context.Context) {
	r.mu.Lock()
	due := r.now && time.Since(r.at) >= triedEvery
	if due {
		r.at = time.Now()
	}
	r.mu.Unlock()
	if !due {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	if r.Trial(ctx) != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = false
	r.told(nil)
}
