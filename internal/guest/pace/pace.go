// Package pace limits how soon, and how often, something is repeated.
package pace

import (
	"context"
	"math/rand/v2"
	"time"
)

// Pause lasts for a duration, or until the context ends.
func Pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// longestPause leaves time for a connection and its lists within the 30 s after which a cluster that is back must be seen.
const longestPause = 8 * time.Second

// Backoff grows to longestPause.
func Backoff(tries int) time.Duration { return Growing(tries, 250*time.Millisecond, longestPause) }

// Growing doubles with each try, from first to longest, with jitter.
func Growing(tries int, first, longest time.Duration) time.Duration {
	most := min(longest, first<<min(tries, 10))
	return most/2 + rand.N(most/2) //nolint:gosec // it only spreads
}

// TellEvery is how often at most a hosted cluster, which may change a thousand times a second, has its owner reconciled.
const TellEvery = 250 * time.Millisecond

// Tell calls changed for news, not more often than TellEvery.
func Tell(ctx context.Context, news <-chan struct{}, changed func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-news:
			changed()
			Pause(ctx, TellEvery)
		}
	}
}

// Poke signals news without blocking; one signal that is not read yet suffices.
func Poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// IsRecent says whether something is still worth reporting.
func IsRecent(last time.Time) bool { return time.Since(last) < time.Hour }
