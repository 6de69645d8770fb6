package approve

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/cldmnky/oooi/internal/csr"
	"github.com/cldmnky/oooi/internal/guest/pace"
)

const (
	// tellsAtOnce changes are told, and then one each tellEvery, of what is looked at each requestsEvery.
	tellsAtOnce   = 5
	tellEvery     = time.Minute
	requestsEvery = time.Second
	// judgedIn is when a request has been approved that nothing is wrong with.
	judgedIn = 5 * time.Second
)

// tellRequests keeps State.Requests up to date.
func (v *approving) tellRequests(ctx context.Context) error {
	for pace.Pause(ctx, requestsEvery); ctx.Err() == nil; pace.Pause(ctx, requestsEvery) {
		if v.left.Load() > 0 || v.tells.Tokens() < 1 { // beside a flood nothing is looked through that may not be told
			continue
		}
		all := v.requests(time.Now())
		v.mu.Lock()
		same := v.state.Listed && slices.Equal(all, v.state.Requests)
		v.mu.Unlock()
		if !same && v.tells.Allow() {
			v.update(func(s *State) { s.Requests, s.Listed = all, true })
		}
	}
	return ctx.Err()
}

// requests are those that wait, the newest of each host and kind, DPUs' first, and then the approved ones.
func (v *approving) requests(now time.Time) []Request {
	var waits []Request
	v.seen.Lock()
	for _, of := range v.queue.hosts {
		newest := map[csr.Kind]*waiting{}
		for _, w := range of {
			if n := newest[w.asked.Kind]; n == nil || newestFirst(w, n) < 0 {
				newest[w.asked.Kind] = w
			}
		}
		for _, w := range newest {
			if w.broken != "" || now.Sub(w.since) > judgedIn {
				waits = append(waits, Request{Name: w.asked.Name, Host: w.asked.Host, Kind: w.asked.Kind, Created: asStored(w.asked.Created), RefusedBy: w.broken})
			}
		}
	}
	v.seen.Unlock()
	waits = slices.DeleteFunc(waits, unspeakable)
	known, _ := v.cards()
	stranger := map[string]int{}
	for _, d := range known {
		stranger[d.Name] = -1
	}
	slices.SortFunc(waits, func(a, b Request) int {
		return cmp.Or(cmp.Compare(stranger[a.Host], stranger[b.Host]), b.Created.Compare(a.Created), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Concat(waits[:min(len(waits), mostTold)], v.recent)
}
