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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/daemon"
)

// atOnce is the page size of lists. An object may have the 1.5 MiB that an API server stores, and take ten times as much here while it is
// decoded, as a list of empty strings does: four take half of the memory limit of the sidecar's container.
const atOnce = 4

// onePage lets only one page be read at a time, over all collections, because a page may take half of the memory.
var onePage = make(chan struct{}, 1)

// kind says how the objects of one kind are read in a namespace, and how much of them is kept: their author can make as many as the quota
// allows, each as large as the API server accepts.
type kind[T client.Object] struct {
	called string
	new    T
	list   client.ObjectList
	part   func(T) T
	most   int
}

// collection has the parts that are kept of some objects, by name.
type collection[T client.Object] struct {
	kind[T]
	in      string // the namespace
	whose   string // the subject of the error that there are more than most
	client  client.WithWatch
	options []client.ListOption
	signal  func()
	stop    context.CancelFunc

	mu     sync.Mutex
	again  context.CancelFunc // has run list everything again
	read   bool
	beyond bool // there were more than most
	denied error
	all    map[string]T
}

// follow reads the objects of a namespace that the options select, and their changes, until the context ends.
func follow[T client.Object](ctx context.Context, c client.WithWatch, of kind[T], namespace, whose string, signal func(), options ...client.ListOption) *collection[T] {
	ctx, stop := context.WithCancel(ctx) //nolint:gosec // Need calls it
	f := &collection[T]{kind: of, in: namespace, whose: whose, client: c, options: append(options, client.InNamespace(namespace)), signal: signal, stop: stop}
	go f.run(ctx)
	return f
}

// againAfter is the pause before a collection lists everything again, however often objects are deleted.
const againAfter = time.Second

// run follows the objects until the context ends.
func (c *collection[T]) run(ctx context.Context) {
	for ctx.Err() == nil {
		once, again := context.WithCancel(ctx)
		c.mu.Lock()
		c.again = again
		c.mu.Unlock()
		daemon.Unkept[T]{List: c.pages, Watch: c.watch, Changed: c.add, Gone: c.remove}.Follow(once, c.new)
		again()
		select {
		case <-ctx.Done():
		case <-time.After(againAfter):
		}
	}
}

// pages lists all objects, page by page, and keeps the oldest: an author chooses names, but no creation time.
func (c *collection[T]) pages(ctx context.Context) (version string, err error) {
	var parts []T
	version, err = daemon.Pages(c.list, atOnce, func(page client.ObjectList, limits ...client.ListOption) error {
		select {
		case onePage <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		defer func() { <-onePage }()
		if err := c.client.List(ctx, page, append(limits, c.options...)...); err != nil {
			return err
		}
		err := meta.EachListItem(page, func(object runtime.Object) error { parts = append(parts, c.part(object.(T))); return nil })
		if len(parts) > c.most {
			parts = oldest(parts, c.most+1) // one more, so that replace sees that there are too many
		}
		return err
	})
	if err != nil {
		c.mayRead(err)
		return "", err
	}
	c.replace(parts)
	return version, nil
}

// oldest returns the oldest objects, the oldest first. The API server sets the creation time, not the author.
func oldest[T client.Object](all []T, most int) []T {
	slices.SortStableFunc(all, func(a, b T) int { return a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time) })
	return all[:min(most, len(all))]
}

func (c *collection[T]) watch(ctx context.Context, o client.ListOption) (watch.Interface, error) {
	events, err := c.client.Watch(ctx, c.list.DeepCopyObject().(client.ObjectList), append(slices.Clone(c.options), o)...)
	c.mayRead(err)
	return events, err
}

// mayRead notes whether the API server denies access, which lasts until an admin grants it.
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

// replace keeps the first of these parts, and nothing else.
func (c *collection[T]) replace(parts []T) {
	all := map[string]T{}
	for _, part := range parts[:min(len(parts), c.most)] {
		all[part.GetName()] = part
	}
	c.mu.Lock()
	c.all, c.read, c.beyond = all, true, len(parts) > c.most
	c.mu.Unlock()
	c.signal()
}

// add takes in a new or changed object, of which a part is kept if there is room.
func (c *collection[T]) add(object T) {
	part := c.part(object)
	c.mu.Lock()
	defer c.mu.Unlock()
	was, had := c.all[part.GetName()]
	switch {
	case had && equality.Semantic.DeepEqual(was, part), !had && len(c.all) >= c.most && c.beyond:
		return
	case !had && len(c.all) >= c.most:
		c.beyond = true
	default:
		c.all[part.GetName()] = part
	}
	c.signal()
}

// remove takes in a deleted object. If objects were left out, and there is room for many now, all are listed again.
func (c *collection[T]) remove(object T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.all, object.GetName())
	if c.beyond && len(c.all) < c.most-c.most/10 {
		c.again()
	}
	c.signal()
}

func (c *collection[T]) get(name string) (T, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, is := c.all[name]
	return found, is
}

func (c *collection[T]) listed() []T {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.all))
}

// state says whether everything was read once, and what is not known.
func (c *collection[T]) state() (read bool, lacks error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.denied == nil && c.beyond {
		return c.read, fmt.Errorf("%s has more than %d %s, of which the proxy knows the oldest", c.whose, c.most, c.called)
	}
	return c.read, c.denied
}
