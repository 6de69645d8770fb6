package endpoints

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/daemon"
)

// atOnce are the objects that are asked for at once. Each may have the 1.5 MiB that an API server stores, and take ten times as much
// here while it is taken in, as a list of empty texts does: of four that is half of what the sidecar's container may have.
const atOnce = 4

// onePage is read at a time, of whatever is followed: what takes half of the memory takes it once.
var onePage = make(chan struct{}, 1)

// kind says how objects of one kind are read of a namespace, and how much of them is kept: whoever may write there makes as many of
// them as his quota allows, and each as large as the API server takes it.
type kind[T client.Object] struct {
	called string
	new    T
	list   client.ObjectList
	part   func(T) T
	most   int
}

// collection is what is kept of some objects, by their names.
type collection[T client.Object] struct {
	kind[T]
	in      string // the namespace
	whose   string // that there are more of is said of this
	client  client.WithWatch
	options []client.ListOption
	signal  func()
	stop    context.CancelFunc

	mu     sync.Mutex
	again  context.CancelFunc // reads all anew
	read   bool
	beyond bool // the bound there was one more
	denied error
	all    map[string]T
}

// follow reads what some options select in a namespace, and its changes, until the context ends.
func follow[T client.Object](ctx context.Context, c client.WithWatch, of kind[T], namespace, whose string, signal func(), options ...client.ListOption) *collection[T] {
	ctx, stop := context.WithCancel(ctx) //nolint:gosec // Need calls it
	f := &collection[T]{kind: of, in: namespace, whose: whose, client: c, options: append(options, client.InNamespace(namespace)), signal: signal, stop: stop}
	go f.run(ctx)
	return f
}

// againAfter is how long a collection waits before it reads all anew, however often one goes.
const againAfter = time.Second

// run until the context ends. A reflector asks an API server that is away again with a growing pause.
func (c *collection[T]) run(ctx context.Context) {
	for ctx.Err() == nil {
		once, again := context.WithCancel(ctx)
		c.mu.Lock()
		c.again = again
		c.mu.Unlock()
		cache.NewReflector(daemon.ListThenWatch{ListWatch: &cache.ListWatch{ListWithContextFunc: c.pages, WatchFuncWithContext: c.watch}}, c.new, c, 0).RunWithContext(once)
		again()
		select {
		case <-ctx.Done():
		case <-time.After(againAfter):
		}
	}
}

// pages reads all that there is, and keeps the oldest, which nobody gets between by a name: of the newest state, for of another the API
// server gives all at once.
func (c *collection[T]) pages(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	o.ResourceVersion, o.ResourceVersionMatch = "", ""
	all := c.list.DeepCopyObject().(client.ObjectList)
	var parts []T
	for {
		select {
		case onePage <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		page := c.list.DeepCopyObject().(client.ObjectList)
		err := c.client.List(ctx, page, append(slices.Clone(c.options), &client.ListOptions{Raw: &o, Limit: atOnce, Continue: all.GetContinue()})...)
		if err == nil {
			err = meta.EachListItem(page, func(object runtime.Object) error { parts = append(parts, c.part(object.(T))); return nil })
			if len(parts) > c.most {
				parts = oldest(parts, c.most+1) // one more, so that Replace sees that there is
			}
		}
		<-onePage
		if err != nil {
			c.mayRead(err)
			return nil, err
		}
		all.SetResourceVersion(page.GetResourceVersion())
		if all.SetContinue(page.GetContinue()); page.GetContinue() == "" {
			return all, meta.SetList(all, objects(parts))
		}
	}
}

// oldest of some objects, the oldest first. When an object was made, the API server says, and no author.
func oldest[T client.Object](all []T, most int) []T {
	slices.SortStableFunc(all, func(a, b T) int { return a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time) })
	return all[:min(most, len(all))]
}

func objects[T client.Object](all []T) (out []runtime.Object) {
	for _, object := range all {
		out = append(out, object)
	}
	return out
}

func (c *collection[T]) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	events, err := c.client.Watch(ctx, c.list.DeepCopyObject().(client.ObjectList), append(slices.Clone(c.options), &client.ListOptions{Raw: &o})...)
	c.mayRead(err)
	return events, err
}

// mayRead notes whether an answer of the API server is that we may not, which lasts until somebody grants it.
func (c *collection[T]) mayRead(err error) {
	var denied error
	if apierrors.IsForbidden(err) {
		denied = fmt.Errorf("the proxy may not read %s of namespace %s, and dials what it knew before; a Role there has to allow it get, list and watch", c.called, c.in)
	}
	c.mu.Lock()
	turned := (denied == nil) != (c.denied == nil)
	c.denied = denied
	c.mu.Unlock()
	if turned {
		c.signal()
	}
}

// Replace is what the reflector calls with all that there is.
func (c *collection[T]) Replace(objects []any, _ string) error {
	all := map[string]T{}
	for _, object := range objects[:min(len(objects), c.most)] {
		all[object.(T).GetName()] = object.(T)
	}
	c.mu.Lock()
	c.all, c.read, c.beyond = all, true, len(objects) > c.most
	c.mu.Unlock()
	c.signal()
	return nil
}

// Add is what the reflector calls with one that came, of which a part is kept if there is room.
func (c *collection[T]) Add(object any) error {
	part := c.part(object.(T))
	c.mu.Lock()
	defer c.mu.Unlock()
	was, had := c.all[part.GetName()]
	switch {
	case had && equality.Semantic.DeepEqual(was, part), !had && len(c.all) >= c.most && c.beyond:
		return nil
	case !had && len(c.all) >= c.most:
		c.beyond = true
	default:
		c.all[part.GetName()] = part
	}
	c.signal()
	return nil
}

// Update is what the reflector calls with one that changed.
func (c *collection[T]) Update(object any) error { return c.Add(object) }

// Delete is what the reflector calls with one that went. Where there was none for some, and there is now for many, all are read anew.
func (c *collection[T]) Delete(object any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.all, object.(T).GetName())
	if c.beyond && len(c.all) < c.most-c.most/10 {
		c.again()
	}
	c.signal()
	return nil
}

// Resync is what the reflector never calls.
func (c *collection[T]) Resync() error { return nil }

// get one by its name.
func (c *collection[T]) get(name string) (T, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, is := c.all[name]
	return found, is
}

// listed are all that are kept.
func (c *collection[T]) listed() []T {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.all))
}

// state says whether all was read once, and what is not known of it.
func (c *collection[T]) state() (read bool, lacks error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.denied == nil && c.beyond {
		return c.read, fmt.Errorf("%s has more than %d %s, of which the proxy knows the oldest", c.whose, c.most, c.called)
	}
	return c.read, c.denied
}
