package leaselog

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
)

func (l *Log) load() error {
	content, err := l.disk.Read(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading leases: %w", err)
	}
	entries, closes, closed := 0, false, false // releases until 2026-11-24 did not close files
	damaged := parse(content, func(e entry) {
		l.apply(e)
		entries, closes, closed = entries+1, closes || e.Closed, e.Closed
	})
	if len(damaged) == 0 {
		if entries == 0 || closes && !closed {
			l.log.Warn("the lease file was not closed: the last process was killed, or somebody cut the file off; what it has is served", "file", l.path, "leases", len(l.records))
		}
		return nil
	}
	octets, copied := skipped(content, damaged)
	err = os.WriteFile(l.aside(), copied, 0o600) // leases are served even if it cannot be kept
	log := l.log.With("file", l.path, "octets", octets, "copy", l.aside(), "copied", len(copied))
	if err != nil {
		log = log.With("error", errors.Join(err, os.Remove(l.aside()))) // a partial file takes up room
	}
	log.Warn("the lease file was cut off or damaged; what could be read is served")
	l.clock.Born = time.Time{} // leases may be lost: probe as a new server does
	return nil
}

// Ours fails for a file that has something, of which nothing is a lease file's. A daemon starts beside such a file, as beside any that is damaged; an admin
// has named the wrong one, and Open would put an empty lease file in its place. There need be no file.
func Ours(path string) error {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && (len(content) == 0 || bytes.HasPrefix(content, []byte(magic))) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading leases: %w", err)
	}
	frames := 0
	if parse(content, func(entry) { frames++ }); frames > 0 {
		return nil // its beginning alone is damaged
	}
	return fmt.Errorf("%s is no lease file of oooi dhcp, which begins with %q, and is left as it is: give the one that oooi dhcp has as --lease-file", path, strings.TrimSpace(magic))
}

// Read gives the records of a lease file with their past to take, sorted by address, whether or not a daemon has it open. damaged is how many octets could not be
// read: the last entry, if a daemon is just writing it.
func Read(path string, take func(lease.Record, []lease.Past)) (damaged int, err error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("reading leases: %w", err)
	}
	l := Log{records: map[netip.Addr]lease.Record{}, past: map[netip.Addr][]lease.Past{}}
	octets, _ := skipped(content, parse(content, l.apply))
	for _, ip := range slices.SortedFunc(maps.Keys(l.records), netip.Addr.Compare) {
		take(l.records[ip], l.past[ip])
	}
	return octets, nil
}

// copyMost is how much of a damaged file is copied: a copy of all of it would take up the room of the leases.
const copyMost = 1 << 20

// skipped are how many octets are damaged, and the first of them.
func skipped(content []byte, damaged []span) (octets int, first []byte) {
	for _, s := range damaged {
		octets += s.to - s.from
		first = append(first, content[s.from:min(s.to, s.from+copyMost-len(first))]...)
	}
	return octets, first
}

// aside is where the damaged parts are kept for an admin to look at.
func (l *Log) aside() string { return l.path + ".damaged" }

func (l *Log) apply(e entry) {
	switch {
	case e.Record != nil:
		l.keep(e.Record.Compact(), e.Past)
		l.last = max(l.last, e.Record.Version)
	case e.Clock != nil:
		l.clock = *e.Clock
	case e.Gone != "":
		l.forget(e.address())
	}
}

func (l *Log) keep(r lease.Record, past []lease.Past) {
	l.forget(r.IP)
	l.records[r.IP] = r
	if len(past) > 0 {
		l.past[r.IP] = past
	}
}

func (l *Log) forget(ip netip.Addr) {
	delete(l.records, ip)
	delete(l.past, ip)
}
