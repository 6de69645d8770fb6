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

// triedEvery is how often a store that refuses leases is tested: perhaps no client boots whose lease would show that it accepts them again.
const triedEvery = 5 * time.Second

// refusing is the cluster's store. It reports that the API server refuses leases (a quota, a missing Role): no new machine gets an address then.
// Other failures pass by themselves, and known holders are renewed meanwhile.
type refusing struct {
	*leasekube.Store
	told func(error) // called with a refusal, and with nil when it is over

	mu  sync.Mutex
	now bool
	at  time.Time // of the refusal, or of the last trial
}

// Create implements lease.Store.
func (r *refusing) Create(ctx context.Context, record lease.Record) (lease.Record, error) {
	stored, err := r.Store.Create(ctx, record)
	r.judge(err)
	return stored, err
}

// judge notes a refusal. A lease that is accepted does not end it: only a trial does.
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

// try tests, if it is time, whether the API server accepts leases again.
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
			r.told(noLease(err)) // again, because a first Sync that succeeded may have set the check to nil
		}
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = false
	r.told(nil)
}
