//go:build e2e

package e2e

import (
	"os"
	"regexp"
	"strconv"
	"time"
)

// tellOfStalls says when the machine itself stood still: a scenario that took too long is not to be blamed for that. Either a clock ticks late, or all
// that has work waits for the disk.
func tellOfStalls(say func(string, ...any)) {
	const span, much = 10 * time.Second, 3 * time.Second
	last, waited := time.Now(), waitedForDisk()
	for range time.Tick(span) {
		now := time.Now() // a late tick has the time at which it was due
		late, disk := now.Sub(last)-span, waitedForDisk()
		if late > much || disk-waited > much {
			say("THE MACHINE STOOD STILL: in the last %.1f s a clock was %.1f s late, and all waited %.1f s for the disk", now.Sub(last).Seconds(), late.Seconds(), (disk - waited).Seconds())
		}
		last, waited = now, disk
	}
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
