package endpoints

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/proxy/intent"
)

// Watch knows the targets of the needed Services. It reads each Service, its EndpointSlices, and the pods of its namespace.
type Watch struct {
	client  client.WithWatch
	changed chan struct{}

	mu       sync.Mutex
	services map[types.NamespacedName]service
	pods     map[string]*collection[*corev1.Pod]
}

// service is a collection of one Service, and one of its EndpointSlices.
type service struct {
	object *collection[*corev1.Service]
	slices *collection[*discoveryv1.EndpointSlice]
}

// NewWatch makes a watch of no Services; Need adds them.
func NewWatch(c client.WithWatch) *Watch {
	return &Watch{client: c, changed: make(chan struct{}, 1), services: map[types.NamespacedName]service{}, pods: map[string]*collection[*corev1.Pod]{}}
}

// Changed signals, to one listener, that targets may have changed.
func (w *Watch) Changed() <-chan struct{} { return w.changed }

// Need watches exactly these Services, until the context ends.
func (w *Watch) Need(ctx context.Context, all []intent.Service) {
	w.mu.Lock()
	defer w.mu.Unlock()
	needed, namespaces := map[types.NamespacedName]bool{}, map[string]bool{}
	for _, s := range all {
		needed[s.Key()], namespaces[s.Namespace] = true, true
		if w.services[s.Key()].object == nil {
			w.services[s.Key()] = w.follow(ctx, s)
		}
		if w.pods[s.Namespace] == nil {
			w.pods[s.Namespace] = follow(ctx, w.client, pods, s.Namespace, "namespace "+s.Namespace, w.signal, running)
		}
	}
	for key, s := range w.services {
		if !needed[key] {
			s.object.stop()
			s.slices.stop()
			delete(w.services, key)
		}
	}
	for name, of := range w.pods {
		if !namespaces[name] {
			of.stop()
			delete(w.pods, name)
		}
	}
}

func (w *Watch) follow(ctx context.Context, s intent.Service) service {
	whose := "service " + s.Key().String()
	return service{
		follow(ctx, w.client, services, s.Namespace, whose, w.signal, client.MatchingFields{"metadata.name": s.Name}),
		follow(ctx, w.client, endpointSlices, s.Namespace, whose, w.signal, client.MatchingLabels{discoveryv1.LabelServiceName: s.Name}),
	}
}

func (w *Watch) signal() {
	select {
	case w.changed <- struct{}{}:
	default: // one signal is pending already
	}
}

// Targets lists what may be dialled behind a Service. Known is false until all that it depends on has been read; until then the old targets must
// stay. The error says why there are no targets, or what is not known of them.
func (w *Watch) Targets(s intent.Service) (targets []netip.AddrPort, known bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	known, lacks := w.state(s)
	if !known {
		return nil, false, lacks
	}
	of := w.services[s.Key()]
	found, exists := of.object.get(s.Name)
	if !exists {
		return nil, true, fmt.Errorf("service %s/%s does not exist", s.Namespace, s.Name)
	}
	targets, err = Of(found, of.slices.listed(), w.pods[s.Namespace].get, s.Port)
	return targets, true, errors.Join(err, lacks)
}

// state says whether all that a Service's targets depend on was read once, and what is not known of it.
func (w *Watch) state(s intent.Service) (known bool, lacks error) {
	of, pods := w.services[s.Key()], w.pods[s.Namespace]
	if of.object == nil || pods == nil {
		return false, ErrUnread
	}
	known = true
	for _, state := range []func() (bool, error){of.object.state, of.slices.state, pods.state} {
		read, lack := state()
		known = known && read
		if lacks == nil {
			lacks = lack
		}
	}
	if !known && lacks == nil {
		lacks = ErrUnread
	}
	return known, lacks
}

// ErrUnread says that a Service's pods are not read yet.
var ErrUnread = errors.New("the service's pods are not read yet")
