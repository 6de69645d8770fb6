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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/dhcp/clock"
	"github.com/cldmnky/oooi/internal/dhcp/leaselog"
	"github.com/cldmnky/oooi/internal/valid"
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

// Whom an object names counts though its configuration is refused, and none is forgotten by an object of before a restore of etcd.
func TestWhomAnInstanceKnowsOf(t *testing.T) {
	g, l := NewWithT(t), newLab(t, 2)
	i := newInstance(Options{Log: slog.New(slog.DiscardHandler)}, fake.NewClientBuilder().WithScheme(daemon.Scheme()).Build())
	i.server = l.server
	self := l.config.Server.String()
	learns := func(version string, change func(*v1alpha1.DHCPServer)) []string {
		object := server(t, everyField)
		object.ResourceVersion, object.Spec.NetworkConfig.ServerIP = version, v1alpha1.IPv4Address(self)
		change(object)
		i.learn(object)
		var all []string
		for _, at := range i.server.config.Load().Instances {
			all = append(all, at.String())
		}
		return all
	}
	alone := func(*v1alpha1.DHCPServer) {}
	second := func(s *v1alpha1.DHCPServer) {
		s.Spec.NetworkConfig.AdditionalServerIPs = []v1alpha1.IPv4Address{"192.168.100.99"}
		s.Spec.LeaseConfig.LeaseTime.Duration = time.Second // which is refused
	}
	g.Expect(learns("9", alone)).To(Equal([]string{self}))
	g.Expect(learns("10", second)).To(Equal([]string{self, "192.168.100.99"}))
	g.Expect(learns("7", alone)).To(Equal([]string{self, "192.168.100.99"}), "it may serve yet")
	g.Expect(learns("11", alone)).To(Equal([]string{self}))
	g.Expect(learns("12", func(s *v1alpha1.DHCPServer) {
		s.Status.Instances = []v1alpha1.Instance{{IP: v1alpha1.IPAddress(self), ServesWith: []v1alpha1.IPAddress{"192.168.100.97"}}, {IP: "192.168.100.98"}}
	})).To(Equal([]string{self, "192.168.100.97", "192.168.100.98"}), "who reports, and who may serve by what it said itself")
}

// What an instance waits for before it serves.
func TestWhenAnInstanceMayServe(t *testing.T) {
	const first, second = "192.168.100.2", "192.168.100.3"
	says := func(at v1alpha1.IPAddress, knows ...v1alpha1.IPAddress) v1alpha1.Instance {
		return v1alpha1.Instance{IP: at, ServesWith: knows}
	}
	configured := []metav1.Condition{{Type: v1alpha1.ConditionConfigAccepted}, {Type: "ConfigAccepted1"}}
	for name, c := range map[string]struct {
		instances  []v1alpha1.Instance
		conditions []metav1.Condition
		number     int
		waits      string
	}{
		"it has said nothing":                          {nil, nil, 0, "not yet reported that it knows of " + first},
		"it does not know of the other":                {[]v1alpha1.Instance{says(first, first)}, nil, 0, "not yet reported that it knows of " + second},
		"the other never was":                          {[]v1alpha1.Instance{says(first, first, second)}, nil, 0, ""},
		"the other's configuration is refused":         {[]v1alpha1.Instance{says(first, first, second), says(second, first, second)}, configured, 0, ""},
		"the other lacks its address and says nothing": {[]v1alpha1.Instance{says(first, first, second), says(second)}, configured, 0, ""},
		"the first knows of none":                      {[]v1alpha1.Instance{says(first, first), says(second, first, second)}, configured, 1, first + " does not know of this one yet"},
		"the first is of an older release":             {[]v1alpha1.Instance{says(first), says(second, first, second)}, configured, 1, "the first instance is of an older release"},
		"the first knows of it":                        {[]v1alpha1.Instance{says(first, first, second), says(second, first, second)}, configured, 1, ""},
		"the first is about to move": {
			[]v1alpha1.Instance{says("192.168.100.9", "192.168.100.9", first, second), says(second, first, second, "192.168.100.9")}, configured, 1, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			object := server(t, replaced(t, "serverIP: 192.168.100.2 → serverIP: "+first))
			object.Spec.NetworkConfig.AdditionalServerIPs = []v1alpha1.IPv4Address{second}
			object.Status.Instances, object.Status.Conditions = c.instances, c.conditions
			err := mayServe(object, c.number, []v1alpha1.IPAddress{first, second}[c.number])
			if c.waits == "" {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
			} else {
				NewWithT(t).Expect(err).To(MatchError(ContainSubstring(c.waits)))
			}
		})
	}
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
	i.newest, i.refused = server(t, everyField), valid.Unset(v1alpha1.ServerIPField(1))
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
