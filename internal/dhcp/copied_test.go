package dhcp

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/leaselog"
)

// openCopy gives the lab's server a copy on a real disk.
func (l *lab) openCopy() *leaselog.Log {
	g := NewWithT(l.t)
	disk, err := leaselog.Open(filepath.Join(l.t.TempDir(), "leases.db"), slog.New(slog.DiscardHandler), func(error) {})
	g.Expect(err).NotTo(HaveOccurred())
	l.t.Cleanup(func() { g.Expect(disk.Close()).To(Succeed()) })
	l.copiesTo(disk)
	return disk
}

func (l *lab) copiesTo(c leaseCopy) {
	store := newCopied(l.store, c, l.server.Table, l.server.Log)
	l.server.Store, l.server.Stored = store, store.keep
}

func TestACopyForgetsBeforeTheClusterIsTold(t *testing.T) {
	l, g := newLab(t, 5), NewWithT(t)
	disk := l.openCopy()
	forgotten := func(ip netip.Addr) {
		l.store.before = func() {
			_, err := disk.Get(t.Context(), ip)
			g.Expect(err).To(MatchError(lease.ErrNotFound))
		}
	}
	ip := l.binds("aa")
	g.Expect(disk.Get(t.Context(), ip)).To(HaveField("Client.MAC", HaveSuffix("aa")))
	forgotten(ip)
	l.releases("aa", ip)
	g.Expect(l.store.before).To(BeNil(), "the cluster was told")

	l.machines.has("worker-1", "bb") // its lease moves to its next hardware address, and stays Bound
	ip = l.binds("bb")
	l.machines.running["bb"] = false
	delete(l.machines.owners, "bb")
	l.machines.has("worker-1", "cc")
	g.Expect(yours(l.discover("cc"))).To(Equal(ip))
	forgotten(ip)
	acked(t, l.selects("cc", ip))
	g.Expect(l.store.before).To(BeNil(), "the cluster was told")
	g.Expect(disk.Get(t.Context(), ip)).To(HaveField("Client.MAC", HaveSuffix("cc")))
}

// A watch may tell of a binding late, while it is being released: that must not bring the copy back.
func TestACopyIsMadeOfWhatStandsOnly(t *testing.T) {
	l, g := newLab(t, 5), NewWithT(t)
	disk := l.openCopy()
	ip := l.binds("aa")
	was := l.store.records[ip]
	l.store.before = func() { l.server.Stored(was) }
	l.releases("aa", ip)
	l.server.Stored(was)
	_, err := disk.Get(t.Context(), ip)
	g.Expect(err).To(MatchError(lease.ErrNotFound))
}

// A new pod has no copy, and most leases are written once in a lease time.
func TestWhatTheFirstListTellsIsCopied(t *testing.T) {
	l, g := newLab(t, 5), NewWithT(t)
	for ip := range 600 { // more than a lease file has waiting
		_, err := l.store.Create(t.Context(), lease.Record{IP: netip.AddrFrom4([4]byte{10, 0, byte(ip >> 8), byte(ip)}), Client: lease.Client{ID: fmt.Sprint(ip)}, State: lease.Bound})
		g.Expect(err).NotTo(HaveOccurred())
	}
	l.boots(l.server.Clock)
	disk := l.openCopy()
	l.syncs()
	newCopied(l.store, disk, l.server.Table, l.server.Log).fill(t.Context())
	copied := map[netip.Addr]lease.Record{}
	_, err := disk.List(t.Context(), func(r lease.Record) { copied[r.IP] = r })
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(copied).To(Equal(l.store.records))
}

// witness notes, as log, copy and receiver of events, what is done.
type witness struct {
	slog.Handler
	saw func(string)
}

func (w witness) Enabled(context.Context, slog.Level) bool      { return true }
func (w witness) Handle(_ context.Context, r slog.Record) error { w.saw(r.Message); return nil }
func (w witness) Submit(lease.Record) bool                      { w.saw("copy"); return true }
func (w witness) Forget(context.Context, netip.Addr) error      { w.saw("forget"); return nil }
func (w witness) Get(context.Context, netip.Addr) (lease.Record, error) {
	return lease.Record{}, lease.ErrNotFound
}
func (w witness) event(h Event) { w.saw(string(h.Type)) }

func TestAnACKWaitsForNothingButTheStore(t *testing.T) {
	l, g := newLab(t, 5), NewWithT(t)
	var before, after []string
	w := witness{slog.DiscardHandler, func(what string) {
		if len(l.sent) == 0 {
			before = append(before, what)
		} else {
			after = append(after, what)
		}
	}}
	l.server.Log, l.server.Happened = slog.New(w), w.event
	l.copiesTo(w)
	ip := l.binds("aa")
	g.Expect(before).To(BeEmpty())
	g.Expect(after).To(Equal([]string{"message", "message", "copy", "lease", "LeaseBound"}), "OFFER, ACK")
	l.passes(day + day/2)
	acked(t, l.renews("aa", ip))
	g.Expect(before).To(BeEmpty())
	g.Expect(after[5:]).To(Equal([]string{"message", "copy"}))
}
