package leaselog

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// disk is what the log needs of a file system; tests make it fail.
type disk interface {
	Read(path string) ([]byte, error)
	// Replace puts a new file in place of path, whole and durable, and returns it for appending, and its size. After an error that is not
	// errUntouched, it is unknown which of the two files is there.
	Replace(path string, content iter.Seq2[[]byte, error]) (file, int, error)
	// Free gives up the dead parts of path. Before, it makes the live ones durable as they were read: they may be in the page cache alone.
	Free(path string, content []byte, live, dead []span) error
	// Volume is the size of path's volume, in octets.
	Volume(path string) (int, error)
}

var errUntouched = errors.New("the file stands as it was")

type file interface {
	Write([]byte) (int, error)
	Sync() error
	Close() error
}

type osDisk struct{}

func (osDisk) Read(path string) ([]byte, error) { return os.ReadFile(path) }

func (osDisk) Volume(path string) (int, error) {
	var volume unix.Statfs_t
	err := unix.Statfs(filepath.Dir(path), &volume)
	return int(volume.Blocks) * int(volume.Bsize), err
}

func (osDisk) Free(path string, content []byte, live, dead []span) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for _, s := range live {
		if _, err := f.WriteAt(content[s.from:s.to], int64(s.from)); err != nil {
			return err
		}
	}
	if err := f.Sync(); err != nil {
		return err
	}
	for _, s := range dead {
		if err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, int64(s.from), int64(s.to-s.from)); err != nil {
			return err
		}
	}
	return f.Sync()
}

func (osDisk) Replace(path string, content iter.Seq2[[]byte, error]) (file, int, error) {
	aside := path + ".new"
	f, err := os.OpenFile(aside, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %w", errUntouched, err)
	}
	size, err := writeAll(f, content)
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %w", errUntouched, errors.Join(err, f.Close(), os.Remove(aside))) // a partial file takes up room
	}
	if err = os.Rename(aside, path); err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, size, nil
}

func writeAll(to io.Writer, content iter.Seq2[[]byte, error]) (size int, err error) {
	buffered := bufio.NewWriter(to)
	for piece, err := range content {
		if err == nil {
			_, err = buffered.Write(piece)
		}
		if err != nil {
			return 0, err
		}
		size += len(piece)
	}
	return size, buffered.Flush()
}

// syncDir makes a rename durable.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("opening the directory of the lease file: %w", err)
	}
	return errors.Join(dir.Sync(), dir.Close())
}
