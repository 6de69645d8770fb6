package guest

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// How long a hosted API may take. A connection that says nothing is asked by an HTTP/2 ping, which no API server counts as a
// request: a cut is noticed within quietFor + answersIn.
const (
	connectsIn = 5 * time.Second
	quietFor   = 8 * time.Second
	answersIn  = 4 * time.Second
)

// Bounds of what a hosted API may have us keep in memory, beside those in budget.go.
const (
	largestHeader  = 64 << 10
	receiveBuffer  = 64 << 10
	largestMessage = 2 << 10
)

// UserAgent is what our requests are called in a hosted cluster's audit log.
const UserAgent = "oooi-guest"

// Dial opens the connection to a hosted API.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// api is one connection to a hosted API. It is plain HTTP on purpose: there is no file, no environment, no proxy and no
// discovery behind it, and it costs little beside fifty others.
type api struct {
	server *url.URL
	token  string
	client *http.Client
	to     *share
	cut    atomic.Int64 // when of some object no more than the name was taken in, in Unix seconds
	kept   int          // bytes; guarded by room

	mu     sync.Mutex
	opened []net.Conn
	closed bool
}

// open connects, so that one connection carries all that follows: without it each request would open one, and close all but the first.
func open(ctx context.Context, server string, access Access, dial Dial) (*api, error) {
	api, err := connect(server, access, dial)
	if err != nil {
		return nil, err
	}
	if _, err := api.do(ctx, request{verb: http.MethodGet, path: "/version", accept: asJSON}); err != nil {
		api.close()
		return nil, err
	}
	return api, nil
}

// connect makes ready a connection to a server, whatever the kubeconfig said that it was.
func connect(server string, access Access, dial Dial) (*api, error) {
	u, err := url.Parse(server)
	if err != nil {
		return nil, fmt.Errorf("server of the hosted cluster: %w", err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(access.CA)
	config := &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}
	if len(access.Certificate) > 0 {
		pair, err := tls.X509KeyPair(access.Certificate, access.Key)
		if err != nil {
			return nil, fmt.Errorf("client certificate: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	a := &api{server: u, token: access.Token, to: allShares.begin(u.Host)}
	a.client = &http.Client{
		Transport: &http.Transport{
			Proxy: nil, // not the environment's either
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				ctx, cancel := context.WithTimeout(ctx, connectsIn)
				defer cancel()
				conn, err := dial(ctx, network, u.Host)
				if err != nil {
					return nil, err
				}
				return rationed{conn, a.to}, a.keep(conn)
			},
			TLSClientConfig: config, TLSHandshakeTimeout: connectsIn, ResponseHeaderTimeout: 3 * connectsIn,
			ForceAttemptHTTP2: true, DisableCompression: true, MaxResponseHeaderBytes: largestHeader,
			HTTP2: &http.HTTP2Config{SendPingTimeout: quietFor, PingTimeout: answersIn, MaxReceiveBufferPerStream: receiveBuffer},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return a, nil
}

// keep a connection until the end, which may have come while it was dialled.
func (a *api) keep(conn net.Conn) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		conn.Close()
		return net.ErrClosed
	}
	a.opened = append(a.opened, conn)
	return nil
}

// close leaves no connection: to the transport one is not idle yet whose last watch has just been left, and it would stay for ever.
func (a *api) close() {
	a.client.CloseIdleConnections()
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		allShares.end(a.to)
	}
	a.closed = true
	kept.leave(a)
	for _, conn := range a.opened {
		conn.Close()
	}
}

// request is one call.
type request struct {
	verb, path string
	query      url.Values
	accept     string
	content    string // type of the body
	body       []byte
}

const (
	asJSON = "application/json"
	// asMetadata has the API server leave out all but an object's metadata.
	asMetadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	asMetaList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// open sends a request; any answer but a success is an error, a *apierrors.StatusError when the hosted API says so itself.
func (a *api) open(ctx context.Context, r request) (io.ReadCloser, error) {
	u := *a.server
	u.Path, u.RawQuery = r.path, r.query.Encode()
	call, err := http.NewRequestWithContext(ctx, r.verb, u.String(), bytes.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	call.Header.Set("Accept", r.accept)
	call.Header.Set("User-Agent", UserAgent)
	if r.content != "" {
		call.Header.Set("Content-Type", r.content)
	}
	if a.token != "" {
		call.Header.Set("Authorization", "Bearer "+a.token)
	}
	answer, err := a.client.Do(call)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		defer answer.Body.Close()
		return nil, statusOf(r, answer)
	}
	return answer.Body, nil
}

// do sends a request and reads the whole answer.
func (a *api) do(ctx context.Context, r request) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*connectsIn)
	defer cancel()
	m, err := a.meter(ctx, r)
	if err != nil {
		return nil, err
	}
	defer m.close()
	text, err := io.ReadAll(m)
	return a.bounded(text), err
}

// meter sends a request whose answer is read object by object.
func (a *api) meter(ctx context.Context, r request) (*meter, error) {
	body, err := a.open(ctx, r)
	if err != nil {
		return nil, err
	}
	return &meter{ctx: ctx, body: body, large: a.to.large, ofAll: largeOfAll}, nil
}

// keeps more of this hosted cluster, or less.
func (a *api) keeps(more int) error { return kept.take(a, more) }

// statusOf is what an API server said in place of a success.
func statusOf(r request, answer *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(answer.Body, largestMessage)) // what cannot be read, the code stands for
	var status metav1.Status
	if json.Unmarshal(text, &status) == nil && status.Kind == "Status" && status.Code == int32(answer.StatusCode) {
		return &apierrors.StatusError{ErrStatus: status}
	}
	return apierrors.NewGenericServerResponse(answer.StatusCode, r.verb, schema.GroupResource{}, "", "", 0, true)
}
