package guest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	certv1 "k8s.io/api/certificates/v1"
	coordination "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/cldmnky/oooi/internal/csr"
	"github.com/cldmnky/oooi/internal/names"
)

const (
	// hostsAtOnce are decided about side by side: one that hangs does not keep the others waiting.
	hostsAtOnce = 8
	// freshFor is how long decisions share a reading of the DPUs: who has CSRs decided about all the time has the management API asked once
	// a second.
	freshFor = time.Second
	// allEvery is how often all that waits is judged anew when the hosted cluster has changed; what is new, at once.
	allEvery = time.Second
	// factsIn is how long the management API may take to tell of DPUs.
	factsIn = 10 * time.Second
	// behind is how late a watch may show what a reading showed. What a reading refuses again and again is read less and less often.
	behind, longestRefused = time.Second, time.Minute
	// approvesIn is how long a hosted cluster may take to take an approval.
	approvesIn = 5 * time.Second
	// refusedFor is the pause after a hosted cluster did not take an approval.
	refusedFor = 10 * time.Second
)

// decide decides whenever something changed, or time has passed that mattered.
func (v *approving) decide(ctx context.Context) error {
	for tries := 0; ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-v.due:
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
			v.trouble(ManagementUnreachable, fmt.Sprintf("nothing is approved, because the DPUs of DPUCluster %s cannot be read: %s", v.want.Cluster, why(unread, Access{})))
			v.decideAll()
			pause(ctx, backoff(tries))
			poke(v.due)
			tries++
			continue
		case !v.isStuck():
			v.fine()
		}
		tries = 0
	}
}

// again is when time alone may change a decision.
func (v *approving) again() <-chan time.Time {
	v.seen.Lock()
	defer v.seen.Unlock()
	if v.next.IsZero() {
		return nil
	}
	return time.After(time.Until(v.next))
}

// sooner has time that matters noted.
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

// toDecide are the hosts about which something changed.
func (v *approving) toDecide() []string {
	hosts := slices.Collect(maps.Keys(v.fresh))
	if v.all {
		hosts, v.next = slices.Collect(maps.Keys(v.queue.hosts)), time.Time{}
	}
	v.all = false
	clear(v.fresh)
	return hosts
}

// candidates are, by host, the CSRs that may be approved as far as is known, newest first.
func (v *approving) candidates() map[string][]*waiting {
	known, version := v.cards()
	v.seen.Lock()
	defer v.seen.Unlock()
	v.judgesAll(version)
	v.update(func(s *ApprovalState) { s.Beyond = v.beyond() })
	may, cards := map[string][]*waiting{}, map[string]bool{}
	for _, d := range known {
		cards[d.Name] = true
	}
	v.forgetWarnings(cards)
	for _, host := range v.toDecide() {
		if !cards[host] && len(v.stuck) == 0 && v.queue.refused(host) { // without a DPU of that name no other fact lets it in
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

// judgesAll that waits after DPUs were told of, or when it is time to do so because the hosted cluster has changed.
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

// round decides for good, with what is read anew. Unread is why the DPUs could not be.
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

func (v *approving) readDPUs(ctx context.Context) ([]csr.DPU, error) {
	ctx, cancel := context.WithTimeout(ctx, factsIn)
	defer cancel()
	cards, err := v.facts.DPUs(ctx, v.want.Cluster)
	return DPUs(cards), err
}

// reading of the DPUs that decisions share.
type reading struct {
	read func(context.Context) ([]csr.DPU, error)

	mu     sync.Mutex
	begun  time.Time
	told   int // which telling of DPUs was the last before it
	dpus   []csr.DPU
	failed error // no other is tried in this round
}

// errUnread: without DPUs nothing is decided.
var errUnread = errors.New("the DPUs cannot be read")

// now are the DPUs by a reading that began at most freshFor before they were asked for, and after they were told of last.
func (r *reading) now(ctx context.Context, told int) ([]csr.DPU, error) {
	asked := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil && (told != r.told || asked.Sub(r.begun) > freshFor) {
		r.begun, r.told = time.Now(), told
		if r.dpus, r.failed = r.read(ctx); r.failed != nil {
			r.begun = time.Time{}
		}
	}
	if r.failed != nil {
		return nil, errUnread
	}
	return r.dpus, nil
}

// decideHost decides about the CSRs of one host, one after the other: with the first that is approved the others are out.
func (v *approving) decideHost(ctx context.Context, host string, may []*waiting) error {
	for _, w := range may {
		known, _ := v.cards()
		v.seen.Lock()
		out := w.asked.Judge(v.factsNow(host, known)).Broken()
		v.seen.Unlock()
		if out != "" {
			w.isRefusedBy(out)
			v.decideLater(w, behind)
			continue
		}
		if w.asked.Kind == csr.Serving && !v.mayServe(host) {
			v.decideLater(w, servingEvery)
			continue
		}
		err := v.decideOne(ctx, w)
		var status *apierrors.StatusError
		switch {
		case err == nil, apierrors.IsNotFound(err):
			v.setStuck(w.asked.Name, false)
		case apierrors.IsConflict(err):
			v.decideLater(w, behind)
		case errors.Is(err, errUnread):
			return nil
		case errors.As(err, &status):
			v.setStuck(w.asked.Name, true)
			v.decideLater(w, refusedFor)
			v.trouble(ApprovalRefused, fmt.Sprintf("the hosted cluster's API %s does not take an approval: it answers %s", v.want.Server, said(status, v.access)))
		default:
			return err
		}
	}
	return nil
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
	poke(v.due)
}

// decideOne reads all that can be read anew, decides, and approves the very object that was decided about.
func (v *approving) decideOne(ctx context.Context, w *waiting) error {
	r, err := read[certv1.CertificateSigningRequest](ctx, v.api, requests+"/"+w.asked.Name)
	if err != nil {
		return err
	}
	if asked, _ := csr.Read(r); asked.Host != w.asked.Host { // made anew under its name: the facts would be another host's
		return nil
	}
	f, err := v.readFacts(ctx, w.asked.Host)
	if err != nil {
		return err
	}
	d := csr.Decide(r, f)
	if !d.Approve {
		v.decideLater(w, w.longer())
		if broken := d.Broken(); broken == csr.RulePending {
			v.countsUntilShown(w, d)
		} else {
			w.isRefusedBy(broken)
		}
		return nil
	}
	condition := d.Approval(v.by)
	r.Status.Conditions = append(r.Status.Conditions, condition)
	notices := append(againOf(r.Name, d), Notice{Name: r.Name, Kind: d.Kind, Host: d.Host, Reason: condition.Reason, Message: condition.Message})
	if err := putApproval(ctx, v.api, r); err != nil {
		v.isNotTaken(w, d, notices, err)
		return err
	}
	v.isApproved(w, d)
	v.tell(notices)
	return nil
}

// isApproved counts at once, though the watch has not shown it yet.
func (v *approving) isApproved(w *waiting, d csr.Decision) {
	countApproval(d.Kind, time.Since(w.since))
	v.countsUntilShown(w, d)
	v.seen.Lock()
	defer v.seen.Unlock()
	if d.Kind == csr.Serving {
		v.serving(d.Host).Allow()
	}
	v.queue.remove(w.asked.Name)
	v.update(func(s *ApprovalState) { s.Pending = v.queue.len() })
}

// isNotTaken as far as the answer tells. Of a 5xx the outcome is unknown (Kubernetes API conventions, "HTTP Status codes"; etcd may store
// what timed out), and a conflict may be with somebody else's approval.
func (v *approving) isNotTaken(w *waiting, d csr.Decision, notices []Notice, err error) {
	var status *apierrors.StatusError
	if errors.As(err, &status) && (apierrors.IsConflict(err) || status.ErrStatus.Code >= http.StatusInternalServerError) {
		v.countsUntilShown(w, d)
		v.seen.Lock()
		defer v.seen.Unlock()
		if _, unseen := v.queue.names[w.asked.Name]; unseen && !apierrors.IsConflict(err) {
			v.untold[w.asked.Name] = notices
		}
		return
	}
	v.seen.Lock()
	defer v.seen.Unlock()
	v.approved.remove(d.Host, w.asked.Name)
}

// countsUntilShown has an approval that is there, or may be, keep the DPU's other CSRs waiting until the watch shows its own.
func (v *approving) countsUntilShown(w *waiting, d csr.Decision) {
	v.seen.Lock()
	defer v.seen.Unlock()
	if _, unseen := v.queue.names[w.asked.Name]; unseen && d.Kind == csr.Bootstrap {
		_ = v.approved.add(d.Host, csr.Approval{Name: w.asked.Name, DPU: d.DPU.UID, Key: w.asked.Key, Created: w.asked.Created, At: time.Now()}) // the watch counts it too
	}
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

// readNode reads a Node, nil when there is none, and when its Lease was renewed.
func readNode(ctx context.Context, a *api, name string) (*host, time.Time, error) {
	text, err := a.do(ctx, request{verb: http.MethodGet, path: hosts.path + "/" + name, accept: asJSON})
	if apierrors.IsNotFound(err) {
		return nil, time.Time{}, nil
	} else if err != nil {
		return nil, time.Time{}, err
	}
	node, err := hosts.of(text)
	if err != nil {
		return nil, time.Time{}, errNoKubernetes
	}
	lease, err := read[coordination.Lease](ctx, a, nodeLeases+name)
	if apierrors.IsNotFound(err) || err == nil && lease.Spec.RenewTime == nil {
		return &node, time.Time{}, nil
	} else if err != nil {
		return nil, time.Time{}, err
	}
	return &node, lease.Spec.RenewTime.Time, nil
}

func read[T any](ctx context.Context, a *api, path string) (*T, error) {
	text, err := a.do(ctx, request{verb: http.MethodGet, path: path, accept: asJSON})
	if err != nil {
		return nil, err
	}
	object, err := whole[T](text)
	if err != nil {
		return nil, errNoKubernetes
	}
	return object, nil
}

// putApproval updates the approval of a CSR; its resourceVersion has the API server refuse when it changed meanwhile. Once begun it is not
// broken off, as nobody would know whether it was taken: who leaves waits for it (Forget).
func putApproval(ctx context.Context, a *api, r *certv1.CertificateSigningRequest) error {
	body, err := json.Marshal(r)
	if err := cmp.Or(err, ctx.Err()); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), approvesIn)
	defer cancel()
	_, err = a.do(ctx, request{
		verb: http.MethodPut, path: requests + "/" + r.Name + "/approval", accept: asJSON, content: asJSON, body: body,
		query: url.Values{"fieldManager": {names.ManagerFieldOwner}},
	})
	return err
}
