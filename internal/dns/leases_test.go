package dns

import (
	"log/slog"
	"math"
	"testing"
	"time"

	. "github.com/onsi/gomega"

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

// A restored lease may end before the first configuration.
func TestAHorizonThatPassesBeforeAnythingIsServedEndsNothing(t *testing.T) {
	NewWithT(t).Expect((&Daemon{}).republish()).To(Succeed())
}
