package guest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/cldmnky/oooi/internal/plan/input"
)

// link visits a hosted cluster, again and again, with whatever kubeconfig a Secret holds.
type link struct {
	secret   types.NamespacedName
	server   string
	secrets  SecretSource
	granting string // what lets us read the Secret
	// visit lasts until something fails, and says whether everything was read before.
	visit   func(ctx context.Context, access Access) (settled bool, err error)
	trouble func(reason, message string)

	leave func()            // ends the visits that run; the Secret's goroutine's own
	held  [sha256.Size]byte // digest of the kubeconfig that they use

	seldom time.Duration // between two looks at a kubeconfig
	looked time.Time
}

const (
	// lookEvery bounds how often one kubeconfig is parsed, which costs up to 50 ms, and which somebody may write many times a second.
	lookEvery = time.Second
	// tellEvery bounds how often one hosted cluster, which may change a thousand times a second, has its owner planned.
	tellEvery = 250 * time.Millisecond
	// longestPause leaves room for a connection and its lists in the 30 s in which a cluster that is back is seen.
	longestPause = 8 * time.Second
	// crowdedPause is what a hosted cluster waits that has more than is kept: all of it would be read again.
	crowdedPause = 30 * time.Second
	// goodVisit is how long one must last for the next to begin without a pause.
	goodVisit = time.Minute
)

// sanitising is the turn to parse a kubeconfig. Nobody who holds a lock waits for it.
var sanitising = make(chan struct{}, 1)

// SanitiseInTurn is Sanitise for a manager, where the kubeconfigs of many cost one core at most; the error is the context's.
func SanitiseInTurn(ctx context.Context, content []byte) (Access, *Refusal, error) {
	select {
	case <-ctx.Done():
		return Access{}, nil, ctx.Err()
	case sanitising <- struct{}{}:
	}
	defer func() { <-sanitising }()
	access, refusal := Sanitise(content)
	return access, refusal, nil
}

func (l *link) run(ctx context.Context) {
	l.leave = func() {}
	defer func() { l.leave() }()
	if l.secret.Name == "" {
		l.trouble(input.GuestWaiting, "the HostedCluster names no kubeconfig yet (status.kubeconfig)")
		<-ctx.Done()
		return
	}
	for tries := 0; ctx.Err() == nil; tries++ {
		begun := time.Now()
		if err := l.followSecret(ctx); apierrors.IsForbidden(err) {
			l.without(input.GuestNotGranted, "the operator may not read Secret %s: %s", l.secret, l.granting)
		}
		if time.Since(begun) > goodVisit {
			tries = 0
		}
		pause(ctx, backoff(tries))
	}
}

// followSecret uses what the Secret holds, and whatever it comes to hold. While the management API is away, what it held is used
// on. It needs get and watch, for this one name.
func (l *link) followSecret(ctx context.Context) error {
	secrets := l.secrets.Secrets(l.secret.Namespace)
	// Without a version a watch begins with what is there, and misses nothing from then on. Of a Secret that went before, it says nothing.
	events, err := secrets.Watch(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", l.secret.Name).String()})
	if err != nil {
		return err
	}
	defer events.Stop()
	switch _, err := secrets.Get(ctx, l.secret.Name, metav1.GetOptions{}); {
	case apierrors.IsNotFound(err):
		l.without(input.GuestWaiting, "Secret %s with the kubeconfig is not there yet", l.secret)
	case err != nil:
		return err
	}
	for event := range events.ResultChan() {
		switch event.Type {
		case watch.Added, watch.Modified:
			l.use(ctx, event.Object.(*corev1.Secret))
		case watch.Deleted:
			l.without(input.GuestWaiting, "Secret %s with the kubeconfig is gone", l.secret)
		case watch.Error:
			return apierrors.FromObject(event.Object)
		}
	}
	return nil
}

// use begins to visit with a kubeconfig, unless it is the one that is used already. The connections of the one before are closed.
func (l *link) use(ctx context.Context, secret *corev1.Secret) {
	content := secret.Data[KubeconfigKey]
	digest := sha256.Sum256(content)
	if digest == l.held {
		return
	}
	pause(ctx, time.Until(l.looked.Add(l.seldom)))
	access, refusal, err := SanitiseInTurn(ctx, content)
	if err != nil {
		return
	}
	l.looked = time.Now()
	if refusal != nil {
		l.without(input.GuestKubeconfig, "the kubeconfig in Secret %s is not used (%s): %s", l.secret, refusal.Rule, refusal.Because)
	} else {
		l.leave()
		l.held = digest
		visiting, cancel := context.WithCancel(ctx)
		over := make(chan struct{})
		l.leave = func() { cancel(); <-over }
		go func() {
			defer close(over)
			l.visits(visiting, access)
		}()
	}
}

// without ends the visits: there is nothing to visit with.
func (l *link) without(reason, format string, args ...any) {
	l.leave()
	l.leave, l.held = func() {}, [sha256.Size]byte{}
	l.trouble(reason, fmt.Sprintf(format, args...))
}

// visits comes back after each visit, later and later. One that had read everything is tried again before anything is said: an
// API server that restarts is no trouble.
func (l *link) visits(ctx context.Context, access Access) {
	for tries := 0; ctx.Err() == nil; tries++ {
		begun := time.Now()
		settled, err := l.visit(ctx, access)
		if ctx.Err() != nil {
			return
		}
		switch crowded := errors.Is(err, errTooMuch); {
		case !settled || crowded:
			l.trouble(input.GuestUnreachable, fmt.Sprintf("the hosted cluster's API %s is not reached: %s", l.server, why(err, access)))
			if crowded {
				pause(ctx, crowdedPause)
			}
		case time.Since(begun) > goodVisit:
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

// tell passes news on, not more often than tellEvery.
func tell(ctx context.Context, news <-chan struct{}, changed func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-news:
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
