package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
)

// APIProxy hands what comes from a unix socket on to the API server, with the token that is in its own container: one that parses what
// guests send has none to lose (docs/adr/0011). What a daemon may do is what its Role says, here as there.
type APIProxy struct {
	Socket  string
	Cluster *rest.Config
	Log     *slog.Logger
}

// Run serves until the context ends.
func (p *APIProxy) Run(ctx context.Context) error {
	handler, err := p.handler()
	if err != nil {
		return fmt.Errorf("connecting to the cluster: %w", err)
	}
	listener, err := ListenUnix(p.Socket)
	if err != nil {
		return fmt.Errorf("--socket: %w; give a path in a directory that this user can write", err)
	}
	p.Log.Info("handing requests on to the API server", "socket", p.Socket)
	return serve(ctx, listener, handler)
}

func (p *APIProxy) handler() (http.Handler, error) {
	api, _, err := rest.DefaultServerUrlFor(p.Cluster)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(p.Cluster)
	if err != nil {
		return nil, err
	}
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(api)
			r.Out.Header.Del("Authorization") // client-go leaves one that is there
		},
		ModifyResponse: func(r *http.Response) error {
			r.Header.Del(lostHeader)
			return nil
		},
		Transport: transport, FlushInterval: -1, ErrorHandler: away,
		ErrorLog: slog.NewLogLogger(p.Log.Handler(), slog.LevelDebug), // the daemon tells what it has not got
	}, nil
}

// lostHeader tells the daemon how its request failed on the way. It takes that for its own connection's failure: client-go asks again for
// what was not heard, and goes on with a watch, only then.
const lostHeader = "Oooi-Connection"

var losses = map[string]syscall.Errno{"refused": syscall.ECONNREFUSED, "reset": syscall.ECONNRESET}

// away answers for an API server that does not. Whoever reads an answer's Date takes it for the API server's clock, so this has none.
func away(w http.ResponseWriter, _ *http.Request, err error) {
	lost := "reset"
	if errors.Is(err, syscall.ECONNREFUSED) {
		lost = "refused"
	}
	w.Header()["Date"] = nil
	w.Header().Set(lostHeader, lost)
	http.Error(w, err.Error(), http.StatusBadGateway)
}

// A daemon waits socketIn for the socket of a container that starts beside it, and missedIn for that of one that starts again. It has
// socketConns at most, so that what is under way at once fits into that container's memory.
const (
	socketIn    = 3 * time.Second
	missedIn    = 200 * time.Millisecond
	socketAgain = 20 * time.Millisecond
	socketConns = 128
)

func throughSocket(socket string) *rest.Config {
	var met atomic.Bool
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		within := socketIn
		if met.Load() {
			within = missedIn
		}
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		for {
			conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
			if err == nil {
				met.Store(true)
				return conn, nil
			}
			select {
			case <-ctx.Done():
				return nil, fmt.Errorf("%w; see the log of the pod's container api-proxy", err)
			case <-time.After(socketAgain):
			}
		}
	}
	return &rest.Config{
		Host:      "http://kubernetes.default.svc",
		Transport: behind{&http.Transport{DialContext: dial, MaxConnsPerHost: socketConns, MaxIdleConnsPerHost: socketConns}},
	}
}

// behind the container is the API server: a connection that is lost between the two is the daemon's.
type behind struct{ *http.Transport }

// RoundTrip implements http.RoundTripper.
func (b behind) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.Transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	lost, is := losses[answer.Header.Get(lostHeader)]
	if !is {
		return answer, nil
	}
	defer answer.Body.Close()
	why, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
	return nil, fmt.Errorf("asking the API server: %s: %w", bytes.TrimSpace(why), lost)
}
