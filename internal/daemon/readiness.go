package daemon

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
)

var errNotYetChecked = errors.New("not yet checked")

// Readiness collects what keeps a daemon from serving, by check.
type Readiness struct {
	mu       sync.Mutex
	problems map[string]error
	changed  chan struct{}
}

// NewReadiness begins with every named check failing: a daemon is not ready before each has passed.
func NewReadiness(checks ...string) *Readiness {
	r := &Readiness{problems: map[string]error{}, changed: make(chan struct{}, 1)}
	for _, check := range checks {
		r.problems[check] = errNotYetChecked
	}
	return r
}

// Set records a check's outcome; nil means that it passes.
func (r *Readiness) Set(check string, problem error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.problems[check]
	r.problems[check] = problem
	if fmt.Sprint(was) != fmt.Sprint(problem) {
		select {
		case r.changed <- struct{}{}:
		default: // a signal is already pending
		}
	}
}

// Changed signals, to one listener, that an outcome changed.
func (r *Readiness) Changed() <-chan struct{} { return r.changed }

// Problem says what keeps the daemon from serving, one line per check; nil if nothing does.
func (r *Readiness) Problem() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var problems []error
	for _, check := range slices.Sorted(maps.Keys(r.problems)) {
		if err := r.problems[check]; err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", check, err))
		}
	}
	return errors.Join(problems...)
}
