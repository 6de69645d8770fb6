package registry_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// tunnels is a proxy that connects to a server, whatever it is asked for, and tells what that was.
func tunnels(t *testing.T, to *server) (address string, asked func() []string) {
	t.Helper()
	var mu sync.Mutex
	var all []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		all = append(all, r.Method+" "+r.Host)
		mu.Unlock()
		there, err := net.Dial("tcp", to.Listener.Addr().String())
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		here, _, err := http.NewResponseController(w).Hijack()
		to.Expect(err).NotTo(HaveOccurred())
		_, err = io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
		to.Expect(err).NotTo(HaveOccurred())
		go func() { _, _ = io.Copy(there, here); there.Close() }()
		go func() { _, _ = io.Copy(here, there); here.Close() }()
	}))
	t.Cleanup(proxy.Close)
	return proxy.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

// unset has the environment name no proxy.
func unset(t *testing.T) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"} {
		t.Setenv(name, "")
		t.Setenv(strings.ToLower(name), "")
	}
}

// example is a place under a name that httptest's certificates have, and that Go asks through a proxy.
func (s *server) example(path string) bridge.Place {
	return bridge.Place{Repository: "example.com/" + path}
}

// directly is a transport that knows where example.com is, and tells who is dialled.
func (s *server) directly() (transport *http.Transport, dialled func() []string) {
	var mu sync.Mutex
	var all []string
	transport = s.transport().Clone()
	transport.Proxy = nil // Go reads the environment once
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		mu.Lock()
		all = append(all, address)
		mu.Unlock()
		if address == "example.com:443" {
			address = s.Listener.Addr().String()
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	return transport, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

// The cluster's own registry is an exception: its name ends in .svc.
func TestRegistriesAreAskedThroughTheClustersProxy(t *testing.T) {
	unset(t)
	from, to := serves(t), serves(t)
	from.pushes("layers", "4.20.4", nil)
	proxy, asked := tunnels(t, from)
	want := lookFor("4.20.4", from.example("layers"))
	want.Proxy = bridge.Proxy{HTTPS: proxy, Except: ".svc,.example.org"}
	want.Images[0].CA = from.authority()
	c := asks(t, nil)
	c.hears(want, HaveField("Image", "example.com/layers:4.20.4"))
	c.Expect(asked()).To(And(Not(BeEmpty()), HaveEach("CONNECT example.com:443")))

	c.Token = func(context.Context, types.NamespacedName) (string, error) { return "secret", nil }
	want.Cache = &bridge.Cache{Push: to.place("images/layers"), Pull: to.place("images/layers")}
	want.Cache.Push.CA = to.authority()
	c.hears(want, HaveField("Image", want.Cache.Pulled("4.20.4")))
	c.Expect(asked()).To(HaveEach("CONNECT example.com:443"))

	transport, dialled := to.directly()
	to.pushes("layers", "4.20.4", nil)
	c = asks(t, transport)
	want = lookFor("4.20.4", to.example("layers"))
	want.Proxy = bridge.Proxy{HTTPS: proxy, Except: ".svc,example.com"}
	already := len(asked())
	c.hears(want, HaveField("Image", "example.com/layers:4.20.4"))
	c.Expect(asked()).To(HaveLen(already), "an exception is dialled")
	c.Expect(dialled()).To(ContainElement("example.com:443"))
}

func TestTheProxyOfTheEnvironmentWinsOverTheClusters(t *testing.T) {
	s := serves(t)
	s.pushes("layers", "4.20.4", nil)
	proxy, asked := tunnels(t, s)
	want := lookFor("4.20.4", s.example("layers"))
	want.Proxy = bridge.Proxy{HTTPS: proxy}
	c := asks(t, nil)
	c.Follow(by, &want)
	c.Expect(next(c, through)).To(Equal("CONNECT example.com:443"), "by HTTPS_PROXY")
	c.ends()

	unset(t)
	t.Setenv("NO_PROXY", "*")
	transport, _ := s.directly()
	c = asks(t, transport)
	c.hears(want, HaveField("Image", "example.com/layers:4.20.4"))
	c.Expect(asked()).To(BeEmpty(), "that says that there is none")
}
