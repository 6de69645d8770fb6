// Package procfs reads what the kernel tells of a process (proc(5)).
package procfs

import (
	"fmt"
	"os"
	"strings"
)

// Fields of a process's memory.
const (
	Resident  = "VmRSS"
	Peak      = "VmHWM"   // the highest Resident so far
	Anonymous = "RssAnon" // what is not of files: the kernel can take back the rest
)

// Memory of a process, in bytes.
func Memory(pid int, field string) (bytes int64, err error) {
	path := fmt.Sprintf("/proc/%d/status", pid)
	status, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	_, kib, _ := strings.Cut(string(status), "\n"+field+":")
	if _, err := fmt.Sscan(kib, &bytes); err != nil {
		return 0, fmt.Errorf("%s: %s: %w", path, field, err)
	}
	return bytes << 10, nil
}
