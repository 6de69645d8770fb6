package daemon

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// asked is a client through a socket, as a daemon has it.
func asked(t *testing.T, socket string) *kubernetes.Clientset {
	t.Helper()
	config, err := (&Flags{APISocket: socket}).cluster()
	if err == nil {
		config.QPS = -1
		var kube *kubernetes.Clientset
		if kube, err = kubernetes.NewForConfig(config); err == nil {
			return kube
		}
	}
	t.Fatal(err)
	return nil
}

// leaves closes a client's connections, as the end of its process would.
func leaves(kube *kubernetes.Clientset) {
	utilnet.CloseIdleConnectionsFor(kube.RESTClient().(*rest.RESTClient).Client.Transport)
}

// handsOn passes what comes to a socket on to an API server, until the returned function is called.
func handsOn(t *testing.T, socket string, api http.Handler) (server *httptest.Server, end func()) {
	t.Helper()
	server = httptest.NewServer(api)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	p := APIProxy{Socket: socket, Cluster: &rest.Config{Host: server.URL, BearerToken: "ours"}, Log: slog.New(slog.DiscardHandler)}
	go func() { ended <- p.Run(ctx) }()
	return server, func() {
		stop()
		NewWithT(t).Eventually(ended).WithTimeout(5 * lastRequests).Should(Receive(BeNil()))
		server.CloseClientConnections()
		server.Close()
	}
}

func TestADaemonAsksWithATokenThatItHasNot(t *testing.T) {
	g := NewWithT(t)
	heard := make(chan *http.Request, 1)
	socket := filepath.Join(t.TempDir(), "api.sock")
	_, end := handsOn(t, socket, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		heard <- r
		w.Header().Set("Date", "Mon, 02 Jan 2006 15:04:05 GMT")
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"mine"}}`))
	}))
	defer end()
	kube := asked(t, socket)
	defer leaves(kube)
	pod, err := kube.CoreV1().Pods("ns").Get(t.Context(), "mine", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(pod.Name).To(Equal("mine"))
	r := <-heard
	g.Expect(r.URL.Path).To(Equal("/api/v1/namespaces/ns/pods/mine"))
	g.Expect(r.Header.Values("Authorization")).To(Equal([]string{"Bearer ours"}))

	config := throughSocket(socket)
	config.BearerToken = "another's"
	through, err := rest.TransportFor(config)
	g.Expect(err).NotTo(HaveOccurred())
	defer utilnet.CloseIdleConnectionsFor(through)
	answer, err := (&http.Client{Transport: through}).Get(config.Host + "/version")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(answer.Body.Close()).To(Succeed())
	g.Expect(answer.Header.Get("Date")).To(Equal("Mon, 02 Jan 2006 15:04:05 GMT"), "the time of DHCP is the API server's")
	g.Expect((<-heard).Header.Values("Authorization")).To(Equal([]string{"Bearer ours"}))
}

func TestAWatchIsHeardAtOnceAndEndsWithTheAPIServer(t *testing.T) {
	g := NewWithT(t)
	socket, more := filepath.Join(t.TempDir(), "api.sock"), make(chan string)
	server, end := handsOn(t, socket, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for {
			select {
			case name := <-more:
				_, _ = w.Write([]byte(`{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"` + name + `"}}}`))
				w.(http.Flusher).Flush()
			case <-r.Context().Done():
				return
			}
		}
	}))
	defer end()
	go func() { more <- "first" }()
	events, err := asked(t, socket).CoreV1().Pods("ns").Watch(t.Context(), metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(events.ResultChan()).Should(Receive())
	more <- "second"
	g.Eventually(events.ResultChan()).Should(Receive())
	server.CloseClientConnections()
	g.Eventually(events.ResultChan()).Should(BeClosed())
}

// The API server's Date is the DHCP server's clock. An answer given in its absence has none.
func TestAnAPIServerThatIsAwayTellsNoTime(t *testing.T) {
	g := NewWithT(t)
	socket := filepath.Join(t.TempDir(), "api.sock")
	server, end := handsOn(t, socket, http.NotFoundHandler())
	defer end()
	server.Close()
	kube := asked(t, socket)
	defer leaves(kube)
	_, err := kube.CoreV1().Pods("ns").Get(t.Context(), "mine", metav1.GetOptions{})
	g.Expect(err).To(MatchError(And(ContainSubstring("asking the API server: "), ContainSubstring("connection refused"))))
	g.Expect(utilnet.IsConnectionRefused(err)).To(BeTrue(), "as if it had been asked directly")
	through := throughSocket(socket).Transport.(behind).Transport
	defer through.CloseIdleConnections()
	answer, err := (&http.Client{Transport: through}).Get("http://kubernetes/version")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(answer.Body.Close()).To(Succeed())
	g.Expect(answer.Header).NotTo(HaveKey("Date"))
}

// The containers of a pod start and restart in any order; a killed one leaves its socket behind.
func TestADaemonWaitsForTheSocketOfItsPod(t *testing.T) {
	g := NewWithT(t)
	socket := filepath.Join(t.TempDir(), "api.sock")
	kube := asked(t, socket)
	answered := make(chan error, 1)
	ask := func() { _, err := kube.CoreV1().Pods("ns").List(t.Context(), metav1.ListOptions{}); answered <- err }
	for range 2 {
		go ask()
		g.Consistently(answered, 3*socketAgain).ShouldNot(Receive())
		_, end := handsOn(t, socket, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"kind":"PodList","apiVersion":"v1"}`))
		}))
		g.Eventually(answered).Should(Receive(BeNil()))
		leaves(kube)
		end()
		g.Expect(os.WriteFile(socket, nil, 0o600)).To(Succeed(), "what a killed one leaves refuses connections as this does")
	}
	for within, kube := range map[time.Duration]*kubernetes.Clientset{missedIn: kube, socketIn: asked(t, socket)} {
		started := time.Now()
		_, err := kube.CoreV1().Pods("ns").List(t.Context(), metav1.ListOptions{})
		g.Expect(err).To(MatchError(ContainSubstring("see the log of the pod's container api-proxy")))
		g.Expect(time.Since(started)).To(BeNumerically("~", within+missedIn/2, missedIn/2))
	}
}

// The containers of a pod are told to end together, and a daemon that ends writes first what it promised.
func TestADaemonThatEndsStillReachesTheAPIServer(t *testing.T) {
	g := NewWithT(t)
	socket, asked := filepath.Join(t.TempDir(), "api.sock"), make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("watch") {
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			close(asked)
			<-r.Context().Done()
		}
	}))
	defer api.Close()
	ended := make(chan error, 1)
	p := APIProxy{Socket: socket, Cluster: &rest.Config{Host: api.URL}, Log: slog.New(slog.DiscardHandler)}
	go func() { ended <- p.Run(ctx) }()
	through := throughSocket(socket).Transport.(behind).Transport
	watch, err := (&http.Client{Transport: through}).Get("http://kubernetes/api?watch")
	g.Expect(err).NotTo(HaveOccurred())
	<-asked
	stop()
	g.Consistently(ended, lastRequests/4).ShouldNot(Receive())
	answer, err := (&http.Client{Transport: through}).Get("http://kubernetes/api")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(answer.Body.Close()).To(Succeed())
	g.Expect(watch.Body.Close()).To(Succeed())
	through.CloseIdleConnections()
	g.Eventually(ended, lastRequests/2).Should(Receive(BeNil()), "the daemon has ended")
}

// A daemon that does not end is not waited for.
func TestAnAPIProxyEndsBeforeItIsKilled(t *testing.T) {
	g := NewWithT(t)
	socket := filepath.Join(t.TempDir(), "api.sock")
	_, end := handsOn(t, socket, http.NotFoundHandler())
	kube := asked(t, socket)
	defer leaves(kube)
	_, err := kube.CoreV1().Pods("ns").Get(t.Context(), "mine", metav1.GetOptions{})
	g.Expect(err).To(HaveOccurred())
	began := time.Now()
	end()
	g.Expect(time.Since(began)).To(BeNumerically("~", lastRequests, lastRequests/2))
}

// A connection lost between the proxy and the API server counts as the daemon's own: client-go repeats a read that got no answer, and
// resumes a watch where it was.
func TestALostConnectionIsTheDaemonsOwn(t *testing.T) {
	g := NewWithT(t)
	socket := filepath.Join(t.TempDir(), "api.sock")
	var times atomic.Int32
	_, end := handsOn(t, socket, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if times.Add(1) == 1 {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set(lostHeader, "refused") // only the proxy may set it
		_, _ = w.Write([]byte(`{"kind":"Pod","apiVersion":"v1"}`))
	}))
	defer end()
	kube := asked(t, socket)
	_, err := kube.CoreV1().Pods("ns").Get(t.Context(), "mine", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(times.Load()).To(BeNumerically("==", 2))
}

func TestADaemonDoesNotAskForMoreAtOnceThanFits(t *testing.T) {
	g := NewWithT(t)
	g.SetDefaultEventuallyTimeout(time.Minute) // hundreds of connections at once, beside other tests
	socket, release := filepath.Join(t.TempDir(), "api.sock"), make(chan struct{})
	var now atomic.Int32
	_, end := handsOn(t, socket, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { now.Add(1); <-release }))
	defer end()
	kube := asked(t, socket)
	for range 2 * socketConns {
		go func() {
			var err error
			for missed := true; missed && t.Context().Err() == nil; { // beside a load a connection to the socket may take longer than missedIn
				_, err = kube.CoreV1().Pods("ns").Get(t.Context(), "mine", metav1.GetOptions{})
				missed = err != nil && strings.Contains(err.Error(), "see the log of the pod's container api-proxy")
			}
		}()
	}
	g.Eventually(now.Load).Should(BeNumerically("==", socketConns))
	g.Consistently(now.Load, 100*time.Millisecond).Should(BeNumerically("==", socketConns))
	close(release)
	g.Eventually(now.Load).Should(BeNumerically("==", 2*socketConns))
}

func TestASocketThatCannotBeMadeIsSaid(t *testing.T) {
	p := APIProxy{Socket: filepath.Join(t.TempDir(), "none", "api.sock"), Cluster: &rest.Config{Host: "http://127.0.0.1:1"}, Log: slog.New(slog.DiscardHandler)}
	err := p.Run(t.Context())
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("give a path in a directory that this user can write")))
	NewWithT(t).Expect(errors.Is(err, os.ErrNotExist)).To(BeTrue())
}
