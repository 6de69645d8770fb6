package checkcli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/cldmnky/oooi/internal/step"
)

// Pace is how the cluster is asked again: it sends no event for most of what is checked.
type Pace struct {
	// Between two tries, and between two lines of progress when nothing changes.
	Between, Remind time.Duration
}

// Until asks until nothing fails or the context ends, and says on progress what is still waited for. It returns what was seen last.
func Until(ctx context.Context, p Pace, progress io.Writer, ask func(context.Context) ([]step.Step, error)) ([]step.Step, error) {
	began, told, said := time.Now(), time.Time{}, ""
	var last []step.Step
	why := errors.New("the cluster has not answered") // a person does not wait for a context
	for {
		steps, err := ask(ctx)
		if ctx.Err() != nil {
			return last, fmt.Errorf("waited for %s: %w", time.Since(began).Round(time.Second), why)
		}
		missing := failing(steps, err)
		if why = err; err == nil {
			last, why = steps, errors.New("something still fails")
		}
		if missing == "" {
			return last, nil
		}
		if missing != said || time.Since(told) >= p.Remind {
			fmt.Fprintf(progress, "waiting for (%s):\n%s", time.Since(began).Round(time.Second), missing)
			told, said = time.Now(), missing
		}
		select {
		case <-ctx.Done():
		case <-time.After(p.Between):
		}
	}
}

// failing are the lines of progress; empty if nothing fails.
func failing(steps []step.Step, err error) string {
	if err != nil {
		return "  " + err.Error() + "\n"
	}
	var lines strings.Builder
	for _, s := range steps {
		if s.Outcome == step.Fail {
			fmt.Fprintf(&lines, "  %s: %s\n", s.Name, s.Says)
		}
	}
	return lines.String()
}
