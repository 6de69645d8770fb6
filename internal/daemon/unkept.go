package daemon

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Unkept is how the objects of a kind are followed without a store, where there may be more of them, or larger ones, than memory has room for.
type Unkept[T client.Object] struct {
	// List takes in all objects as they are now, and returns the version of that list.
	List func(context.Context) (version string, err error)
	// Watch watches the objects with these options, too.
	Watch func(context.Context, client.ListOption) (watch.Interface, error)
	// Changed and Gone are told of what happens after the list, in order.
	Changed, Gone func(T)
}

// Follow lists, then watches, and lists again when changes were missed, until the context ends. It backs off while the API server is away.
func (u Unkept[T]) Follow(ctx context.Context, kind T) {
	source := listThenWatch{&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			version, err := u.List(ctx)
			return &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: version}}, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return u.Watch(ctx, &client.ListOptions{Raw: &o})
		},
	}}
	cache.NewReflector(source, kind, told[T]{u}, 0).RunWithContext(ctx)
}

// told is what a reflector takes for a store.
type told[T client.Object] struct{ Unkept[T] }

func (t told[T]) Add(object any) error { t.Changed(object.(T)); return nil }

func (t told[T]) Update(object any) error { return t.Add(object) }

func (t told[T]) Delete(object any) error { t.Gone(object.(T)); return nil }

// Replace is called after List, which has taken in all.
func (told[T]) Replace([]any, string) error { return nil }

// Resync is never called: Follow asks for no resync.
func (told[T]) Resync() error { return nil }

// Pages lists objects as they are now, page by page, and returns the version of the list. read fills a page, with these options among its own,
// and takes in what it has.
func Pages[L client.ObjectList](empty L, atOnce int64, read func(page L, limits ...client.ListOption) error) (version string, err error) {
	for next := ""; ; {
		page := empty.DeepCopyObject().(L)
		if err := read(page, client.Limit(atOnce), client.Continue(next)); err != nil {
			return "", err
		}
		if next = page.GetContinue(); next == "" {
			return page.GetResourceVersion(), nil
		}
	}
}
