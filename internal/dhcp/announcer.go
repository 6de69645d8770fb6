package dhcp

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
)

const (
	// quiet is the period in which the same warning is reported once, because clients retry.
	quiet = 10 * time.Minute
	// backlog is how many events may wait for the API server; further ones are only logged.
	backlog = 256

	// Limits within quiet: warnings of one reason, events of one virtual machine (bound, released), and those of all other clients together.
	// Anybody on the VLAN can invent servers and clients, and each event is one or two writes to the management cluster's API.
	ofOneReason  = 32
	ofOneMachine = 8
	ofAllGuests  = 128
)

// announcer reports events to admins: as a log line, and as an Event on the DHCPServer (and the virtual machine, if there is one).
type announcer struct {
	client client.Client // nil: log only
	log    *slog.Logger
	about  func() *corev1.ObjectReference
	queue  chan Event

	mu    sync.Mutex
	since time.Time       // when the counts began
	said  map[string]bool // warnings reported since then
	count map[string]int  // events since then, by the kind that countedAs gives
}

func newAnnouncer(c client.Client, log *slog.Logger, about func() *corev1.ObjectReference) *announcer {
	return &announcer{client: c, log: log, about: about, queue: make(chan Event, backlog)}
}

// Announce reports an event without blocking.
func (a *announcer) Announce(h Event) {
	if !a.isNews(h, time.Now()) {
		return
	}
	if h.Warns() { // of all else a line "lease" tells, of which none is left out
		a.log.Warn(h.String(), "reason", h.Type, "ip", h.IP, "client", h.Client, "vm", h.VM.Name, "hostname", h.Hostname)
	}
	select {
	case a.queue <- h:
	default:
	}
}

// isNews says whether an event is reported. If a kind exceeds its limit, one log line says so.
func (a *announcer) isNews(h Event, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now.Sub(a.since) >= quiet {
		a.since, a.said, a.count = now, map[string]bool{}, map[string]int{}
	}
	if a.said[h.String()] {
		return false
	}
	as, most := countedAs(h)
	a.count[as]++
	switch {
	case a.count[as] == most+1:
		a.log.Warn("more events than are told; further ones are left out", "of", as, "told", most, "since", a.since)
		return false
	case a.count[as] > most:
		return false
	case h.Warns():
		a.said[h.String()] = true
	}
	return true
}

// countedAs is what an event is counted as, and how many of these are reported.
func countedAs(h Event) (string, int) {
	switch {
	case h.Warns():
		return string(h.Type), ofOneReason
	case h.VM.UID != "":
		return "virtual machine " + h.VM.UID, ofOneMachine
	}
	return "clients that are no virtual machine", ofAllGuests
}

// Run writes events until the context ends. Nothing depends on them: one that the API server does not accept is dropped.
func (a *announcer) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case h := <-a.queue:
			if a.client != nil {
				a.write(ctx, h)
			}
		}
	}
}

func (a *announcer) write(ctx context.Context, h Event) {
	objects := []*corev1.ObjectReference{a.about()}
	if h.VM.UID != "" {
		objects = append(objects, &corev1.ObjectReference{APIVersion: "kubevirt.io/v1", Kind: "VirtualMachine", Namespace: h.VM.Namespace, Name: h.VM.Name, UID: types.UID(h.VM.UID)})
	}
	for _, o := range objects {
		if err := a.client.Create(ctx, event(h, *o)); err != nil {
			a.log.Debug("event not written", "error", err)
		}
	}
}

func event(h Event, about corev1.ObjectReference) *corev1.Event {
	now := metav1.Now()
	kind := corev1.EventTypeNormal
	if h.Warns() {
		kind = corev1.EventTypeWarning
	}
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: about.Namespace, GenerateName: about.Name + "-"},
		InvolvedObject: about, Reason: string(h.Type), Message: h.String(), Type: kind,
		Source: corev1.EventSource{Component: "oooi-dhcp"}, FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}
}

func referenceTo(server *v1alpha1.DHCPServer) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "DHCPServer", Namespace: server.Namespace, Name: server.Name, UID: server.UID,
	}
}

func (i *instance) reference() *corev1.ObjectReference {
	i.mu.Lock()
	defer i.mu.Unlock()
	return referenceTo(cmp.Or(i.object, &v1alpha1.DHCPServer{}))
}
