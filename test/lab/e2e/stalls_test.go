//go:build e2e

package e2e

import (
	"os"
	"regexp"
	"strconv"
	"sync"
	"time"
)

// stalls are the times in which the machine itself stood still: what takes too long in one is not to be blamed for that.
var stalls struct {
	sync.Mutex
	all  []stall
	next chan struct{} // is closed when the clock ticks
}

type stall struct {
	end    time.Time
	lasted time.Duration
}

// tellOfStalls notes when the machine stood still, and says so if it was for long. Either a clock ticks late, or all that has work waits for the disk.
func tellOfStalls(say func(string, ...any)) {
	const span, some, much = time.Second, time.Second / 2, 3 * time.Second
	last, waited := time.Now(), waitedForDisk()
	for range time.Tick(span) {
		now := time.Now() // a late tick has the time at which it was due
		late, disk := now.Sub(last)-span, waitedForDisk()
		if late > much || disk-waited > much {
			say("THE MACHINE STOOD STILL: in the last %.1f s a clock was %.1f s late, and all waited %.1f s for the disk", now.Sub(last).Seconds(), late.Seconds(), (disk - waited).Seconds())
		}
		stalls.Lock()
		if lasted := max(late, disk-waited); lasted > some {
			stalls.all = append(stalls.all, stall{now, lasted})
		}
		if stalls.next != nil {
			close(stalls.next)
			stalls.next = nil
		}
		stalls.Unlock()
		last, waited = now, disk
	}
}

// stood is how long the machine has stood still since then. It awaits the clock, which notes what has just ended.
func stood(since time.Time) (all time.Duration) {
	stalls.Lock()
	if stalls.next == nil {
		stalls.next = make(chan struct{})
	}
	next := stalls.next
	stalls.Unlock()
	<-next
	stalls.Lock()
	defer stalls.Unlock()
	for _, s := range stalls.all {
		if s.end.After(since) {
			all += min(s.lasted, s.end.Sub(since))
		}
	}
	return all
}

var allWaited = regexp.MustCompile(`full .* total=(\d+)`)

// waitedForDisk is for how long nothing could run because all waited for the disk (Linux, accounting/psi.rst); 0 where the kernel does not count.
func waitedForDisk() time.Duration {
	text, _ := os.ReadFile("/proc/pressure/io")
	found := allWaited.FindSubmatch(text)
	if found == nil {
		return 0
	}
	microseconds, _ := strconv.ParseInt(string(found[1]), 10, 64) // the kernel writes a number
	return time.Duration(microseconds) * time.Microsecond
}
