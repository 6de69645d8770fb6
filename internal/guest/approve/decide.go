package approve

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cldmnky/oooi/internal/csr"
	"github.com/cldmnky/oooi/internal/guest/bounded"
	"github.com/cldmnky/oooi/internal/guest/kubeconfig"
	"github.com/cldmnky/oooi/internal/guest/pace"
)

const (
	// hostsAtOnce are decided about concurrently, so that one that hangs does not block the others.
	hostsAtOnce = 8
	// allEvery is how often at most all waiting CSRs are judged again after a change in the hosted cluster; a new one is judged at once.
	allEvery = time.Second
)

// decide decides after each change, and when time alone may change a decision.
func (v *approving) decide(ctx context.Context) error {
	for tries := 0; ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-v.Due:
		case <-v.again():
			v.decideAll()
		}
		if v.left.Load() > 0 {
			continue
		}
		may := v.candidates()
		v.tell(v.noted())
		unread, err := v.round(ctx, may)
		switch {
		case err != nil:
			return err
		case unread != nil:
			v.trouble(ManagementUnreachable, fmt.Sprintf("nothing is approved, because the DPUs of DPUCluster %s cannot be read: %s", v.want.Cluster, bounded.Why(unread, kubeconfig.Access{})))
			v.decideAll()
			pace.Pause(ctx, pace.Backoff(tries))
			pace.Poke(v.Due)
			tries++
			continue
		case !v.isStuck():
			v.fine()
		}
		tries = 0
	}
}

// again fires when time alone may change a decision.
func (v *approving) again() <-chan time.Time {
	v.seen.Lock()
	defer v.seen.Unlock()
	if v.next.IsZero() {
		return nil
	}
	return time.After(time.Until(v.next))
}

// toDecide are the hosts to decide about. The caller holds the lock.
func (v *approving) toDecide() []string {
	hosts := slices.Collect(maps.Keys(v.fresh))
	if v.all {
		hosts, v.next = slices.Collect(maps.Keys(v.queue.hosts)), time.Time{}
	}
	v.all = false
	clear(v.fresh)
	return hosts
}

// candidates are, by host, the CSRs that the cached facts allow, newest first.
func (v *approving) candidates() map[string][]*waiting {
	known, version := v.cards()
	v.seen.Lock()
	defer v.seen.Unlock()
	v.judgesAll(version)
	v.update(func(s *State) { s.Beyond = v.beyond() })
	may, cards := map[string][]*waiting{}, map[string]bool{}
	for _, d := range known {
		cards[d.Name] = true
	}
	v.forgetWarnings(cards)
	for _, host := range v.toDecide() {
		if !cards[host] && len(v.stuck) == 0 && v.queue.refused(host) { // without a DPU of this name, no other fact matters
			continue
		}
		f, refused, dpu := v.factsNow(host, known), "", csr.DPU{}
		for _, w := range slices.SortedFunc(slices.Values(v.queue.hosts[host]), newestFirst) {
			d := w.asked.Judge(f)
			dpu = d.DPU
			switch broken := d.Broken(); {
			case broken != "":
				if w.isRefusedBy(broken); broken == csr.RuleRebootstrap {
					refused = w.asked.Name
				}
				delete(v.stuck, w.asked.Name)
				v.sooner(d.Again)
			case w.later.After(f.Now):
				v.sooner(w.later)
			default:
				may[host] = append(may[host], w)
			}
		}
		if cards[host] {
			v.compareKeys(host, dpu, f)
			v.refuseAgain(host, refused)
		}
	}
	return may
}

// judgesAll has all waiting CSRs judged after a change of DPUs at once, and after one in the hosted cluster once per allEvery.
func (v *approving) judgesAll(version int) {
	switch due := v.judged.Add(allEvery); {
	case version == v.version && !v.turned:
	case version == v.version && time.Now().Before(due):
		v.sooner(due)
	default:
		v.all, v.turned, v.version, v.judged = true, false, version, time.Now()
		v.queue.soon()
	}
}

// round decides about the candidates by facts that are read anew. Unread is why the DPUs could not be read.
func (v *approving) round(ctx context.Context, may map[string][]*waiting) (unread, err error) {
	v.dpus.failed = nil
	group, deciding := errgroup.WithContext(ctx)
	group.SetLimit(hostsAtOnce)
	for _, host := range slices.Sorted(maps.Keys(may)) {
		group.Go(func() error { return v.decideHost(deciding, host, may[host]) })
	}
	err = group.Wait()
	return v.dpus.failed, cmp.Or(err, ctx.Err())
}
