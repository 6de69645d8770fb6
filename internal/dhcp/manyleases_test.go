package dhcp

import (
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/dhcp/clock"
	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/leasekube"
	"github.com/cldmnky/oooi/internal/dhcp/leaselog"
	"github.com/cldmnky/oooi/internal/testkit/manyleases"
)

// The container has 128 MiB, of which Go takes nine tenths (daemon.LimitMemory), and a daemon without leases 15. Here one starts on the copy that
// the last one left, each lease has changed since, and then changes again.
func TestTheLargestPoolIsReadInPagesAndKeptOnce(t *testing.T) {
	g, log := NewWithT(t), slog.New(slog.DiscardHandler)
	o := Options{Name: manyleases.Server, Log: log, Clock: clock.New()}
	o.Flags = daemon.Flags{Namespace: manyleases.Namespace, StateDir: t.TempDir()}
	api, path := manyleases.Client(t), filepath.Join(o.StateDir, "leases.db")
	copyAll := func(to *leaselog.Log, age uint64) {
		for n := range manyleases.Count {
			object := manyleases.Lease(n)
			r, err := (&leasekube.Store{Server: o.Name}).Record(&object)
			g.Expect(err).NotTo(HaveOccurred())
			for r.Version -= age; !to.Submit(r); {
				g.Expect(to.Heal(t.Context())).To(Succeed()) // waits until what was submitted is written
			}
		}
	}
	{
		last, err := leaselog.Open(path, log, func(error) {})
		g.Expect(err).NotTo(HaveOccurred())
		copyAll(last, 1)
		g.Expect(last.Close()).To(Succeed())
	}

	var i *instance
	var live uint64
	before := manyleases.Memory()
	most := manyleases.Most(func() {
		i = newInstance(o, api)
		g.Expect(i.open(t.Context())).To(Succeed())
		g.Expect(i.server.Sync(t.Context())).To(Succeed())
		go i.kube.Follow(t.Context(), api, i.server.list, i.server.learn, i.server.Table.Lost)
		first := netip.MustParseAddr("10.1.0.0")
		g.Eventually(func() uint64 { return i.server.Table.Version(first) }, 5*time.Minute).Should(BeEquivalentTo(manyleases.Changed))
		live = manyleases.Memory()
		copyAll(i.disk, 0)
	})
	t.Cleanup(i.close)
	t.Logf("%d leases: %d MiB stay, %d at most", manyleases.Count, live-before, most-before)
	g.Expect(live - before).To(BeNumerically("<", 86))
	g.Expect(most - before).To(BeNumerically("<", 110)) // Go has 115 of the container's 128 MiB; 94 to 102 were seen
	all := i.server.Table.Records()
	g.Expect(all).To(HaveLen(manyleases.Count))
	g.Expect(slices.ContainsFunc(all, func(r lease.Record) bool { return r.Version == 0 })).To(BeFalse(), "none was missed")
	file, err := os.Stat(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(file.Size()).To(BeNumerically("<", 32<<20))
}
