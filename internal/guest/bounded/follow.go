package bounded

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cldmnky/oooi/internal/guest/pace"
)

// shortest is the shortest watch that may end without an error: API servers end them after minutes, and one that ends them at once would
// have us send requests without pause.
const shortest = time.Second

// CrowdedPause is the pause before a hosted cluster with more than we keep is read again, because all of it is read again.
const CrowdedPause = 30 * time.Second

// Follow lists a collection, then watches it. It calls have with all of it, ordered by name, first after the list and then after changes,
// but not more often than pace.TellEvery. It returns only with an error.
func Follow[T any](ctx context.Context, a *API, c Collection[T], have func([]T)) error {
	for {
		err := c.follow(ctx, a, have)
		if c.Over == nil || !errors.Is(err, ErrTooMuch) || ctx.Err() != nil {
			return err
		}
		have([]T{*c.Over})
		pace.Pause(ctx, CrowdedPause) // somebody may make it smaller
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

// Stream lists a collection, then watches it. If the API server ends a watch without an error, the next one continues from there. It calls
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

// ListAll lists a collection, and calls have with all of it, once.
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
