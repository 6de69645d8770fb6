package dhcp

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
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
