// Package registry finds BlueField container images of releases in the registries that an admin has named. A look-up takes as long as a
// registry does, so nobody waits for it: whoever follows one is told when there is news.
package registry

import (
	"context"
	"net/http"
	"reflect"
	"sync"
	"time"

	"golang.org/x/net/http/httpproxy"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/internal/guest/pace"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// atOnce is how many bridges of one namespace ask at the same time: none waits for those of another.
const atOnce = 2

// Lookups has one look-up for each bridge that wants one.
type Lookups struct {
	// Transport connects to registries, by the manager's proxy environment; Backoff is the time until they are asked again. New sets both.
	Transport *http.Transport
	Backoff   func(tries int) time.Duration
	// proxied: the environment says through which proxies, or through none, and the cluster's does not count (trust.go).
	proxied bool

	// Token is one of a ServiceAccount's, by which OpenShift's registry knows who pushes.
	Token func(ctx context.Context, of types.NamespacedName) (string, error)
	// Stall is after how long without progress a copy is given up and begun anew. While a registry commits a layer, nothing is transferred.
	// New sets 10 minutes.
	Stall time.Duration
	// Recheck is how often a copy is looked for, of whose end nothing tells. New sets 10 minutes.
	Recheck time.Duration

	changed func(bridge types.NamespacedName)
	copying chan struct{} // has an entry while somebody copies

	mu    sync.Mutex
	of    map[types.NamespacedName]*lookup
	ended bool
	all   sync.WaitGroup
}

type lookup struct {
	want   bridge.Lookup
	answer bridge.Answer
	stop   context.CancelFunc
	turns  chan struct{} // of its namespace: has one entry for each that asks
}

// New looks nothing up yet. It calls changed when the answer for a bridge changes.
func New(token func(ctx context.Context, of types.NamespacedName) (string, error), changed func(bridge types.NamespacedName)) *Lookups {
	transport := http.DefaultTransport.(*http.Transport).Clone() // it goes by HTTPS_PROXY and NO_PROXY
	return &Lookups{Transport: transport, proxied: *httpproxy.FromEnvironment() != httpproxy.Config{}, Backoff: backoff, Stall: 10 * time.Minute, Recheck: 10 * time.Minute, Token: token, changed: changed, copying: make(chan struct{}, 1), of: map[types.NamespacedName]*lookup{}}
}

// Once looks for an image now, for a command, and copies nothing. A command runs elsewhere, where the cluster's proxy need not be reached.
func Once(ctx context.Context, want bridge.Lookup) bridge.Answer {
	l := New(nil, nil)
	l.proxied = true
	defer l.Transport.CloseIdleConnections()
	_, _, answer := l.look(ctx, want)
	return answer
}

// longest is how late at most an image that was pushed is found.
const longest = 2 * time.Minute

func backoff(tries int) time.Duration { return pace.Growing(tries, time.Second, longest) }

// Start waits for the context's end, and then ends all look-ups. It implements manager.Runnable.
func (l *Lookups) Start(ctx context.Context) error {
	<-ctx.Done()
	l.mu.Lock()
	l.ended = true
	for _, one := range l.of {
		one.stop()
	}
	l.mu.Unlock()
	l.all.Wait()
	return nil
}

// Follow looks up what a bridge wants until it is found, and returns at once what is known; with another wish it starts anew, with nil it ends.
func (l *Lookups) Follow(by types.NamespacedName, want *bridge.Lookup) bridge.Answer {
	l.mu.Lock()
	defer l.mu.Unlock()
	one, follows := l.of[by]
	if follows && want != nil && reflect.DeepEqual(one.want, *want) {
		return one.answer
	}
	turns := l.turnsOf(by.Namespace)
	if follows {
		one.stop()
		delete(l.of, by)
	}
	if want == nil || l.ended {
		return bridge.Answer{}
	}
	ctx, stop := context.WithCancel(context.Background())
	one = &lookup{want: *want, stop: stop, turns: turns}
	l.of[by] = one
	l.all.Go(func() {
		defer stop()
		l.run(ctx, by, one)
	})
	return bridge.Answer{}
}

// turnsOf a namespace; the caller has the lock.
func (l *Lookups) turnsOf(namespace string) chan struct{} {
	for by, one := range l.of {
		if by.Namespace == namespace {
			return one.turns
		}
	}
	return make(chan struct{}, atOnce)
}

// run asks until the image is found, and again if its copy is lost; whatever is wrong now may be mended in the registry.
func (l *Lookups) run(ctx context.Context, by types.NamespacedName, one *lookup) {
	for tries := 0; ctx.Err() == nil; tries++ {
		select {
		case <-ctx.Done():
			return
		case one.turns <- struct{}{}:
		}
		version, at, answer := l.look(ctx, one.want)
		<-one.turns
		if one.want.Cache != nil && version != "" {
			answer = l.cache(ctx, one.want, version, at, answer, func(now bridge.Answer) {
				if l.learns(ctx, one, now) {
					l.changed(by)
				}
			})
		}
		if l.learns(ctx, one, answer) {
			l.changed(by)
		}
		switch {
		case answer.Image == "":
			pace.Pause(ctx, l.Backoff(tries))
		case one.want.Cache == nil:
			return
		default:
			l.awaitLoss(ctx, one.want, version)
			tries = -1
		}
	}
}

// learns keeps an answer, and says whether it is news. A look-up that has ended learns nothing: its answer may be why it failed.
func (l *Lookups) learns(ctx context.Context, one *lookup, answer bridge.Answer) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ctx.Err() != nil || one.answer == answer {
		return false
	}
	one.answer = answer
	return true
}
