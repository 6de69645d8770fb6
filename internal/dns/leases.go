package dns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/names"
)

// leaseBook mirrors the leases of one Infra and signals each change. A copy on disk serves until the API server has told
// all of them again: that first list then replaces what was restored.
type leaseBook struct {
	cache.Store
	changed chan struct{}
	path    string // of the copy; empty keeps none
	log     *slog.Logger
}

func newLeaseBook(stateDir string, log *slog.Logger) *leaseBook {
	b := &leaseBook{Store: cache.NewStore(cache.MetaNamespaceKeyFunc), changed: make(chan struct{}, 1), log: log}
	if stateDir != "" {
		b.path = filepath.Join(stateDir, "leases.json")
		if err := b.restore(); err != nil {
			log.Error("the names of leases are not restored", "error", err)
		}
	}
	return b
}

// Add, Update, Delete and Replace are how a reflector writes.

func (b *leaseBook) Add(o any) error                  { return b.signal(b.Store.Add(o)) }
func (b *leaseBook) Update(o any) error               { return b.signal(b.Store.Update(o)) }
func (b *leaseBook) Delete(o any) error               { return b.signal(b.Store.Delete(o)) }
func (b *leaseBook) Replace(o []any, rv string) error { return b.signal(b.Store.Replace(o, rv)) }

func (b *leaseBook) signal(err error) error {
	select {
	case b.changed <- struct{}{}:
	default: // one signal is pending already
	}
	return err
}

// leases are those known now.
func (b *leaseBook) leases() (all []*v1alpha1.DHCPLease) {
	for _, l := range b.List() {
		all = append(all, l.(*v1alpha1.DHCPLease))
	}
	return all
}

// mirror follows the leases of an Infra until the context ends.
func (b *leaseBook) mirror(ctx context.Context, kube client.WithWatch, namespace, infra string) {
	selected := func(o metav1.ListOptions) []client.ListOption {
		return []client.ListOption{client.InNamespace(namespace), client.MatchingLabels{names.LabelInfra: infra}, &client.ListOptions{Raw: &o}}
	}
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list := &v1alpha1.DHCPLeaseList{}
			return list, kube.List(ctx, list, selected(o)...)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return kube.Watch(ctx, &v1alpha1.DHCPLeaseList{}, selected(o)...)
		},
	}
	cache.NewReflectorWithOptions(source, &v1alpha1.DHCPLease{}, b, cache.ReflectorOptions{}).RunWithContext(ctx)
}

// follow publishes each change and then keeps a copy of it, until the context ends.
func (b *leaseBook) follow(ctx context.Context, publish func() error) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-b.changed:
		}
		if err := errors.Join(publish(), b.keep()); err != nil {
			b.log.Error("a change of leases is not wholly served", "error", err)
		}
	}
}

func (b *leaseBook) keep() error {
	if b.path == "" {
		return nil
	}
	content, err := json.Marshal(b.leases())
	if err != nil {
		return fmt.Errorf("encoding leases: %w", err)
	}
	return daemon.WriteFile(b.path, content)
}

func (b *leaseBook) restore() error {
	content, err := os.ReadFile(b.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var kept []*v1alpha1.DHCPLease
	if err == nil {
		err = json.Unmarshal(content, &kept)
	}
	for _, l := range kept {
		err = errors.Join(err, b.Store.Add(l))
	}
	return err
}
