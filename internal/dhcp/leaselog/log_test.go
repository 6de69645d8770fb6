package leaselog

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	"github.com/cldmnky/oooi/internal/dhcp/clock"
	"github.com/cldmnky/oooi/internal/dhcp/lease"
)

func record(last byte, mac string) lease.Record {
	return lease.Record{
		IP: netip.AddrFrom4([4]byte{192, 168, 100, last}), Client: lease.Client{MAC: mac}, State: lease.Bound,
		Horizon: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC),
	}
}

// diskInMemory keeps what was written apart from what was synced: a power cut leaves the latter, and perhaps some of the
// former.
type diskInMemory struct {
	mu         sync.Mutex
	written    []byte
	synced     int
	syncs      int
	broken     error         // of every operation
	brokenSync error         // of the next sync, which drops what it could not write
	keeps      error         // of every Replace
	syncing    chan struct{} // is told of each sync, which then waits for goOn; nil: none waits
	goOn       chan struct{}
	generation int
	none       bool
	volume     int // how much it holds; 0: whatever
}

func (d *diskInMemory) Volume(string) (int, error) { return cmp.Or(d.volume, 1<<40), nil }

func (d *diskInMemory) Read(string) ([]byte, error) {
	if d.none {
		return nil, fs.ErrNotExist
	}
	return bytes.Clone(d.written), nil
}

func (d *diskInMemory) Free(string, []byte, []span, []span) error { return errors.New("no holes here") }

func (d *diskInMemory) Replace(_ string, content iter.Seq2[[]byte, error]) (file, int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := cmp.Or(d.broken, d.keeps); err != nil {
		return nil, 0, err
	}
	var all bytes.Buffer
	size, err := writeAll(&all, content)
	if err != nil {
		return nil, 0, err
	}
	if d.volume > 0 && len(d.written)+size > d.volume { // it stands beside the old one
		return nil, 0, errors.New("no space left")
	}
	d.generation++
	d.written, d.synced = all.Bytes(), size
	return &fileInMemory{d, d.generation}, size, nil
}

type fileInMemory struct {
	*diskInMemory
	generation int
}

func (f *fileInMemory) Write(octets []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.generation != f.diskInMemory.generation {
		return 0, errors.New("written to a file that was replaced")
	}
	if f.volume > 0 && len(f.written)+len(octets) > f.volume {
		return 0, errors.New("no space left")
	}
	if f.broken != nil {
		f.written = append(f.written, octets[:len(octets)/2]...)
		return len(octets) / 2, f.broken
	}
	f.written = append(f.written, octets...)
	return len(octets), nil
}

func (f *fileInMemory) Sync() error {
	if f.syncing != nil {
		f.syncing <- struct{}{}
		<-f.goOn
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := errors.Join(f.broken, f.brokenSync); err != nil {
		f.brokenSync = nil
		f.written = f.written[:f.synced] // as Linux does: the pages are clean now, and gone
		return err
	}
	f.synced, f.syncs = len(f.written), f.syncs+1
	return nil
}

func (f *fileInMemory) Close() error { return nil }

// afterPowerCut is the disk that the next start finds, with some of what was not synced.
func (d *diskInMemory) afterPowerCut(unsynced int) *diskInMemory {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &diskInMemory{written: bytes.Clone(d.written[:min(len(d.written), d.synced+unsynced)])}
}

func opened(t *testing.T, d disk) *Log {
	t.Helper()
	l, err := open(filepath.Join(t.TempDir(), "leases.db"), d, slog.New(slog.DiscardHandler), func(error) {})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func created(t *testing.T, l *Log, r lease.Record) lease.Record {
	t.Helper()
	stored, err := l.Create(t.Context(), r)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return stored
}

func holders(t *testing.T, l *Log) map[string]string {
	t.Helper()
	out := map[string]string{}
	_, err := l.List(t.Context(), func(r lease.Record) { out[r.IP.String()] = r.Client.MAC })
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return out
}

func TestLeasesOutliveTheProcess(t *testing.T) {
	g, path := NewWithT(t), filepath.Join(t.TempDir(), "leases.db")
	first, err := Open(path, slog.New(slog.DiscardHandler), func(error) {})
	g.Expect(err).NotTo(HaveOccurred())
	a := created(t, first, record(10, "aa"))
	created(t, first, record(11, "bb"))
	a.State, a.Hostname, a.VM = lease.Released, "worker-1", lease.VM{Namespace: "n", Name: "worker-1", UID: "u"}
	a, err = first.Update(t.Context(), a)
	g.Expect(err).NotTo(HaveOccurred())
	saved := clock.Saved{BootID: "b", Offset: time.Hour, Latest: time.Unix(1000, 0).UTC()}
	g.Expect(first.SetClock(t.Context(), saved)).To(Succeed())

	_, err = Open(path, slog.New(slog.DiscardHandler), func(error) {})
	g.Expect(err).To(MatchError(ContainSubstring("another oooi dhcp uses this lease file")))

	g.Expect(first.Close()).To(Succeed())
	second, err := Open(path, slog.New(slog.DiscardHandler), func(error) {})
	g.Expect(err).NotTo(HaveOccurred())
	defer func() { g.Expect(second.Close()).To(Succeed()) }()
	g.Expect(second.Get(t.Context(), a.IP)).To(Equal(a))
	g.Expect(second.Clock(t.Context())).To(Equal(saved))
	g.Expect(holders(t, second)).To(HaveLen(2))
	g.Expect(created(t, second, record(12, "cc")).Version).To(BeNumerically(">", a.Version), "versions go on")
}

func TestAStoreIsALock(t *testing.T) {
	l, g := opened(t, &diskInMemory{none: true}), NewWithT(t)
	old := created(t, l, record(10, "aa"))
	_, err := l.Create(t.Context(), record(10, "bb"))
	g.Expect(err).To(MatchError(lease.ErrExists))
	_, err = l.Update(t.Context(), old)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = l.Update(t.Context(), old)
	g.Expect(err).To(MatchError(lease.ErrConflict))
	_, err = l.Get(t.Context(), netip.MustParseAddr("192.168.100.99"))
	g.Expect(err).To(MatchError(lease.ErrNotFound))
}

func TestWhatWasAnsweredSurvivesAPowerCutAtAnyOctet(t *testing.T) {
	d := &diskInMemory{none: true}
	l := opened(t, d)
	answered := map[string]string{}
	for i := range byte(20) {
		r := created(t, l, record(10+i, fmt.Sprintf("mac-%d", i)))
		answered[r.IP.String()] = r.Client.MAC
	}
	_ = l.Close()
	frames, err := appendFrame(nil, entry{Record: new(record(99, "never answered"))})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	d.written = append(d.written, frames...) // written, not synced, not answered
	for cut := range len(frames) {
		after := holders(t, opened(t, d.afterPowerCut(cut)))
		NewWithT(t).Expect(after).To(Equal(answered), "cut after %d octets", cut)
	}
}

func TestNothingIsAnsweredBeforeItIsSynced(t *testing.T) {
	d := &diskInMemory{none: true, syncing: make(chan struct{}, 1), goOn: make(chan struct{})}
	l := opened(t, d)
	answered := make(chan error, 1)
	go func() {
		_, err := l.Create(context.Background(), record(10, "aa"))
		answered <- err
	}()
	NewWithT(t).Eventually(d.syncing).Should(Receive())
	NewWithT(t).Consistently(answered, "100ms").ShouldNot(Receive())
	close(d.goOn)
	NewWithT(t).Eventually(answered).Should(Receive(BeNil()))
	NewWithT(t).Expect(holders(t, opened(t, d.afterPowerCut(0)))).To(HaveLen(1))
}

func TestOneSyncServesAllWhoWait(t *testing.T) {
	d, g := &diskInMemory{none: true, syncing: make(chan struct{}, 100), goOn: make(chan struct{})}, NewWithT(t)
	l := opened(t, d)
	var writers sync.WaitGroup
	writes := func(i byte) { writers.Go(func() { _, _ = l.Create(context.Background(), record(i, "aa")) }) }
	writes(0)
	g.Eventually(d.syncing).Should(Receive())
	for i := range byte(99) {
		writes(1 + i)
	}
	g.Eventually(func() int { return len(l.requests) }).Should(Equal(99), "all wait for the one that is synced")
	close(d.goOn)
	writers.Wait()
	g.Expect(holders(t, l)).To(HaveLen(100))
	g.Expect(d.syncs).To(Equal(2))
}

func TestADiskThatHangsIsToldWhileItDoes(t *testing.T) {
	d, g, health := &diskInMemory{none: true, syncing: make(chan struct{}, 10), goOn: make(chan struct{})}, NewWithT(t), make(chan error, 10)
	l := opened(t, d)
	goOn := sync.OnceFunc(func() { close(d.goOn) })
	t.Cleanup(goOn) // before the log is closed
	l.health, l.patience = func(err error) { health <- err }, time.Millisecond
	var writer sync.WaitGroup
	writer.Go(func() { _, _ = l.Create(context.Background(), record(10, "aa")) })
	g.Eventually(health).Should(Receive(MatchError(ContainSubstring("takes longer than 1ms"))))
	g.Expect(health).NotTo(Receive(), "it still hangs")
	goOn()
	g.Eventually(health).Should(Receive(BeNil()))
	writer.Wait()
	l.patience = time.Hour
	created(t, l, record(11, "bb"))
	g.Expect(health).NotTo(Receive(), "who is in time is not told of")
}

func TestADiskThatFailed(t *testing.T) {
	full := errors.New("no space left on device")
	for name, breaks := range map[string]func(*diskInMemory){
		"when writing": func(d *diskInMemory) { d.broken = full },
		"when syncing": func(d *diskInMemory) { d.brokenSync = full },
	} {
		t.Run(name, func(t *testing.T) {
			g, d := NewWithT(t), &diskInMemory{none: true}
			l := opened(t, d)
			var health []error
			l.health = func(err error) { health = append(health, err) }
			created(t, l, record(10, "aa"))
			breaks(d)
			_, err := l.Create(t.Context(), record(11, "bb"))
			g.Expect(err).To(MatchError(full))
			g.Expect(err).To(MatchError(ContainSubstring("no space left on device: make room on its volume, or mend its disk; it is tried again")))
			g.Expect(holders(t, l)).To(HaveLen(1), "what failed is not seen")
			d.mu.Lock()
			d.broken = nil
			d.mu.Unlock()
			g.Expect(l.Heal(t.Context())).To(Succeed())
			created(t, l, record(12, "cc"))
			g.Expect(health[0]).To(MatchError(full))
			g.Expect(health[len(health)-1]).NotTo(HaveOccurred())
			g.Expect(d.generation).To(Equal(2), "the file that failed is not appended to")
			g.Expect(holders(t, opened(t, d.afterPowerCut(0)))).To(Equal(map[string]string{"192.168.100.10": "aa", "192.168.100.12": "cc"}))
		})
	}
}

func TestADamagedFileLosesOnlyWhatIsDamaged(t *testing.T) {
	d := &diskInMemory{none: true}
	l := opened(t, d)
	for i := range byte(5) {
		created(t, l, record(10+i, fmt.Sprintf("mac-%d", i)))
	}
	g := NewWithT(t)
	g.Expect(l.SetClock(t.Context(), clock.Saved{Born: time.Unix(1, 0)})).To(Succeed())
	_ = l.Close()
	damaged := bytes.Replace(d.written, []byte("mac-2"), []byte("mac-X"), 1)
	again := opened(t, &diskInMemory{written: damaged})
	g.Expect(holders(t, again)).To(And(HaveLen(4), Not(HaveKey("192.168.100.12"))))
	saved, err := again.Clock(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(saved.Born).To(BeZero(), "who may have forgotten a lease probes like a newborn")
	g.Expect(os.ReadFile(again.path+".damaged")).To(And(ContainSubstring("mac-X"), Not(ContainSubstring("mac-1"))), "what could not be read")
}

func TestDamageThatIsKeptAsideIsNoError(t *testing.T) {
	g, path, said := NewWithT(t), filepath.Join(t.TempDir(), "leases.db"), &bytes.Buffer{}
	g.Expect(os.WriteFile(path, []byte("nonsense"), 0o600)).To(Succeed())
	l, err := Open(path, slog.New(slog.NewJSONHandler(said, nil)), func(error) {})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(l.Close()).To(Succeed())
	g.Expect(said.String()).To(And(ContainSubstring(path+".damaged"), Not(ContainSubstring(`"error"`))))
}

func TestCompactionKeepsWhatIsLive(t *testing.T) {
	d := &diskInMemory{none: true}
	l := opened(t, d)
	r := created(t, l, record(10, "aa"))
	created(t, l, record(11, "bb"))
	for i := range 8000 {
		r.Hostname = fmt.Sprintf("worker-%d", i)
		var err error
		if r, err = l.Update(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	g := NewWithT(t)
	g.Expect(d.generation).To(BeNumerically(">", 1))
	g.Expect(len(d.written)).To(BeNumerically("<=", compactAbove+1000))
	g.Expect(opened(t, d.afterPowerCut(0)).Get(t.Context(), r.IP)).To(Equal(r))
}

func TestACompactionThatFails(t *testing.T) {
	grow := func(l *Log, r lease.Record, octets int) (lease.Record, error) {
		r.Hostname = strings.Repeat("x", 10_000)
		for n := 0; n < octets; n += len(r.Hostname) {
			next, err := l.Update(context.Background(), r)
			if err != nil {
				return r, err
			}
			r = next
		}
		return r, nil
	}
	t.Run("before the file is touched refuses nothing, and is tried again", func(t *testing.T) {
		g, d := NewWithT(t), &diskInMemory{none: true}
		l := opened(t, d)
		d.keeps = errUntouched
		r, err := grow(l, created(t, l, record(10, "aa")), 2*compactAbove)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(opened(t, d.afterPowerCut(0)).Get(t.Context(), r.IP)).To(Equal(r), "it is durable")
		d.mu.Lock()
		d.keeps = nil
		d.mu.Unlock()
		r, err = grow(l, r, compactAbove)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(d.generation).To(Equal(2))
		g.Expect(opened(t, d.afterPowerCut(0)).Get(t.Context(), r.IP)).To(Equal(r))
	})
	t.Run("later leaves a file that nobody trusts", func(t *testing.T) {
		d := &diskInMemory{none: true}
		l := opened(t, d)
		d.keeps = errors.New("the directory is not synced")
		_, err := grow(l, created(t, l, record(10, "aa")), 2*compactAbove)
		NewWithT(t).Expect(err).To(MatchError(d.keeps))
	})
}

// A write that fails leaves no partial file on a full volume.
func TestAFullVolume(t *testing.T) {
	full := func(t *testing.T, path string) {
		t.Helper()
		NewWithT(t).Expect(os.Symlink("/dev/full", path)).To(Succeed())
	}
	t.Run("a new file that does not fit goes, and the old one stays", func(t *testing.T) {
		g, path := NewWithT(t), filepath.Join(t.TempDir(), "leases.db")
		g.Expect(os.WriteFile(path, []byte("old"), 0o600)).To(Succeed())
		full(t, path+".new")
		_, _, err := osDisk{}.Replace(path, func(yield func([]byte, error) bool) { yield([]byte("new"), nil) })
		g.Expect(err).To(And(MatchError(errUntouched), MatchError(unix.ENOSPC)))
		g.Expect(path + ".new").NotTo(BeAnExistingFile())
		g.Expect(os.ReadFile(path)).To(Equal([]byte("old")))
	})
	t.Run("a copy that does not fit goes", func(t *testing.T) {
		g, path := NewWithT(t), filepath.Join(t.TempDir(), "leases.db")
		g.Expect(os.WriteFile(path, []byte("nonsense"), 0o600)).To(Succeed())
		full(t, path+".damaged")
		l, err := Open(path, slog.New(slog.DiscardHandler), func(error) {})
		g.Expect(err).NotTo(HaveOccurred())
		_, err = os.Lstat(path + ".damaged")
		g.Expect(err).To(MatchError(fs.ErrNotExist))
		g.Expect(l.Close()).To(Succeed())
	})
	t.Run("a copy makes room for leases", func(t *testing.T) {
		g, path := NewWithT(t), filepath.Join(t.TempDir(), "leases.db")
		g.Expect(os.WriteFile(path, []byte("nonsense"), 0o600)).To(Succeed())
		full(t, path+".new")
		l, err := Open(path, slog.New(slog.DiscardHandler), func(err error) { t.Error(err) })
		g.Expect(err).NotTo(HaveOccurred())
		created(t, l, record(10, "aa"))
		g.Expect(path + ".damaged").NotTo(BeAnExistingFile())
		g.Expect(l.Close()).To(Succeed())
	})
}

func TestASmallVolumeIsNotFilledByWhatIsSuperseded(t *testing.T) {
	d := &diskInMemory{none: true, volume: 64 << 10}
	l := opened(t, d)
	r := created(t, l, record(10, "aa"))
	for range 2000 {
		var err error
		if r, err = l.Update(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	NewWithT(t).Expect(opened(t, d.afterPowerCut(0)).Get(t.Context(), r.IP)).To(Equal(r))
}

// The pod's volume has 64 MiB (internal/plan/workload), and whoever fills it is evicted.
func TestTheLargestPoolFitsTheVolume(t *testing.T) {
	const leases = 1 << 16
	d := &diskInMemory{none: true}
	l := opened(t, d)
	of := func(n int) lease.Record {
		r := record(0, fmt.Sprintf("52:54:00:%02x:%02x:%02x", n>>16, n>>8&0xff, n&0xff))
		r.IP = netip.AddrFrom4([4]byte{10, 1, byte(n >> 8), byte(n)})
		r.VM = lease.VM{Namespace: "clusters-c1", Name: fmt.Sprintf("c1-workers-%05d", n), UID: "8f0cfa1a-6d5c-4b4a-9d1e-0123456789ab"}
		r.Hostname, r.ClientID, r.Version = r.VM.Name, "01:"+r.Client.MAC, uint64(n+1)
		return r
	}
	largest := 0
	for n := range 3 * leases { // each is renewed twice
		for !l.Submit(of(n % leases)) {
			_, _ = l.Get(t.Context(), of(0).IP) // until there is room
		}
		if n%1000 == 0 {
			d.mu.Lock()
			largest = max(largest, len(d.written))
			d.mu.Unlock()
		}
	}
	NewWithT(t).Expect(l.Close()).To(Succeed())
	next := d.afterPowerCut(0)
	NewWithT(t).Expect(holders(t, opened(t, next))).To(HaveLen(leases))
	NewWithT(t).Expect(largest+len(next.written)).To(BeNumerically("<", 64<<20), "the file, and its successor beside it")
}

// On a full volume the file gives up what no reader needs. Memory decides: what was written last may have been refused.
func TestWhatMemoryHasIsNotGivenUp(t *testing.T) {
	g := NewWithT(t)
	of := func(last byte, version uint64) entry {
		r := record(last, "aa")
		r.Version = version
		return entry{Record: &r}
	}
	entries := []entry{
		{Closed: true}, {Clock: &clock.Saved{}}, of(10, 1), of(10, 2), of(10, 3), // 3 was refused
		of(11, 4), {Gone: "192.168.100.11"}, of(12, 5), {Gone: "192.168.100.12"}, {Clock: &clock.Saved{}}, // 12's end was refused
	}
	for i := range entries {
		entries[i].at = span{i, i + 1}
	}
	l := &Log{records: map[netip.Addr]lease.Record{}}
	l.apply(entries[3])
	l.apply(entries[7])
	live, dead := l.sorted(entries)
	g.Expect(live).To(Equal([]span{{0, 1}, {3, 4}, {6, 8}, {9, 10}}))
	g.Expect(dead).To(Equal([]span{{1, 3}, {4, 6}, {8, 9}}))
}

func TestGarbageBehindAGoodFileHoldsNothingUp(t *testing.T) {
	whole := []byte(magic)
	for i := range byte(3) {
		whole, _ = appendFrame(whole, entry{Record: new(record(i, "aa"))})
	}
	last, err := appendFrame(nil, entry{Record: new(record(9, "bb"))})
	g := NewWithT(t)
	g.Expect(err).NotTo(HaveOccurred())
	for name, garbage := range map[string][]byte{
		"zeros":         make([]byte, 16<<20),
		"short lengths": bytes.Repeat([]byte{0, 0, 0xff, 0xfe}, 4<<20),
	} {
		start := time.Now()
		entries := 0
		damaged := parse(slices.Concat(whole, garbage, last), func(entry) { entries++ })
		g.Expect(entries).To(Equal(4), name)
		g.Expect(damaged).To(HaveLen(1), name)
		octets, copied := skipped(slices.Concat(whole, garbage, last), damaged)
		g.Expect(octets).To(Equal(len(garbage)), name)
		g.Expect(copied).To(Equal(garbage[:copyMost]), "%s: a copy of all would take up the room of the leases", name)
		g.Expect(time.Since(start)).To(BeNumerically("<", 4*time.Second), "%s: a checksum at each octet takes a minute", name)
	}
}

func TestAFileThatWasNotClosedIsWarnedOf(t *testing.T) {
	whole, err := appendFrame([]byte(magic), entry{Record: new(record(1, "aa"))})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	closed, err := appendFrame(whole, entry{Closed: true})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	cut, err := appendFrame(closed, entry{Record: new(record(2, "bb"))})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for name, c := range map[string]struct {
		content []byte
		warned  bool
	}{"an empty one": {nil, true}, "one cut at a frame": {cut, true}, "a closed one": {closed, false}, "one from before files were closed": {whole, false}} {
		t.Run(name, func(t *testing.T) {
			g, path, said := NewWithT(t), filepath.Join(t.TempDir(), "leases.db"), &bytes.Buffer{}
			g.Expect(os.WriteFile(path, c.content, 0o600)).To(Succeed())
			for range 2 { // what we close ourselves is closed
				l, err := Open(path, slog.New(slog.NewJSONHandler(said, nil)), func(error) {})
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(l.Close()).To(Succeed())
			}
			g.Expect(strings.Count(said.String(), "was not closed") == 1).To(Equal(c.warned), said.String())
			g.Expect(strings.Contains(said.String(), "damaged")).To(BeFalse())
			said.Reset()
			g.Expect(os.WriteFile(path, killed(t, path), 0o600)).To(Succeed())
			l, err := Open(path, slog.New(slog.NewJSONHandler(said, nil)), func(error) {})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(l.Close()).To(Succeed())
			g.Expect(said.String()).To(ContainSubstring("was not closed"), "of the file that we leave if we are killed")
		})
	}
}

// killed is the content of the file that a killed process leaves.
func killed(t *testing.T, path string) []byte {
	t.Helper()
	l, err := Open(path, slog.New(slog.DiscardHandler), func(error) {})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	content, err := os.ReadFile(path)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(l.Close()).To(Succeed())
	return content
}

func TestACopyForgets(t *testing.T) {
	d := &diskInMemory{none: true}
	l, g := opened(t, d), NewWithT(t)
	kept := record(10, "aa")
	kept.Version = 77
	g.Expect(l.Submit(kept)).To(BeTrue())
	g.Expect(l.Get(t.Context(), kept.IP)).To(Equal(kept))
	g.Expect(l.Forget(t.Context(), kept.IP)).To(Succeed())
	g.Expect(holders(t, opened(t, d.afterPowerCut(0)))).To(BeEmpty())
}

func TestWhoSubmitsACopyWaitsForNoDisk(t *testing.T) {
	d, g := &diskInMemory{none: true, syncing: make(chan struct{}, 10), goOn: make(chan struct{})}, NewWithT(t)
	l := opened(t, d)
	g.Expect(l.Submit(record(10, "aa"))).To(BeTrue())
	g.Eventually(d.syncing).Should(Receive())
	for range cap(l.requests) {
		g.Expect(l.Submit(record(11, "bb"))).To(BeTrue())
	}
	g.Expect(l.Submit(record(12, "cc"))).To(BeFalse(), "as many wait as may")
	close(d.goOn)
	g.Expect(l.Close()).To(Succeed())
	g.Expect(holders(t, opened(t, d.afterPowerCut(0)))).To(HaveLen(2), "what was submitted before the end")
}

// FuzzParse: the daemon starts, whatever the disk returns.
func FuzzParse(f *testing.F) {
	whole := []byte(magic)
	for i := range byte(3) {
		whole, _ = appendFrame(whole, entry{Record: new(record(i, "aa"))})
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-5])
	f.Add([]byte("not a lease file"))
	f.Fuzz(func(t *testing.T, content []byte) {
		l, entries := &Log{records: map[netip.Addr]lease.Record{}}, 0
		damaged := parse(content, func(e entry) { l.apply(e); entries++ })
		if bytes.Equal(content, whole) && (entries != 3 || len(damaged) != 0) {
			t.Fatalf("a whole file gave %d entries and %d damaged octets", entries, damaged)
		}
	})
}
