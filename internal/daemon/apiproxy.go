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

// APIProxy passes requests from a Unix socket on to the API server, with the token of its own container: the container that parses guests'
// packets has no token to lose (docs/adr/0011). A daemon may still do only what its Role allows.
type APIProxy struct {
	Socket  string
	Cluster *rest.Config
	Log     *slog.Logger
}

// lastRequests is how long requests are handed on after ctx has ended, at most. The containers of a pod are told to end together, and the daemon may
// still have to write what it promises to a client.
const lastRequests = 2 * time.Second

// Run serves until ctx has ended, and the daemon too, whose connections close then; lastRequests later at the latest.
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
	connections := open{closed: make(chan struct{}, 1)}
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer context.AfterFunc(ctx, func() {
		connections.awaitNone(lastRequests)
		end()
	})()
	return serve(serving, listener, handler, connections.note)
}

// open counts the connections of a server.
type open struct {
	now    atomic.Int64
	closed chan struct{}
}

func (o *open) note(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		o.now.Add(1)
	case http.StateClosed, http.StateHijacked:
		o.now.Add(-1)
		select {
		case o.closed <- struct{}{}:
		default: // a signal is already pending
		}
	}
}

func (o *open) awaitNone(within time.Duration) {
	for over := time.After(within); o.now.Load() > 0; {
		select {
		case <-o.closed:
		case <-over:
			return
		}
	}
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
			r.Out.Header.Del("Authorization") // otherwise client-go keeps the one that is there
		},
		ModifyResponse: func(r *http.Response) error {
			r.Header.Del(lostHeader)
			return nil
		},
		Transport: transport, FlushInterval: -1, ErrorHandler: away,
		ErrorLog: slog.NewLogLogger(p.Log.Handler(), slog.LevelDebug), // the daemon reports what failed
	}, nil
}

// lostHeader tells the daemon how its request failed on the way to the API server, so that it can treat that as a failure of its own
// connection: only then does client-go repeat a read that got no answer, and resume a watch.
const lostHeader = "Oooi-Connection"

var losses = map[string]syscall.Errno{"refused": syscall.ECONNREFUSED, "reset": syscall.ECONNRESET}

// away answers when the API server does not. It sets no Date, since clients take an answer's Date for the API server's clock.
func away(w http.ResponseWriter, _ *http.Request, err error) {
	lost := "reset"
	if errors.Is(err, syscall.ECONNREFUSED) {
		lost = "refused"
	}
	w.Header()["Date"] = nil
	w.Header().Set(lostHeader, lost)
	http.Error(w, err.Error(), http.StatusBadGateway)
}

// A daemon waits socketIn for the socket of a container that starts beside it, and missedIn for one that restarts. It opens at most
// socketConns connections, so that what is in flight fits into that container's memory.
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

// behind is the transport through the container: a connection lost between it and the API server counts as the daemon's.
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
