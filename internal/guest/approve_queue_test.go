package guest

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/cldmnky/oooi/internal/csr"
)

func TestAQueueIsBounded(t *testing.T) {
	g, q, now := NewWithT(t), newQueue(), time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for i := range mostOfHost + 10 {
		q.add(csr.Asked{Name: fmt.Sprintf("own-%d", i), Host: "dpu-1", Created: now.Add(time.Duration(i) * time.Second)}, now)
	}
	g.Expect(q.len()).To(Equal(mostOfHost))
	g.Expect(q.names).NotTo(HaveKey("own-9"), "the oldest are dropped")
	g.Expect(q.names).To(HaveKey("own-59"))
	for i := range mostWaiting {
		q.add(csr.Asked{Name: fmt.Sprintf("strange-%d", i), Host: fmt.Sprintf("stranger-%d", i)}, now)
	}
	g.Expect(q.len()).To(Equal(mostWaiting))
	q.remove("own-59")
	g.Expect(q.hosts["dpu-1"]).To(HaveLen(mostOfHost - 1))
	for name := range q.names {
		q.remove(name)
	}
	g.Expect(q.hosts).To(BeEmpty())
}

// Who administers a hosted cluster can approve as many as its etcd holds. None is forgotten: it could be given again.
func TestApprovalsAreBounded(t *testing.T) {
	g, a := NewWithT(t), approvals{}
	given := func(i int) error {
		return a.add(fmt.Sprintf("host-%d", i%3), csr.Approval{Name: fmt.Sprintf("given-%d", i)})
	}
	for i := range mostApproved {
		g.Expect(given(i)).To(Succeed())
		g.Expect(given(i)).To(Succeed(), "the same again")
	}
	g.Expect(given(mostApproved)).To(MatchError(errTooMuch))
	v := &approving{approver: &approver{life: newLife()}, queue: newQueue(), approved: a}
	g.Expect(v.take(watch.Added, []byte(`{
		"metadata": {"name": "another"}, "spec": {"signerName": "kubernetes.io/kube-apiserver-client-kubelet"},
		"status": {"conditions": [{"type": "Approved", "status": "True"}]}
	}`))).To(MatchError(errTooMuch), "the visit ends")
	v.approved.remove("", "another")
	a = v.approved
	for i := range mostApproved + 1 {
		a.remove(fmt.Sprintf("host-%d", i%3), fmt.Sprintf("given-%d", i))
		a.remove("nobody", "none")
	}
	g.Expect(a.hosts).To(BeEmpty())
	g.Expect(given(0)).To(Succeed())
}

// The watch may show an approval late: until then a second CSR of the DPU must not pass.
func TestAnApprovalCountsAtOnce(t *testing.T) {
	g := NewWithT(t)
	v := &approving{approver: &approver{life: newLife()}, queue: newQueue()}
	one := csr.Asked{Kind: csr.Bootstrap, Name: "one", Host: "dpu-1"}
	v.queue.add(one, time.Now())
	v.isApproved(v.queue.hosts["dpu-1"][0], csr.Decision{Kind: csr.Bootstrap, Host: "dpu-1", DPU: csr.DPU{Name: "dpu-1", UID: "uid-1"}})
	known := v.factsNow("dpu-1", nil).Approved["dpu-1"]
	g.Expect(known).To(HaveLen(1))
	g.Expect(known[0]).To(And(HaveField("Name", "one"), HaveField("DPU", Equal(types.UID("uid-1")))))
	g.Expect(v.queue.len()).To(BeZero())
}

func TestWhatMayBeApprovedCountsUntilItsCSRIsShown(t *testing.T) {
	timedOut := apierrors.NewGenericServerResponse(504, "put", schema.GroupResource{}, "", "", 0, true)
	for name, c := range map[string]struct {
		then   func(v *approving, w *waiting, d csr.Decision)
		counts int
	}{
		"nothing more is known":      {func(*approving, *waiting, csr.Decision) {}, 1},
		"the next try times out too": {func(v *approving, w *waiting, d csr.Decision) { v.isNotTaken(w, d, timedOut) }, 1},
		"the next try is refused": {func(v *approving, w *waiting, d csr.Decision) {
			v.isNotTaken(w, d, apierrors.NewForbidden(schema.GroupResource{}, "one", nil))
		}, 0},
		"the watch shows it unchanged": {shows(watch.Modified), 0},
		"the watch shows it gone":      {shows(watch.Deleted), 0},
		"the watch shows it gone, and then comes the answer": {func(v *approving, w *waiting, d csr.Decision) {
			shows(watch.Deleted)(v, w, d)
			v.isNotTaken(w, d, timedOut)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			v := &approving{approver: &approver{life: newLife()}, queue: newQueue(), fresh: map[string]bool{}}
			v.queue.add(csr.Asked{Kind: csr.Bootstrap, Name: "one", Host: "dpu-1"}, time.Now())
			w, d := v.queue.hosts["dpu-1"][0], csr.Decision{Kind: csr.Bootstrap, Host: "dpu-1", DPU: csr.DPU{Name: "dpu-1", UID: "uid-1"}}
			v.isNotTaken(w, d, timedOut)
			c.then(v, w, d)
			g.Expect(v.factsNow("dpu-1", nil).Approved["dpu-1"]).To(HaveLen(c.counts))
		})
	}
}

func shows(event watch.EventType) func(*approving, *waiting, csr.Decision) {
	return func(v *approving, _ *waiting, _ csr.Decision) {
		_ = v.take(event, []byte(`{"metadata": {"name": "one"}}`))
	}
}
