package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	ac "github.com/cldmnky/oooi/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/valid"
)

// Pauses between attempts to write a status.
const (
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
	// longestWrite is how long one attempt may take.
	longestWrite = 5 * time.Second
)

// Status writes a daemon's part of its object's status, by server-side apply under the daemon's own name, and only when it changed; a
// condition that changed is an event too. Without a client (file mode) it logs instead.
type Status struct {
	client  client.Client
	owner   client.FieldOwner
	log     *slog.Logger
	latest  chan runtime.ApplyConfiguration
	version atomic.Value // the object's resourceVersion by the last write, as text
	// started is when this run began: earlier transitions belong to an earlier run.
	started time.Time
}

// NewStatus makes a writer with this field owner; c is nil in file mode.
func NewStatus(c client.Client, owner string, log *slog.Logger) *Status {
	return &Status{client: c, owner: client.FieldOwner(owner), log: log, latest: make(chan runtime.ApplyConfiguration, 1), started: time.Now()}
}

// Set sets the wanted status; it never blocks, and the newest wins. Only one goroutine calls it, each time with a new object, because the
// API server's answer is read into it.
func (s *Status) Set(want runtime.ApplyConfiguration) {
	select {
	case <-s.latest:
	default:
	}
	s.latest <- want
}

// Version is the object's resourceVersion by the last write; empty before the first.
func (s *Status) Version() string {
	version, _ := s.version.Load().(string)
	return version
}

// Run writes until ctx ends.
func (s *Status) Run(ctx context.Context) error {
	var want runtime.ApplyConfiguration
	var written []byte
	retry, pause := time.NewTimer(0), firstRetry
	retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case want = <-s.latest:
			pause = firstRetry
		case <-retry.C:
		}
		wanted, err := json.Marshal(want)
		if err != nil {
			return fmt.Errorf("encoding the status: %w", err)
		}
		if bytes.Equal(wanted, written) {
			continue
		}
		if err := s.write(ctx, want, written, wanted); err != nil {
			level := slog.LevelWarn
			if apierrors.IsConflict(err) { // who asks for a certain version sets another when the watch tells of it
				level = slog.LevelDebug
			}
			s.log.Log(ctx, level, "status not written; trying again", "error", err, "after", pause)
			retry.Reset(pause)
			pause = min(2*pause, lastRetry)
			continue
		}
		retry.Stop()
		written = wanted
	}
}

func (s *Status) write(ctx context.Context, want runtime.ApplyConfiguration, before, now []byte) error {
	if s.client == nil {
		s.log.Info("status", "status", json.RawMessage(now))
		return nil
	}
	within, stop := context.WithTimeout(ctx, longestWrite) // an API server that is lost is waited for much longer by HTTP/2
	defer stop()
	if err := s.client.Status().Apply(within, want, s.owner, client.ForceOwnership); err != nil {
		return err
	}
	answer, err := json.Marshal(want) // Apply reads the API server's answer into it
	if err != nil {
		return fmt.Errorf("encoding the API server's answer: %w", err)
	}
	s.version.Store(read(answer).Metadata.ResourceVersion)
	s.tell(ctx, before, now, answer)
	return nil
}

// Instance is a daemon's report of itself: ready if problem is nil, or else with the problem as its message.
func Instance(ip v1alpha1.IPAddress, problem error) *ac.InstanceApplyConfiguration {
	instance := ac.Instance().WithIP(ip).WithReady(problem == nil)
	if problem != nil {
		instance.WithMessage(Bounded(strings.ReplaceAll(problem.Error(), "\n", "; ")))
	}
	return instance
}

// Bounded cuts a message to what an instance or a backend can have.
func Bounded(message string) string {
	if runes := []rune(message); len(runes) > valid.LongestMessage {
		return string(runes[:valid.LongestMessage-1]) + "…"
	}
	return message
}

// Condition builds a condition. It keeps the transition time of the conditions seen so far unless the status changed, so that a restart is
// not a transition.
func Condition(seen []metav1.Condition, now metav1.Condition) *metav1ac.ConditionApplyConfiguration {
	now.LastTransitionTime = metav1.Now().Rfc3339Copy()
	if was := meta.FindStatusCondition(seen, now.Type); was != nil && was.Status == now.Status {
		now.LastTransitionTime = was.LastTransitionTime
	}
	return metav1ac.Condition().WithType(now.Type).WithStatus(now.Status).WithReason(now.Reason).WithMessage(now.Message).
		WithObservedGeneration(now.ObservedGeneration).WithLastTransitionTime(now.LastTransitionTime)
}
