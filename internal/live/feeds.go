package live

import (
	"context"
	"net/http"
	"sync"
	"time"
)

const (
	// pause is how long nothing is read between two readings, and idle how long a feed goes on with no viewer: a page that was just sent
	// asks for its changes.
	pause = 500 * time.Millisecond
	idle  = 5 * time.Second
	// pausesTake is how many times as long as a reading the pause after it is, at least: where readings take long, they are fewer.
	pausesTake = 2
)

func dueAfter(took time.Duration) time.Duration { return max(pause, pausesTake*took) }

// feeds are what is being read, by key.
type feeds struct {
	ctx     context.Context
	reading chan struct{}

	mu  sync.Mutex
	all map[string]*feed
}

func newFeeds(ctx context.Context) *feeds {
	return &feeds{ctx: ctx, reading: make(chan struct{}, mostReadings), all: map[string]*feed{}}
}

// feed is one page, read again and again while somebody looks.
type feed struct {
	key  string
	read Reader
	end  context.CancelFunc

	mu      sync.Mutex
	viewers int
	left    time.Time // when the last viewer went
	number  int       // of readings
	now     state
	changed chan struct{} // closed at the next reading
}

// state is what a reading had, or why it had nothing.
type state struct {
	show Shown
	err  error
}

// enter begins to look at a feed. Who entered has to leave.
func (f *feeds) enter(key string, read Reader) (*feed, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.all[key]
	if one == nil {
		if len(f.all) >= mostFeeds {
			return nil, Refusal{http.StatusServiceUnavailable, "too many pages are open at a time; close one, or try again in a few seconds"}
		}
		ctx, cancel := context.WithCancel(f.ctx)
		one = &feed{key: key, read: read, end: cancel, changed: make(chan struct{})}
		f.all[key] = one
		go f.run(ctx, one)
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	one.viewers++
	return one, nil
}

func (f *feeds) leave(one *feed) {
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.viewers--; one.viewers == 0 {
		one.left = time.Now()
	}
}

// run reads until nobody looks.
func (f *feeds) run(ctx context.Context, one *feed) {
	defer one.end()
	for !f.ended(one) {
		select {
		case f.reading <- struct{}{}:
		case <-ctx.Done():
			return
		}
		began := time.Now()
		show, err := one.read(ctx)
		<-f.reading
		one.set(state{show, err})
		select {
		case <-time.After(dueAfter(time.Since(began))):
		case <-ctx.Done():
			return
		}
	}
}

// ended takes a feed away that nobody looks at.
func (f *feeds) ended(one *feed) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.viewers > 0 || one.left.IsZero() || time.Since(one.left) < idle {
		return false
	}
	delete(f.all, one.key)
	return true
}

func (f *feed) set(now state) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = now
	f.number++
	close(f.changed)
	f.changed = make(chan struct{})
}

// latest awaits a reading after the one of this number.
func (f *feed) latest(ctx context.Context, after int) (state, int, error) {
	for {
		f.mu.Lock()
		now, number, changed := f.now, f.number, f.changed
		f.mu.Unlock()
		if number > after {
			return now, number, now.err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return state{}, after, ctx.Err()
		}
	}
}
