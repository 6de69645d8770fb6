package checkcli_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/checkcli"
	"github.com/cldmnky/oooi/internal/step"
)

var pace = checkcli.Pace{Between: time.Millisecond, Remind: time.Hour}

// Progress tells each thing that is waited for once, until something else is.
func TestWaitingEndsWhenNothingFails(t *testing.T) {
	g := NewWithT(t)
	missing := step.Step{Name: "operator", Outcome: step.Fail, Says: "it has no available pod"}
	tries := []func() ([]step.Step, error){
		func() ([]step.Step, error) { return nil, errors.New("the API server does not answer") },
		func() ([]step.Step, error) { return []step.Step{missing}, nil },
		func() ([]step.Step, error) { return []step.Step{missing}, nil },
		func() ([]step.Step, error) {
			return []step.Step{{Name: "nodes", Outcome: step.Unread}, {Name: "operator", Outcome: step.Warn}}, nil
		},
	}
	var progress bytes.Buffer
	steps, err := checkcli.Until(t.Context(), pace, &progress, func(context.Context) ([]step.Step, error) {
		next := tries[0]
		tries = tries[1:]
		return next()
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(steps).To(HaveLen(2))
	g.Expect(progress.String()).To(MatchRegexp(`^waiting for \(0s\):\n  the API server does not answer\nwaiting for \(0s\):\n  operator: it has no available pod\n$`))
}

func TestWhatWasWaitedForIsSaidAtTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	down, tries := errors.New("the API server does not answer"), 0
	_, err := checkcli.Until(ctx, pace, io.Discard, func(context.Context) ([]step.Step, error) {
		if tries++; tries == 2 {
			cancel()
		}
		return nil, down
	})
	NewWithT(t).Expect(err).To(MatchError(down))
}

func TestWaitingEndsWithItsTime(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	var progress bytes.Buffer
	reminding := checkcli.Pace{Between: time.Millisecond}
	steps, err := checkcli.Until(ctx, reminding, &progress, func(context.Context) ([]step.Step, error) {
		return []step.Step{{Name: "operator", Outcome: step.Fail, Says: "it has no available pod"}}, nil
	})
	g.Expect(err).To(MatchError("waited for 0s: something still fails"))
	g.Expect(steps).To(HaveLen(1), "what was seen last")
	g.Expect(bytes.Count(progress.Bytes(), []byte("waiting for"))).To(BeNumerically(">", 1), "it says that it still waits")
}
