// Package visits connects, and reconnects, to a hosted cluster with the kubeconfig in a Secret, until it is forgotten. The visitor decides
// what is done there.
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

// SecretSource reads Secrets of the management cluster, one by one, where RBAC grants that.
type SecretSource = typedcore.SecretsGetter

// Link visits a hosted cluster again and again, with the kubeconfig in a Secret.
type Link struct {
	Secret   types.NamespacedName
	Server   string
	Secrets  SecretSource
	Granting string // how to grant us the Secret
	// Visit runs until something fails, and says whether everything was read by then.
	Visit   func(ctx context.Context, access kubeconfig.Access) (settled bool, err error)
	Trouble func(reason, message string)

	leave  func()            // ends the current visits; only the Secret's goroutine uses it
	digest [sha256.Size]byte // digest of the kubeconfig that they use

	Seldom time.Duration // the shortest time between two reads of a kubeconfig
	looked time.Time
}

const (
	// LookEvery limits how often one kubeconfig is parsed: that costs up to 50 ms, and somebody may write it many times a second.
	LookEvery = time.Second
	// goodVisit is how long a visit must last for the backoff to start over.
	goodVisit = time.Minute
)

// Run visits until the context ends.
func (l *Link) Run(ctx context.Context) {
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

// followSecret uses the kubeconfig in the Secret, and each later one. While the management API does not answer, the last one stays in use.
// It needs get and watch, for this one name.
func (l *Link) followSecret(ctx context.Context) error {
	secrets := l.Secrets.Secrets(l.Secret.Namespace)
	// Without a resourceVersion, a watch begins with what exists, and misses no later change. It does not report an earlier deletion.
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

// use begins visits with a kubeconfig, unless it is in use already. The connections of the one before are closed.
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

// without ends the visits, because there is no kubeconfig to use, and says why.
func (l *Link) without(reason, format string, args ...any) {
	l.leave()
	l.leave, l.digest = func() {}, [sha256.Size]byte{}
	l.Trouble(reason, fmt.Sprintf(format, args...))
}

// visits visits again after each visit, with growing pauses. After a visit that had read everything, it tries again before it reports a
// problem, because an API server may just have restarted.
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
