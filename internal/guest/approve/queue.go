package approve

import (
	"cmp"
	"net/netip"
	"slices"
	"time"
	"unsafe"

	"github.com/cldmnky/oooi/internal/csr"
	"github.com/cldmnky/oooi/internal/guest/bounded"
)

// Limits of the CSRs that we keep: anybody with the token in a worker's Ignition can create any number of them, in any host's name. A
// Node's own CSRs are counted separately.
const (
	mostOfHost  = 50
	mostWaiting = 5000
	// fewOfHost are kept of one host once the queue is full.
	fewOfHost = 5
	// mostApproved are counted; only an administrator of the hosted cluster can make that many.
	mostApproved = 10000
	// overhead is the bytes of each besides its names and addresses.
	overhead = 256
)

// behind is how far a watch may lag behind a read. What reads refuse repeatedly is read less often, each longestRefused in the end.
const behind, longestRefused = time.Second, time.Minute

// waiting is a well-formed CSR that is not approved.
type waiting struct {
	asked  csr.Asked
	since  time.Time
	broken string        // the rule that it was last refused by
	later  time.Time     // no try before this time
	pause  time.Duration // how long the last read that refused it postponed it
}

// longer doubles the pause, within limits.
func (w *waiting) longer() time.Duration {
	w.pause = min(max(behind, 2*w.pause), longestRefused)
	return w.pause
}

// isRefusedBy records the rule that refuses it, and counts it once, however often it refuses. The caller has the lock of what was seen.
func (w *waiting) isRefusedBy(broken string) {
	if w.broken != broken {
		w.broken = broken
		countDecision(w.asked.Kind, broken)
	}
}

// newestFirst: of several CSRs of one host, the kubelet waits for the newest only.
func newestFirst(a, b *waiting) int {
	return cmp.Or(b.asked.Created.Compare(a.asked.Created), cmp.Compare(a.asked.Name, b.asked.Name))
}

// queue has the waiting CSRs, by host and by name. Beyond the limits it drops, of one host and kind, the oldest with the commonest key, and
// of all a new one whose host is no DPU. That loses nothing: a DPU that is created later does not have CSRs from before (rule
// AskedInItsLife).
type queue struct {
	bytes   int
	crowded time.Time // when it last dropped a CSR because the queue was full
	flooded time.Time // when it last dropped one because its host had too many
	hosts   map[string][]*waiting
	names   map[string]string
	hidden  map[string]bool // DPUs of which every CSR with some key was dropped: that key may be the DPU's own
	// isDPU says whether a host is a DPU: no other is ever approved.
	isDPU func(host string) bool
}

func newQueue() queue {
	return queue{hosts: map[string][]*waiting{}, names: map[string]string{}, hidden: map[string]bool{}, isDPU: func(string) bool { return false }}
}

func sizeOf(a csr.Asked) int {
	return overhead + len(a.Name) + len(a.Host) + len(a.Addresses)*int(unsafe.Sizeof(netip.Addr{}))
}

func (q *queue) len() int { return len(q.names) }

func (q *queue) add(asked csr.Asked, now time.Time) {
	alike := slices.DeleteFunc(slices.Clone(q.hosts[asked.Host]), func(w *waiting) bool { return w.asked.Kind != asked.Kind })
	most, full := mostOfHost, q.bytes >= bounded.MostQueued
	if full {
		most = fewOfHost
	}
	for len(alike) >= most {
		q.flooded = now
		oldest := oldestOfCommonestKey(alike)
		q.remove(oldest.asked.Name)
		alike = slices.DeleteFunc(alike, func(w *waiting) bool { return w == oldest })
		if q.isDPU(asked.Host) && !slices.ContainsFunc(alike, func(w *waiting) bool { return w.asked.Key == oldest.asked.Key }) {
			q.hidden[asked.Host] = true
		}
	}
	if (full || len(q.names) >= mostWaiting) && !q.isDPU(asked.Host) {
		q.crowded = now
		return
	}
	q.bytes += sizeOf(asked)
	q.names[asked.Name] = asked.Host
	q.hosts[asked.Host] = append(q.hosts[asked.Host], &waiting{asked: asked, since: now})
}

// oldestOfCommonestKey is the CSR to drop, so that whoever asks often hides no other's key.
func oldestOfCommonestKey(all []*waiting) *waiting {
	count := map[csr.Key]int{}
	for _, w := range all {
		count[w.asked.Key]++
	}
	return slices.MaxFunc(all, func(a, b *waiting) int {
		return cmp.Or(cmp.Compare(count[a.asked.Key], count[b.asked.Key]), newestFirst(a, b))
	})
}

// comesToLight says whether a host with hidden keys has so few CSRs left that the hidden ones can be listed again.
func (q *queue) comesToLight(host string) bool {
	return q.hidden[host] && len(q.hosts[host]) < fewOfHost
}

// asking are the waiting CSRs of a host.
func (q *queue) asking(host string) (all []csr.Asked) {
	for _, w := range q.hosts[host] {
		all = append(all, w.asked)
	}
	return all
}

// refused says whether all waiting CSRs of a host have been judged and refused.
func (q *queue) refused(host string) bool {
	return !slices.ContainsFunc(q.hosts[host], func(w *waiting) bool { return w.broken == "" })
}

// soon shortens long pauses, because facts have changed.
func (q *queue) soon() {
	for _, ofHost := range q.hosts {
		for _, w := range ofHost {
			if w.pause > behind {
				w.later, w.pause = w.later.Add(behind-w.pause), behind
			}
		}
	}
}

func (q *queue) remove(name string) {
	host, there := q.names[name]
	if !there {
		return
	}
	delete(q.names, name)
	q.hosts[host] = slices.DeleteFunc(q.hosts[host], func(w *waiting) bool {
		if w.asked.Name == name {
			q.bytes -= sizeOf(w.asked)
		}
		return w.asked.Name == name
	})
	if len(q.hosts[host]) == 0 {
		delete(q.hosts, host)
	}
}

// approvals are the approved bootstrap CSRs, by host and by name. Too many end the visit, because a forgotten one would no longer keep its
// host's other CSRs waiting.
type approvals struct {
	hosts        map[string]map[string]csr.Approval
	count, bytes int
}

func (a *approvals) add(host string, one csr.Approval) error {
	a.remove(host, one.Name)
	if a.hosts == nil {
		a.hosts = map[string]map[string]csr.Approval{}
	}
	if a.hosts[host] == nil {
		a.hosts[host] = map[string]csr.Approval{}
	}
	a.hosts[host][one.Name] = one
	a.bytes += overhead + len(host) + len(one.Name)
	if a.count++; a.count > mostApproved {
		return bounded.ErrTooMuch
	}
	return nil
}

func (a *approvals) remove(host, name string) {
	if _, there := a.hosts[host][name]; !there {
		return
	}
	a.count--
	a.bytes -= overhead + len(host) + len(name)
	if delete(a.hosts[host], name); len(a.hosts[host]) == 0 {
		delete(a.hosts, host)
	}
}
