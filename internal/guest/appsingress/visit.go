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

// visit is one connection to a hosted cluster, with all that is watched there. The first thing that fails ends all of it: the
// next begins with lists.
type visit struct {
	*agent
	api   *bounded.API
	group *errgroup.Group
	left  atomic.Int32 // of what is watched, how much was not read yet
}

// see watches a collection.
func see[T any](ctx context.Context, v *visit, c bounded.Collection[T], have func([]T)) {
	have = awaited(v, have)
	v.group.Go(func() error { return bounded.Follow(ctx, v.api, c, have) })
}

// awaited has a visit wait for the first reading of a collection, and takes the agent's lock for each.
func awaited[T any](v *visit, have func([]T)) func([]T) {
	v.left.Add(1)
	first := true
	return func(all []T) {
		v.update(func() {
			have(all)
			v.seen.Slowed = v.api.IsSlowed()
		})
		if first {
			first = false
			v.arrived()
		}
	}
}

// slowedAgain is how soon it is looked again whether the hosted cluster is slowed: one that has gone quiet brings no news.
const slowedAgain = 10 * time.Minute

func (v *visit) followSlowed(ctx context.Context) error {
	for ctx.Err() == nil {
		pace.Pause(ctx, slowedAgain)
		v.update(func() { v.seen.Slowed = v.api.IsSlowed() })
	}
	return ctx.Err()
}

// arrived counts what has been read. With the last, the hosted cluster is seen.
func (v *visit) arrived() {
	if v.left.Add(-1) > 0 {
		return
	}
	v.update(func() {
		v.seen.Problem, v.known = nil, true
		if !v.settled { // what a settled visit begins to look at later shows nothing of what it made
			v.settled, v.made = true, ""
		}
	})
	pace.Poke(v.Due)
}

// servedSoon is how often a kind is asked for whose definition is there: its version may be one that we do not know.
const servedSoon = 7

// seeLate watches a kind that a hosted cluster may lack, from the moment that its definition is there. Nothing is asked
// again in between but what a definition that is just made does not serve yet.
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

// isUnsettled says whether an API server may mean that a kind has just come, or is about to go: the cache of such a kind is not filled
// yet ("storage is (re)initializing"), or its watch begins before it. What was seen of it stays until it is asked again.
func isUnsettled(err error) bool {
	return apierrors.IsTooManyRequests(err) || apierrors.IsResourceExpired(err)
}
