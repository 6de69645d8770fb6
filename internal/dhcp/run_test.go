package dhcp

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/dhcp/clock"
	"github.com/cldmnky/oooi/internal/dhcp/leaselog"
)

// A pod that served a second before its device was looked at would have been Ready while it routed.
func TestTheDaemonIsNotReadyBeforeItsDeviceWasSeenNotToForward(t *testing.T) {
	g := NewWithT(t)
	i := newInstance(Options{Log: slog.New(slog.DiscardHandler)}, nil)
	i.ready.Set(checkConfig, nil)
	i.ready.Set(checkLeases, nil)
	g.Expect(i.ready.Problem()).To(MatchError("forwarding: not yet checked"))
}

func TestAWallClockThatWasSetIsToldOf(t *testing.T) {
	g, path, said := NewWithT(t), filepath.Join(t.TempDir(), "leases.db"), &bytes.Buffer{}
	log := slog.New(slog.NewTextHandler(said, nil))
	disk, err := leaselog.Open(path, log, func(error) {})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(disk.SetClock(t.Context(), clock.Saved{BootID: "another", Latest: time.Now().Add(-365 * 24 * time.Hour), Born: epoch})).To(Succeed())
	g.Expect(disk.Close()).To(Succeed())
	i := newInstance(Options{LeaseFile: path, Log: log, Clock: clock.New()}, nil)
	g.Expect(i.open(t.Context())).To(Succeed())
	defer i.close()
	g.Expect(said.String()).To(ContainSubstring("the wall clock is far from the time that was seen last"))
}
