package leasecli

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
)

// A client of 24 hours that renews after 11 and 22 is told 24 hours each time, and nothing is written but its first ACK.
func TestALeaseThatWasRenewedHasNotEnded(t *testing.T) {
	first := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	l := Lease{Record: lease.Record{IP: address, State: lease.Bound, Expires: first.Add(24 * time.Hour), Horizon: first.Add(48 * time.Hour)}}
	for after, want := range map[time.Duration]struct{ ends, told string }{
		23 * time.Hour: {"in 60m", "until 2026-11-29T12:00:00Z\n"},
		25 * time.Hour: {"within 23h", "until 2026-11-29T12:00:00Z; if it has renewed since, until 2026-11-30T12:00:00Z at most\n"},
		50 * time.Hour: {"120m ago", "until 2026-11-29T12:00:00Z; if it has renewed since, until 2026-11-30T12:00:00Z at most\n"},
	} {
		var table, card strings.Builder
		NewWithT(t).Expect(Table(&table, []Lease{l}, first.Add(after))).To(Succeed())
		NewWithT(t).Expect(table.String()).To(ContainSubstring("  Bound  "+want.ends+"  "), "after %v", after)
		NewWithT(t).Expect(Show(&card, l, time.Hour, first.Add(after))).To(Succeed())
		NewWithT(t).Expect(card.String()).To(ContainSubstring(want.told), "after %v", after)
	}
}

func TestWhenAnotherClientGetsAReleasedAddress(t *testing.T) {
	horizon := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	l := Lease{Record: lease.Record{State: lease.Released, Horizon: horizon}}
	NewWithT(t).Expect(next(l, time.Hour, horizon)).To(Equal("after 2026-11-28T13:00:00Z, or once every instance has dropped the lease; done: none"))
	NewWithT(t).Expect(next(l, time.Hour, horizon.Add(2*time.Hour))).To(Equal("now"))
}
