package dhcp

import (
	"context"
	"errors"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
)

type failing struct {
	lease.Store
	err error
}

func (f failing) Create(context.Context, lease.Record) (lease.Record, error) {
	return lease.Record{}, f.err
}

// That the other instance was first is usual; an alert is for a store that refuses.
func TestAConflictIsNoFailureOfTheStore(t *testing.T) {
	for result, err := range map[string]error{"ok": nil, "conflict": lease.ErrExists, "error": errors.New("quota")} {
		took := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "took"}, []string{"operation", "result"})
		_, _ = timedStore{failing{err: err}, took}.Create(t.Context(), lease.Record{})
		NewWithT(t).Expect(took.DeleteLabelValues("create", result)).To(BeTrue(), result)
	}
}

func TestAPoolIsCountedAsKeaCounts(t *testing.T) {
	l, g := newLab(t, 10), NewWithT(t)
	m := newMetrics(l.server)
	scraped := func() string {
		answer := httptest.NewRecorder()
		m.handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
		return answer.Body.String()
	}
	ip := l.binds("aa")
	l.declines("bb", l.binds("bb"))
	for i := range 8 {
		l.binds("c" + string(rune('0'+i)))
	}
	ignored(t, l.discover("dd"))
	refused(t, l.selects("dd", ip))
	all := scraped()
	for _, line := range []string{
		`packets_received_total{kind="discover",outcome="offer/free"} 10`,
		`packets_received_total{kind="discover",outcome="silence/pool-exhausted"} 1`,
		`packets_received_total{kind="decline",outcome="update/declined"} 1`,
		`packets_sent_total{kind="offer"} 10`, `packets_sent_total{kind="ack"} 10`, `packets_sent_total{kind="nak"} 1`,
		`addresses 10`, `addresses_assigned 9`, `addresses_declined 1`, `leases 10`, `leases_reclaimed_total 0`,
	} {
		g.Expect(all).To(ContainSubstring("oooi_dhcp_" + line + "\n"))
	}

	l.passes(100 * time.Hour)
	g.Expect(l.binds("aa")).To(Equal(ip), "its own is none that is reclaimed")
	for i := range 9 {
		l.binds("d" + string(rune('0'+i)))
	}
	g.Expect(scraped()).To(And(ContainSubstring("oooi_dhcp_leases_reclaimed_total 8\n"), ContainSubstring("oooi_dhcp_addresses_declined 0\n")), "one was declined")
}
