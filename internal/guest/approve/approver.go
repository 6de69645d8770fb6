package approve

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/internal/csr"
	"github.com/cldmnky/oooi/internal/guest/bounded"
	"github.com/cldmnky/oooi/internal/guest/pace"
	"github.com/cldmnky/oooi/internal/guest/visits"
	"github.com/cldmnky/oooi/internal/plan/bridge"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// approver approves in one hosted cluster for one bridge.
type approver struct {
	visits.Session
	by    types.NamespacedName
	want  bridge.Approval
	dial  bounded.Dial
	facts FactSource
	told  func(Notice)

	mu      sync.Mutex
	state   State
	dpus    []csr.DPU
	version int // of dpus
	// These outlive a visit, in which alone they are used.
	warned   map[standing]time.Time
	served   map[string]*rate.Limiter // serving certificates, by host
	events   *rate.Limiter
	silent   int                  // approvals since the last that was told; guarded by mu, as is
	rejoined map[string]time.Time // when it was told last that a host bootstraps again
}

func (a *approver) sees(dpus []csr.DPU) State {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !reflect.DeepEqual(a.dpus, dpus) {
		a.dpus = dpus
		a.version++
		pace.Poke(a.Due)
	}
	return a.state
}

// cards are the DPUs as they were told of last, and which telling it was.
func (a *approver) cards() ([]csr.DPU, int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.dpus, a.version
}

// isDPU says whether there is a DPU of that name, as was told of last.
func (a *approver) isDPU(name string) bool {
	cards, _ := a.cards()
	return slices.ContainsFunc(cards, func(d csr.DPU) bool { return d.Name == name })
}

func (a *approver) trouble(reason, message string) {
	a.update(func(s *State) {
		s.Active, s.Problem = false, &input.GuestProblem{Reason: reason, Message: message}
	})
}

func (a *approver) fine() { a.update(func(s *State) { s.Active, s.Problem = true, nil }) }

// update passes on that the state turned; how many wait is told to who asks.
func (a *approver) update(change func(*State)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.state
	change(&a.state)
	if before.Active != a.state.Active || !reflect.DeepEqual(before.Problem, a.state.Problem) || !slices.Equal(before.Beyond, a.state.Beyond) {
		pace.Poke(a.News)
	}
}

const (
	// eventsAtOnce are told of approvals, two for each of 150 DPUs, and then one in eventEvery: each is an object in the management
	// cluster, made because a hosted cluster's Nodes ask.
	eventsAtOnce = 300
	eventEvery   = 10 * time.Second
)

func (a *approver) tell(all []Notice) {
	for _, n := range all {
		if n.Warning {
			warnings.WithLabelValues(n.Reason).Inc()
		}
		if a.hasEvent(&n) {
			a.told(n)
		}
	}
}

// hasEvent says whether an approval is told, or that a Node bootstraps again: that once in a while. One that is told says how many before it
// were not.
func (a *approver) hasEvent(n *Notice) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case n.Reason == NodeRebootstrapped:
		is := time.Since(a.rejoined[n.Host]) > warnAgain
		if is {
			a.rejoined[n.Host] = time.Now()
		}
		return is
	case n.Warning: // warn has looked
		return true
	case !a.events.Allow():
		a.silent++
		return false
	}
	if a.silent > 0 {
		n.Message += fmt.Sprintf(" (%d more approvals had no event since the last)", a.silent)
		a.silent = 0
	}
	return true
}
