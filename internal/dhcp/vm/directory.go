package vm

import (
	"context"
	"log/slog"
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

	mu   sync.Mutex
	seen *picture // nil: no namespace is followed
}

// picture is what the watches of one namespace have shown.
type picture struct {
	*index
	complete  func() bool
	installed chan struct{} // closed once KubeVirt is known to be there
}

// certain says whether a machine that is not in the picture is gone: only if KubeVirt is installed.
func (p *picture) certain() bool { return closed(p.installed) }

type pod struct {
	instance string
	macs     []string
}

var _ pool.Machines = (*Directory)(nil)

// NewDirectory returns a Directory that follows no namespace yet, and finds no machine.
func NewDirectory(log *slog.Logger) *Directory { return &Directory{log: log} }

// Follow watches a namespace until the context ends, in place of any that it followed before.
func (d *Directory) Follow(ctx context.Context, c client.WithWatch, namespace string) {
	in := []client.ListOption{client.InNamespace(namespace)}
	seen := picture{index: newIndex(), installed: make(chan struct{})}
	machines := d.informer(c, machineKind, in, seen.setMachine, seen.remove)
	instances := d.informer(c, instanceKind, in, seen.setInstance, seen.remove)
	pods := d.podInformer(c, append(in, client.MatchingLabels{labelLauncher: launcher}), seen.index)
	seen.complete = func() bool { return machines.HasSynced() && instances.HasSynced() && pods.HasSynced() }

	d.mu.Lock()
	d.seen = &seen
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
	d.seen = nil
}

// untilInstalled waits for KubeVirt: an informer counts an absent kind as empty, but that does not say that a lease's machine is gone.
func (d *Directory) untilInstalled(ctx context.Context, c client.Client, installed chan<- struct{}) {
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for {
		if _, err := c.RESTMapper().RESTMapping(machineKind.GroupKind(), machineKind.Version); err == nil {
			close(installed)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (d *Directory) informer(c client.WithWatch, kind schema.GroupVersionKind, in []client.ListOption, set func(Machine), remove func(uid string)) cache.Controller {
	object, list := &unstructured.Unstructured{}, &unstructured.UnstructuredList{}
	object.SetGroupVersionKind(kind)
	list.SetGroupVersionKind(kind)
	return daemon.Informer(c, object, list, in, d.changes(func(o client.Object) {
		var m Machine
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.(*unstructured.Unstructured).Object, &m); err != nil {
			d.log.Warn("virtual machine not understood", "kind", kind.Kind, "name", o.GetName(), "error", err)
			return
		}
		set(m)
	}, remove))
}

func (d *Directory) podInformer(c client.WithWatch, in []client.ListOption, x *index) cache.Controller {
	kind := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	object, list := &metav1.PartialObjectMetadata{}, &metav1.PartialObjectMetadataList{}
	object.SetGroupVersionKind(kind)
	list.SetGroupVersionKind(kind)
	return daemon.Informer(c, object, list, in, d.changes(func(o client.Object) {
		x.setPod(string(o.GetUID()), pod{o.GetLabels()[labelInstance], launcherMACs(o.GetAnnotations())})
	}, x.removePod))
}

// changes applies the events of an object to our picture.
func (d *Directory) changes(set func(client.Object), remove func(uid string)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { d.locked(func() { set(o.(client.Object)) }) },
		UpdateFunc: func(old, o any) {
			d.locked(func() {
				if was := old.(client.Object).GetUID(); was != o.(client.Object).GetUID() { // deleted and created again while the watch was down
					remove(string(was))
				}
				set(o.(client.Object))
			})
		},
		DeleteFunc: func(o any) {
			if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			d.locked(func() { remove(string(o.(client.Object).GetUID())) })
		},
	}
}

func (d *Directory) locked(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

// look answers from the picture, if the watches are complete.
func (d *Directory) look(answer func(*picture)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seen != nil && d.seen.complete() {
		answer(d.seen)
	}
}

// Owner implements pool.Machines.
func (d *Directory) Owner(mac string) pool.Owner {
	owner := pool.Owner{Unresolved: true}
	d.look(func(p *picture) { owner = p.owner(mac) })
	return owner
}

// InUse implements pool.Machines.
func (d *Directory) InUse(mac string) bool {
	used := true
	d.look(func(p *picture) { used = !p.certain() || len(p.running[mac]) > 0 })
	return used
}

// Started is when a machine was switched on last; zero if that is not known.
func (d *Directory) Started(vm lease.VM) (at time.Time) {
	d.look(func(p *picture) { at = p.started(vm) })
	return at
}

// Exists implements pool.Machines.
func (d *Directory) Exists(vm lease.VM) (exists bool, namesake lease.VM) {
	exists = true
	d.look(func(p *picture) {
		if p.certain() {
			exists, namesake = len(p.byUID[vm.UID]) > 0, p.byName.first(vm.Name)
		}
	})
	return exists, namesake
}
