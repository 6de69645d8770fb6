// Package heap measures the memory of a benchmark's own process.
package heap

import (
	"runtime"

	"github.com/cldmnky/oooi/test/bench/internal/table"
)

// Live is the memory of live objects and stacks.
func Live() table.MiB {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return table.MiB(m.HeapAlloc+m.StackInuse) / (1 << 20)
}
