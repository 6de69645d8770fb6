package endpoints

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/proxy/intent"
)

// Watch knows the targets of services, from the Services, EndpointSlices and pods of the namespaces that are needed.
type Watch struct {
	client  client.WithWatch
	changed chan struct{}

	mu         sync.Mutex
	namespaces map[string]*namespace
}

type namespace struct {
	services, slices, pods cache.Store
	synced                 func() bool
	stop                   context.CancelFunc
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
	endpointSlices, sliceInformer := daemon.Informer(w.client, &discoveryv1.EndpointSlice{}, &discoveryv1.EndpointSliceList{}, in, signal)
	pods, podInformer := daemon.InformerOfParts(w.client, &corev1.Pod{}, &corev1.PodList{}, append(in, running), addressed, cache.ResourceEventHandlerFuncs{
		AddFunc: signal.AddFunc,
		UpdateFunc: func(was, now any) {
			w.signalIf(!equality.Semantic.DeepEqual(was.(*corev1.Pod).Status, now.(*corev1.Pod).Status))
		},
		DeleteFunc: signal.DeleteFunc,
	})
	informers := []cache.Controller{serviceInformer, sliceInformer, podInformer}
	for _, i := range informers {
		go i.RunWithContext(ctx)
	}
	synced := func() bool {
		return !slices.ContainsFunc(informers, func(i cache.Controller) bool { return !i.HasSynced() })
	}
	go func() { // an empty namespace raises no event
		if cache.WaitForCacheSync(ctx.Done(), synced) {
			w.signal()
		}
	}()
	return &namespace{services, endpointSlices, pods, synced, stop}
}

// running pods have addresses. Others cost who makes them nothing, and would be read whole, by hundreds.
var running = client.MatchingFields{"status.phase": string(corev1.PodRunning)}

// addressed leaves of a pod its addresses and whether it has ended: a control plane has a hundred pods.
func addressed(object any) (any, error) {
	pod, is := object.(*corev1.Pod)
	if !is {
		return object, nil // what was deleted while the watch was away
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion},
		Status:     corev1.PodStatus{Phase: pod.Status.Phase, PodIPs: pod.Status.PodIPs},
	}, nil
}

func (w *Watch) signalIf(news bool) {
	if news {
		w.signal()
	}
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
	targets, err = Of(found.(*corev1.Service), owned, n.pod(s.Namespace), s.Port)
	return targets, true, err
}

func (n *namespace) pod(of string) Pods {
	return func(name string) *corev1.Pod {
		found, exists, err := n.pods.GetByKey(of + "/" + name)
		if err != nil || !exists {
			return nil
		}
		return found.(*corev1.Pod)
	}
}
