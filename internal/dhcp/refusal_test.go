package dhcp

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/leasekube"
)

// An API server that is slow in a storm accepts leases all the same.
func TestAStoreIsAwayOnceALeaseFailsAndNoOtherIsAccepted(t *testing.T) {
	g := NewWithT(t)
	r := &refusing{}
	began := time.Now()
	r.judge(began, nil)
	r.judge(began, context.DeadlineExceeded)
	g.Expect(r.Away()).To(BeFalse(), "another lease was accepted meanwhile")
	r.judge(time.Now(), errors.Join(lease.ErrExists))
	g.Expect(r.Away()).To(BeFalse(), "another instance was first")
	r.judge(time.Now(), context.DeadlineExceeded)
	g.Expect(r.Away()).To(BeTrue())
}

// Of two instances one that is cut off finds it out by the write for a holder that boots, too.
func TestAStoreIsAwayOnceARecordIsNotWritten(t *testing.T) {
	for name, c := range map[string]struct {
		update error
		away   bool
	}{
		"it does not answer":          {context.DeadlineExceeded, true},
		"another instance was first":  {apierrors.NewConflict(schema.GroupResource{}, "lease", errors.New("changed")), false},
		"somebody deleted the record": {apierrors.NewNotFound(schema.GroupResource{}, "lease"), false},
		"it is written":               {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			api := fake.NewClientBuilder().WithScheme(daemon.Scheme()).WithInterceptorFuncs(interceptor.Funcs{
				Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return c.update },
			}).Build()
			r := &refusing{Store: &leasekube.Store{Client: api, Namespace: "ns", Server: "s", Labels: func() map[string]string { return nil }}}
			stored, err := r.Create(t.Context(), lease.Record{IP: us, Client: lease.Client{MAC: "52:54:00:00:00:01"}, State: lease.Bound, Horizon: epoch})
			g.Expect(err).NotTo(HaveOccurred())
			_, err = r.Update(t.Context(), stored)
			g.Expect(err != nil).To(Equal(c.update != nil))
			g.Expect([]bool{r.Away(), r.Cut()}).To(Equal([]bool{c.away, c.away}))
		})
	}
}

func TestATrialTellsWhetherNothingIsWrittenOrNoNewLease(t *testing.T) {
	for name, c := range map[string]struct {
		create    error
		away, cut bool
	}{
		"it does not answer":       {context.DeadlineExceeded, true, true},
		"a quota is used up":       {apierrors.NewForbidden(schema.GroupResource{}, "lease", errors.New("quota")), true, false},
		"it answers with an error": {apierrors.NewInternalError(errors.New("a webhook")), true, false},
		"it accepts leases":        {nil, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			api := fake.NewClientBuilder().WithScheme(daemon.Scheme()).WithInterceptorFuncs(interceptor.Funcs{
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return c.create },
			}).Build()
			r := &refusing{Store: &leasekube.Store{Client: api, Namespace: "ns", Server: "s", Labels: func() map[string]string { return nil }}, told: func(error) {}, away: true}
			r.try(t.Context())
			NewWithT(t).Expect([]bool{r.Away(), r.Cut()}).To(Equal([]bool{c.away, c.cut}))
		})
	}
}
