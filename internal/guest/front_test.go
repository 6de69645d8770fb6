package guest_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api/v1"
)

// front is a proxy of the hosted API: it records the requests, and accepts one token.
type front struct {
	*httptest.Server
	ca    []byte
	proxy http.Handler // the hosted API itself

	mu     sync.Mutex
	token  string
	asked  []string
	answer http.HandlerFunc // in place of the hosted API's, if set
	passes func(*http.Request)
	some   func(http.ResponseWriter, *http.Request) bool
}

func newFront(t *testing.T, token string) *front {
	t.Helper()
	if err := started(); err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(cluster.Admin)
	if err != nil {
		t.Fatal(err)
	}
	f := &front{token: token, some: func(http.ResponseWriter, *http.Request) bool { return false }}
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "https", Host: strings.Trim(strings.TrimPrefix(cluster.Admin.Host, "https:"), "/")})
		r.Out.Header.Del("Authorization")
	}}
	f.proxy = proxy
	f.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, answer, some := f.note(r)
		switch {
		case r.Header.Get("Authorization") != "Bearer "+token:
			http.Error(w, "who are you?", http.StatusUnauthorized)
		case answer != nil:
			answer(w, r)
		case some(w, r):
		default:
			f.passing()(r)
			proxy.ServeHTTP(w, r)
		}
	}))
	f.EnableHTTP2 = true
	f.StartTLS()
	f.ca = pemOf(f.Certificate().Raw)
	t.Cleanup(func() { f.CloseClientConnections(); f.Close() })
	return f
}

func (f *front) note(r *http.Request) (token string, answer http.HandlerFunc, some func(http.ResponseWriter, *http.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	verb := strings.ToLower(r.Method)
	if r.URL.Query().Get("watch") != "" {
		verb = "watch"
	}
	f.asked = append(f.asked, verb+" "+r.URL.Path)
	return f.token, f.answer, f.some
}

func (f *front) calls() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.asked)
}

func (f *front) writes() (all []string) {
	for _, call := range f.calls() {
		if !strings.HasPrefix(call, "watch ") && !strings.HasPrefix(call, "get ") {
			all = append(all, call)
		}
	}
	return all
}

func (f *front) knows(token string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.token = token
}

// answers sets a handler in place of the hosted API; nil removes it.
func (f *front) answers(h http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = h
}

// answersSome sets a handler that returns whether it answered; the hosted API answers the other requests.
func (f *front) answersSome(h func(http.ResponseWriter, *http.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.some = h
}

// before sets what is done before a request reaches the hosted API.
func (f *front) before(do func(*http.Request)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.passes = do
}

func (f *front) passing() func(*http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.passes == nil {
		return func(*http.Request) {}
	}
	return f.passes
}

// behindFront puts a front with a token before the world's hosted API.
func (w *world) behindFront(token string) *front {
	w.t.Helper()
	f := newFront(w.t, token)
	w.want.Server = f.URL
	w.hasKubeconfig(w.kubeconfigOf(f, token))
	return f
}

func (w *world) kubeconfigOf(f *front, token string) []byte {
	return w.kubeconfig(func(c *clientcmdapi.Config) {
		c.Clusters[0].Cluster.CertificateAuthorityData = f.ca
		c.AuthInfos[0].AuthInfo = clientcmdapi.AuthInfo{Token: token}
	})
}

func TestARotatedTokenIsUsedAndTheOldConnectionsAreClosed(t *testing.T) {
	w := newWorld(t, "LoadBalancer")
	f := w.behindFront("old")
	w.eventually("the hosted cluster", reached)
	f.knows("new")
	w.hasKubeconfig(w.kubeconfigOf(f, "new"))
	before := len(f.calls())
	w.Eventually(func() []string { return f.calls()[before:] }, "10s").Should(ContainElement("watch /api/v1/services"))
	w.eventually("the hosted cluster", reached)
}
