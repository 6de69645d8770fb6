package dns

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	ac "github.com/cldmnky/oooi/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/daemon"
)

// status is the daemon's part of its object's status: ConfigAccepted, ResolversAnswer, and whether its instance answers.
type status struct {
	ready    *daemon.Readiness
	writer   *daemon.Status
	number   int // of the instance
	health   func() []v1alpha1.Health
	upstream func() *metav1.Condition // of the first instance; nil before there is one

	mu       sync.Mutex
	newest   *v1alpha1.DNSServer // the object that the verdict is about, served or not
	refusal  error
	judged   bool
	changed  chan struct{}
	instance string // the address that is served
}

func newStatus(writer *daemon.Status, ready *daemon.Readiness, number int) *status {
	return &status{ready: ready, writer: writer, number: number, health: func() []v1alpha1.Health { return nil }, upstream: func() *metav1.Condition { return nil }, changed: make(chan struct{}, 1)}
}

// consider notes which object the next verdict is about.
func (s *status) consider(server *v1alpha1.DNSServer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest = server
}

// judge notes the verdict on that object: nil if it is served.
func (s *status) judge(refusal error) {
	s.mu.Lock()
	s.refusal, s.judged = refusal, true
	if refusal == nil {
		s.instance = string(s.newest.Spec.NetworkConfig.ServerIPs()[s.number])
	}
	s.mu.Unlock()
	s.signal()
}

// signal has the status looked at.
func (s *status) signal() { wake(s.changed) }

// run writes the status when it changes, until the context ends.
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
	}
}

// wanted returns nil before the first verdict: a last good copy that is served without the API is no news. It also returns nil for an instance
// that is to be removed, because the manager removes that instance's status (status.Writer).
func (s *status) wanted() *ac.DNSServerApplyConfiguration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.judged || s.newest == nil || s.number >= len(s.newest.Spec.NetworkConfig.ServerIPs()) {
		return nil
	}
	want := ac.DNSServerStatus().WithConditions(daemon.Condition(s.newest.Status.Conditions, s.verdict()))
	if said := s.upstream(); said != nil {
		of := *said
		of.Type, of.ObservedGeneration = v1alpha1.InstanceCondition(of.Type, s.number), s.newest.Generation
		want.WithConditions(daemon.Condition(s.newest.Status.Conditions, of))
	}
	if s.instance != "" {
		self := daemon.Instance(v1alpha1.IPAddress(s.instance), s.ready.Problem())
		for _, one := range s.health() {
			self.WithHealth(ac.Health().WithIP(one.IP).WithState(one.State))
		}
		want.WithInstances(self)
	}
	return ac.DNSServer(s.newest.Name, s.newest.Namespace).WithStatus(want)
}

func (s *status) verdict() metav1.Condition {
	c := metav1.Condition{
		Type: v1alpha1.InstanceCondition(v1alpha1.ConditionConfigAccepted, s.number), Status: metav1.ConditionTrue, Reason: "Served",
		Message: "the newest configuration is served", ObservedGeneration: s.newest.Generation,
	}
	if s.refusal != nil {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "Refused", s.refusal.Error()
	}
	return c
}
