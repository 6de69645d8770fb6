package vm

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/pool"
)

// Kinds of KubeVirt.
var (
	machineKind  = schema.GroupVersionKind{Group: "kubevirt.io", Version: "v1", Kind: "VirtualMachine"}
	instanceKind = schema.GroupVersionKind{Group: "kubevirt.io", Version: "v1", Kind: "VirtualMachineInstance"}
)

// Directory answers from its watches. Until these are complete, it says that every machine exists, and that every hardware address may
// be in use. Without KubeVirt there are no machines, but those with a lease still count as existing.
type Directory struct {
	log *slog.Logger

	mu      sync.Mutex
	seen    *picture // nil: no namespace is followed
	current *index   // of seen; nil: to be made anew
}

// picture is what the watches of one namespace have shown, by UID.
type picture struct {
	machines, instances map[string]Machine
	launched            map[string]pod
	complete            func() bool
	installed           chan struct{} // closed once KubeVirt is known to be there
}

type pod struct {
	instance string
	macs     []string
}

var _ pool.Machines = (*Directory)(nil)

// NewDirectory follows no namespace yet: no hardware address is a machine's.
func NewDirectory(log *slog.Logger) *Directory { return &Directory{log: log} }

// Follow watches a namespace until the context ends, in place of any that it followed before.
func (d *Directory) Follow(ctx context.Context, c client.WithWatch, namespace string) {
	in := []client.ListOption{client.InNamespace(namespace)}
	seen := picture{machines: map[string]Machine{}, instances: map[string]Machine{}, launched: map[string]pod{}, installed: make(chan struct{})}
	machines := d.informer(c, machineKind, in, seen.machines)
	instances := d.informer(c, instanceKind, in, seen.instances)
	pods := d.podInformer(c, append(in, client.MatchingLabels{labelLauncher: launcher}), seen.launched)
	seen.complete = func() bool { return machines.HasSynced() && instances.HasSynced() && pods.HasSynced() }

	d.mu.Lock()
	d.seen, d.current = &seen, nil
	d.mu.Unlock()
	for _, i := range []cache.Controller{machines, instances, pods} {
		go i.RunWithContext(ctx)
	}
	go d.untilInstalled(ctx, c, seen.installed)
}

// Unfollow forgets the namespace.
func (d *Directory) Unfollow() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen, d.current = nil, nil
}

// untilInstalled waits for KubeVirt: an informer counts an absent kind as empty, but that no machine can exist does not say
// that a lease's machine is gone.
func (d *Directory) untilInstalled(ctx context.Context, c client.Client, installed chan<- struct{}) {
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for {
		if _, err := c.RESTMapper().RESTMapping(machineKind.GroupKind(), machineKind.Version); err == nil {
			close(installed)
			d.forget()
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// forget has the index made anew at the next lookup.
func (d *Directory) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.current = nil
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (d *Directory) informer(c client.WithWatch, kind schema.GroupVersionKind, in []client.ListOption, seen map[string]Machine) cache.Controller {
	object, list := &unstructured.Unstructured{}, &unstructured.UnstructuredList{}
	object.SetGroupVersionKind(kind)
	list.SetGroupVersionKind(kind)
	_, controller := daemon.Informer(c, object, list, in, d.changes(func(o client.Object) {
		var m Machine
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.(*unstructured.Unstructured).Object, &m); err != nil {
			d.log.Warn("virtual machine not understood", "kind", kind.Kind, "name", o.GetName(), "error", err)
			return
		}
		seen[string(o.GetUID())] = m
	}, func(o client.Object) { delete(seen, string(o.GetUID())) }))
	return controller
}

func (d *Directory) podInformer(c client.WithWatch, in []client.ListOption, seen map[string]pod) cache.Controller {
	kind := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	object, list := &metav1.PartialObjectMetadata{}, &metav1.PartialObjectMetadataList{}
	object.SetGroupVersionKind(kind)
	list.SetGroupVersionKind(kind)
	_, controller := daemon.Informer(c, object, list, in, d.changes(func(o client.Object) {
		seen[string(o.GetUID())] = pod{o.GetLabels()[labelInstance], launcherMACs(o.GetAnnotations())}
	}, func(o client.Object) { delete(seen, string(o.GetUID())) }))
	return controller
}

// changes runs what an object does to our picture, and has the index made anew at the next lookup.
func (d *Directory) changes(set, remove func(client.Object)) cache.ResourceEventHandler {
	locked := func(change func(client.Object), o any) {
		if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = gone.Obj
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		change(o.(client.Object))
		d.current = nil
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { locked(set, o) },
		UpdateFunc: func(_, o any) { locked(set, o) },
		DeleteFunc: func(o any) { locked(remove, o) },
	}
}

// index is what lookups are answered from; nil while nobody knows.
func (d *Directory) index() *index {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seen == nil || !d.seen.complete() {
		return nil
	}
	if d.current == nil {
		launched := map[string][]string{}
		for _, p := range d.seen.launched {
			launched[p.instance] = append(launched[p.instance], p.macs...)
		}
		d.current = newIndex(slices.Collect(maps.Values(d.seen.machines)), slices.Collect(maps.Values(d.seen.instances)), launched)
		d.current.certain = closed(d.seen.installed)
	}
	return d.current
}

// Owner implements pool.Machines.
func (d *Directory) Owner(mac string) pool.Owner {
	if x := d.index(); x != nil {
		return x.owner(mac)
	}
	return pool.Owner{Unresolved: true}
}

// InUse implements pool.Machines.
func (d *Directory) InUse(mac string) bool {
	x := d.index()
	return x == nil || !x.certain || len(x.byMAC[mac].running) > 0
}

// Exists implements pool.Machines.
func (d *Directory) Exists(vm lease.VM) (bool, lease.VM) {
	x := d.index()
	if x == nil || !x.certain {
		return true, lease.VM{}
	}
	return x.uids[vm.UID], x.byName[vm.Name]
}
