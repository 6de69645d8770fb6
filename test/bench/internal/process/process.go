// Package process reads what a process uses (proc(5)).
package process

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/cldmnky/oooi/internal/testkit/procfs"
	"github.com/cldmnky/oooi/test/bench/internal/table"
)

// Processor time of a process, in user and kernel mode (/proc/PID/stat: fields 14 and 15, in hundredths of a second).
func Processor(pid int) (time.Duration, error) {
	path := fmt.Sprintf("/proc/%d/stat", pid)
	stat, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	var user, kernel int64
	after := stat[bytes.LastIndexByte(stat, ')')+1:] // field 2, the command's name, may contain anything
	if fields := strings.Fields(string(after)); len(fields) > 12 {
		_, err = fmt.Sscan(fields[11]+" "+fields[12], &user, &kernel)
	} else {
		err = fmt.Errorf("%s: %q", path, stat)
	}
	return time.Duration(user+kernel) * 10 * time.Millisecond, err
}

// Resident memory of a process.
func Resident(pid int) (table.MiB, error) { return memory(pid, procfs.Resident) }

// Anonymous memory of a process: what is not of files, which the kernel can take back.
func Anonymous(pid int) (table.MiB, error) { return memory(pid, procfs.Anonymous) }

// Peak is the highest resident memory of a process so far.
func Peak(pid int) (table.MiB, error) { return memory(pid, procfs.Peak) }

func memory(pid int, field string) (table.MiB, error) {
	bytes, err := procfs.Memory(pid, field)
	return table.MiB(bytes) / (1 << 20), err
}
