// Package heap measures what a benchmark's own process holds on to.
package heap

import (
	"runtime"

	"github.com/cldmnky/oooi/test/bench/internal/table"
)

// Live is what live objects and stacks take.
func Live() table.MiB {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return table.MiB(m.HeapAlloc+m.StackInuse) / (1 << 20)
}
