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
	// Only a visit uses these, but they outlive it.
	warned   map[standing]time.Time
	served   map[string]*rate.Limiter // serving certificates, by host
	events   *rate.Limiter
	silent   int                  // approvals without an Event since the last with one; mu guards this and the next
	rejoined map[string]time.Time // when the last Event said that a host bootstraps again
	recent   []Request            // approved, the newest first; mu guards it
	tells    *rate.Limiter        // how often Requests change
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

// cards are the DPUs that See got last, and their version.
func (a *approver) cards() ([]csr.DPU, int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.dpus, a.version
}

// isDPU says whether a DPU has this name, by the DPUs that See got last.
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

// update changes the state and announces the change, but not a change of Pending: the next See returns that.
func (a *approver) update(change func(*State)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.state
	change(&a.state)
	if before.Active != a.state.Active || !reflect.DeepEqual(before.Problem, a.state.Problem) || !slices.Equal(before.Beyond, a.state.Beyond) || before.Privileged != a.state.Privileged || before.Listed != a.state.Listed || !slices.Equal(before.Requests, a.state.Requests) {
		pace.Poke(a.News)
	}
}

const (
	// eventsAtOnce approvals have an Event, two for each of 150 DPUs, and then one each eventEvery: requests from a hosted cluster create
	// these objects in the management cluster.
	eventsAtOnce = 300
	eventEvery   = 10 * time.Second
)

func (a *approver) tell(all []Notice) {
	for _, n := range all {
		if n.Warning {
			warnings.WithLabelValues(n.Reason).Inc()
		} else {
			a.remembers(n)
		}
		if a.hasEvent(&n) {
			a.told(n)
		}
	}
}

// hasEvent says whether a notice becomes an Event: an approval within the limit, which then says how many before it had none, and that a
// Node bootstraps again, once per warnAgain and host.
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
	case n.Warning: // warn has limited it
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

// remembers an approval.
func (a *approver) remembers(n Notice) {
	r := Request{Name: n.Name, Host: n.Host, Kind: n.Kind, Created: asStored(n.Created), Approved: asStored(time.Now())}
	if unspeakable(r) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.recent = slices.Insert(a.recent, 0, r)
	a.recent = a.recent[:min(len(a.recent), mostTold)]
}
