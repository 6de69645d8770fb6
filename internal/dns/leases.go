package dns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/names"
)

// leaseBook has the leases of one Infra and signals each change. A copy on disk serves until all leases have been listed from the API server.
type leaseBook struct {
	changed  chan struct{}
	restored []*v1alpha1.DHCPLease
	mirrored atomic.Pointer[cache.Store] // nil until it is complete
	path     string                      // of the copy; empty: there is none
	now      func() time.Time            // zero while it is not known
	log      *slog.Logger
}

func newLeaseBook(stateDir string, now func() time.Time, log *slog.Logger) *leaseBook {
	b := &leaseBook{changed: make(chan struct{}, 1), now: now, log: log}
	if stateDir != "" {
		b.path = filepath.Join(stateDir, "leases.json")
		if err := b.restore(); err != nil {
			log.Error("the names of leases are not restored", "error", err)
		}
	}
	return b
}

// promised returns the leases whose horizon has not passed: after it no client has the address (dhcp-rules.md#lease-3). While the time is not
// known, it returns all.
func (b *leaseBook) promised() []*v1alpha1.DHCPLease {
	now := b.now()
	return slices.DeleteFunc(b.known(), func(l *v1alpha1.DHCPLease) bool { return !now.Before(l.Spec.DurableUntilTime.Time) })
}

// untilNextEnd returns the time until the first of the promised leases passes its horizon.
func (b *leaseBook) untilNextEnd() time.Duration {
	now, next := b.now(), time.Duration(math.MaxInt64)
	for _, l := range b.promised() {
		next = min(next, l.Spec.DurableUntilTime.Sub(now))
	}
	return next
}

func (b *leaseBook) known() (all []*v1alpha1.DHCPLease) {
	store := b.mirrored.Load()
	if store == nil {
		return slices.Clone(b.restored)
	}
	for _, l := range (*store).List() {
		all = append(all, l.(*v1alpha1.DHCPLease))
	}
	return all
}

// mirror follows the leases of an Infra until the context ends.
func (b *leaseBook) mirror(ctx context.Context, kube client.WithWatch, namespace, infra string) {
	own := []client.ListOption{client.InNamespace(namespace), client.MatchingLabels{names.LabelInfra: infra}}
	store, informer := daemon.Informer(kube, &v1alpha1.DHCPLease{}, &v1alpha1.DHCPLeaseList{}, own, trim, cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { b.signal() },
		UpdateFunc: func(was, is any) {
			if !equality.Semantic.DeepEqual(was.(*v1alpha1.DHCPLease).Spec, is.(*v1alpha1.DHCPLease).Spec) { // else what the lease is named by stays
				b.signal()
			}
		},
		DeleteFunc: func(any) { b.signal() },
	})
	go informer.RunWithContext(ctx)
	if cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		b.mirrored.Store(&store)
		b.signal()
	}
	<-ctx.Done()
}

// trim keeps of a lease what it is named by: the copy of 65,536 of them is on a volume of 64 MiB, beside the former one while it is written.
func trim(object client.Object) {
	l := object.(*v1alpha1.DHCPLease)
	l.ObjectMeta = metav1.ObjectMeta{Namespace: l.Namespace, Name: l.Name, ResourceVersion: l.ResourceVersion}
	l.Spec = v1alpha1.DHCPLeaseSpec{IP: l.Spec.IP, Hostname: l.Spec.Hostname, State: l.Spec.State, DurableUntilTime: l.Spec.DurableUntilTime}
	l.Status = v1alpha1.DHCPLeaseStatus{}
}

func (b *leaseBook) signal() {
	select {
	case b.changed <- struct{}{}:
	default: // one signal is pending already
	}
}

// follow publishes each change, also that a horizon has passed, and then writes the copy, until the context ends.
func (b *leaseBook) follow(ctx context.Context, publish func() error) error {
	end := time.NewTimer(b.untilNextEnd())
	defer end.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-b.changed:
		case <-end.C:
		}
		end.Reset(b.untilNextEnd()) // before publishing, so that the timer also covers a lease that ends meanwhile
		if err := errors.Join(publish(), b.keep()); err != nil {
			b.log.Error("a change of leases is not wholly served", "error", err)
		}
	}
}

// keep writes the copy once the mirror is complete: no incomplete copy replaces what was restored.
func (b *leaseBook) keep() error {
	if b.path == "" || b.mirrored.Load() == nil {
		return nil
	}
	content, err := json.Marshal(b.known())
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
	if err == nil {
		err = json.Unmarshal(content, &b.restored)
	}
	return err
}
