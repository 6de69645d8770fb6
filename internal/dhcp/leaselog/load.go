package leaselog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"
)

func (l *Log) load() error {
	content, err := l.disk.Read(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading leases: %w", err)
	}
	entries, damaged := parse(content)
	for _, e := range entries {
		l.apply(e)
	}
	if damaged == 0 {
		closes := slices.ContainsFunc(entries, func(e entry) bool { return e.Closed }) // releases until 2026-11-24 did not close files
		if len(entries) == 0 || closes && !entries[len(entries)-1].Closed {
			l.log.Warn("the lease file was not closed: the last process was killed, or somebody cut the file off; what it has is served", "file", l.path, "leases", len(l.records))
		}
		return nil
	}
	err = os.WriteFile(l.aside(), content, 0o600) // leases are served even if it cannot be kept
	log := l.log.With("file", l.path, "octets", damaged, "copy", l.aside())
	if err != nil {
		log = log.With("error", errors.Join(err, os.Remove(l.aside()))) // a partial file takes up room
	}
	log.Warn("the lease file was cut off or damaged; what could be read is served")
	l.clock.Born = time.Time{} // leases may be lost: probe as a new server does
	return nil
}

// aside is where a damaged file is kept for an admin to look at.
func (l *Log) aside() string { return l.path + ".damaged" }

func (l *Log) apply(e entry) {
	switch {
	case e.Record != nil:
		l.records[e.Record.IP] = *e.Record
		l.last = max(l.last, e.Record.Version)
	case e.Clock != nil:
		l.clock = *e.Clock
	case e.Gone != "":
		delete(l.records, e.address())
	}
}
