package guest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
	certv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/cldmnky/oooi/internal/csr"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/parts"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// approver approves in one hosted cluster for one bridge.
type approver struct {
	life
	by    types.NamespacedName
	want  ApproveWant
	dial  Dial
	facts FactSource
	told  func(Notice)

	mu      sync.Mutex
	state   ApprovalState
	dpus    []csr.DPU
	version int // of dpus
	// These outlive a visit, in which alone they are used.
	warned   map[standing]time.Time
	served   map[string]*rate.Limiter // serving certificates, by host
	events   *rate.Limiter
	silent   int                  // approvals since the last that was told; guarded by mu, as is
	rejoined map[string]time.Time // when it was told last that a host bootstraps again
}

func (a *approver) link(secrets SecretSource) *link {
	return &link{
		secret: a.want.Secret, server: a.want.Server, secrets: secrets, visit: a.visit, trouble: a.trouble, seldom: lookEvery,
		granting: finding.Granting(a.want.Secret.Namespace, "dpu-bridge", "bridge.namespaces"),
	}
}

func (a *approver) sees(dpus []csr.DPU) ApprovalState {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !reflect.DeepEqual(a.dpus, dpus) {
		a.dpus = dpus
		a.version++
		poke(a.due)
	}
	return a.state
}

// cards are the DPUs as they were told of last, and which telling it was.
func (a *approver) cards() ([]csr.DPU, int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.dpus, a.version
}

// isDPU says whether there is a DPU of that name, as was told of last.
func (a *approver) isDPU(name string) bool {
	cards, _ := a.cards()
	return slices.ContainsFunc(cards, func(d csr.DPU) bool { return d.Name == name })
}

func (a *approver) trouble(reason, message string) {
	a.update(func(s *ApprovalState) {
		s.Active, s.Problem = false, &input.GuestProblem{Reason: reason, Message: message}
	})
}

func (a *approver) fine() { a.update(func(s *ApprovalState) { s.Active, s.Problem = true, nil }) }

// update passes on that the state turned; how many wait is told to who asks.
func (a *approver) update(change func(*ApprovalState)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.state
	change(&a.state)
	if before.Active != a.state.Active || !reflect.DeepEqual(before.Problem, a.state.Problem) || !slices.Equal(before.Beyond, a.state.Beyond) {
		poke(a.news)
	}
}

// approving is one connection to a hosted cluster, with all that is watched there. The first thing that fails ends all of it; the
// next begins with lists, so that nothing is decided on what was seen before.
type approving struct {
	*approver
	access Access
	api    *api
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

func (a *approver) visit(ctx context.Context, access Access) (settled bool, err error) {
	api, err := open(ctx, a.want.Server, access, a.dial)
	if err != nil {
		return false, err
	}
	defer api.close()
	group, ctx := errgroup.WithContext(ctx)
	v := &approving{
		approver: a, access: access, api: api, group: group, all: true,
		leases: map[string]time.Time{}, queue: newQueue(), stuck: map[string]bool{}, fresh: map[string]bool{}, warned: a.warned, untold: map[string][]Notice{},
	}
	v.queue.isDPU = a.isDPU
	v.dpus = &reading{read: v.readDPUs}
	v.left.Add(1) // ours, until all is begun
	lookAt(ctx, v, hosts, v.around.haveNodes)
	lookAt(ctx, v, takenByServices, v.around.haveServices)
	lookAt(ctx, v, apiEndpoints, v.around.haveEndpoints)
	v.left.Add(1)
	listed := sync.OnceFunc(v.arrived)
	group.Go(func() error {
		return collection[struct{}]{path: requests}.stream(ctx, api, v.take, func() { listed(); poke(v.due) })
	})
	group.Go(func() error { return v.decide(ctx) })
	v.arrived()
	err = group.Wait()
	return v.left.Load() == 0, err
}

// lookAt watches a collection; when it changes, everything is decided again.
func lookAt[T any](ctx context.Context, v *approving, c collection[T], have func([]T)) {
	v.left.Add(1)
	arrived := sync.OnceFunc(v.arrived)
	var before []T
	v.group.Go(func() error {
		return follow(ctx, v.api, c, func(all []T) {
			if before == nil || !reflect.DeepEqual(before, all) {
				before = all
				v.seen.Lock()
				have(all)
				v.turned = true
				v.update(func(s *ApprovalState) { s.Beyond = v.beyond() })
				v.seen.Unlock()
				poke(v.due)
			}
			arrived()
		})
	})
}

// arrived counts what has been read. With the last, deciding begins.
func (v *approving) arrived() {
	if v.left.Add(-1) > 0 {
		return
	}
	v.fine()
	poke(v.due)
}

// mostOfRequest is how many parts a CSR may have that is approved: with its approval, and whatever else is written to it by ours, it stays far
// below mostParts, beyond which nobody would know that it was. A kubelet's has some fifty.
const mostOfRequest = 1000

// take reads one CSR. One that cannot be read is nobody's: it must not keep the others from being.
func (v *approving) take(event watch.EventType, object []byte) (err error) {
	var r certv1.CertificateSigningRequest
	if json.Unmarshal(object, &r) != nil {
		return nil
	}
	v.seen.Lock()
	defer v.seen.Unlock()
	if host, waited := v.queue.names[r.Name]; waited {
		v.queue.remove(r.Name)
		v.approved.remove(host, r.Name) // see countsUntilShown
		v.fresh[host] = true
	}
	delete(v.stuck, r.Name)
	defer delete(v.untold, r.Name)
	host, approval, approved := csr.Approved(&r)
	switch {
	case event == watch.Deleted:
		v.approved.remove(host, r.Name)
	case approved:
		err = v.approved.add(host, approval)
		v.notices = append(v.notices, v.untold[r.Name]...)
	case parts.Of(object) <= mostOfRequest:
		v.takeNew(&r)
	case csr.IsOurs(&r):
		countDecision("", "NotTooLarge")
	}
	v.update(func(s *ApprovalState) { s.Pending, s.Beyond = v.queue.len(), v.beyond() })
	return cmp.Or(err, v.count())
}

// beyondAgain is how soon it is looked again whether that is still worth being told.
const beyondAgain = 10 * time.Minute

// beyond names the bounds that the hosted cluster is beyond.
func (v *approving) beyond() (all []string) {
	if v.around.unknown {
		all = append(all, fmt.Sprintf("the hosted cluster has more than %d Services, or more than is kept of them (%d MiB, %d bytes for each address): serving certificates with addresses wait until there are fewer", mostObjects, mostBytes/2>>20, perAddress))
	}
	if isRecent(v.queue.crowded) {
		all = append(all, fmt.Sprintf("more than %d certificate requests waited: those of hosts that were no DPU's were dropped", mostWaiting))
	}
	if isRecent(v.queue.flooded) {
		all = append(all, fmt.Sprintf("more than %d certificate requests of one host waited: of the key that most of them carry the oldest were dropped", mostOfHost))
	}
	if isRecent(v.often) {
		all = append(all, fmt.Sprintf("a Node asks for serving certificates again and again: it gets %d, and then one a minute", servingAtOnce))
	}
	if v.api.to.isSlowed() {
		all = append(all, fmt.Sprintf("the hosted cluster sends more than %d objects a second: they are read more slowly, so that its certificate requests may wait", objectsOfOne))
	}
	defer func() {
		if len(all) > 0 {
			v.sooner(time.Now().Add(beyondAgain)) // it may be long ago then
		}
	}()
	if isRecent(time.Unix(v.api.cut.Load(), 0)) {
		all = append(all, fmt.Sprintf("an object of the hosted cluster has more than %d parts, and no more than its name was read: if it is a Node, it gets no certificate", mostParts))
	}
	return all
}

// count what is kept of CSRs among what is kept of all hosted clusters.
func (v *approving) count() error {
	more := v.queue.bytes + v.approved.bytes - v.counted
	v.counted += more
	return v.api.keeps(more)
}

// takeNew has a CSR of ours wait that is well formed, if nobody has decided about it.
func (v *approving) takeNew(r *certv1.CertificateSigningRequest) {
	if !csr.IsOurs(r) {
		return
	}
	asked, form := csr.Read(r)
	switch broken := csr.Broken(form); broken {
	case "":
		v.queue.add(asked, time.Now())
		v.fresh[asked.Host] = true
	case csr.RulePending:
	default:
		countDecision(asked.Kind, broken)
	}
}

// factsNow are the facts about a host as they were seen last.
func (v *approving) factsNow(host string, dpus []csr.DPU) csr.Facts {
	return csr.Facts{
		Cluster: v.want.Cluster, DPUs: dpus, Nodes: v.around.nodes, Leases: v.leases, Services: v.around.services, ServicesUnknown: v.around.unknown, Now: time.Now(),
		ServiceNetworks: v.want.ServiceNetworks, NoRebootstrap: v.want.NoRebootstrap,
		API: v.want.API, HostedAPI: v.around.api, Holders: v.around.holders,
		Asking:   map[string][]csr.Asked{host: v.queue.asking(host)},
		Approved: map[string][]csr.Approval{host: slices.Collect(maps.Values(v.approved.hosts[host]))},
	}
}

// newestFirst: of several CSRs of one host the newest is its kubelet's; the others nobody waits for any more.
func newestFirst(a, b *waiting) int {
	return cmp.Or(b.asked.Created.Compare(a.asked.Created), cmp.Compare(a.asked.Name, b.asked.Name))
}
