package dhcp

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/netip"
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
		config, err := ConfigOf(object, 0)
		g.Expect(err).NotTo(HaveOccurred())
		i.configure(config)
	}
	g.Expect(strings.Count(said.String(), "do not fit")).To(Equal(1))
	object.Spec.LeaseConfig.LeaseTime.Duration = time.Hour
	config, err := ConfigOf(object, 0)
	g.Expect(err).NotTo(HaveOccurred())
	i.configure(config)
	g.Expect(i.server.config.Load().LeaseTime).To(Equal(time.Hour), "what changed is served")
}

func TestARestoredEtcdMakesNoInstanceForgotten(t *testing.T) {
	g, l := NewWithT(t), newLab(t, 2)
	i := newInstance(Options{Log: slog.New(slog.DiscardHandler)}, nil)
	i.server = l.server
	first, second := netip.MustParseAddr("192.168.100.2"), netip.MustParseAddr("192.168.100.3")
	serves := func(version string, further ...v1alpha1.IPv4Address) []netip.Addr {
		object := server(t, everyField)
		object.ResourceVersion, object.Spec.NetworkConfig.AdditionalServerIPs = version, further
		config, err := ConfigOf(object, 0)
		g.Expect(err).NotTo(HaveOccurred())
		config.Instances = i.memory.takes(object, config.Instances)
		i.configure(config)
		return i.server.config.Load().Instances
	}
	g.Expect(serves("10", "192.168.100.3")).To(Equal([]netip.Addr{first, second}))
	g.Expect(serves("7")).To(Equal([]netip.Addr{first, second}), "it may serve yet")
	g.Expect(serves("9")).To(Equal([]netip.Addr{first, second}))
	g.Expect(serves("11")).To(Equal([]netip.Addr{first}))
}

// Of what it is not asked to do an instance that is to go says nothing.
func TestAnInstanceThatIsToGoSaysNothing(t *testing.T) {
	g, l := NewWithT(t), newLab(t, 2)
	i := newInstance(Options{Number: 1, Log: slog.New(slog.DiscardHandler), Clock: l.server.Clock}, nil)
	i.server = l.server
	both := server(t, everyField)
	both.Spec.NetworkConfig.AdditionalServerIPs = []v1alpha1.IPv4Address{"192.168.100.6"}
	i.object, i.newest = both, both
	g.Expect(i.report().server).To(Equal(both))
	i.newest, i.refused = server(t, everyField), errLeaves(1)
	g.Expect(i.report().server).To(BeNil())
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
