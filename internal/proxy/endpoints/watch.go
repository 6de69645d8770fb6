package endpoints

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/proxy/intent"
)

// Watch knows the targets of services, from the Services and EndpointSlices of the namespaces that are needed.
type Watch struct {
	client  client.WithWatch
	changed chan struct{}

	mu         sync.Mutex
	namespaces map[string]*namespace
}

type namespace struct {
	services, slices cache.Store
	synced           func() bool
	stop             context.CancelFunc
}

// NewWatch makes a watch that needs nothing yet.
func NewWatch(c client.WithWatch) *Watch {
	return &Watch{client: c, changed: make(chan struct{}, 1), namespaces: map[string]*namespace{}}
}

// Changed signals, to one listener, that targets may have changed.
func (w *Watch) Changed() <-chan struct{} { return w.changed }

// Need watches exactly the namespaces of these services, until the context ends.
func (w *Watch) Need(ctx context.Context, services []intent.Service) {
	w.mu.Lock()
	defer w.mu.Unlock()
	needed := map[string]bool{}
	for _, s := range services {
		needed[s.Namespace] = true
		if w.namespaces[s.Namespace] == nil {
			w.namespaces[s.Namespace] = w.start(ctx, s.Namespace)
		}
	}
	for name, n := range w.namespaces {
		if !needed[name] {
			n.stop()
			delete(w.namespaces, name)
		}
	}
}

func (w *Watch) start(ctx context.Context, name string) *namespace {
	ctx, stop := context.WithCancel(ctx)
	in := []client.ListOption{client.InNamespace(name)}
	signal := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { w.signal() },
		UpdateFunc: func(any, any) { w.signal() },
		DeleteFunc: func(any) { w.signal() },
	}
	services, serviceInformer := daemon.Informer(w.client, &corev1.Service{}, &corev1.ServiceList{}, in, signal)
	slices, sliceInformer := daemon.Informer(w.client, &discoveryv1.EndpointSlice{}, &discoveryv1.EndpointSliceList{}, in, signal)
	go serviceInformer.RunWithContext(ctx)
	go sliceInformer.RunWithContext(ctx)
	go func() { // an empty namespace raises no event
		if cache.WaitForCacheSync(ctx.Done(), serviceInformer.HasSynced, sliceInformer.HasSynced) {
			w.signal()
		}
	}()
	return &namespace{services, slices, func() bool { return serviceInformer.HasSynced() && sliceInformer.HasSynced() }, stop}
}

func (w *Watch) signal() {
	select {
	case w.changed <- struct{}{}:
	default: // one signal is pending already
	}
}

// Targets lists what may be dialled behind a service. Known is false while its namespace has not been read: what was
// dialled before must then stay. The error says why there is nothing to dial.
func (w *Watch) Targets(s intent.Service) (targets []netip.AddrPort, known bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.namespaces[s.Namespace]
	if n == nil || !n.synced() {
		return nil, false, fmt.Errorf("services of namespace %s are not read yet", s.Namespace)
	}
	found, exists, err := n.services.GetByKey(s.Namespace + "/" + s.Name)
	if err != nil || !exists {
		return nil, true, fmt.Errorf("service %s/%s does not exist", s.Namespace, s.Name)
	}
	var owned []*discoveryv1.EndpointSlice
	for _, object := range n.slices.List() {
		if slice := object.(*discoveryv1.EndpointSlice); slice.Labels[discoveryv1.LabelServiceName] == s.Name {
			owned = append(owned, slice)
		}
	}
	targets, err = Of(found.(*corev1.Service), owned, s.Port)
	return targets, true, err
}

// Unread lists the namespaces that have not been read yet.
func (w *Watch) Unread() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	unread := maps.Clone(w.namespaces)
	maps.DeleteFunc(unread, func(_ string, n *namespace) bool { return n.synced() })
	return slices.Sorted(maps.Keys(unread))
}
