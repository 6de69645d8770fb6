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

// approving is one connection to a hosted cluster, with all that is watched there. The first thing that fails ends all of it; the
// next begins with lists, so that nothing is decided on what was seen before.
type approving struct {
	*approver
	access kubeconfig.Access
	api    *bounded.API
	group  *errgroup.Group
	dpus   *reading
	left   atomic.Int32 // of what is watched, how much was not read yet

	seen     sync.Mutex // guards all below
	around   surroundings
	often    time.Time            // when a host last had as many serving certificates as it may
	leases   map[string]time.Time // as they were when last one mattered
	approved approvals
	queue    queue
	stuck    map[string]bool // CSRs whose approval the hosted cluster did not take
	warned   map[standing]time.Time
	notices  []Notice            // to be told when nothing is locked
	untold   map[string][]Notice // of CSRs, if they turn out to be approved
	counted  int                 // bytes of queue and approvals that are counted as kept
	fresh    map[string]bool     // hosts to decide about
	all      bool                // decide about every host
	turned   bool                // what is watched beside the CSRs, since it was decided by
	judged   time.Time           // when all were
	version  int                 // of the DPUs that were decided by
	next     time.Time           // when time alone may change a decision
}

// arrived counts what has been read. With the last, deciding begins.
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

// setStuck notes whose approval the hosted cluster does not take.
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

// decideLater keeps a CSR that may be approved as far as is known from being tried again at once.
func (v *approving) decideLater(w *waiting, pause time.Duration) {
	v.seen.Lock()
	defer v.seen.Unlock()
	w.later = time.Now().Add(pause)
	v.fresh[w.asked.Host] = true
	pace.Poke(v.Due)
}

// serving is how many more serving certificates a host may have now. The lock is held.
func (v *approving) serving(host string) *rate.Limiter {
	if v.served[host] == nil {
		v.served[host] = newServingPace()
	}
	return v.served[host]
}

// mayServe says whether a host may have another.
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

// beyondAgain is how soon it is looked again whether that is still worth being told.
const beyondAgain = 10 * time.Minute

// beyond names the bounds that the hosted cluster is beyond.
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
			v.sooner(time.Now().Add(beyondAgain)) // it may be long ago then
		}
	}()
	if v.api.HasCut() {
		all = append(all, fmt.Sprintf("an object of the hosted cluster has more than %d parts, and no more than its name was read: if it is a Node, it gets no certificate", bounded.MostParts))
	}
	return all
}

// count what is kept of CSRs among what is kept of all hosted clusters.
func (v *approving) count() error {
	more := v.queue.bytes + v.approved.bytes - v.counted
	v.counted += more
	return v.api.Keeps(more)
}

// factsNow are the facts about a host as they were seen last.
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

// readFacts are those about a host, with its Node and Lease as they are now; the DPUs last, as a hosted cluster may take its time.
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

// countsUntilShown has an approval that is there, or may be, keep the DPU's other CSRs waiting until the watch shows its own.
func (v *approving) countsUntilShown(w *waiting, d csr.Decision) {
	v.seen.Lock()
	defer v.seen.Unlock()
	if _, unseen := v.queue.names[w.asked.Name]; unseen && d.Kind == csr.Bootstrap {
		_ = v.approved.add(d.Host, csr.Approval{Name: w.asked.Name, DPU: d.DPU.UID, Key: w.asked.Key, Created: w.asked.Created, At: time.Now()}) // the watch counts it too
	}
}
