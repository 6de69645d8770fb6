package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/vlan"
)

// Serve serves health and metrics at the flags' addresses until ctx ends.
func (f *Flags) Serve(ctx context.Context, ready *Readiness, metrics http.Handler) error {
	health, noHealth := f.at("--health-address", f.HealthAddress, names.HealthPort)
	scrapes, noScrapes := f.at("--metrics-address", f.MetricsAddress, names.MetricsPort)
	if err := errors.Join(noHealth, noScrapes); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return listen(ctx, "--health-address", health, Health(ready)) })
	group.Go(func() error { return listen(ctx, "--metrics-address", scrapes, mux) })
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

func listen(ctx context.Context, flag string, at netip.AddrPort, handler http.Handler) error {
	if !at.IsValid() {
		return nil
	}
	listener, err := vlan.ListenTCP(ctx, at)
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return serve(ctx, listener, handler, nil)
}

// serve serves until ctx ends; note, unless nil, is told of each connection's states.
func serve(ctx context.Context, listener net.Listener, handler http.Handler, note func(net.Conn, http.ConnState)) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, ConnState: note}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving on %s: %w", listener.Addr(), err)
	}
	return nil
}

// ListenUnix listens on a socket, after removing one that an earlier run left.
func ListenUnix(socket string) (net.Listener, error) {
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("removing the socket of an earlier run: %w", err)
	}
	return net.Listen("unix", socket)
}
