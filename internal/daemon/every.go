package daemon

import (
	"context"
	"time"
)

// Every does something after each pause until the context ends. While it is done, pauses that pass are not made up for.
func Every(ctx context.Context, pause time.Duration, do func()) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			do()
		}
	}
}
