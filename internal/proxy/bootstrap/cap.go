package bootstrap

import "fmt"

const (
	// reservedDescriptors are Envoy's own: listeners of each worker, health checks, sockets, logs.
	reservedDescriptors = 256
	// descriptorsPerConnection: one to the client, one to the target.
	descriptorsPerConnection = 2
	// baseMemory is what Envoy needs for itself and its configuration, without connections.
	baseMemory = 64 << 20
	// memoryPerConnection is what a connection takes whose client reads nothing: Envoy's buffers and the kernel's, as translate bounds them
	// (docs/adr/0014-a-gate-counts-sources.md). An idle one takes a tenth of it.
	memoryPerConnection = 416 << 10
)

// Limits of the container that Envoy runs in.
type Limits struct {
	// Descriptors is the hard limit of open files; Envoy raises its soft limit to it.
	Descriptors uint64
	// MemoryBytes is the container's limit; 0 means none.
	MemoryBytes int64
}

// Connections says how many connections Envoy can have within its limits. At the descriptor limit it crashes (SIGSEGV, measured with
// 1.40.0), so it must refuse earlier.
func (l Limits) Connections() (int64, error) {
	const enough = 1 << 20 // a higher cap would protect nothing; it also keeps the arithmetic from overflowing
	n := (int64(min(l.Descriptors, enough)) - reservedDescriptors) / descriptorsPerConnection
	if l.MemoryBytes > 0 {
		n = min(n, (l.MemoryBytes-baseMemory)/memoryPerConnection)
	}
	if n < 1 {
		return 0, fmt.Errorf("no room for one connection: %d file descriptors and %d bytes of memory; Envoy needs more than %d and %d",
			l.Descriptors, l.MemoryBytes, reservedDescriptors, baseMemory)
	}
	return n, nil
}
