// Package flock locks a resource for one process.
package flock

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Take locks a file, which it creates if there is none. If another process has the lock, the error contains who. The lock ends when the file is
// closed, or the process ends in any way.
func Take(path, who string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("making a lock: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %s: %w", path, who, err), f.Close())
	}
	return f, nil
}
