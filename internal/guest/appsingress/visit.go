package appsingress

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/cldmnky/oooi/internal/guest/bounded"
	"github.com/cldmnky/oooi/internal/guest/pace"
)

// visit is one connection to a hosted cluster, with all watches on it. The first failure ends all of it; the next begins with lists.
type visit struct {
	*agent
	api   *bounded.API
	group *errgroup.Group
	left  atomic.Int32 // watches whose first list is not complete yet
}

// see watches a collection.
func see[T any](ctx context.Context, v *visit, c bounded.Collection[T], have func([]T)) {
	have = awaited(v, have)
	v.group.Go(func() error { return bounded.Follow(ctx, v.api, c, have) })
}

// awaited has a visit wait for the first read of a collection, and calls have with the agent's lock.
func awaited[T any](v *visit, have func([]T)) func([]T) {
	v.left.Add(1)
	first := true
	return func(all []T) {
		v.update(func() {
			have(all)
			v.seen.Slowed, v.seen.Cut = v.api.IsSlowed(), v.api.HasCut()
		})
		if first {
			first = false
			v.arrived()
		}
	}
}

// slowedAgain is how often IsSlowed and HasCut are evaluated without news: a hosted cluster that has become quiet sends none.
const slowedAgain = 10 * time.Minute

func (v *visit) followSlowed(ctx context.Context) error {
	for ctx.Err() == nil {
		pace.Pause(ctx, slowedAgain)
		v.update(func() { v.seen.Slowed, v.seen.Cut = v.api.IsSlowed(), v.api.HasCut() })
	}
	return ctx.Err()
}

// arrived counts complete lists. After the last, the hosted cluster is known.
func (v *visit) arrived() {
	if v.left.Add(-1) > 0 {
		return
	}
	v.update(func() {
		v.seen.Problem, v.known = nil, true
		if !v.settled { // a watch that a settled visit begins later says nothing about a Service that it created
			v.settled, v.made = true, ""
		}
	})
	pace.Poke(v.Due)
}

// servedSoon is how often we try to read a kind whose CRD exists: it may lack the version that we know.
const servedSoon = 7

// seeLate watches a kind that a hosted cluster may lack, as soon as its CRD exists. It polls only while a new CRD is not served yet.
func seeLate[T any](ctx context.Context, v *visit, crd string, c bounded.Collection[T], have func([]T)) {
	have = awaited(v, have)
	var there atomic.Bool
	news := make(chan struct{}, 1)
	v.group.Go(func() error {
		return bounded.Follow(ctx, v.api, definition(crd), func(found []struct{}) {
			there.Store(len(found) > 0)
			pace.Poke(news)
		})
	})
	v.group.Go(func() error {
		for tries := 0; ; tries++ {
			var again <-chan time.Time
			if there.Load() && tries < servedSoon {
				again = time.After(pace.Backoff(tries))
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-news:
				tries = 0
			case <-again:
			}
			if there.Load() {
				err := bounded.Follow(ctx, v.api, c, have)
				if tries < servedSoon && isUnsettled(err) {
					continue
				}
				if !apierrors.IsNotFound(err) {
					return err
				}
			}
			have(nil)
		}
	})
}

// isUnsettled says whether an error may mean that a kind was just created, or is being removed: its watch cache is not filled yet ("storage
// is (re)initializing"), or our watch begins before it. What was seen of the kind stays until the next try.
func isUnsettled(err error) bool {
	return apierrors.IsTooManyRequests(err) || apierrors.IsResourceExpired(err)
}
