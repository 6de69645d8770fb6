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

// Limits of what we keep for strangers: anybody with the token in a worker's Ignition can send any number of CSRs, in any host's name.
// A Node's own CSRs are counted separately.
const (
	mostOfHost  = 50
	mostWaiting = 5000
	// fewOfHost are kept of one host where many hosts have many.
	fewOfHost = 5
	// mostApproved are counted, which an administrator of the hosted cluster alone makes.
	mostApproved = 10000
	// overhead in bytes of each beside its names and addresses.
	overhead = 256
)

// behind is how late a watch may show what a reading showed. What a reading refuses again and again is read less and less often.
const behind, longestRefused = time.Second, time.Minute

// waiting is a CSR that is well formed.
type waiting struct {
	asked  csr.Asked
	since  time.Time
	broken string        // the rule that it was last refused by
	later  time.Time     // not tried before
	pause  time.Duration // until then, if a reading refused it
}

// longer is twice the pause before.
func (w *waiting) longer() time.Duration {
	w.pause = min(max(behind, 2*w.pause), longestRefused)
	return w.pause
}

// isRefusedBy counts a rule once, however often it refuses.
func (w *waiting) isRefusedBy(broken string) {
	if w.broken != broken {
		w.broken = broken
		countDecision(w.asked.Kind, broken)
	}
}

// newestFirst: of several CSRs of one host the newest is its kubelet's; the others nobody waits for any more.
func newestFirst(a, b *waiting) int {
	return cmp.Or(b.asked.Created.Compare(a.asked.Created), cmp.Compare(a.asked.Name, b.asked.Name))
}

// queue are the CSRs that wait, by host and by name. What is too much is dropped: of one host and kind, the oldest of the
// commonest key; else, the newcomer that is no DPU's, by which nothing is lost: a DPU that is made later has asked for nothing before
// (rule AskedInItsLife).
type queue struct {
	bytes   int
	crowded time.Time // when something was dropped last that might have waited
	flooded time.Time // when one of too many of one host was
	hosts   map[string][]*waiting
	names   map[string]string
	hidden  map[string]bool // DPUs of which CSRs with a key that no other has were dropped: the DPU's own may be among them
	// isDPU knows the hosts that may ever be let in.
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

// oldestOfCommonestKey is dropped, so that who asks often hides no other's key.
func oldestOfCommonestKey(all []*waiting) *waiting {
	count := map[csr.Key]int{}
	for _, w := range all {
		count[w.asked.Key]++
	}
	return slices.MaxFunc(all, func(a, b *waiting) int {
		return cmp.Or(cmp.Compare(count[a.asked.Key], count[b.asked.Key]), newestFirst(a, b))
	})
}

// comesToLight says whether of a host of which CSRs were dropped so few are left that somebody has deleted the others.
func (q *queue) comesToLight(host string) bool {
	return q.hidden[host] && len(q.hosts[host]) < fewOfHost
}

// asking are those that wait for a host.
func (q *queue) asking(host string) (all []csr.Asked) {
	for _, w := range q.hosts[host] {
		all = append(all, w.asked)
	}
	return all
}

// refused says whether all that waits of a host has been judged, and refused.
func (q *queue) refused(host string) bool {
	return !slices.ContainsFunc(q.hosts[host], func(w *waiting) bool { return w.broken == "" })
}

// soon ends pauses that have become long: facts have turned.
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

// approvals are the bootstrap CSRs that are approved, by host and by name. One that was forgotten could be given again: too many end
// the visit.
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
