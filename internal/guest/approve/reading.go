package approve

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cldmnky/oooi/internal/csr"
)

const (
	// freshFor is how long decisions share a read of the DPUs: however many CSRs there are, they cause one read of the management API a
	// second.
	freshFor = time.Second
	// factsIn is how long the management API may take to return DPUs.
	factsIn = 10 * time.Second
)

// reading is a read of the DPUs that decisions share.
type reading struct {
	read func(context.Context) ([]csr.DPU, error)

	mu     sync.Mutex
	begun  time.Time
	told   int // the version of the cached DPUs when it began
	dpus   []csr.DPU
	failed error // why it failed; this round has no other try
}

// errUnread says that nothing can be decided without the DPUs.
var errUnread = errors.New("the DPUs cannot be read")

// now are the DPUs by a read that began at most freshFor ago, and after the cache last changed.
func (r *reading) now(ctx context.Context, told int) ([]csr.DPU, error) {
	asked := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil && (told != r.told || asked.Sub(r.begun) > freshFor) {
		r.begun, r.told = time.Now(), told
		if r.dpus, r.failed = r.read(ctx); r.failed != nil {
			r.begun = time.Time{}
		}
	}
	if r.failed != nil {
		return nil, errUnread
	}
	return r.dpus, nil
}
