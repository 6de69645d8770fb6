package daemon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// WriteFile replaces a file so that a crash at any moment leaves the old or the new content: it writes and syncs a temporary file, renames
// it, and syncs the directory.
func WriteFile(path string, content []byte) error {
	aside, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	_, err = aside.Write(content)
	err = errors.Join(err, aside.Sync(), aside.Close())
	if err == nil {
		err = os.Rename(aside.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", path, err), os.Remove(aside.Name()))
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("syncing directory %s: %w", path, err)
	}
	return errors.Join(dir.Sync(), dir.Close())
}
