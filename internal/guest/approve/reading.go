package approve

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cldmnky/oooi/internal/csr"
)

const (
	// freshFor is how long decisions share a reading of the DPUs: who has CSRs decided about all the time has the management API asked once
	// a second.
	freshFor = time.Second
	// factsIn is how long the management API may take to tell of DPUs.
	factsIn = 10 * time.Second
)

// reading of the DPUs that decisions share.
type reading struct {
	read func(context.Context) ([]csr.DPU, error)

	mu     sync.Mutex
	begun  time.Time
	told   int // which telling of DPUs was the last before it
	dpus   []csr.DPU
	failed error // no other is tried in this round
}

// errUnread: without DPUs nothing is decided.
var errUnread = errors.New("the DPUs cannot be read")

// now are the DPUs by a reading that began at most freshFor before they were asked for, and after they were told of last.
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
