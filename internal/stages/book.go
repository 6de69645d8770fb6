// Package stages writes what DNS and the proxy saw of workers into the status of their leases, where `kubectl get olease -o wide`, diagnose and
// the boot wall read it (docs/adr/0023-stages-in-the-leases-status.md).
package stages

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
)

const (
	// writesPerSecond of one daemon, in the long run, and burst at once: a thousand machines that boot together cost the API server little.
	writesPerSecond = 5
	burst           = 20
	// waitingWorkers may wait for their write. Of more the one that has waited longest is given up, until it is seen to repeat itself.
	waitingWorkers = 2048
	// attempts to write, each after a read: others write the same lease.
	attempts = 3
	// writeTime is how long one read or write may take.
	writeTime = 5 * time.Second
)

// Pauses after a write that failed, and after one for which the cluster is not ready.
var (
	failedPause  = 5 * time.Second
	refusedPause = 10 * time.Minute
)

// Book knows the leases of one Infra, and what their status says already. All that a guest repeats, and all from an address without a lease,
// ends here, in memory.
type Book struct {
	client    client.WithWatch
	namespace string
	infra     string // namespace/name, once its leases are followed
	log       *slog.Logger
	limit     *rate.Limiter
	refused   string // why the cluster takes no stages, as it was said last

	mu      sync.Mutex
	workers map[netip.Addr]*worker
	queue   []netip.Addr // of workers that wait for their write, the longest first
	signal  chan struct{}
}

// worker is the holder of a lease.
type worker struct {
	lease, client, vm string
	told              progress         // what the status says, or is about to
	saw               []v1alpha1.Stage // to be written
}

// New makes a book that knows no lease yet. Nothing is written where c is nil (file mode).
func New(c client.WithWatch, namespace string, log *slog.Logger) *Book {
	return &Book{
		client: c, namespace: namespace, log: log, limit: rate.NewLimiter(writesPerSecond, burst),
		workers: map[netip.Addr]*worker{}, signal: make(chan struct{}, 1),
	}
}

// Saw notes a stage of the worker at an address, and writes it later, if its lease does not say it yet. It never blocks.
func (b *Book) Saw(at netip.Addr, s v1alpha1.Stage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w, n := b.workers[at.Unmap()], nth(s.Name)
	if w == nil || n < 0 || rank(s) <= w.told[n] {
		return
	}
	w.told[n] = rank(s)
	if w.saw = append(w.saw, s); len(w.saw) == 1 {
		b.enqueue(at.Unmap())
	}
}

func (b *Book) enqueue(at netip.Addr) {
	if len(b.queue) >= waitingWorkers {
		if oldest := b.workers[b.queue[0]]; oldest != nil {
			oldest.forget()
		}
		b.queue = b.queue[1:]
		dropped.Inc()
	}
	b.queue = append(b.queue, at)
	select {
	case b.signal <- struct{}{}:
	default: // one signal is pending already
	}
}

// forget gives up what was not written, so that it is noticed when it is seen again.
func (w *worker) forget() {
	for _, s := range w.saw {
		w.told[nth(s.Name)] = unseen
	}
	w.saw = nil
}

// Learn implements Keeper.
func (b *Book) Learn(l *v1alpha1.DHCPLease) {
	at, err := netip.ParseAddr(string(l.Spec.IP))
	if err != nil {
		return // DHCP reports it
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if l.Spec.State != v1alpha1.LeaseBound {
		delete(b.workers, at)
		return
	}
	w := b.workers[at]
	if w == nil || w.lease != l.Name || w.client != l.Spec.Holder() || w.vm != "" && w.vm != l.HolderVM() {
		w = &worker{lease: l.Name, client: l.Spec.Holder()}
		b.workers[at] = w
	}
	w.vm = l.HolderVM()
	for n, rank := range told(l) {
		w.told[n] = max(w.told[n], rank)
	}
}

// Lose implements Keeper.
func (b *Book) Lose(l *v1alpha1.DHCPLease) {
	if at, err := netip.ParseAddr(string(l.Spec.IP)); err == nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.workers, at)
	}
}

// KeepOnly implements Keeper.
func (b *Book) KeepOnly(names map[string]bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for at, w := range b.workers {
		if !names[w.lease] {
			delete(b.workers, at)
		}
	}
}

// Run writes what was seen until the context ends.
func (b *Book) Run(ctx context.Context) error {
	for {
		at, w, any := b.next()
		switch {
		case !any:
			select {
			case <-ctx.Done():
				return nil
			case <-b.signal:
			}
			continue
		case b.limit.Wait(ctx) != nil:
			return nil // the context ended
		}
		pause := b.handle(ctx, at, w)
		if pause == 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// next takes the worker that has waited longest, with what was seen of it until now.
func (b *Book) next() (at netip.Addr, w worker, any bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.queue) > 0 {
		at, b.queue = b.queue[0], b.queue[1:]
		if now := b.workers[at]; now != nil && len(now.saw) > 0 { // else the address changed hands meanwhile
			w = *now
			now.saw = nil
			return at, w, true
		}
	}
	return at, w, false
}

// handle writes what was seen of a worker, and says for how long to write nothing, if that failed.
func (b *Book) handle(ctx context.Context, at netip.Addr, w worker) time.Duration {
	err := b.write(ctx, w)
	switch {
	case err == nil:
		b.refused = ""
		return 0
	case errors.Is(err, errNoStages) || apierrors.IsForbidden(err):
		b.giveUp(at, w)
		if b.refused != err.Error() {
			b.refused = err.Error()
			b.log.Info("what workers do is not noted in their leases; it is tried again now and then", "why", err)
		}
		return refusedPause
	case ctx.Err() != nil:
		return 0
	case answered(err):
		b.giveUp(at, w)
	default:
		b.again(at, w)
	}
	b.log.Info("what a worker does is not noted in its lease", "lease", w.lease, "error", err)
	return failedPause
}

// answered says whether the API server had an answer to this write; else it is away, or has too much to do.
func answered(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code < http.StatusInternalServerError && !apierrors.IsTooManyRequests(err)
}

// giveUp has it noticed when the worker does it again.
func (b *Book) giveUp(at netip.Addr, w worker) {
	b.mu.Lock()
	defer b.mu.Unlock()
	dropped.Inc()
	if now := b.holder(at, w); now != nil {
		w.told = now.told
		w.forget()
		now.told = w.told
	}
}

// again has it wait once more.
func (b *Book) again(at netip.Addr, w worker) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := b.holder(at, w); now != nil {
		now.saw = append(w.saw, now.saw...)
		b.enqueue(at)
	}
}

// holder is the worker that w was taken from; nil if another one has the address now.
func (b *Book) holder(at netip.Addr, w worker) *worker {
	if now := b.workers[at]; now != nil && now.lease == w.lease && now.client == w.client {
		return now
	}
	return nil
}
