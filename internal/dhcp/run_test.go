package dhcp

import (
	"bytes"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/dhcp/clock"
	"github.com/cldmnky/oooi/internal/dhcp/leaselog"
)

// A pod that served before its device was checked would be Ready while it forwarded packets.
func TestTheDaemonIsNotReadyBeforeItsDeviceWasSeenNotToForward(t *testing.T) {
	g := NewWithT(t)
	i := newInstance(Options{Log: slog.New(slog.DiscardHandler)}, nil)
	i.ready.Set(checkConfig, nil)
	i.ready.Set(checkLeases, nil)
	g.Expect(i.ready.Problem()).To(MatchError("forwarding: not yet checked"))
}

func TestAConfigurationThatIsServedIsNotServedAnew(t *testing.T) {
	g, l, said := NewWithT(t), newLab(t, 2), &bytes.Buffer{}
	i := newInstance(Options{Log: slog.New(slog.NewTextHandler(said, nil))}, nil)
	i.server = l.server
	object := server(t, everyField)
	for n := range byte(200) {
		object.Spec.NetworkConfig.Routes = append(object.Spec.NetworkConfig.Routes, v1alpha1.Route{Destination: v1alpha1.CIDR(fmt.Sprintf("172.21.0.%d/32", n)), Gateway: "192.168.100.5"})
	}
	for n := range 3 { // the status of an object changes often
		object = object.DeepCopy()
		object.Status.ActiveLeases = int32(n)
		config, err := ConfigOf(object)
		g.Expect(err).NotTo(HaveOccurred())
		i.configure(config)
	}
	g.Expect(strings.Count(said.String(), "do not fit")).To(Equal(1))
	object.Spec.LeaseConfig.LeaseTime.Duration = time.Hour
	config, err := ConfigOf(object)
	g.Expect(err).NotTo(HaveOccurred())
	i.configure(config)
	g.Expect(i.server.config.Load().LeaseTime).To(Equal(time.Hour), "what changed is served")
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
