//go:build netns

package leaselog

import (
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
)

// onSmallVolume runs a test again in a mount namespace of its own, where a directory has 1 MiB.
func onSmallVolume(t *testing.T, test func(t *testing.T, dir string)) {
	t.Helper()
	const inside = "OOOI_SMALL_VOLUME"
	if os.Getenv(inside) == "" {
		again := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		again.Env = append(os.Environ(), inside+"=1")
		again.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
		if said, err := again.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		return
	}
	g, dir := NewWithT(t), t.TempDir()
	g.Expect(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")).To(Succeed())
	g.Expect(unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m")).To(Succeed())
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	test(t, dir)
}

// fill takes up what is left of a volume.
func fill(t *testing.T, dir string) (filler string) {
	t.Helper()
	filler = filepath.Join(dir, "filler")
	f, err := os.Create(filler)
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	NewWithT(t).Expect(err).To(MatchError(unix.ENOSPC))
	_ = f.Close() // its last page is not there
	return filler
}

// leftBehind is a lease file with many versions of one binding, and with bindings of others.
func leftBehind(t *testing.T, path string, versions, others int) {
	t.Helper()
	content, version := []byte(magic), uint64(0)
	add := func(r lease.Record) {
		version++
		r.Version = version
		content, _ = appendFrame(content, entry{Record: &r})
	}
	for n := range others {
		r := record(0, fmt.Sprintf("mac-%d", n))
		r.IP = netip.AddrFrom4([4]byte{10, 1, byte(n >> 8), byte(n)})
		add(r)
	}
	for range versions {
		add(record(10, "aa"))
	}
	NewWithT(t).Expect(os.WriteFile(path, content, 0o600)).To(Succeed())
}

func TestAVolumeThatIsFullAtTheStart(t *testing.T) {
	onSmallVolume(t, func(t *testing.T, dir string) {
		t.Run("of what is superseded is compacted in place", func(t *testing.T) {
			g, path := NewWithT(t), filepath.Join(dir, "superseded.db")
			leftBehind(t, path, 4000, 20)
			filler := fill(t, dir)
			l, err := Open(path, slog.New(slog.DiscardHandler), func(err error) { t.Error(err) })
			g.Expect(err).NotTo(HaveOccurred())
			created(t, l, record(11, "bb"))
			g.Expect(holders(t, l)).To(And(HaveLen(22), HaveKeyWithValue("192.168.100.10", "aa"), HaveKeyWithValue("10.1.0.19", "mac-19")))
			g.Expect(l.Close()).To(Succeed())
			g.Expect(os.Remove(filler)).To(Succeed())
			g.Expect(os.Remove(path)).To(Succeed())
		})
		t.Run("of others serves what is there, says what to do, and heals", func(t *testing.T) {
			g, path := NewWithT(t), filepath.Join(dir, "live.db")
			leftBehind(t, path, 1, 2000)
			filler := fill(t, dir)
			var health error
			l, err := Open(path, slog.New(slog.DiscardHandler), func(err error) { health = err })
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(health).To(And(MatchError(unix.ENOSPC), MatchError(ContainSubstring("rewriting "+path)), MatchError(ContainSubstring("make room on its volume"))))
			g.Expect(holders(t, l)).To(HaveLen(2001))
			_, err = l.Create(t.Context(), record(11, "bb"))
			g.Expect(err).To(MatchError(unix.ENOSPC), "nothing new is promised")
			g.Expect(os.Remove(filler)).To(Succeed())
			g.Expect(l.Heal(t.Context())).To(Succeed())
			g.Expect(health).NotTo(HaveOccurred())
			created(t, l, record(11, "bb"))
			g.Expect(l.Close()).To(Succeed())
		})
	})
}

// What Free gives up reads as damage; all else is where it was.
func TestAPowerCutBetweenGivingUpAndCompactingLosesNothing(t *testing.T) {
	onSmallVolume(t, func(t *testing.T, dir string) {
		g, path := NewWithT(t), filepath.Join(dir, "leases.db")
		leftBehind(t, path, 1000, 20)
		l := &Log{path: path, disk: osDisk{}, log: slog.New(slog.DiscardHandler), records: map[netip.Addr]lease.Record{}}
		g.Expect(l.load()).To(Succeed())
		g.Expect(l.reclaim()).To(Succeed())
		again, err := Open(path, l.log, func(err error) { t.Error(err) })
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(holders(t, again)).To(And(HaveLen(21), HaveKeyWithValue("192.168.100.10", "aa")))
		g.Expect(again.Close()).To(Succeed())
	})
}
