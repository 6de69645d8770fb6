package bounded

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cldmnky/oooi/internal/guest/pace"
)

// shortest watch that an API server may end in peace: none ends them sooner than in minutes, and one that does so at once would
// have us ask for ever.
const shortest = time.Second

// CrowdedPause is the pause before the next visit to a hosted cluster that has more than is kept, because all of it would be read
// again.
const CrowdedPause = 30 * time.Second

// Follow lists a collection, then watches it, and hands over all of it, in the order of names, at first and after changes, not more often
// than pace.TellEvery. It ends with an error only.
func Follow[T any](ctx context.Context, a *API, c Collection[T], have func([]T)) error {
	for {
		err := c.follow(ctx, a, have)
		if c.Over == nil || !errors.Is(err, ErrTooMuch) || ctx.Err() != nil {
			return err
		}
		have([]T{*c.Over})
		pace.Pause(ctx, CrowdedPause) // it may have been made smaller
	}
}

func (c Collection[T]) follow(ctx context.Context, a *API, have func([]T)) error {
	s := c.cache(a)
	defer s.clear()
	news := make(chan struct{}, 1)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.Stream(ctx, a, s.put, func() { pace.Poke(news) }) })
	group.Go(func() error {
		pace.Tell(ctx, news, func() { have(s.inOrder()) })
		return nil
	})
	return group.Wait()
}

// Stream lists a collection, then watches it. If the API server closes a watch without an error, the next one continues there. It calls
// changed when the list is complete, and after each change.
func (c Collection[T]) Stream(ctx context.Context, a *API, take take, changed func()) error {
	version, err := c.List(ctx, a, take)
	if err == nil {
		changed()
	}
	for err == nil {
		begun := time.Now()
		version, err = c.watch(ctx, a, version, take, changed)
		if err == nil && time.Since(begun) < shortest {
			err = errHasty
		}
	}
	return fmt.Errorf("%s: %w", c.Path, err)
}

// ListAll lists a collection and hands over all of it, once.
func ListAll[T any](ctx context.Context, a *API, c Collection[T], have func([]T)) error {
	s := c.cache(a)
	defer s.clear()
	_, err := c.List(ctx, a, s.put)
	if c.Over != nil && errors.Is(err, ErrTooMuch) {
		have([]T{*c.Over})
		return nil
	}
	have(s.inOrder())
	return err
}
