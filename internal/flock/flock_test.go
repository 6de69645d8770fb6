package flock

import (
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
)

func TestWhoIsRefusedALockHearsWhoHasItAndWhatToDo(t *testing.T) {
	g, path := NewWithT(t), filepath.Join(t.TempDir(), "leases.db.lock")
	first, err := Take(path, "another oooi dhcp uses this lease file")
	g.Expect(err).NotTo(HaveOccurred())
	_, err = Take(path, "another oooi dhcp uses this lease file")
	g.Expect(err).To(MatchError(And(
		HavePrefix(path+" is locked: another oooi dhcp uses this lease file"), ContainSubstring("stop it first, or give another path; `fuser "+path+"`"))))
	g.Expect(err).To(MatchError(unix.EWOULDBLOCK))

	g.Expect(first.Close()).To(Succeed())
	again, err := Take(path, "")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again.Close()).To(Succeed())
}

func TestALockThatCannotBeMadeNamesItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "absent", "leases.db.lock")
	_, err := Take(path, "")
	NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring(path), ContainSubstring("give a path in a directory that exists and that this user can write"))))
}
