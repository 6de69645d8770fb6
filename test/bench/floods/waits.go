package main

import (
	"context"
	"sync"
	"time"

	"github.com/cldmnky/oooi/test/bench/internal/table"
)

// waits are how long one kind of use took, again and again; of one that failed, until it did.
type waits struct {
	what   string
	within time.Duration // of 99 in a hundred

	mu     sync.Mutex
	all    []time.Duration
	failed int
	last   error
}

func (w *waits) add(took time.Duration, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, took.Round(10*time.Microsecond))
	if err != nil {
		w.failed++
		w.last = err
	}
}

func (w *waits) p(percent int) time.Duration { return table.Percentile(w.all, percent) }

func (w *waits) why() string { return orNothing(w.last) }

// way of using a service, on another guest's host.
type way struct {
	what   string
	within time.Duration
	use    func() error
}

// inTurn uses a service in several ways in turn, each use begun in time however long others take.
func (p *pod) inTurn(ctx context.Context, length, every time.Duration, ways ...way) (all []*waits, err error) {
	for _, w := range ways {
		all = append(all, &waits{what: w.what, within: w.within})
	}
	var using sync.WaitGroup
	defer using.Wait()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for n, end := 0, time.Now().Add(length); time.Now().Before(end); n++ {
		i := n % len(ways)
		using.Go(func() {
			_ = p.Enter(other, func() error {
				begun := time.Now()
				err := ways[i].use()
				all[i].add(time.Since(begun), err)
				return nil
			})
		})
		select {
		case <-ctx.Done():
			return all, context.Cause(ctx)
		case <-tick.C:
		}
	}
	return all, nil
}
