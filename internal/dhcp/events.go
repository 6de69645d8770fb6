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

// quiet is how long one sentence is not repeated: clients ask again and again.
const quiet = 10 * time.Minute

// backlog is how many events may wait for the API server; what comes beyond is only logged.
const backlog = 256

// announcer tells people: a log line always, and an event on the DHCPServer (and on the machine, where there is one).
type announcer struct {
	client client.Client // nil: log only
	log    *slog.Logger
	about  func() *corev1.ObjectReference
	queue  chan Happening

	mu   sync.Mutex
	said map[string]time.Time
}

func newAnnouncer(c client.Client, log *slog.Logger, about func() *corev1.ObjectReference) *announcer {
	return &announcer{client: c, log: log, about: about, queue: make(chan Happening, backlog), said: map[string]time.Time{}}
}

// Announce never waits.
func (a *announcer) Announce(h Happening) {
	if h.Warns() && !a.isNews(h.String()) {
		return
	}
	level := slog.LevelInfo
	if h.Warns() {
		level = slog.LevelWarn
	}
	a.log.Log(context.Background(), level, h.String(), "reason", h.Type, "ip", h.IP, "client", h.Client, "vm", h.VM.Name, "hostname", h.Hostname)
	select {
	case a.queue <- h:
	default:
	}
}

func (a *announcer) isNews(sentence string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	for s, at := range a.said {
		if now.Sub(at) > quiet {
			delete(a.said, s)
		}
	}
	_, said := a.said[sentence]
	if !said && len(a.said) < backlog {
		a.said[sentence] = now
	}
	return !said
}

// Run writes events until the context ends. Nothing depends on them: one that the API server does not take is dropped.
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

func (a *announcer) write(ctx context.Context, h Happening) {
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

func event(h Happening, about corev1.ObjectReference) *corev1.Event {
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
