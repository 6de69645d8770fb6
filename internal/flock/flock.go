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
		return nil, fmt.Errorf("making a lock file: %w; give a path in a directory that exists and that this user can write", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		err = fmt.Errorf("%s is locked: %s (%w); stop it first, or give another path; `fuser %s`, run as root, names its process", path, who, err, path)
	case err != nil:
		err = fmt.Errorf("locking %s: %w; give a path on a file system that has locks (flock)", path, err)
	default:
		return f, nil
	}
	return nil, errors.Join(err, f.Close())
}
