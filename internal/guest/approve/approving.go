package approve

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/cldmnky/oooi/internal/csr"
	"github.com/cldmnky/oooi/internal/guest/bounded"
	"github.com/cldmnky/oooi/internal/guest/kubeconfig"
	"github.com/cldmnky/oooi/internal/guest/pace"
)

// approving is one connection to a hosted cluster, with all watches on it. The first failure ends all of it; the next connection begins
// with lists, so that nothing is decided by what an earlier one has seen.
type approving struct {
	*approver
	access kubeconfig.Access
	api    *bounded.API
	group  *errgroup.Group
	dpus   *reading
	left   atomic.Int32 // watches whose first list is not complete yet

	seen     sync.Mutex // guards all below
	around   surroundings
	often    time.Time            // when a host last exceeded its rate of serving certificates
	leases   map[string]time.Time // renewal times by host, as last read
	approved approvals
	queue    queue
	stuck    map[string]bool // CSRs whose approval the hosted cluster refused
	warned   map[standing]time.Time
	notices  []Notice            // to be told once the lock is free
	untold   map[string][]Notice // by CSR, to be told if it turns out to be approved
	counted  int                 // bytes of queue and approvals that are counted in api.Keeps
	fresh    map[string]bool     // hosts to decide about
	all      bool                // decide about every host
	turned   bool                // watched objects other than CSRs changed since all hosts were decided about
	judged   time.Time           // when all hosts were decided about
	version  int                 // of the DPUs that were decided by
	next     time.Time           // when time alone may change a decision
}

// arrived counts complete lists. After the last, deciding begins.
func (v *approving) arrived() {
	if v.left.Add(-1) > 0 {
		return
	}
	v.fine()
	pace.Poke(v.Due)
}

// sooner records when to look again.
func (v *approving) sooner(t time.Time) {
	if !t.IsZero() && (v.next.IsZero() || t.Before(v.next)) {
		v.next = t
	}
}

func (v *approving) decideAll() {
	v.seen.Lock()
	defer v.seen.Unlock()
	v.all = true
}

// setStuck records whether the hosted cluster refused the approval of a CSR.
func (v *approving) setStuck(name string, stuck bool) {
	v.seen.Lock()
	defer v.seen.Unlock()
	if v.stuck[name] = true; !stuck {
		delete(v.stuck, name)
	}
}

func (v *approving) isStuck() bool {
	v.seen.Lock()
	defer v.seen.Unlock()
	return len(v.stuck) > 0
}

// decideLater has a CSR that the cached facts allow wait for a pause before the next try.
func (v *approving) decideLater(w *waiting, pause time.Duration) {
	v.seen.Lock()
	defer v.seen.Unlock()
	w.later = time.Now().Add(pause)
	v.fresh[w.asked.Host] = true
	pace.Poke(v.Due)
}

// serving is the limiter of a host's serving certificates. The caller holds the lock.
func (v *approving) serving(host string) *rate.Limiter {
	if v.served[host] == nil {
		v.served[host] = newServingPace()
	}
	return v.served[host]
}

// mayServe says whether a host may have another serving certificate now.
func (v *approving) mayServe(host string) bool {
	v.seen.Lock()
	defer v.seen.Unlock()
	may := v.serving(host).Tokens() >= 1
	if !may {
		v.often = time.Now()
		v.update(func(s *State) { s.Beyond = v.beyond() })
	}
	return may
}

// beyondAgain is how soon beyond is evaluated again.
const beyondAgain = 10 * time.Minute

// beyond describes the limits that the hosted cluster exceeds.
func (v *approving) beyond() (all []string) {
	if v.around.unknown {
		all = append(all, fmt.Sprintf("the hosted cluster has more than %d Services, or more than is kept of them (%d MiB, %d bytes for each address): serving certificates with addresses wait until there are fewer", bounded.MostObjects, bounded.MostBytes/2>>20, perAddress))
	}
	if pace.IsRecent(v.queue.crowded) {
		all = append(all, fmt.Sprintf("more than %d certificate requests waited: those of hosts that were no DPU's were dropped", mostWaiting))
	}
	if pace.IsRecent(v.queue.flooded) {
		all = append(all, fmt.Sprintf("more than %d certificate requests of one host waited: of the key that most of them carry the oldest were dropped", mostOfHost))
	}
	if pace.IsRecent(v.often) {
		all = append(all, fmt.Sprintf("a Node asks for serving certificates again and again: it gets %d, and then one a minute", servingAtOnce))
	}
	if v.api.IsSlowed() {
		all = append(all, fmt.Sprintf("the hosted cluster sends more than %d objects or %d HTTP/2 frames a second: it is read more slowly, so that its certificate requests may wait", bounded.ObjectsOfOne, bounded.AnswersOfOne))
	}
	defer func() {
		if len(all) > 0 {
			v.sooner(time.Now().Add(beyondAgain)) // they may not be recent any more then
		}
	}()
	if v.api.HasCut() {
		all = append(all, fmt.Sprintf("an object of the hosted cluster has more than %d parts, and no more than its name was read: if it is a Node, it gets no certificate", bounded.MostParts))
	}
	return all
}

// count counts CSRs and approvals in what is kept of all hosted clusters.
func (v *approving) count() error {
	more := v.queue.bytes + v.approved.bytes - v.counted
	v.counted += more
	return v.api.Keeps(more)
}

// factsNow are the facts about a host by the watches.
func (v *approving) factsNow(host string, dpus []csr.DPU) csr.Facts {
	return csr.Facts{
		Cluster: v.want.Cluster, DPUs: dpus, Nodes: v.around.nodes, Leases: v.leases, Services: v.around.services, ServicesUnknown: v.around.unknown, Now: time.Now(),
		ServiceNetworks: v.want.ServiceNetworks, NoRebootstrap: v.want.NoRebootstrap,
		API: v.want.API, HostedAPI: v.around.api, Holders: v.around.holders,
		Asking: map[string][]csr.Asked{host: v.queue.asking(host)}, Hidden: v.queue.hidden[host],
		Approved: map[string][]csr.Approval{host: slices.Collect(maps.Values(v.approved.hosts[host]))},
	}
}

func (v *approving) readDPUs(ctx context.Context) ([]csr.DPU, error) {
	ctx, cancel := context.WithTimeout(ctx, factsIn)
	defer cancel()
	cards, err := v.facts.DPUs(ctx, v.want.Cluster)
	return DPUs(cards), err
}

// readFacts are the facts about a host, with its Node, Lease and the DPUs read anew; the DPUs last, because a hosted cluster may be slow.
func (v *approving) readFacts(ctx context.Context, name string) (csr.Facts, error) {
	node, lease, err := readNode(ctx, v.api, name)
	if err != nil {
		return csr.Facts{}, err
	}
	_, told := v.cards()
	cards, err := v.dpus.now(ctx, told)
	if err != nil {
		return csr.Facts{}, err
	}
	v.seen.Lock()
	defer v.seen.Unlock()
	if v.leases[name] = lease; lease.IsZero() {
		delete(v.leases, name)
	}
	f := v.factsNow(name, cards)
	f.Nodes, f.Leases = maps.Clone(f.Nodes), maps.Clone(f.Leases)
	delete(f.Nodes, name)
	if node != nil {
		f.Nodes[name] = node.Node
	}
	return f, nil
}

// countsUntilShown counts an approval that exists, or may exist, so that the DPU's other CSRs wait until the watch shows the approved one.
func (v *approving) countsUntilShown(w *waiting, d csr.Decision) {
	v.seen.Lock()
	defer v.seen.Unlock()
	if _, unseen := v.queue.names[w.asked.Name]; unseen && d.Kind == csr.Bootstrap {
		_ = v.approved.add(d.Host, csr.Approval{Name: w.asked.Name, DPU: d.DPU.UID, Key: w.asked.Key, Created: w.asked.Created, At: time.Now()}) // the watch counts it too
	}
}
