package proxy

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/proxy/intent"
)

const (
	// unmatchedPause is the least time between two statuses with different unmatched names, in the long run, and unmatchedBurst how many may
	// follow each other: guests choose the names.
	unmatchedPause = 5 * time.Minute
	unmatchedBurst = 3
	// unmatchedStep is how exactly it is told when a name was asked for last.
	unmatchedStep = 10 * time.Minute
)

// asked is a server name, and where it was asked for.
type asked struct {
	name string
	port uint16
}

// unmatched are the last server names that clients asked for and no backend has.
type unmatched struct {
	mu    sync.Mutex
	last  map[asked]time.Time
	limit *rate.Limiter
	wrote []v1alpha1.UnmatchedName // by the last status
}

func newUnmatched() *unmatched {
	return &unmatched{last: map[asked]time.Time{}, limit: rate.NewLimiter(rate.Every(unmatchedPause), unmatchedBurst)}
}

// saw notes a name; of more than may be told, the one that was asked for longest ago is forgotten.
func (u *unmatched) saw(name string, port uint16, at time.Time) {
	if name == "" || port == 0 {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.last[asked{name, port}] = at; len(u.last) <= v1alpha1.MostUnmatched {
		return
	}
	var oldest asked
	for a, at := range u.last {
		if oldest.port == 0 || at.Before(u.last[oldest]) {
			oldest = a
		}
	}
	delete(u.last, oldest)
}

// told is what the status should say now. A name that has a backend by now is forgotten.
func (u *unmatched) told(served intent.Intent, now time.Time) []v1alpha1.UnmatchedName {
	u.mu.Lock()
	defer u.mu.Unlock()
	var all []v1alpha1.UnmatchedName
	for a, at := range u.last {
		if serves(served, a) {
			delete(u.last, a)
			continue
		}
		all = append(all, v1alpha1.UnmatchedName{Name: a.name, Port: v1alpha1.Port(a.port), LastTime: metav1.NewTime(at.UTC().Truncate(unmatchedStep))})
	}
	slices.SortFunc(all, func(a, b v1alpha1.UnmatchedName) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Port, b.Port))
	})
	if !slices.Equal(all, u.wrote) && u.limit.AllowN(now, 1) {
		u.wrote = all
	}
	return u.wrote
}

func serves(in intent.Intent, a asked) bool {
	return slices.ContainsFunc(in.Listeners, func(l intent.Listener) bool {
		return !l.OnPods && l.At.Port() == a.port && (l.CatchAll != "" || slices.ContainsFunc(l.Routes, func(r intent.Route) bool {
			return slices.ContainsFunc(r.ServerNames, func(name string) bool { return v1alpha1.DNSNameOrWildcard(name).StandsFor(a.name) })
		}))
	})
}
