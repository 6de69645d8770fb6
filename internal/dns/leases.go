package dns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/daemon"
)

// renewalsKept is how often renewals, which give no other answer, are written into the copy. A copy that is older ends a name too early only where
// this daemon starts anew while the API server is away.
const renewalsKept = 30 * time.Second

// leaseBook has the leases of one Infra and signals each change. A copy on disk serves until all leases have been listed from the API server.
type leaseBook struct {
	changed  chan struct{}
	renewed  chan struct{} // a lease ends later, and nothing else has changed
	pause    time.Duration // renewalsKept except in tests
	restored []*v1alpha1.DHCPLease
	path     string           // of the copy; empty: there is none
	now      func() time.Time // zero while it is not known
	log      *slog.Logger

	mu     sync.Mutex
	leases map[string]*v1alpha1.DHCPLease // by their names
	listed bool                           // whether all have been
}

func newLeaseBook(stateDir string, now func() time.Time, log *slog.Logger) *leaseBook {
	b := &leaseBook{changed: make(chan struct{}, 1), renewed: make(chan struct{}, 1), pause: renewalsKept, now: now, log: log, leases: map[string]*v1alpha1.DHCPLease{}}
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

func (b *leaseBook) known() []*v1alpha1.DHCPLease {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.listed {
		return slices.Clone(b.restored)
	}
	return slices.Collect(maps.Values(b.leases))
}

// Learn implements stages.Keeper.
func (b *leaseBook) Learn(l *v1alpha1.DHCPLease) {
	is := trimmed(l)
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.leases[l.Name]
	if was != nil && equality.Semantic.DeepEqual(was, is) {
		return
	}
	b.leases[l.Name] = is
	switch {
	case !b.listed: // KeepOnly wakes it
	case was != nil && isRenewal(*was, *is):
		wake(b.renewed)
	default:
		wake(b.changed)
	}
}

// isRenewal says whether a lease that stood ends later, and nothing else has changed.
func isRenewal(was, is v1alpha1.DHCPLease) bool {
	later := was.Spec.DurableUntilTime.Before(&is.Spec.DurableUntilTime)
	was.Spec.DurableUntilTime = is.Spec.DurableUntilTime
	return later && equality.Semantic.DeepEqual(was, is)
}

// trimmed is what a lease is named by: the copy of 65,536 of them is on a volume of 64 MiB, beside the former one while it is written.
func trimmed(l *v1alpha1.DHCPLease) *v1alpha1.DHCPLease {
	return &v1alpha1.DHCPLease{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.Namespace, Name: l.Name},
		Spec:       v1alpha1.DHCPLeaseSpec{IP: l.Spec.IP, Hostname: l.Spec.Hostname, State: l.Spec.State, DurableUntilTime: l.Spec.DurableUntilTime},
	}
}

// Lose implements stages.Keeper.
func (b *leaseBook) Lose(l *v1alpha1.DHCPLease) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.leases, l.Name)
	wake(b.changed)
}

// KeepOnly implements stages.Keeper.
func (b *leaseBook) KeepOnly(names map[string]bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.leases, func(name string, _ *v1alpha1.DHCPLease) bool { return !names[name] })
	b.listed, b.restored = true, nil
	wake(b.changed)
}

// wake has what reads from a channel of one place look again.
func wake(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default: // one signal is pending already
	}
}

// follow publishes each change, also that a horizon has passed, and then writes the copy, until the context ends. Renewals are published together,
// since they decide which of two leases has a name.
func (b *leaseBook) follow(ctx context.Context, publish func() error) error {
	end := time.NewTimer(b.untilNextEnd())
	defer end.Stop()
	var renewals <-chan time.Time // nil while there are none
	for seen := b.now(); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-b.changed:
		case <-renewals:
			renewals = nil
		case <-b.renewed:
			if renewals == nil {
				renewals = time.After(b.pause)
			}
			continue
		case <-end.C:
			if !b.anyEnded(seen) { // it was renewed
				end.Reset(b.untilNextEnd())
				continue
			}
		}
		seen = b.now()
		end.Reset(b.untilNextEnd()) // before publishing, so that the timer also covers a lease that ends meanwhile
		if err := errors.Join(publish(), b.keep()); err != nil {
			b.log.Error("a change of leases is not wholly served", "error", err)
		}
	}
}

// anyEnded says whether a lease has passed its horizon after a time.
func (b *leaseBook) anyEnded(after time.Time) bool {
	now := b.now()
	return slices.ContainsFunc(b.known(), func(l *v1alpha1.DHCPLease) bool {
		return l.Spec.DurableUntilTime.After(after) && !now.Before(l.Spec.DurableUntilTime.Time)
	})
}

// keep writes the copy once all leases have been listed: no incomplete copy replaces what was restored.
func (b *leaseBook) keep() error {
	if b.path == "" || !b.complete() {
		return nil
	}
	content, err := json.Marshal(b.known())
	if err != nil {
		return fmt.Errorf("encoding leases: %w", err)
	}
	return daemon.WriteFile(b.path, content)
}

func (b *leaseBook) complete() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.listed
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
