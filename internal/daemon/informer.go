package daemon

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// absentPause is how long a kind unknown to the API server counts as an empty list.
const absentPause = 5 * time.Second

// Informer tells handler of the objects of a kind that the options select, without managed fields, while it runs. It retries with growing pauses
// while the API server is away; a kind that the API server does not know counts as empty until it does.
//
// It lists in pages, and takes managed fields out of each at once. An API server takes no heed of a limit where any resourceVersion would do
// (kubernetes, staging/src/k8s.io/apiserver/pkg/storage/cacher, shouldDelegateList).
func Informer(c client.WithWatch, kind client.Object, list client.ObjectList, options []client.ListOption, handler cache.ResourceEventHandler) cache.Controller {
	trims := func(of any) {
		if object, is := of.(client.Object); is { // what stands for an object that was deleted while the watch was down is none
			object.SetManagedFields(nil)
		}
	}
	selected := func(o metav1.ListOptions) []client.ListOption {
		return append(options[:len(options):len(options)], &client.ListOptions{Raw: &o, Limit: o.Limit, Continue: o.Continue}) // of Raw alone it takes neither
	}
	source := listThenWatch{&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			into := list.DeepCopyObject().(client.ObjectList)
			if o.ResourceVersion == anyVersion {
				o.ResourceVersion = ""
			}
			err := c.List(ctx, into, selected(o)...)
			if absent(err) {
				return into, nil
			}
			return into, errors.Join(err, meta.EachListItem(into, func(o runtime.Object) error { trims(o); return nil }))
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			events, err := c.Watch(ctx, list.DeepCopyObject().(client.ObjectList), selected(o)...)
			if absent(err) {
				return silence(absentPause), nil
			}
			return events, err
		},
	}}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{ListerWatcher: source, ObjectType: kind, Handler: handler, Transform: func(of any) (any, error) { trims(of); return of, nil }})
	return informer
}

// anyVersion is the resourceVersion with which an informer lists at first.
const anyVersion = "0"

func absent(err error) bool { return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) }

// silence is a watch without events that ends after a pause.
func silence(pause time.Duration) watch.Interface {
	w := watch.NewFake()
	time.AfterFunc(pause, w.Stop)
	return w
}

// listThenWatch stops an informer from streaming its first list, which saves nothing with the few objects of one daemon, and which not every
// API server can.
type listThenWatch struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported has the name that client-go looks for.
func (listThenWatch) IsWatchListSemanticsUnSupported() bool { return true }
