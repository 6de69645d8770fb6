package approve

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/cldmnky/oooi/internal/csr"
	"github.com/cldmnky/oooi/internal/guest/bounded"
	"github.com/cldmnky/oooi/internal/guest/visits"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

func TestWhatIsKeptOfCSRsIsCounted(t *testing.T) {
	g := NewWithT(t)
	v := &approving{approver: &approver{Session: visits.NewSession()}, api: connected(t), queue: newQueue(), fresh: map[string]bool{}}
	for i := range 100 {
		v.queue.add(csr.Asked{Kind: csr.Bootstrap, Name: fmt.Sprint(i), Host: "dpu-1"}, time.Now())
		g.Expect(v.approved.add("dpu-1", csr.Approval{Name: fmt.Sprint(i)})).To(Succeed())
	}
	g.Expect(v.count()).To(Succeed())
	hasRoom := func(bytes int) bool {
		defer func() { _ = v.api.Keeps(-bytes) }()
		return v.api.Keeps(bytes) == nil
	}
	g.Expect(hasRoom(bounded.MostBytes - (100+mostOfHost)*overhead)).To(BeFalse())
	for i := range 100 {
		v.queue.remove(fmt.Sprint(i))
		v.approved.remove("dpu-1", fmt.Sprint(i))
	}
	g.Expect(v.count()).To(Succeed())
	g.Expect(hasRoom(bounded.MostBytes)).To(BeTrue())
	v.approved.bytes = bounded.MostBytes + 1
	g.Expect(v.count()).To(MatchError(bounded.ErrTooMuch), "the visit ends")
}

func TestAQueueIsBounded(t *testing.T) {
	g, now := NewWithT(t), time.Now()
	v := &approving{api: connected(t), queue: newQueue()}
	q := &v.queue
	for i := range mostOfHost + 10 {
		if i == mostOfHost {
			g.Expect(v.beyond()).To(BeEmpty())
		}
		q.add(csr.Asked{Name: fmt.Sprintf("own-%d", i), Host: "dpu-1", Created: now.Add(time.Duration(i) * time.Second)}, now)
	}
	g.Expect(q.len()).To(Equal(mostOfHost))
	g.Expect(v.beyond()).To(ConsistOf(HavePrefix("more than 50 certificate requests of one host waited")))
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

// The management API is read for DPUs once a second, however often a hosted cluster needs decisions, and again after each change of them.
func TestDecisionsShareAReadingForASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, reads := NewWithT(t), 0
		r := &reading{read: func(context.Context) ([]csr.DPU, error) { reads++; return nil, nil }}
		now := func(told int) int {
			_, err := r.now(t.Context(), told)
			g.Expect(err).NotTo(HaveOccurred())
			return reads
		}
		g.Expect(now(1)).To(Equal(1))
		time.Sleep(freshFor)
		g.Expect(now(1)).To(Equal(1))
		g.Expect(now(2)).To(Equal(2), "one was installed meanwhile, say")
		time.Sleep(freshFor + 1)
		g.Expect(now(2)).To(Equal(3))
		away := errors.New("away")
		r.read = func(context.Context) ([]csr.DPU, error) { reads++; return nil, away }
		for range 2 {
			_, err := r.now(t.Context(), 3)
			g.Expect(err).To(MatchError(errUnread))
		}
		g.Expect(reads).To(Equal(4), "and not again in this round")
	})
}

// Nobody with a bootstrap token can end a visit by filling the queue; names may have 253 octets.
func TestWhatWaitsIsBoundedByItsBytes(t *testing.T) {
	g, q, now := NewWithT(t), newQueue(), time.Now()
	const dpus = 300
	q.isDPU = func(host string) bool { return strings.HasPrefix(host, "dpu") }
	long := strings.Repeat("x", 240)
	for i := range 3 * mostOfHost {
		for n := range dpus {
			q.add(csr.Asked{Kind: csr.Bootstrap, Name: fmt.Sprintf("%s-%d-%d", long, i, n), Host: fmt.Sprintf("dpu-%s-%d", long[:200], n), Created: now.Add(time.Duration(i) * time.Second)}, now)
		}
	}
	g.Expect(q.bytes).To(BeNumerically("<", 3*bounded.MostBytes/8))
	g.Expect(q.hosts).To(HaveLen(dpus), "no DPU is kept out")
	for i := range mostWaiting {
		q.add(csr.Asked{Kind: csr.Bootstrap, Name: fmt.Sprintf("%s-%d", long, i), Host: fmt.Sprintf("stranger-%d", i)}, now)
	}
	g.Expect(q.bytes).To(BeNumerically("<", 3*bounded.MostBytes/8))
	q.add(csr.Asked{Kind: csr.Bootstrap, Name: "own", Host: "dpu-new"}, now)
	g.Expect(q.names).To(HaveKey("own"))
}

// Each notice of an approval is an Event in the management cluster that requests from a hosted cluster create.
func TestApprovalsBeyondABoundHaveNoEventOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		var told []Notice
		all := NewApprovals(nil, nil, nil, nil).approver(types.NamespacedName{}, bridge.Approval{}, func(n Notice) { told = append(told, n) })
		for range eventsAtOnce + 3 {
			all.tell([]Notice{{Message: "approved"}})
		}
		g.Expect(told).To(HaveLen(eventsAtOnce))
		all.tell([]Notice{{Message: "somebody asks", Warning: true, Reason: KeysDiffer}})
		g.Expect(told).To(HaveLen(eventsAtOnce+1), "warnings have a bound of their own")
		for range 3 {
			all.tell([]Notice{{Host: "dpu-1", Warning: true, Reason: NodeRebootstrapped}})
		}
		g.Expect(told).To(HaveLen(eventsAtOnce + 2))
		time.Sleep(eventEvery)
		all.tell([]Notice{{Message: "approved"}, {Message: "approved"}})
		g.Expect(told).To(HaveLen(eventsAtOnce + 3))
		g.Expect(told[len(told)-1].Message).To(Equal("approved (3 more approvals had no event since the last)"))
	})
}

// A waiting CSR whose host is no DPU is judged once, however often the facts change: there may be thousands.
func TestWhatAStrangerAsksForIsJudgedOnce(t *testing.T) {
	g := NewWithT(t)
	v := &approving{approver: &approver{Session: visits.NewSession(), warned: map[standing]time.Time{}}, api: connected(t), queue: newQueue(), fresh: map[string]bool{}, stuck: map[string]bool{}}
	v.queue.add(csr.Asked{Kind: csr.Bootstrap, Name: "strange", Host: "stranger"}, time.Now())
	turn := func() string {
		v.turned, v.judged = true, time.Time{}
		g.Expect(v.candidates()).To(BeEmpty())
		return v.queue.hosts["stranger"][0].broken
	}
	g.Expect(turn()).To(Equal("DPUOfThisCluster"))
	v.queue.hosts["stranger"][0].broken = "judged before"
	g.Expect(turn()).To(Equal("judged before"))
	v.sees([]csr.DPU{{Name: "stranger"}})
	g.Expect(turn()).To(Equal("OSInstalled"), "there is a DPU of that name")
}

// Otherwise Nodes that change all the time would have all waiting CSRs judged as often. A new one is judged at once.
func TestAllThatWaitsIsJudgedAnewOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		v := &approving{approver: &approver{Session: visits.NewSession(), warned: map[standing]time.Time{}}, api: connected(t), queue: newQueue(), fresh: map[string]bool{}, stuck: map[string]bool{}}
		v.sees([]csr.DPU{{Name: "dpu-1"}})
		asks := func(name string) {
			v.queue.add(csr.Asked{Kind: csr.Bootstrap, Name: name, Host: name}, time.Now())
			v.fresh[name] = true
		}
		judged := func(name string) bool {
			v.turned = true
			g.Expect(v.candidates()).To(BeEmpty())
			is := v.queue.hosts[name][0].broken != ""
			v.queue.hosts[name][0].broken = ""
			return is
		}
		asks("dpu-1")
		g.Expect(judged("dpu-1")).To(BeTrue())
		g.Expect(judged("dpu-1")).To(BeFalse())
		asks("dpu-2")
		g.Expect(judged("dpu-2")).To(BeTrue(), "it is new")
		select {
		case <-v.again():
			t.Fatal("too soon")
		case <-time.After(allEvery - 1):
		}
		<-v.again()
		v.decideAll()
		g.Expect(judged("dpu-1")).To(BeTrue())
	})
}

// An administrator of a hosted cluster can approve as many CSRs as etcd stores. We forget none, because its host could get another.
func TestApprovalsAreBounded(t *testing.T) {
	g, a := NewWithT(t), approvals{}
	given := func(i int) error {
		return a.add(fmt.Sprintf("host-%d", i%3), csr.Approval{Name: fmt.Sprintf("given-%d", i)})
	}
	for i := range mostApproved {
		g.Expect(given(i)).To(Succeed())
		g.Expect(given(i)).To(Succeed(), "the same again")
	}
	g.Expect(given(mostApproved)).To(MatchError(bounded.ErrTooMuch))
	v := &approving{approver: &approver{Session: visits.NewSession()}, api: connected(t), queue: newQueue(), approved: a}
	g.Expect(v.take(watch.Added, []byte(`{
		"metadata": {"name": "another"}, "spec": {"signerName": "kubernetes.io/kube-apiserver-client-kubelet"},
		"status": {"conditions": [{"type": "Approved", "status": "True"}]}
	}`))).To(MatchError(bounded.ErrTooMuch), "the visit ends")
	v.approved.remove("", "another")
	a = v.approved
	for i := range mostApproved + 1 {
		a.remove(fmt.Sprintf("host-%d", i%3), fmt.Sprintf("given-%d", i))
		a.remove("nobody", "none")
	}
	g.Expect(a.hosts).To(BeEmpty())
	g.Expect(given(0)).To(Succeed())
}

// The watch may show an approval late; until then no second CSR of the DPU may be approved.
func TestAnApprovalCountsAtOnce(t *testing.T) {
	g := NewWithT(t)
	v := &approving{approver: &approver{Session: visits.NewSession()}, api: connected(t), queue: newQueue()}
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
		"the next try times out too": {func(v *approving, w *waiting, d csr.Decision) { v.isNotTaken(w, d, nil, timedOut) }, 1},
		"the next try is refused": {func(v *approving, w *waiting, d csr.Decision) {
			v.isNotTaken(w, d, nil, apierrors.NewForbidden(schema.GroupResource{}, "one", nil))
		}, 0},
		"the watch shows it unchanged": {shows(watch.Modified), 0},
		"the watch shows it gone":      {shows(watch.Deleted), 0},
		"the watch shows it gone, and then comes the answer": {func(v *approving, w *waiting, d csr.Decision) {
			shows(watch.Deleted)(v, w, d)
			v.isNotTaken(w, d, nil, timedOut)
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			v := &approving{approver: &approver{Session: visits.NewSession()}, api: connected(t), queue: newQueue(), fresh: map[string]bool{}, untold: map[string][]Notice{}}
			v.queue.add(csr.Asked{Kind: csr.Bootstrap, Name: "one", Host: "dpu-1"}, time.Now())
			w, d := v.queue.hosts["dpu-1"][0], csr.Decision{Kind: csr.Bootstrap, Host: "dpu-1", DPU: csr.DPU{Name: "dpu-1", UID: "uid-1"}}
			v.isNotTaken(w, d, nil, timedOut)
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

// Whoever asks again and again in a host's name hides no other's key.
func TestAFloodHidesNoOtherKey(t *testing.T) {
	g, q, now := NewWithT(t), newQueue(), time.Now()
	q.add(csr.Asked{Kind: csr.Bootstrap, Name: "own", Host: "dpu-1", Key: csr.Key{1}, Created: now}, now)
	for i := range 3 * mostOfHost {
		q.add(csr.Asked{Kind: csr.Bootstrap, Name: fmt.Sprintf("strange-%d", i), Host: "dpu-1", Key: csr.Key{2}, Created: now.Add(time.Duration(i) * time.Second)}, now)
	}
	g.Expect(q.names).To(HaveKey("own"))
	g.Expect(q.names).To(HaveKey(fmt.Sprintf("strange-%d", 3*mostOfHost-1)))
	g.Expect(q.len()).To(Equal(mostOfHost))
}

func TestAWarningIsToldAgainAfterAWhileOnly(t *testing.T) {
	g := NewWithT(t)
	v := &approving{approver: &approver{}, warned: map[standing]time.Time{}}
	warning := Notice{Name: "one", Host: "dpu-1", Reason: KeysDiffer}
	for range 3 {
		v.warn(warning)
	}
	g.Expect(v.noted()).To(ConsistOf(And(HaveField("Warning", true), HaveField("Kind", csr.Bootstrap))))
	v.warned[standing{KeysDiffer, "dpu-1"}] = time.Now().Add(-warnAgain - time.Second)
	v.warn(warning)
	g.Expect(v.noted()).To(HaveLen(1))
	v.forgetWarnings(map[string]bool{"dpu-2": true})
	g.Expect(v.warned).To(BeEmpty())
}

// An approval that timed out but was stored is told when the watch shows it.
func TestAnApprovalOfUnknownOutcomeIsToldWhenItIsSeen(t *testing.T) {
	for shown, want := range map[string]int{
		`{"metadata": {"name": "one"}, "spec": {"signerName": "kubernetes.io/kube-apiserver-client-kubelet"}, "status": {"conditions": [{"type": "Approved", "status": "True"}]}}`: 1,
		`{"metadata": {"name": "one"}}`: 0,
	} {
		g := NewWithT(t)
		v := &approving{approver: &approver{Session: visits.NewSession()}, api: connected(t), queue: newQueue(), fresh: map[string]bool{}, untold: map[string][]Notice{}}
		v.queue.add(csr.Asked{Kind: csr.Bootstrap, Name: "one", Host: "dpu-1"}, time.Now())
		v.isNotTaken(v.queue.hosts["dpu-1"][0], csr.Decision{Kind: csr.Bootstrap, Host: "dpu-1"}, []Notice{{Name: "one"}}, apierrors.NewGenericServerResponse(504, "put", schema.GroupResource{}, "", "", 0, true))
		g.Expect(v.noted()).To(BeEmpty())
		for range 2 {
			g.Expect(v.take(watch.Modified, []byte(shown))).To(Succeed())
		}
		g.Expect(v.noted()).To(HaveLen(want), "once, if at all")
		g.Expect(v.untold).To(BeEmpty())
	}
}

func TestWhatIsMoreThanIsKeptIsSaid(t *testing.T) {
	g := NewWithT(t)
	v := &approving{approver: &approver{Session: visits.NewSession()}, api: connected(t), queue: newQueue(), fresh: map[string]bool{}, untold: map[string][]Notice{}}
	state := func() []string {
		g.Expect(v.take(watch.Deleted, []byte(`{"metadata": {"name": "one"}}`))).To(Succeed())
		return v.sees(nil).Beyond
	}
	g.Expect(state()).To(BeEmpty())
	v.around.haveServices([]taken{{Unknown: true}})
	g.Expect(state()).To(ConsistOf(ContainSubstring("more than 5000 Services, or more than is kept of them (4 MiB")))
	for i := range mostWaiting + 1 {
		v.queue.add(csr.Asked{Name: fmt.Sprint(i), Host: fmt.Sprintf("stranger-%d", i)}, time.Now())
	}
	g.Expect(state()).To(ConsistOf(ContainSubstring("Services"), ContainSubstring("more than 5000 certificate requests waited")))
	v.around.haveServices(nil)
	g.Expect(state()).To(HaveLen(1))
}
