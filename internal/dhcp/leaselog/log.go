package leaselog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/cldmnky/oooi/internal/dhcp/clock"
	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/flock"
)

// The file is compacted when it exceeds compactAbove and compactRatio times what is live, or when its waste exceeds wasteMost or 1/wastePart of
// the volume, because a compaction needs room beside the file. The pod's volume has 64 MiB: twice 65,536 leases of 320 octets, and wasteMost.
const (
	compactAbove = 1 << 20
	compactRatio = 4
	wasteMost    = 8 << 20
	wastePart    = 8
)

// patience is how long a write may take before it is reported: beyond that, clients get no reply (storeTime of package dhcp).
const patience = 1500 * time.Millisecond

// Log is the lease file and its content.
type Log struct {
	path   string
	disk   disk
	file   file
	lock   *os.File
	log    *slog.Logger
	size   int
	live   int  // size right after the last compaction
	later  int  // a failed compaction is tried again at this size
	volume int  // size of the file's volume
	failed bool // the file cannot be trusted, and nothing is appended to it any more
	// reclaimed: since the last rewrite, room was made in the file itself.
	reclaimed bool

	requests chan *request
	quit     chan struct{} // asks run to end
	ended    chan struct{} // says that run has ended
	closing  sync.Once
	health   func(error)
	patience time.Duration

	// Used by the goroutine in run alone.
	records map[netip.Addr]lease.Record
	past    map[netip.Addr][]lease.Past
	clock   clock.Saved
	last    uint64
}

// request is one entry to make durable, or a look at those that are.
type request struct {
	check func(*Log) error // against all entries before it
	entry *entry
	look  func(*Log)
	err   error
	done  chan struct{}
}

// Open reads the file, or creates it. Damage is reported, and never prevents the start. health hears of each failure to write, and hears nil
// when the file is whole again.
func Open(path string, log *slog.Logger, health func(error)) (*Log, error) {
	return open(path, osDisk{}, log, health)
}

func open(path string, d disk, log *slog.Logger, health func(error)) (*Log, error) {
	l := &Log{
		path: path, disk: d, log: log, health: health, patience: patience, records: map[netip.Addr]lease.Record{}, past: map[netip.Addr][]lease.Past{},
		requests: make(chan *request, 256), quit: make(chan struct{}), ended: make(chan struct{}),
	}
	var err error
	if l.lock, err = flock.Take(path+".lock", "another oooi dhcp uses this lease file"); err != nil {
		return nil, err
	}
	if err := l.load(); err != nil {
		return nil, errors.Join(err, l.lock.Close())
	}
	if l.volume, err = d.Volume(path); err != nil {
		l.log.Warn("the size of the lease file's volume is not known", "file", path, "error", err)
		l.volume = wasteMost * wastePart
	}
	if err := l.renew(); err != nil { // a file that another process left is not trusted
		l.fail(err)
	}
	go l.run()
	return l, nil
}

// run makes entries durable, all that are waiting with one sync (group commit).
func (l *Log) run() {
	defer close(l.ended)
	for {
		select {
		case <-l.quit:
			l.commit(l.waiting(nil)) // a submitted entry is kept, though no caller may wait for it
			return
		case first := <-l.requests:
			l.commit(l.waiting([]*request{first}))
		}
	}
}

func (l *Log) waiting(batch []*request) []*request {
	for len(l.requests) > 0 && len(batch) < cap(l.requests) {
		batch = append(batch, <-l.requests)
	}
	return batch
}

// commit answers a batch. Later entries see an entry at once; Get and List see it only when it is durable, because a look waits for its batch.
func (l *Log) commit(batch []*request) {
	var frames []byte
	var undo []func()
	for _, r := range batch {
		if r.entry == nil {
			continue
		}
		if r.err = r.check(l); r.err == nil {
			frames, r.err = appendFrame(frames, *r.entry)
		}
		if r.err == nil {
			undo = append(undo, l.undo(*r.entry))
			l.apply(*r.entry)
		}
	}
	if err := l.watched(func() error { return l.persist(frames) }); err != nil {
		for _, back := range slices.Backward(undo) {
			back()
		}
		l.fail(err)
		refuse(batch, err)
	}
	for _, r := range batch {
		if r.look != nil {
			r.look(l)
		}
		close(r.done)
	}
}

func (l *Log) undo(e entry) func() {
	was, last := l.clock, l.last
	if e.Record == nil && e.Gone == "" {
		return func() { l.clock = was }
	}
	ip := e.address()
	record, existed := l.records[ip]
	past := l.past[ip]
	return func() {
		l.last = last
		l.forget(ip)
		if existed {
			l.keep(record, past)
		}
	}
}

func refuse(batch []*request, err error) {
	for _, r := range batch {
		if r.entry != nil && r.err == nil {
			r.err = err
		}
	}
}

// watched reports a write that hangs to health, and its end.
func (l *Log) watched(write func() error) error {
	told := make(chan struct{})
	start := time.Now()
	late := time.AfterFunc(l.patience, func() {
		defer close(told)
		l.log.Warn("the lease file takes long to write", "file", l.path)
		l.health(fmt.Errorf("writing leases to %s takes longer than %v; look at that disk", l.path, l.patience))
	})
	err := write()
	if late.Stop() {
		return err
	}
	<-told
	l.log.Info("the lease file was written or refused", "file", l.path, "after", time.Since(start))
	if err == nil {
		l.health(nil)
	}
	return err
}

const whatToDo = "make room on its volume, or mend its disk; it is tried again, and known leases are served meanwhile"

// persist appends frames and syncs. After an error the file may hold anything (a failed fsync drops what it could not write, and the next one
// succeeds): it is never trusted again, but written anew from memory.
func (l *Log) persist(frames []byte) error {
	if l.failed {
		return l.heal()
	}
	if len(frames) == 0 {
		return nil
	}
	if _, err := l.file.Write(frames); err != nil {
		return fmt.Errorf("writing leases to %s: %w: %s", l.path, err, whatToDo)
	}
	if err := l.file.Sync(); err != nil {
		return fmt.Errorf("syncing leases to %s: %w: %s", l.path, err, whatToDo)
	}
	l.size += len(frames)
	if waste := l.size - l.live; l.size > compactAbove && l.size > compactRatio*l.live || waste > min(wasteMost, l.volume/wastePart) {
		return l.compact()
	}
	return nil
}

// compact rewrites the file. If that fails before the file is touched, its content is durable, and it grows by 1/wastePart until the next try.
func (l *Log) compact() error {
	if l.size < l.later {
		return nil
	}
	err := l.rewrite()
	if !errors.Is(err, errUntouched) {
		return err
	}
	l.later = l.size + l.size/wastePart
	l.log.Warn("the lease file cannot be compacted, and grows until it can: make room on its volume", "file", l.path, "octets", l.size, "error", err)
	return nil
}

func (l *Log) heal() error {
	if err := l.renew(); err != nil {
		return err
	}
	l.failed = false
	l.log.Info("the lease file is whole again", "file", l.path)
	l.health(nil)
	return nil
}

// renew rewrites the file, and once after each failure makes room for that.
func (l *Log) renew() error {
	err := l.rewrite()
	if !errors.Is(err, errUntouched) || l.reclaimed {
		return err
	}
	l.reclaimed = true
	if full := l.reclaim(); full != nil {
		return errors.Join(err, fmt.Errorf("making room in %s: %w", l.path, full))
	}
	return l.rewrite()
}

func (l *Log) fail(err error) {
	if !l.failed {
		l.log.Error("leases cannot be written: nothing new is promised", "error", err)
	}
	l.failed = true
	l.health(err)
}

// rewrite writes what memory holds to a new file, syncs it and its directory, and appends to it from then on.
func (l *Log) rewrite() error {
	renewed, size, err := l.disk.Replace(l.path, l.content)
	if err != nil && os.Remove(l.aside()) == nil { // the damaged copy may be what fills the volume
		renewed, size, err = l.disk.Replace(l.path, l.content)
	}
	if err != nil {
		return fmt.Errorf("rewriting %s: %w: %s", l.path, err, whatToDo)
	}
	if l.file != nil {
		_ = l.file.Close() // the old file: replaced, and perhaps already broken
	}
	l.file, l.size, l.live, l.later, l.reclaimed = renewed, size, size, 0, false
	return nil
}

// content is that of a whole new file, piece by piece: as one it takes a third of what the daemon may have.
func (l *Log) content(yield func([]byte, error) bool) {
	if !yield([]byte(magic), nil) {
		return
	}
	add := func(e entry) bool { return yield(appendFrame(nil, e)) }
	if !add(entry{Closed: true}) || !add(entry{Clock: &l.clock}) { // whoever writes the file from here on closes it, too
		return
	}
	for _, ip := range slices.SortedFunc(maps.Keys(l.records), netip.Addr.Compare) {
		r := l.records[ip]
		if !add(entry{Record: &r, Past: l.past[ip]}) {
			return
		}
	}
}

// Close ends the log. What was answered is durable; callers that still wait hear that it is closed.
func (l *Log) Close() (err error) {
	l.closing.Do(func() {
		close(l.quit)
		<-l.ended
		if l.file != nil {
			err = errors.Join(l.end(), l.file.Close())
		}
		err = errors.Join(err, l.lock.Close())
	})
	return err
}

// end notes in the file that nothing is missing after it.
func (l *Log) end() error {
	frame, err := appendFrame(nil, entry{Closed: true})
	if err != nil || l.failed {
		return err
	}
	_, err = l.file.Write(frame)
	return errors.Join(err, l.file.Sync())
}

var errClosed = errors.New("the lease file is closed; the outcome is not known")

func (l *Log) ask(ctx context.Context, r *request) error {
	r.done = make(chan struct{})
	select {
	case l.requests <- r:
	case <-l.ended:
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-r.done:
		return r.err
	case <-l.ended:
		return errClosed
	case <-ctx.Done():
		return fmt.Errorf("outcome not known: %w", ctx.Err())
	}
}
