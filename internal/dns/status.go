package dns

import (
	"context"
	"log/slog"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	ac "github.com/cldmnky/oooi/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/names"
)

// status is the daemon's part of its object's status: ConfigAccepted, and whether its instance answers.
type status struct {
	ready  *daemon.Readiness
	writer *daemon.Status
	kube   client.Client // nil in file mode
	log    *slog.Logger

	mu       sync.Mutex
	newest   *v1alpha1.DNSServer // the object that the verdict is about, served or not
	refusal  error
	judged   bool
	told     metav1.Condition // by the newest event
	changed  chan struct{}
	instance string // the address that is served
}

func newStatus(kube client.Client, ready *daemon.Readiness, log *slog.Logger) *status {
	return &status{
		ready: ready, writer: daemon.NewStatus(kube, names.DNSFieldOwner, log), kube: kube, log: log, changed: make(chan struct{}, 1),
	}
}

// consider notes which object the next verdict is about.
func (s *status) consider(server *v1alpha1.DNSServer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest = server
}

// judge notes the verdict on it: nil when it serves.
func (s *status) judge(refusal error) {
	s.mu.Lock()
	s.refusal, s.judged = refusal, true
	if refusal == nil {
		s.instance = string(s.newest.Spec.NetworkConfig.ServerIP)
	}
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default: // one signal is pending already
	}
}

// run writes what is known, as it changes, until the context ends.
func (s *status) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.changed:
		case <-s.ready.Changed():
		}
		if want := s.wanted(); want != nil {
			s.writer.Set(want)
		}
		if event := s.news(); event != nil && s.kube != nil {
			if err := s.kube.Create(ctx, event); err != nil {
				s.log.Debug("event not written", "error", err) // nothing depends on it
			}
		}
	}
}

// wanted is nil before the first verdict: a last good copy that is served without the API says nothing new.
func (s *status) wanted() *ac.DNSServerApplyConfiguration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.judged || s.newest == nil {
		return nil
	}
	want := ac.DNSServerStatus().WithConditions(daemon.Condition(s.newest.Status.Conditions, s.verdict()))
	if s.instance != "" {
		want.WithInstances(ac.Instance().WithIP(v1alpha1.IPAddress(s.instance)).WithReady(s.ready.Problem() == nil))
	}
	return ac.DNSServer(s.newest.Name, s.newest.Namespace).WithStatus(want)
}

// news is an event where the verdict is not the one that the object carries, or that was told already.
func (s *status) news() *corev1.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.judged || s.newest == nil {
		return nil
	}
	now, seen := s.verdict(), meta.FindStatusCondition(s.newest.Status.Conditions, v1alpha1.ConditionConfigAccepted)
	same := func(c metav1.Condition) bool { return c.Status == now.Status && c.Message == now.Message }
	if same(s.told) || seen != nil && same(*seen) {
		return nil
	}
	s.told = now
	return eventOf(s.newest, now)
}

func eventOf(server *v1alpha1.DNSServer, c metav1.Condition) *corev1.Event {
	kind, now := corev1.EventTypeNormal, metav1.Now()
	if c.Status != metav1.ConditionTrue {
		kind = corev1.EventTypeWarning
	}
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: server.Namespace, GenerateName: server.Name + "-"},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: "DNSServer", Namespace: server.Namespace, Name: server.Name, UID: server.UID,
		},
		Type: kind, Reason: c.Reason, Message: c.Message,
		Source: corev1.EventSource{Component: names.DNSFieldOwner}, FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}
}

func (s *status) verdict() metav1.Condition {
	c := metav1.Condition{
		Type: v1alpha1.ConditionConfigAccepted, Status: metav1.ConditionTrue, Reason: "Served",
		Message: "the newest configuration is served", ObservedGeneration: s.newest.Generation,
	}
	if s.refusal != nil {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "Refused", s.refusal.Error()
	}
	return c
}
