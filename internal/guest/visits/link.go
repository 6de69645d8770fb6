// Package visits connects to a hosted cluster, again and again, with whatever kubeconfig a Secret holds, until nobody wants that any
// more. The visitor decides what is done there.
package visits

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/cldmnky/oooi/internal/guest/bounded"
	"github.com/cldmnky/oooi/internal/guest/kubeconfig"
	"github.com/cldmnky/oooi/internal/guest/pace"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// SecretSource reads Secrets of the management cluster, one by one, where that is granted.
type SecretSource = typedcore.SecretsGetter

// Link visits a hosted cluster, again and again, with whatever kubeconfig a Secret holds.
type Link struct {
	Secret   types.NamespacedName
	Server   string
	Secrets  SecretSource
	Granting string // what lets us read the Secret
	// Visit lasts until something fails, and says whether everything was read before.
	Visit   func(ctx context.Context, access kubeconfig.Access) (settled bool, err error)
	Trouble func(reason, message string)

	leave  func()            // ends the visits that run; the Secret's goroutine's own
	digest [sha256.Size]byte // digest of the kubeconfig that they use

	Seldom time.Duration // between two looks at a kubeconfig
	looked time.Time
}

const (
	// LookEvery bounds how often one kubeconfig is parsed, which costs up to 50 ms, and which somebody may write many times a second.
	LookEvery = time.Second
	// goodVisit is how long one must last for the next to begin without a pause.
	goodVisit = time.Minute
)

func (l *Link) run(ctx context.Context) {
	l.leave = func() {}
	defer func() { l.leave() }()
	if l.Secret.Name == "" {
		l.Trouble(input.GuestWaiting, "the HostedCluster names no kubeconfig yet (status.kubeconfig)")
		<-ctx.Done()
		return
	}
	for tries := 0; ctx.Err() == nil; tries++ {
		begun := time.Now()
		if err := l.followSecret(ctx); apierrors.IsForbidden(err) {
			l.without(input.GuestNotGranted, "the operator may not read Secret %s: %s", l.Secret, l.Granting)
		}
		if time.Since(begun) > goodVisit {
			tries = 0
		}
		pace.Pause(ctx, pace.Backoff(tries))
	}
}

// followSecret uses what the Secret holds, and whatever it comes to hold. While the management API is away, what it held is used
// on. It needs get and watch, for this one name.
func (l *Link) followSecret(ctx context.Context) error {
	secrets := l.Secrets.Secrets(l.Secret.Namespace)
	// Without a version a watch begins with what is there, and misses nothing from then on. Of a Secret that went before, it says nothing.
	events, err := secrets.Watch(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", l.Secret.Name).String()})
	if err != nil {
		return err
	}
	defer events.Stop()
	switch _, err := secrets.Get(ctx, l.Secret.Name, metav1.GetOptions{}); {
	case apierrors.IsNotFound(err):
		l.without(input.GuestWaiting, "Secret %s with the kubeconfig is not there yet", l.Secret)
	case err != nil:
		return err
	}
	for event := range events.ResultChan() {
		switch event.Type {
		case watch.Added, watch.Modified:
			l.use(ctx, event.Object.(*corev1.Secret))
		case watch.Deleted:
			l.without(input.GuestWaiting, "Secret %s with the kubeconfig is gone", l.Secret)
		case watch.Error:
			return apierrors.FromObject(event.Object)
		}
	}
	return nil
}

// use begins to visit with a kubeconfig, unless it is the one that is used already. The connections of the one before are closed.
func (l *Link) use(ctx context.Context, secret *corev1.Secret) {
	content := secret.Data[kubeconfig.SecretKey]
	digest := sha256.Sum256(content)
	if digest == l.digest {
		return
	}
	pace.Pause(ctx, time.Until(l.looked.Add(l.Seldom)))
	access, refusal, err := kubeconfig.SanitiseInTurn(ctx, content)
	if err != nil {
		return
	}
	l.looked = time.Now()
	if refusal != nil {
		l.without(input.GuestKubeconfig, "the kubeconfig in Secret %s is not used (%s): %s", l.Secret, refusal.Rule, refusal.Because)
	} else {
		l.leave()
		l.digest = digest
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
func (l *Link) without(reason, format string, args ...any) {
	l.leave()
	l.leave, l.digest = func() {}, [sha256.Size]byte{}
	l.Trouble(reason, fmt.Sprintf(format, args...))
}

// visits comes back after each visit, later and later. One that had read everything is tried again before anything is said: an
// API server that restarts is no trouble.
func (l *Link) visits(ctx context.Context, access kubeconfig.Access) {
	for tries := 0; ctx.Err() == nil; tries++ {
		begun := time.Now()
		settled, err := l.Visit(ctx, access)
		if ctx.Err() != nil {
			return
		}
		switch crowded := errors.Is(err, bounded.ErrTooMuch); {
		case !settled || crowded:
			l.Trouble(input.GuestUnreachable, fmt.Sprintf("the hosted cluster's API %s is not reached: %s", l.Server, bounded.Why(err, access)))
			if crowded {
				pace.Pause(ctx, bounded.CrowdedPause)
			}
		case time.Since(begun) > goodVisit:
			tries = 0
		}
		pace.Pause(ctx, pace.Backoff(tries))
	}
}
