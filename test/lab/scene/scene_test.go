package scene

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestWhatIsMissingIsToldThoughTheLastTryIsCutOff(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	tries := 0
	err := Until(ctx, "a lease", func(context.Context) error {
		if tries++; tries == 1 {
			return errors.New("no OFFER")
		}
		cancel()
		return errors.New("signal: killed")
	})
	if err == nil || !strings.Contains(err.Error(), "a lease: no OFFER") {
		t.Errorf("told is %v, want what was missing", err)
	}
}
