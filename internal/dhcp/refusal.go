package dhcp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/leasekube"
)

// refusing is the cluster's store, which knows when the API server accepts no lease: it refuses them (a quota, a missing Role), and that is
// reported, since no new machine gets an address then; or it does not answer, which passes by itself. Known holders are renewed meanwhile.
type refusing struct {
	*leasekube.Store
	told func(error) // called with a refusal, and with nil when it is over

	mu       sync.Mutex
	away     bool      // until a trial succeeds: a renewal that is accepted says nothing about a new lease
	cut      bool      // away, and nothing else is written either
	refused  bool      // which was told
	accepted time.Time // when a lease was, last
}

// Away says that a new lease would not be accepted.
func (r *refusing) Away() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.away
}

// Cut says that no record would be written.
func (r *refusing) Cut() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cut
}

// Create implements lease.Store.
func (r *refusing) Create(ctx context.Context, record lease.Record) (lease.Record, error) {
	began := time.Now()
	stored, err := r.Store.Create(ctx, record)
	r.judge(began, err)
	return stored, err
}

// Update implements lease.Store. One that succeeds says nothing about a new lease.
func (r *refusing) Update(ctx context.Context, record lease.Record) (lease.Record, error) {
	began := time.Now()
	stored, err := r.Store.Update(ctx, record)
	failed := err != nil && !errors.Is(err, lease.ErrConflict)
	if failed {
		r.judge(began, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = failed && r.away
	return stored, err
}

// judge notes that a lease was not accepted. One that failed while others were accepted met an API server that is slow: it is not away.
func (r *refusing) judge(began time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil || errors.Is(err, lease.ErrExists) {
		r.accepted = time.Now()
		return
	}
	r.away = r.away || r.accepted.Before(began)
}

// try tests whether the API server accepts leases again, or refuses them: perhaps no client boots whose lease would show that.
func (r *refusing) try(ctx context.Context) {
	if !r.Away() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	err := r.Trial(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch status := apierrors.APIStatus(nil); {
	case apierrors.IsForbidden(err):
		r.cut, r.refused = false, true
		r.told(fmt.Errorf("the API server accepts no lease, so new machines get no address: %w", err)) // each time: the first Sync may have set the check to nil
	case err == nil:
		if r.refused {
			r.told(nil)
		}
		r.away, r.cut, r.refused = false, false, false
	case !errors.As(err, &status):
		r.cut = true // it did not answer
	}
}
