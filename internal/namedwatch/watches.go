// Package namedwatch watches single objects by name: it needs no permission to list a kind, and keeps nothing in memory. Objects are read
// when they are needed.
package namedwatch

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
)

// Object is a Secret or ConfigMap, by name.
type Object struct {
	Kind Kind
	types.NamespacedName
}

// Kind of an object.
type Kind int

// The kinds that are followed.
const (
	Secret Kind = iota
	ConfigMap
)

// Watches has one watch for each object that somebody follows.
type Watches struct {
	source  typedcore.CoreV1Interface
	changed func(follower types.NamespacedName)

	mu      sync.Mutex
	of      map[Object]*one
	shares  map[string]int                // how many watches each namespace's followers have
	turns   map[string]*rate.Limiter      // how fast each namespace's followers may be told
	late    map[types.NamespacedName]bool // followers that are told when it is their turn
	without map[types.NamespacedName]bool // followers of objects that are not watched, because there are too many
	ended   bool
	all     sync.WaitGroup
}

// one is a watched object.
type one struct {
	namespace string // whose share it counts towards
	followers map[types.NamespacedName]bool
	stop      context.CancelFunc
	reopen    context.CancelFunc
}

// New watches nothing yet. It calls changed for each follower of an object when the object changes, appears or goes, or can be watched
// again.
func New(source typedcore.CoreV1Interface, changed func(follower types.NamespacedName)) *Watches {
	return &Watches{source: source, changed: changed, of: map[Object]*one{}, shares: map[string]int{}, turns: map[string]*rate.Limiter{}, late: map[types.NamespacedName]bool{}, without: map[types.NamespacedName]bool{}}
}

// Whoever may create followers may create many. A watch takes some 30 KiB here, measured with client-go over TLS, and as much at the API
// server.
const (
	mostOfOne = 1200 // watched objects for the followers of one namespace: those of 200 bridges
	mostOfAll = 1500 // watched objects in all; beyond that, a namespace that has its share gets no more
	mostEver  = 2000 // watched objects in all, whatever the shares

	lookAgain = time.Minute // how late a change of an unwatched object is noticed, or later if there are many
	seldom    = time.Second // how often a follower is told of one object's changes: each time it reads the object

	// wakesOfOne of a namespace's followers are told each second, after wakesAtOnce: no follower waits behind those of another namespace.
	wakesOfOne  = 20
	wakesAtOnce = 250
)

// Start regularly tells the followers of unwatched objects to look again, and tells followers whose turn had not come. When ctx ends it
// ends all watches. It makes Watches a Runnable of the manager.
func (w *Watches) Start(ctx context.Context) error {
	looked := time.Now()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(seldom):
			if time.Since(looked) >= lookAgain {
				looked = time.Now()
				w.wakeAll(w.polling())
			}
			w.wakeAll(w.waiting())
		}
	}
	w.mu.Lock()
	w.ended = true
	for _, o := range w.of {
		o.stop()
	}
	w.mu.Unlock()
	w.all.Wait()
	return nil
}

func (w *Watches) polling() []types.NamespacedName {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.without))
}

func (w *Watches) waiting() []types.NamespacedName {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := slices.Collect(maps.Keys(w.late))
	clear(w.late)
	maps.DeleteFunc(w.turns, func(_ string, turn *rate.Limiter) bool { return turn.Tokens() >= wakesAtOnce }) // a new limiter would be the same
	return all
}

// wakeAll tells followers, as many of each namespace as may be told now; the others wait.
func (w *Watches) wakeAll(followers []types.NamespacedName) {
	for _, follower := range followers {
		w.mu.Lock()
		turn := w.turns[follower.Namespace]
		if turn == nil {
			turn = rate.NewLimiter(wakesOfOne, wakesAtOnce)
			w.turns[follower.Namespace] = turn
		}
		now := turn.Allow()
		if !now {
			w.late[follower] = true
		}
		w.mu.Unlock()
		if now {
			w.changed(follower)
		}
	}
}

// Follow makes follower follow these objects, and no others. Read them after calling it: a change in between is then told. If not all are
// watched, the follower is told to look again each minute.
func (w *Watches) Follow(follower types.NamespacedName, objects ...Object) (all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.without, follower)
	for object, o := range w.of {
		if o.followers[follower] && !slices.Contains(objects, object) {
			w.leaves(follower, object, o)
		}
	}
	for _, object := range objects {
		if object.Name == "" || w.ended {
			continue
		}
		if w.of[object] == nil {
			if !w.mayFollow(follower.Namespace) {
				w.without[follower] = true
				continue
			}
			w.begin(object, follower.Namespace)
		}
		w.of[object].followers[follower] = true
	}
	return !w.without[follower]
}

// leaves takes a follower off an object, whose watch ends with its last follower.
func (w *Watches) leaves(follower types.NamespacedName, object Object, o *one) {
	delete(o.followers, follower)
	if len(o.followers) > 0 {
		if follower.Namespace == o.namespace {
			w.pass(o)
		}
		return
	}
	o.stop()
	delete(w.of, object)
	w.counts(o.namespace, -1)
}

// pass gives a watch to another namespace that follows it, if its own no longer does.
func (w *Watches) pass(o *one) {
	for follower := range o.followers {
		if follower.Namespace == o.namespace {
			return
		}
	}
	for follower := range o.followers {
		w.counts(o.namespace, -1)
		o.namespace = follower.Namespace
		w.counts(o.namespace, 1)
		return
	}
}

// mayFollow says whether the followers of a namespace may have one more watch.
func (w *Watches) mayFollow(namespace string) bool {
	has := w.shares[namespace]
	return has < mostOfOne && len(w.of) < mostEver && (len(w.of) < mostOfAll || has < mostOfAll/len(w.shares))
}

// counts adds to the number of a namespace's watches.
func (w *Watches) counts(namespace string, more int) {
	if w.shares[namespace] += more; w.shares[namespace] == 0 {
		delete(w.shares, namespace)
	}
}

// Reopen restarts the watch of an object that may not be read: an old watch may survive the loss of the permission, and would not notice
// that it is granted again.
func (w *Watches) Reopen(object Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o := w.of[object]; o != nil {
		o.reopen()
	}
}

func (w *Watches) begin(object Object, namespace string) {
	ctx, stop := context.WithCancel(context.Background())
	w.counts(namespace, 1)
	o := &one{namespace: namespace, followers: map[types.NamespacedName]bool{}, stop: stop, reopen: func() {}}
	w.of[object] = o
	w.all.Go(func() {
		var at position
		for ctx.Err() == nil {
			watching, reopen := context.WithCancel(ctx)
			w.mu.Lock()
			o.reopen = reopen
			w.mu.Unlock()
			if err := w.watch(watching, object, o, &at); err != nil || watching.Err() != nil {
				at = position{}
			}
			reopen()
			select {
			case <-ctx.Done():
			case <-time.After(again):
			}
		}
	})
}

// again bounds how late a change between two watches, or a granted permission, is noticed.
const again = 2 * time.Second

// position is where a watch is in the history of an object.
type position struct {
	version string
	begun   bool // followers know that it is watched
}

// watch follows events until the API server ends the watch. It resumes where the last one stopped, so that a watch that merely timed out
// tells nothing.
func (w *Watches) watch(ctx context.Context, object Object, o *one, at *position) error {
	events, err := w.events(ctx, object, at.version)
	if err != nil {
		return err
	}
	defer events.Stop()
	if !at.begun {
		at.begun = true
		w.tell(o)
	}
	for event := range events.ResultChan() {
		if event.Type == watch.Error {
			return apierrors.FromObject(event.Object)
		}
		if of, ok := event.Object.(metav1.Object); ok {
			at.version = of.GetResourceVersion()
		}
		if event.Type == watch.Bookmark {
			continue
		}
		w.tell(o)
		select { // meanwhile events queue at the API server, which may end the watch
		case <-ctx.Done():
		case <-time.After(seldom):
		}
	}
	return nil
}

func (w *Watches) events(ctx context.Context, object Object, version string) (watch.Interface, error) {
	of := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", object.Name).String(), AllowWatchBookmarks: true, ResourceVersion: version}
	if object.Kind == ConfigMap {
		return w.source.ConfigMaps(object.Namespace).Watch(ctx, of)
	}
	return w.source.Secrets(object.Namespace).Watch(ctx, of)
}

func (w *Watches) tell(o *one) {
	w.mu.Lock()
	followers := slices.Collect(maps.Keys(o.followers))
	w.mu.Unlock()
	w.wakeAll(followers)
}
