// Package byname hears of changes of single objects by their names: it takes no permission to list a kind, and keeps nothing in
// memory. What an object is, is read when it is needed.
package byname

import (
	"context"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
)

// Object is a Secret or ConfigMap by its name.
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

// Watches are one for each object that somebody follows.
type Watches struct {
	source  typedcore.CoreV1Interface
	changed func(follower types.NamespacedName)

	mu    sync.Mutex
	of    map[Object]*one
	ended bool
	all   sync.WaitGroup
}

// one object that is watched.
type one struct {
	followers map[types.NamespacedName]bool
	stop      context.CancelFunc
	reopen    context.CancelFunc
}

// New watches nothing yet. What changed is called for each follower of an object, when it changes, appears, goes, or can be watched
// (again).
func New(source typedcore.CoreV1Interface, changed func(follower types.NamespacedName)) *Watches {
	return &Watches{source: source, changed: changed, of: map[Object]*one{}}
}

// Start waits for the end and then ends all watches: it makes Watches a Runnable of the manager.
func (w *Watches) Start(ctx context.Context) error {
	<-ctx.Done()
	w.mu.Lock()
	w.ended = true
	for _, o := range w.of {
		o.stop()
	}
	w.mu.Unlock()
	w.all.Wait()
	return nil
}

// Follow these objects for somebody, and no others any more. Read them after it: a change in between is told.
func (w *Watches) Follow(follower types.NamespacedName, objects ...Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for object, o := range w.of {
		if o.followers[follower] && !slices.Contains(objects, object) {
			delete(o.followers, follower)
			if len(o.followers) == 0 {
				o.stop()
				delete(w.of, object)
			}
		}
	}
	for _, object := range objects {
		if object.Name == "" || w.ended {
			continue
		}
		if w.of[object] == nil {
			w.begin(object)
		}
		w.of[object].followers[follower] = true
	}
}

// Reopen the watch of an object that may not be read: it can be older than the permission that was taken away, and would not tell that
// there is one again.
func (w *Watches) Reopen(object Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o := w.of[object]; o != nil {
		o.reopen()
	}
}

func (w *Watches) begin(object Object) {
	ctx, stop := context.WithCancel(context.Background())
	o := &one{followers: map[types.NamespacedName]bool{}, stop: stop, reopen: func() {}}
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

// again bounds how late a change is seen that was made between two watches, and a permission that is granted.
const again = 2 * time.Second

// position in the history of an object.
type position struct {
	version string
	begun   bool // followers know that it is watched
}

// watch until the API server ends it. It goes on where the one before stopped, so that a watch that merely ran out tells nothing.
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
		if event.Type != watch.Bookmark {
			w.tell(o)
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
	followers := make([]types.NamespacedName, 0, len(o.followers))
	for follower := range o.followers {
		followers = append(followers, follower)
	}
	w.mu.Unlock()
	for _, follower := range followers {
		w.changed(follower)
	}
}
