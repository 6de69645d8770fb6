package appsingress

import (
	"reflect"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/internal/guest/bounded"
	"github.com/cldmnky/oooi/internal/guest/pace"
	"github.com/cldmnky/oooi/internal/guest/visits"
	"github.com/cldmnky/oooi/internal/plan/apps"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// agent watches one hosted cluster for one Infra.
type agent struct {
	visits.Session
	infra  types.NamespacedName
	want   apps.Access
	dial   bounded.Dial
	seldom time.Duration // the shortest time between two reads of its kubeconfig

	mu      sync.Mutex
	seen    input.Guest
	known   bool      // seen is valid: everything was read once, or there is a problem
	away    time.Time // since when it has a problem
	ours    []*corev1.Service
	wished  *wish
	ending  time.Time // since when End removes our Service
	making  bool      // a write that applies a Service is in progress
	made    types.UID // a Service that a write created and no watch has shown yet
	madeAt  time.Time
	settled bool // the current visit has read everything
}

// shownSoon is how late a watch may show a Service that we created. One that it does not show by then was deleted before.
const shownSoon = 10 * time.Second

// trouble records a problem; the rest of what was seen stays.
func (a *agent) trouble(reason, message string) {
	a.update(func() {
		if a.seen.Problem == nil {
			a.away = time.Now()
		}
		a.seen.Problem, a.known = &input.GuestProblem{Reason: reason, Message: message}, true
	})
}

// update changes what is seen, and announces a difference.
func (a *agent) update(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before, knew := a.seen, a.known
	change()
	if a.known && (!knew || !reflect.DeepEqual(before, a.seen)) {
		pace.Poke(a.News)
	}
}

func (a *agent) sees() *input.Guest {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.known {
		return nil
	}
	seen := a.seen
	return &seen
}

func (a *agent) wishes(w *wish) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.wished == nil || !a.wished.equals(w) {
		a.wished, a.ending = w, time.Time{}
		pace.Poke(a.Due)
	}
}

// holds has our Service neither applied nor removed.
func (a *agent) holds() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wished, a.ending = nil, time.Time{}
}

// ends has our Service removed. It says whether nothing of ours is left, and how long it has waited for that, or for the hosted cluster.
func (a *agent) ends() (clean bool, waited time.Duration) {
	a.wishes(&wish{})
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ending.IsZero() {
		a.ending = time.Now()
	}
	waited = time.Since(a.ending)
	if a.seen.Problem != nil {
		waited = max(waited, time.Since(a.away))
	}
	unseen := a.making || a.made != "" && time.Since(a.madeAt) < shownSoon
	return a.settled && len(a.ours) == 0 && !unseen, waited
}
