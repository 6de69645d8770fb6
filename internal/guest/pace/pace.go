// Package pace says how soon, and how often, something is done again.
package pace

import (
	"context"
	"math/rand/v2"
	"time"
)

// Pause lasts as long as it is told, or until the context ends.
func Pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// longestPause leaves room for a connection and its lists in the 30 s in which a cluster that is back is seen.
const longestPause = 8 * time.Second

// Backoff is twice as long each time, and never the same for two.
func Backoff(tries int) time.Duration {
	longest := min(longestPause, 250*time.Millisecond<<min(tries, 10))
	return longest/2 + rand.N(longest/2) //nolint:gosec // it only spreads
}

// TellEvery is how often at most a hosted cluster, which may change a thousand times a second, causes its owner to be planned.
const TellEvery = 250 * time.Millisecond

// Tell passes news on, not more often than TellEvery.
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

// Poke signals news without waiting: a signal that nobody has read yet is not repeated.
func Poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// IsRecent says whether something is still worth reporting.
func IsRecent(last time.Time) bool { return time.Since(last) < time.Hour }
