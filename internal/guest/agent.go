package guest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/cldmnky/oooi/internal/plan"
)

// agent looks into one hosted cluster for one Infra.
type agent struct {
	want    Want
	dial    Dial
	secrets SecretSource
	stop    context.CancelFunc
	gone    chan struct{} // closed when nothing of it runs any more
	news    chan struct{} // something else is seen
	due     chan struct{} // our Service may have to be written

	leave func()            // ends the visits that run; the Secret's goroutine's own
	held  [sha256.Size]byte // digest of the kubeconfig that they use

	mu      sync.Mutex
	seen    plan.Guest
	known   bool      // seen tells something: all was read once, or there is a problem
	away    time.Time // since when there is a problem
	ours    []*corev1.Service
	wished  *wish
	making  bool      // a write that makes a Service is under way
	made    types.UID // what a write made and no watch has shown yet
	madeAt  time.Time
	settled bool // the visit that runs has read everything
}

const (
	kubeconfigKey = "kubeconfig"
	// tellEvery bounds how often one hosted cluster, which may change a thousand times a second, has its Infra planned.
	tellEvery = 250 * time.Millisecond
	// longestPause leaves room for a connection and its lists in the 30 s in which a cluster that is back is seen.
	longestPause = 8 * time.Second
	// shownSoon is how late a watch may show what was written. What it has not shown then was gone before.
	shownSoon = 10 * time.Second
	// goodVisit is how long one must last for the next to begin without a pause.
	goodVisit = time.Minute
)

func (a *agent) run(ctx context.Context, changed func()) {
	var telling sync.WaitGroup
	telling.Go(func() { a.tell(ctx, changed) })
	defer telling.Wait()
	a.leave = func() {}
	defer func() { a.leave() }()
	if a.want.Secret.Name == "" {
		a.trouble(plan.GuestWaiting, "the HostedCluster names no kubeconfig yet (status.kubeconfig)")
		<-ctx.Done()
		return
	}
	for tries := 0; ctx.Err() == nil; tries++ {
		begun := time.Now()
		if err := a.followSecret(ctx); apierrors.IsForbidden(err) {
			a.without(plan.GuestNotGranted, "the operator may not read Secret %s: apply config/components/apps-ingress in namespace %s", a.want.Secret, a.want.Secret.Namespace)
		}
		if time.Since(begun) > goodVisit {
			tries = 0
		}
		pause(ctx, backoff(tries))
	}
}

// followSecret uses what the Secret holds, and whatever it comes to hold. While the management API is away, what it held is used
// on. It needs get and watch, for this one name.
func (a *agent) followSecret(ctx context.Context) error {
	secrets := a.secrets.Secrets(a.want.Secret.Namespace)
	secret, err := secrets.Get(ctx, a.want.Secret.Name, metav1.GetOptions{})
	switch {
	case err == nil:
		a.use(ctx, secret)
	case apierrors.IsNotFound(err):
		a.without(plan.GuestWaiting, "Secret %s with the kubeconfig is not there yet", a.want.Secret)
	default:
		return err
	}
	// Without a version, a watch begins with what is there.
	events, err := secrets.Watch(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", a.want.Secret.Name).String()})
	if err != nil {
		return err
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		switch event.Type {
		case watch.Added, watch.Modified:
			a.use(ctx, event.Object.(*corev1.Secret))
		case watch.Deleted:
			a.without(plan.GuestWaiting, "Secret %s with the kubeconfig is gone", a.want.Secret)
		case watch.Error:
			return apierrors.FromObject(event.Object)
		}
	}
	return nil
}

// use begins to visit with a kubeconfig, unless it is the one that is used already. The connections of the one before are closed.
func (a *agent) use(ctx context.Context, secret *corev1.Secret) {
	content := secret.Data[kubeconfigKey]
	if digest := sha256.Sum256(content); digest == a.held {
		return
	} else if access, refusal := Sanitise(content); refusal != nil {
		a.without(plan.GuestKubeconfig, "the kubeconfig in Secret %s is not used (%s): %s", a.want.Secret, refusal.Rule, refusal.Because)
	} else {
		a.leave()
		a.held = digest
		visiting, cancel := context.WithCancel(ctx)
		over := make(chan struct{})
		a.leave = func() { cancel(); <-over }
		go func() {
			defer close(over)
			a.visits(visiting, access)
		}()
	}
}

// without ends the visits: there is nothing to visit with.
func (a *agent) without(reason, format string, args ...any) {
	a.leave()
	a.leave, a.held = func() {}, [sha256.Size]byte{}
	a.trouble(reason, fmt.Sprintf(format, args...))
}

// visits comes back after each visit, later and later. One that had read everything is tried again before anything is said: an
// API server that restarts is no trouble.
func (a *agent) visits(ctx context.Context, access Access) {
	for tries := 0; ctx.Err() == nil; tries++ {
		begun := time.Now()
		settled, err := a.visit(ctx, access)
		if ctx.Err() != nil {
			return
		}
		if !settled {
			a.trouble(plan.GuestUnreachable, fmt.Sprintf("the hosted cluster's API %s is not reached: %s", a.want.Server, why(err, access)))
		} else if time.Since(begun) > goodVisit {
			tries = 0
		}
		pause(ctx, backoff(tries))
	}
}

// backoff is twice as long each time, and never the same for two.
func backoff(tries int) time.Duration {
	longest := min(longestPause, 250*time.Millisecond<<min(tries, 10))
	return longest/2 + rand.N(longest/2) //nolint:gosec // it only spreads
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// trouble is told; what was seen stays.
func (a *agent) trouble(reason, message string) {
	a.update(func() {
		if a.seen.Problem == nil {
			a.away = time.Now()
		}
		a.seen.Problem, a.known = &plan.GuestProblem{Reason: reason, Message: message}, true
	})
}

// update changes what is seen and passes the news on.
func (a *agent) update(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before, knew := a.seen, a.known
	change()
	if a.known && (!knew || !reflect.DeepEqual(before, a.seen)) {
		poke(a.news)
	}
}

// tell passes the news on, not more often than tellEvery.
func (a *agent) tell(ctx context.Context, changed func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.news:
			changed()
			pause(ctx, tellEvery)
		}
	}
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it is told already
	}
}

func (a *agent) sees() *plan.Guest {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.known {
		return nil
	}
	seen := a.seen
	return &seen
}

func (a *agent) wishes(w *wish) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.wished == nil || !a.wished.equals(w) {
		a.wished = w
		poke(a.due)
	}
}

// isClean says whether nothing of ours is left, and else for how long nobody could look.
func (a *agent) isClean() (clean bool, away time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.seen.Problem != nil {
		away = time.Since(a.away)
	}
	unseen := a.making || a.made != "" && time.Since(a.madeAt) < shownSoon
	return a.settled && len(a.ours) == 0 && !unseen, away
}

// isForeign says whether the Service of our name is somebody else's.
func isForeign(owners []types.UID, us types.UID) bool { return len(owners) > 0 && owners[0] != us }
