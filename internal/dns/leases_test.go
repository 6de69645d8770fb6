package dns

import (
	"context"
	"log/slog"
	"math"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
)

func TestALeaseIsPromisedUntilItsHorizon(t *testing.T) {
	horizon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		now      time.Time
		promised int
		next     time.Duration
	}{
		"before both":           {horizon.Add(-time.Minute), 2, time.Minute},
		"at the first":          {horizon, 1, time.Hour},
		"behind both":           {horizon.Add(2 * time.Hour), 0, math.MaxInt64},
		"the time is not known": {time.Time{}, 2, math.MaxInt64},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := newLeaseBook("", func() time.Time { return c.now }, slog.New(slog.DiscardHandler))
			b.restored = []*v1alpha1.DHCPLease{lease("worker-1", "192.168.100.57", horizon), lease("worker-2", "192.168.100.58", horizon.Add(time.Hour))}
			g.Expect(b.promised()).To(HaveLen(c.promised))
			g.Expect(b.untilNextEnd()).To(Equal(c.next))
			g.Expect(b.known()).To(HaveLen(2))
		})
	}
}

// published is a book with one lease, published once, and how often it was published since.
func published(t *testing.T, pause time.Duration, l *v1alpha1.DHCPLease) (b *leaseBook, times func() int32) {
	t.Helper()
	b = newLeaseBook(t.TempDir(), time.Now, slog.New(slog.DiscardHandler))
	b.restored, b.pause = []*v1alpha1.DHCPLease{l}, pause
	b.Learn(l)
	b.KeepOnly(map[string]bool{l.Name: true})
	ctx, stop := context.WithCancel(t.Context())
	var count atomic.Int32
	ended := make(chan error)
	go func() {
		ended <- b.follow(ctx, func() error {
			count.Add(1)
			return nil
		})
	}()
	t.Cleanup(func() {
		stop()
		NewWithT(t).Expect(<-ended).To(Succeed())
	})
	NewWithT(t).Eventually(count.Load, 10*time.Second).Should(BeEquivalentTo(1))
	return b, count.Load
}

// until is a lease with another horizon.
func until(l *v1alpha1.DHCPLease, horizon time.Time) *v1alpha1.DHCPLease {
	l = l.DeepCopy()
	l.Spec.DurableUntilTime = metav1.NewMicroTime(horizon)
	return l
}

func TestARenewalIsNoNewName(t *testing.T) {
	g, first := NewWithT(t), lease("worker-1", "192.168.100.57", time.Now().Add(time.Hour))
	b, times := published(t, time.Hour, first)
	g.Expect(b.restored).To(BeNil(), "all have been listed")
	b.Learn(until(first, time.Now().Add(2*time.Hour)))
	g.Consistently(times, 100*time.Millisecond).Should(BeEquivalentTo(1))
	b.Learn(lease("worker-2", "192.168.100.58", time.Now().Add(time.Hour)))
	g.Eventually(times, 10*time.Second).Should(BeEquivalentTo(2))
	b.Learn(until(first, time.Now().Add(90*time.Minute)))
	g.Eventually(times, 10*time.Second).Should(BeEquivalentTo(3), "one that ends sooner is no renewal")

	horizon := time.Now().Add(3 * time.Hour).UTC().Truncate(time.Microsecond)
	b, times = published(t, time.Millisecond, first)
	b.Learn(until(first, horizon))
	g.Eventually(times, 10*time.Second).Should(BeEquivalentTo(2), "renewals are published together")
	g.Eventually(func() []time.Time {
		var all []time.Time
		for _, l := range newLeaseBook(filepath.Dir(b.path), time.Now, slog.New(slog.DiscardHandler)).restored {
			all = append(all, l.Spec.DurableUntilTime.UTC())
		}
		return all
	}, 10*time.Second).Should(Equal([]time.Time{horizon}), "and are in the copy")
}

func TestALeaseThatWasRenewedHasNotEnded(t *testing.T) {
	g, horizon := NewWithT(t), time.Now().Add(3*time.Second)
	first := lease("worker-1", "192.168.100.57", horizon)
	b, times := published(t, time.Hour, first)
	b.Learn(until(first, time.Now().Add(time.Hour)))
	g.Eventually(time.Now, 10*time.Second).Should(BeTemporally(">", horizon))
	g.Consistently(times, 200*time.Millisecond).Should(BeEquivalentTo(1))
}

// A restored lease may end before the first configuration.
func TestAHorizonThatPassesBeforeAnythingIsServedEndsNothing(t *testing.T) {
	NewWithT(t).Expect((&Daemon{}).republish()).To(Succeed())
}
