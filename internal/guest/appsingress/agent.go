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

// agent looks into one hosted cluster for one Infra.
type agent struct {
	visits.Session
	infra  types.NamespacedName
	want   apps.Access
	dial   bounded.Dial
	seldom time.Duration // between two looks at its kubeconfig

	mu      sync.Mutex
	seen    input.Guest
	known   bool      // seen tells something: all was read once, or there is a problem
	away    time.Time // since when there is a problem
	ours    []*corev1.Service
	wished  *wish
	ending  time.Time // since when our Service is to go for good
	making  bool      // a write that makes a Service is under way
	made    types.UID // what a write made and no watch has shown yet
	madeAt  time.Time
	settled bool // the visit that runs has read everything
}

// shownSoon is how late a watch may show what was written. What it has not shown then was gone before.
const shownSoon = 10 * time.Second

// trouble is told; what was seen stays.
func (a *agent) trouble(reason, message string) {
	a.update(func() {
		if a.seen.Problem == nil {
			a.away = time.Now()
		}
		a.seen.Problem, a.known = &input.GuestProblem{Reason: reason, Message: message}, true
	})
}

// update changes what is seen and passes the news on.
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

// holds wishes neither for a Service nor for none.
func (a *agent) holds() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wished, a.ending = nil, time.Time{}
}

// ends wishes for nothing, and says whether nothing of ours is left, and else for how long that has been so, or nobody could look.
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
