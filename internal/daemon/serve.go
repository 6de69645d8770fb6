package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cldmnky/oooi/internal/vlan"
)

// Serve answers health and metrics on the addresses of the flags until the context ends.
func (f *Flags) Serve(ctx context.Context, ready *Readiness, metrics http.Handler) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return listen(ctx, f.HealthAddress, Health(ready)) })
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	group.Go(func() error { return listen(ctx, f.MetricsAddress, mux) })
	return group.Wait()
}

// Health answers /livez while the process runs, and /readyz with the problems as text.
func Health(ready *Readiness) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if problem := ready.Problem(); problem != nil {
			http.Error(w, problem.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	return mux
}

func listen(ctx context.Context, address string, handler http.Handler) error {
	at, err := parseAddress(address)
	if err != nil || !at.IsValid() {
		return err
	}
	listener, err := vlan.ListenTCP(ctx, at)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving on %s: %w", at, err)
	}
	return nil
}
