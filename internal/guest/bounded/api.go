package bounded

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

	"github.com/cldmnky/oooi/internal/guest/kubeconfig"
	"github.com/cldmnky/oooi/internal/guest/pace"
	"github.com/cldmnky/oooi/internal/parts"
)

// How long a hosted API may take. An HTTP/2 ping, which no API server counts as a request, checks a silent connection: a broken one is
// noticed within quietFor + answersIn.
const (
	connectsIn = 5 * time.Second
	quietFor   = 8 * time.Second
	answersIn  = 4 * time.Second
)

// Limits of what we keep in memory of a hosted API, beside those in bounds.go.
const (
	largestHeader  = 64 << 10
	receiveBuffer  = 64 << 10
	largestMessage = 2 << 10
)

// UserAgent identifies our requests in a hosted cluster's audit log.
const UserAgent = "oooi-guest"

// Dial opens the connection to a hosted API.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// API is one connection to a hosted API. It is plain HTTP on purpose: it uses no file, no environment, no proxy and no discovery, and it is
// cheap enough for fifty hosted clusters.
type API struct {
	server *url.URL
	token  string
	client *http.Client
	cut    atomic.Int64 // when an object last was reduced to its name, in Unix seconds
	allotment

	mu     sync.Mutex
	opened []net.Conn
	closed bool
}

// Open connects by a first request, so that the others share its connection: concurrent first requests would each open one.
func Open(ctx context.Context, server string, access kubeconfig.Access, dial Dial) (*API, error) {
	api, err := Connect(server, access, dial)
	if err != nil {
		return nil, err
	}
	if _, err := api.Do(ctx, Request{Verb: http.MethodGet, Path: "/version", Accept: AsJSON}); err != nil {
		api.Close()
		return nil, err
	}
	return api, nil
}

// Connect prepares a connection to a server, whichever the kubeconfig names.
func Connect(server string, access kubeconfig.Access, dial Dial) (*API, error) {
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
	a := &API{server: u, token: access.Token, allotment: allotment{to: allShares.begin(u.Host)}}
	a.client = &http.Client{
		Transport: &http.Transport{
			Proxy: nil, // not even the environment's
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

// WithPort is a server's URL with the port of HTTPS if it has none.
func WithPort(server string) string {
	u, err := url.Parse(server)
	if err != nil || u.Port() != "" {
		return server
	}
	u.Host = net.JoinHostPort(u.Hostname(), "443")
	return u.String()
}

// keep records a connection for Close, which may have been called while it was dialled.
func (a *API) keep(conn net.Conn) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		conn.Close()
		return net.ErrClosed
	}
	a.opened = append(a.opened, conn)
	return nil
}

// Close closes all connections itself: to the transport, one whose last watch has just ended is not idle yet, and would stay open.
func (a *API) Close() {
	a.client.CloseIdleConnections()
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		allShares.end(a.to)
	}
	a.closed = true
	kept.leave(&a.allotment)
	for _, conn := range a.opened {
		conn.Close()
	}
}

// Request is one call.
type Request struct {
	Verb, Path string
	Query      url.Values
	Accept     string
	Content    string // type of the body
	Body       []byte
}

// Media types of answers and requests.
const (
	AsJSON = "application/json"
	// asMetadata asks the API server for an object's metadata alone.
	asMetadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	asMetaList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
)

// open sends a request. Any answer but a success is an error, a *apierrors.StatusError with the hosted API's Status if it sent one.
func (a *API) open(ctx context.Context, r Request) (io.ReadCloser, error) {
	u := *a.server
	u.Path, u.RawQuery = r.Path, r.Query.Encode()
	call, err := http.NewRequestWithContext(ctx, r.Verb, u.String(), bytes.NewReader(r.Body))
	if err != nil {
		return nil, err
	}
	call.Header.Set("Accept", r.Accept)
	call.Header.Set("User-Agent", UserAgent)
	if r.Content != "" {
		call.Header.Set("Content-Type", r.Content)
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

// Do sends a request and reads the whole answer.
func (a *API) Do(ctx context.Context, r Request) ([]byte, error) {
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

// Read reads one object.
func Read[T any](ctx context.Context, a *API, path string) (*T, error) {
	text, err := a.Do(ctx, Request{Verb: http.MethodGet, Path: path, Accept: AsJSON})
	if err != nil {
		return nil, err
	}
	object, err := Whole[T](text)
	if err != nil {
		return nil, ErrNoKubernetes
	}
	return object, nil
}

// meter sends a request, and limits each object of the answer.
func (a *API) meter(ctx context.Context, r Request) (*meter, error) {
	body, err := a.open(ctx, r)
	if err != nil {
		return nil, err
	}
	return &meter{ctx: ctx, body: body, large: a.to.large, ofAll: largeOfAll}, nil
}

// bounded is an object, or only its name if it has more than MostParts.
func (a *API) bounded(object []byte) []byte {
	if parts.Of(object) <= MostParts {
		return object
	}
	a.cut.Store(time.Now().Unix())
	var o Identified
	if json.Unmarshal(object, &o) != nil {
		return nil
	}
	name, err := json.Marshal(o)
	if err != nil {
		return nil
	}
	return name
}

// Keeps counts more (or fewer) bytes as kept of this hosted cluster, and fails at the limit.
func (a *API) Keeps(more int) error { return kept.take(&a.allotment, more) }

// IsSlowed says whether the hosted cluster recently sent more than its share.
func (a *API) IsSlowed() bool { return a.to.isSlowed() }

// HasCut says whether an object recently had so many parts that only its name was read.
func (a *API) HasCut() bool { return pace.IsRecent(time.Unix(a.cut.Load(), 0)) }

// statusOf is the error of an answer that is no success.
func statusOf(r Request, answer *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(answer.Body, largestMessage)) // if it cannot be read, the code suffices
	var status metav1.Status
	if json.Unmarshal(text, &status) == nil && status.Kind == "Status" && status.Code == int32(answer.StatusCode) {
		return &apierrors.StatusError{ErrStatus: status}
	}
	return apierrors.NewGenericServerResponse(answer.StatusCode, r.Verb, schema.GroupResource{}, "", "", 0, true)
}
