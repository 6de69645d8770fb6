// Package heap measures what a benchmark's own process holds on to.
package heap

import "runtime"

// Live is the bytes of live objects and stacks.
func Live() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}
