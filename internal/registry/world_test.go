package registry_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	fake "github.com/google/go-containerregistry/pkg/registry"
	. "github.com/onsi/gomega"
	gtypes "github.com/onsi/gomega/types"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/internal/plan/bridge"
	"github.com/cldmnky/oooi/internal/registry"
)

// through has a connection for each that goes through the proxy of the environment, which Go never uses to this machine.
var through = make(chan string, 10)

func TestMain(m *testing.M) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		through <- r.Method + " " + r.Host
		w.WriteHeader(http.StatusBadGateway)
	}))
	if err := os.Setenv("HTTPS_PROXY", proxy.URL); err != nil { // http.ProxyFromEnvironment reads it once
		panic(err)
	}
	code := m.Run()
	proxy.Close()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// server is a registry in memory, over TLS.
type server struct {
	Gomega
	*httptest.Server
	images http.Handler
	mu     sync.Mutex
	// before answers instead of the registry, if it says so.
	before func(w http.ResponseWriter, r *http.Request) bool
}

func serves(t *testing.T) *server {
	t.Helper()
	return servesBy(t, false)
}

// servesBy HTTP/2, if a client wants that, or by HTTP/1.1.
func servesBy(t *testing.T, http2 bool) *server {
	t.Helper()
	s := &server{Gomega: NewWithT(t), images: fake.New(fake.Logger(log.New(io.Discard, "", 0)))}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		before := s.before
		s.mu.Unlock()
		if before == nil || !before(w, r) {
			s.images.ServeHTTP(w, r)
		}
	}))
	s.Config.ErrorLog, s.EnableHTTP2 = log.New(io.Discard, "", 0), http2
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *server) answers(instead func(w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = instead
}

// to allows only who logs in with this user and password.
func to(user, password string) func(w http.ResponseWriter, r *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if u, p, given := r.BasicAuth(); given && u == user && p == password {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
}

func login(user, password string) string {
	return fmt.Sprintf(`{"auth": %q}`, base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
}

func (s *server) repository(path string) string {
	return strings.TrimPrefix(s.URL, "https://") + "/" + path
}

// transport trusts it.
func (s *server) transport() *http.Transport { return s.Client().Transport.(*http.Transport) }

func (s *server) place(path string) bridge.Place { return bridge.Place{Repository: s.repository(path)} }

// pushes an image with labels, and returns its digest.
func (s *server) pushes(path, tag string, labels map[string]string) string {
	image := labelled(s, labels)
	ref, err := name.ParseReference(s.repository(path) + ":" + tag)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(remote.Write(ref, image, remote.WithTransport(s.Client().Transport))).To(Succeed())
	digest, err := image.Digest()
	s.Expect(err).NotTo(HaveOccurred())
	return digest.String()
}

func labelled(g Gomega, labels map[string]string) v1.Image {
	image, err := mutate.Config(empty.Image, v1.Config{Labels: labels})
	g.Expect(err).NotTo(HaveOccurred())
	return image
}

// client is Lookups, whose pauses are short and are told.
type client struct {
	Gomega
	*registry.Lookups
	news  chan types.NamespacedName
	tried chan int
	ends  func()
}

func asks(t *testing.T, transport *http.Transport) client {
	t.Helper()
	c := client{Gomega: NewWithT(t), news: make(chan types.NamespacedName, 100), tried: make(chan int)}
	c.Lookups = registry.New(nil, func(by types.NamespacedName) { c.news <- by })
	if transport != nil {
		c.Transport = transport
	}
	ctx, end := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	c.Backoff = func(tries int) time.Duration {
		select {
		case c.tried <- tries:
		case <-ctx.Done():
		}
		return time.Millisecond
	}
	go func() { ended <- c.Start(ctx) }()
	c.ends = sync.OnceFunc(func() {
		end()
		c.Expect(<-ended).To(Succeed())
	})
	t.Cleanup(func() {
		c.ends()
		c.Transport.CloseIdleConnections()
	})
	return c
}

// patience is for a machine that is busy.
const patience = 30 * time.Second

// next is what a channel has next.
func next[T any](g Gomega, from <-chan T) (one T) {
	g.Eventually(from, patience).Should(Receive(&one))
	return one
}

// by is a bridge.
var by = types.NamespacedName{Namespace: "clusters", Name: "b1"}

// hears waits for an answer, while the client goes on trying.
func (c client) hears(want bridge.Lookup, answer gtypes.GomegaMatcher) bridge.Answer {
	late := time.After(patience)
	for {
		got := c.Follow(by, &want)
		if matches, err := answer.Match(got); err == nil && matches {
			return got
		}
		select {
		case <-c.news:
		case <-c.tried:
		case <-late:
			c.Expect(got).To(answer)
			return got
		}
	}
}

// lookFor a tag in places, of which the last is the repository itself.
func lookFor(version string, places ...bridge.Place) bridge.Lookup {
	return bridge.Lookup{Repository: places[len(places)-1].Repository, Version: version, Images: places}
}

func failed(reason string, says ...string) gtypes.GomegaMatcher {
	all := []gtypes.GomegaMatcher{HaveField("Reason", reason), HaveField("Image", "")}
	for _, text := range says {
		all = append(all, HaveField("Message", ContainSubstring(text)))
	}
	return And(all...)
}

// nobody listens at the address.
func nobody(g Gomega) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	defer listener.Close()
	return listener.Addr().String()
}
