package dhcp

import (
	"context"
	"errors"
	"testing"

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
