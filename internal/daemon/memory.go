package daemon

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// cgroupLimit has the memory limit of this container, in octets, or max (kernel, Documentation/admin-guide/cgroup-v2.rst, memory.max).
const cgroupLimit = "/sys/fs/cgroup/memory.max"

// LimitMemory has Go collect garbage before the container's limit is reached, whatever the Placement sets it to: by default the heap may grow to
// twice what is live first. A tenth is left for what Go does not count. Without a limit, or with GOMEMLIMIT set, nothing changes.
func LimitMemory() { limitMemory(cgroupLimit) }

func limitMemory(file string) {
	content, err := os.ReadFile(file)
	if err != nil || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	if octets, err := strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64); err == nil {
		debug.SetMemoryLimit(octets / 10 * 9)
	}
}
