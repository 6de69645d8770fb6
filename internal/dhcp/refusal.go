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
	told func(error) // of refusals, and with nil of their end

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

// judge what came of making a lease. One that was taken is no end of it: only a trial is.
func (r *refusing) judge(err error) {
	if !apierrors.IsForbidden(err) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.now {
		r.now, r.at = true, time.Now()
		r.told(noLease(err))
	}
}

func noLease(why error) error {
	return fmt.Errorf("the API server accepts no lease, so new machines get no address: %w", why)
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
	err := r.Trial(ctx)
	if err != nil {
		if apierrors.IsForbidden(err) {
			r.told(noLease(err)) // a first reading that passed may have said otherwise
		}
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = false
	r.told(nil)
}
