package dhcp

import (
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/dhcp/clock"
	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/testkit/manyleases"
)

// What stays took 192 MiB where the watch kept whole leases, and sets had one address each. The container has 128 MiB (internal/plan/workload), so
// that this is not enough: docs/roadmap.md, issue 17, D9.
func TestTheLargestPoolIsReadInPagesAndKeptOnce(t *testing.T) {
	g := NewWithT(t)
	before := manyleases.Memory()
	o := Options{Name: manyleases.Server, Log: slog.New(slog.DiscardHandler), Clock: clock.New()}
	o.Flags = daemon.Flags{Namespace: manyleases.Namespace, StateDir: t.TempDir()}
	i := newInstance(o, manyleases.Client(t))
	g.Expect(i.open(t.Context())).To(Succeed())
	t.Cleanup(i.close)
	var learned atomic.Int64
	keep := i.server.Stored
	i.server.Stored = func(r lease.Record) { keep(r); learned.Add(1) }
	go i.watchLeases(t.Context())
	g.Eventually(learned.Load, time.Minute).Should(BeEquivalentTo(manyleases.Count))
	g.Expect(i.server.Store.List(t.Context())).To(HaveLen(manyleases.Count))
	g.Expect(i.sync(t.Context())).To(Succeed())
	live := manyleases.Memory()
	t.Logf("%d leases: %d MiB", manyleases.Count, live-before)
	g.Expect(live - before).To(BeNumerically("<", 140))
	g.Expect(i.server.Table.Records()).To(HaveLen(manyleases.Count))
	file, err := os.Stat(filepath.Join(o.StateDir, "leases.db"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(file.Size()).To(BeNumerically("<", 32<<20))
}
