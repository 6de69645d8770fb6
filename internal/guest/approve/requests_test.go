package approve

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/time/rate"

	"github.com/cldmnky/oooi/internal/csr"
	"github.com/cldmnky/oooi/internal/guest/visits"
)

func watching(dpus ...string) *approving {
	a := &approver{Session: visits.NewSession(), tells: rate.NewLimiter(rate.Every(tellEvery), tellsAtOnce)}
	for _, name := range dpus {
		a.dpus = append(a.dpus, csr.DPU{Name: name})
	}
	v := &approving{approver: a, queue: newQueue()}
	v.queue.isDPU = a.isDPU
	return v
}

// waits has a CSR wait that was refused by a rule; none: it was not judged yet.
func (v *approving) waits(name, host string, kind csr.Kind, created time.Time, rule string) {
	v.queue.add(csr.Asked{Name: name, Host: host, Kind: kind, Created: created}, created)
	of := v.queue.hosts[host]
	of[len(of)-1].broken = rule
}

func named(all []Request) (names []string) {
	for _, r := range all {
		names = append(names, r.Name)
	}
	return names
}

func TestRequestsAreToldThatSaySomething(t *testing.T) {
	g, now := NewWithT(t), time.Date(2026, 11, 27, 20, 0, 0, 0, time.UTC)
	v := watching("dpu-1", "dpu-2")
	v.waits("older", "dpu-1", csr.Bootstrap, now.Add(-2*time.Minute), "OSInstalled")
	v.waits("newer", "dpu-1", csr.Bootstrap, now.Add(-time.Minute), "OSInstalled")
	v.waits("serve", "dpu-1", csr.Serving, now.Add(-3*time.Minute), "NodeExists")
	v.waits("strange", "stranger", csr.Bootstrap, now.Add(-time.Second), "DPUOfThisCluster")
	v.waits("just-now", "dpu-2", csr.Bootstrap, now.Add(-time.Second), "")
	v.waits("Not a name", "dpu-3", csr.Bootstrap, now, "DPUOfThisCluster")
	v.waits("no-host", "a\x1b[2J", csr.Bootstrap, now, "DPUOfThisCluster")
	v.waits("no-time", "dpu-4", csr.Bootstrap, time.Date(9999, 12, 31, 23, 0, 0, 0, time.FixedZone("", -12*3600)), "DPUOfThisCluster")
	v.waits("never", "dpu-5", csr.Bootstrap, time.Time{}, "DPUOfThisCluster")
	v.tell(nil)
	v.remembers(Notice{Name: "given-1", Host: "dpu-1", Kind: csr.Serving, Created: now.Add(-time.Hour)})
	v.remembers(Notice{Name: "given-2", Host: "dpu-1", Kind: csr.Serving, Created: now.Add(time.Millisecond)})
	v.remembers(Notice{Name: "no-host", Host: "..", Kind: csr.Serving, Created: now})
	all := v.requests(now)
	g.Expect(named(all)).To(Equal([]string{"newer", "serve", "strange", "given-2", "given-1"}), "of a host its newest, DPUs' before others'")
	g.Expect(all[0]).To(Equal(Request{Name: "newer", Host: "dpu-1", Kind: csr.Bootstrap, Created: now.Add(-time.Minute), RefusedBy: "OSInstalled"}))
	g.Expect(all[3].Created).To(Equal(now), "as it is stored")
	g.Expect(all[3].Approved).To(BeTemporally("~", time.Now(), time.Minute))
	g.Expect(named(v.requests(now.Add(judgedIn+time.Second)))).To(ContainElement("just-now"), "it is judged, and nothing comes of it")
	for i := range 2 * mostTold {
		v.waits(fmt.Sprint("many-", i), fmt.Sprint("host-", i), csr.Bootstrap, now, "DPUOfThisCluster")
		v.remembers(Notice{Name: fmt.Sprint("given-", i), Host: "dpu-1", Created: now})
	}
	all = v.requests(now)
	g.Expect(all).To(HaveLen(2 * mostTold))
	g.Expect(named(all)[0]).To(Equal("newer"), "who asks in many names hides no DPU's")
	g.Expect(all[mostTold].Name).To(Equal(fmt.Sprint("given-", 2*mostTold-1)))
}

// Each telling is a write to the management cluster, and whoever has the token can ask without end.
func TestAFloodOfRequestsIsToldOncePerMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, v := NewWithT(t), watching("dpu-1")
		v.left.Store(1)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- v.tellRequests(ctx) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		g.Expect(v.state.Listed).To(BeFalse(), "not all of them have been read")
		v.left.Store(0)
		time.Sleep(2 * requestsEvery)
		synctest.Wait()
		g.Expect(v.state.Listed).To(BeTrue())
		g.Expect(v.News).To(Receive())

		told, last := 0, ""
		for i := range 600 {
			v.seen.Lock()
			v.waits(fmt.Sprint("r-", i), "dpu-1", csr.Bootstrap, time.Now(), "OSInstalled")
			v.seen.Unlock()
			time.Sleep(time.Second)
			synctest.Wait()
			v.mu.Lock()
			if now := v.state.Requests[0].Name; now != last {
				told, last = told+1, now
			}
			v.mu.Unlock()
		}
		g.Expect(told).To(BeNumerically("~", tellsAtOnce+10, 2))
		stop()
		g.Expect(<-ended).To(MatchError(context.Canceled))
	})
}
