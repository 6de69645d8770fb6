package leaselog

import (
	"bytes"
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
)

// history is what the log says of the past of the address that the tests use.
func history(t *testing.T, l *Log) []lease.Past {
	t.Helper()
	past, err := seen(t.Context(), l, func() []lease.Past { return l.past[record(10, "").IP] })
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return past
}

// holds is one binding after the other of an address: bound at a minute, and released at the next.
func holds(t *testing.T, l *Log, from, to int, after func()) {
	t.Helper()
	r, minute := record(10, ""), func(n int) lease.Seconds { return lease.SecondsOf(time.Date(2026, 11, 21, 10, n, 0, 0, time.UTC)) }
	r, err := l.Get(t.Context(), r.IP)
	g := NewWithT(t)
	if err != nil {
		r = record(10, "a")
	}
	write := l.Update
	for n := from; n < to; n++ {
		if r.Client.MAC, r.State, r.Since = string(rune('a'+n)), lease.Bound, minute(2*n); r.Version == 0 {
			write = l.Create
		}
		r, err = write(context.Background(), r)
		g.Expect(err).NotTo(HaveOccurred())
		after()
		r.State, r.Since = lease.Released, minute(2*n+1)
		r, err = l.Update(context.Background(), r)
		g.Expect(err).NotTo(HaveOccurred())
		after()
		write = l.Update
	}
}

// Whatever octet the power is cut at, the history that is read is the one that belonged to the record that is read.
func TestAfterAPowerCutTheHistoryIsThatOfTheRecord(t *testing.T) {
	g, d := NewWithT(t), &diskInMemory{none: true}
	l := opened(t, d)
	start := len(d.written)
	belongs := map[uint64][]lease.Past{}
	holds(t, l, 0, 4, func() {
		r, err := l.Get(t.Context(), record(10, "").IP)
		g.Expect(err).NotTo(HaveOccurred())
		belongs[r.Version] = history(t, l)
	})
	g.Expect(belongs).To(HaveLen(8))
	g.Expect(belongs[8]).To(HaveLen(4))
	content := d.written
	found := map[uint64]bool{}
	for cut := start; cut <= len(content); cut++ {
		after := opened(t, &diskInMemory{written: bytes.Clone(content[:cut])})
		if r, err := after.Get(t.Context(), record(10, "").IP); err == nil {
			found[r.Version] = true
			g.Expect(history(t, after)).To(Equal(belongs[r.Version]), "cut at %d", cut)
		} else {
			g.Expect(history(t, after)).To(BeEmpty(), "cut at %d", cut)
		}
		g.Expect(after.Close()).To(Succeed())
	}
	g.Expect(found).To(HaveLen(8), "each record was what was left")
}

func TestAWriteThatFailsLeavesTheHistory(t *testing.T) {
	g, d := NewWithT(t), &diskInMemory{none: true}
	l := opened(t, d)
	holds(t, l, 0, 2, func() {})
	before := history(t, l)
	g.Expect(before).To(HaveLen(2))
	r := created(t, l, record(11, "zz"))
	d.broken = context.DeadlineExceeded
	r.State = lease.Released
	_, err := l.Update(t.Context(), r)
	g.Expect(err).To(HaveOccurred())
	bound, err := l.Get(t.Context(), record(10, "").IP)
	g.Expect(err).NotTo(HaveOccurred())
	bound.State, bound.Client.MAC = lease.Bound, "zz"
	_, err = l.Update(t.Context(), bound)
	g.Expect(err).To(HaveOccurred())
	d.broken = nil
	g.Expect(l.Heal(t.Context())).To(Succeed())
	g.Expect(history(t, l)).To(Equal(before))
	for _, of := range []*Log{l, opened(t, d.afterPowerCut(0))} {
		g.Expect(history(t, of)).To(Equal(before))
		g.Expect(seen(t.Context(), of, func() int { return len(of.past) })).To(Equal(1))
	}
}

func TestCompactionKeepsTheHistory(t *testing.T) {
	g, path := NewWithT(t), filepath.Join(t.TempDir(), "leases")
	var before []lease.Past
	for n := range 3 { // each start rewrites the file
		l, err := Open(path, slog.New(slog.DiscardHandler), func(error) {})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(history(t, l)).To(Equal(before))
		holds(t, l, 10*n, 10*(n+1), func() {})
		before = history(t, l)
		g.Expect(l.Close()).To(Succeed())
	}
	g.Expect(before).To(HaveLen(lease.Kept))
	_, err := Read(path, func(_ lease.Record, past []lease.Past) { g.Expect(past).To(Equal(before)) })
	g.Expect(err).NotTo(HaveOccurred())
}
