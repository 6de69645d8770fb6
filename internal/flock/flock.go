// Package flock keeps two processes from one resource.
package flock

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Take locks a file that it makes where there is none; where another process holds the lock, the error says who. The lock
// lasts until the file is closed, and goes with the process, however that ends.
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
