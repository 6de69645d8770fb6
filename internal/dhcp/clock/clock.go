// Package clock tells the server's time: CLOCK_BOOTTIME plus an offset, never the local wall clock, which may jump (dhcp-rules.md#lease-9). In a
// cluster the offset comes from the API server's Date; without one it comes from the wall clock as the boot found it, and the time is never
// before one that was seen already.
package clock

import (
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Saved lets a later run tell the time before it can ask the API server. The offset is valid only within the boot in which it was taken.
type Saved struct {
	BootID string        `json:"bootID"`
	Offset time.Duration `json:"offset"` // server time = Unix epoch + CLOCK_BOOTTIME + Offset
	Latest time.Time     `json:"latest"` // the high-water mark
	Born   time.Time     `json:"born"`   // when the first lease file of this server was made
	// JumpedAt is CLOCK_BOOTTIME at the last jump of this boot; 0 if there was none.
	JumpedAt time.Duration `json:"jumpedAt,omitempty"`
}

// Clock is the server's time. A new one does not know it yet.
type Clock struct {
	mu     sync.Mutex
	boot   func() time.Duration
	bootID string

	known    bool
	offset   time.Duration
	anchor   time.Duration // the offset that later ones are compared with
	anchored time.Duration // CLOCK_BOOTTIME when it was taken
	jumped   bool
	jumpedAt time.Duration // CLOCK_BOOTTIME of the last jump
	// A move of the offset by more than tolerance is a jump; it is forgotten after calm.
	tolerance, calm time.Duration
}

// New is the clock of this machine.
func New() *Clock { return From(bootTime, bootID()) }

// From is a clock that takes the time since boot from a function, for tests.
func From(boot func() time.Duration, bootID string) *Clock {
	return &Clock{boot: boot, bootID: bootID, tolerance: leastTolerance}
}

// leastTolerance is half of the shortest grace (dhcp-rules.md#lease-9). It counts until the lease time is known: the API server answers before
// that, and two of its Dates may lie on either side of a full second.
const leastTolerance = 5 * time.Minute

func bootTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic("oooi needs CLOCK_BOOTTIME (Linux 2.6.39): " + err.Error())
	}
	return time.Duration(t.Nano())
}

func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "" // equals no saved one: Restore then refuses
	}
	return strings.TrimSpace(string(id))
}

// Tolerate sets what counts as a jump and for how long it is remembered.
func (c *Clock) Tolerate(tolerance, calm time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tolerance, c.calm = tolerance, calm
}

// Now is the server's time; zero where it is not known. It is steady when the offset has not jumped lately.
func (c *Clock) Now() (now time.Time, steady bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known {
		return time.Time{}, false
	}
	boot := c.boot()
	return time.Unix(0, 0).Add(boot + c.offset).UTC(), !c.jumped || boot-c.jumpedAt >= c.calm
}

// NowOr is the server's time; where it is not known, another.
func (c *Clock) NowOr(other time.Time) time.Time {
	if now, _ := c.Now(); !now.IsZero() {
		return now
	}
	return other
}

// Observe learns from a Date that was written between two readings of CLOCK_BOOTTIME. A Date has whole seconds, so the offset moves only as far
// as it must.
func (c *Clock) Observe(date time.Time, before, after time.Duration) {
	since := time.Duration(date.UnixNano())
	least, most := since-after, since+time.Second-before
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known {
		c.take(least)
		return
	}
	c.offset = min(max(c.offset, least), most)
	switch boot := c.boot(); {
	case (c.offset - c.anchor).Abs() > c.tolerance:
		c.take(c.offset)
		c.jumped, c.jumpedAt = true, boot
	case boot-c.anchored >= c.calm:
		// Drift over months would look like a jump. A lease time overlaps at most two of these spans. If neither moves by more than half a
		// grace, the clock moves by at most a grace in a lease time.
		c.take(c.offset)
	}
}

// take sets the offset, and compares later ones with it.
func (c *Clock) take(offset time.Duration) {
	c.known, c.offset, c.anchor, c.anchored = true, offset, offset, c.boot()
}

// Restore takes the offset of an earlier run in the same boot; one of another boot means nothing.
func (c *Clock) Restore(s Saved) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.BootID != "" && s.BootID == c.bootID {
		c.take(s.Offset)
		c.jumped, c.jumpedAt = s.JumpedAt != 0, s.JumpedAt
	}
}

// Alone is for a server without a cluster: it takes the saved offset of the same boot, else the wall clock, but no time before the latest that
// was seen. Between two boots the wall clock may be set to anything: if it differs from that latest time by more than a restart takes, that is a
// jump, whose size Alone returns.
func (c *Clock) Alone(s Saved, wall time.Time) (jump time.Duration) {
	if c.Restore(s); c.known {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	jump = wall.Sub(s.Latest)
	if wall.Before(s.Latest) {
		wall = s.Latest
	}
	c.take(time.Duration(wall.UnixNano()) - c.boot())
	if s.Latest.IsZero() || jump.Abs() <= c.tolerance {
		return 0
	}
	c.jumped, c.jumpedAt = true, c.boot()
	return jump
}

// Save is what a later run needs; ok is false while the time is not known.
func (c *Clock) Save() (s Saved, ok bool) {
	now, _ := c.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	s = Saved{BootID: c.bootID, Offset: c.offset, Latest: now}
	if c.jumped {
		s.JumpedAt = c.jumpedAt
	}
	return s, c.known
}

// Listen wraps a transport, and learns from the Date of every response.
func (c *Clock) Listen(next http.RoundTripper) http.RoundTripper { return listener{c, next} }

type listener struct {
	clock *Clock
	next  http.RoundTripper
}

// WrappedRoundTripper is whom client-go cancels requests at.
func (l listener) WrappedRoundTripper() http.RoundTripper { return l.next }

// RoundTrip implements http.RoundTripper.
func (l listener) RoundTrip(r *http.Request) (*http.Response, error) {
	before := l.clock.boot()
	answer, err := l.next.RoundTrip(r)
	if err == nil {
		if date, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
			l.clock.Observe(date, before, l.clock.boot())
		}
	}
	return answer, err
}
