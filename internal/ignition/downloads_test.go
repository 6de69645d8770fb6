package ignition

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/guest/pace"
	"github.com/cldmnky/oooi/internal/plan/bridge"
	"github.com/cldmnky/oooi/internal/testkit/ignitionserver"
)

const (
	host      = "ignition.example.com"
	namespace = "dpf-b1"
	release   = "quay.io/openshift-release-dev/ocp-release:4.20.4-multi"
)

var (
	by       = types.NamespacedName{Namespace: "dpf", Name: "b1"}
	ours     = []byte(`{"ignition":{"version":"3.2.0"},"passwd":{}}`)
	theirs   = []byte(`{"ignition":{"version":"3.2.0"},"systemd":{}}`)
	download = bridge.Download{
		NodePool: by, Hash: "1a2b3c4d", Host: host, Servers: []string{"ignition-server-proxy.dpf-b1.svc:443"},
		CA: endpoint.IgnitionCA(namespace), Token: endpoint.IgnitionToken(namespace, "b1", "1a2b3c4d"),
	}
)

// world is a control plane with an ignition server and a bridge that follows it.
type world struct {
	Gomega
	server  *ignitionserver.Server
	api     *fake.Clientset
	all     *Downloads
	changed chan types.NamespacedName
}

func newWorld(t *testing.T) *world {
	t.Helper()
	server, err := ignitionserver.Start(host)
	w := &world{Gomega: NewWithT(t), server: server, api: fake.NewClientset(), changed: make(chan types.NamespacedName, 100)}
	w.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(server.Close)
	w.SetDefaultEventuallyTimeout(time.Minute)
	w.all = New(w.api.CoreV1(), func(by types.NamespacedName) { w.changed <- by })
	w.all.Dial, w.all.lookEvery = server.Dial, 5*time.Millisecond
	t.Cleanup(func() { w.all.Forget(by) })
	w.writes(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: download.CA.Name}, Data: map[string][]byte{"tls.crt": server.CA}})
	return w
}

func (w *world) writes(s *corev1.Secret) {
	w.Expect(w.api.Tracker().Add(s)).To(Succeed())
}

// token is a Secret as HyperShift writes it; version is its resourceVersion, which the fake API server does not count.
func token(name, nodePool, value, version string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: version, Annotations: map[string]string{"hypershift.openshift.io/nodePool": nodePool}},
		Data:       map[string][]byte{"token": []byte(value), "release": []byte(release)},
	}
}

// becomes waits until the bridge was told of a payload.
func (w *world) becomes(want OmegaMatcher) bridge.Payload {
	for !w.matches(want) {
		select {
		case <-w.changed:
		case <-time.After(time.Minute):
			w.Expect(w.all.Follow(by, download)).To(want)
		}
	}
	return w.all.Follow(by, download)
}

func (w *world) matches(want OmegaMatcher) bool {
	is, err := want.Match(w.all.Follow(by, download))
	return err == nil && is
}

func content(want []byte) OmegaMatcher {
	return And(HaveField("Reason", ""), HaveField("Content", want))
}

func TestTheIgnitionOfOurNodePoolIsDownloadedAsByANode(t *testing.T) {
	w := newWorld(t)
	w.writes(token("token-b1-a-1a2b3c4d", "dpf/b1-a", "another", "1"))
	w.writes(token("token-b1-00000000", "dpf/b1", "old", "1"))
	w.writes(token(download.Token.Name, "dpf/b1", "mine", "1"))
	w.server.Has("another", theirs)
	w.server.Has("old", theirs)
	w.server.Has("mine", ours)
	w.Expect(w.becomes(content(ours)).Release).To(Equal(release))
	w.Expect(w.server.Dialed()).To(HaveEach(download.Servers[0]))
	for _, h := range w.server.Heard() {
		w.Expect(h).To(And(HaveKeyWithValue("Authorization", []string{"Bearer bWluZQ=="}), HaveKeyWithValue("Nodepool", []string{"dpf/b1"}), HaveKeyWithValue("Targetconfigversionhash", []string{"1a2b3c4d"})))
	}
}

// One whose name begins alike may have a Secret of the same name.
func TestATokenOfAnotherNodePoolIsNotSent(t *testing.T) {
	w := newWorld(t)
	w.writes(token(download.Token.Name, "dpf/b", "another", "1"))
	w.server.Has("another", theirs)
	w.becomes(And(HaveField("Reason", "IgnitionTokenRefused"), HaveField("Message", ContainSubstring("see that Secret, unless"))))
	w.Expect(w.server.Heard()).To(BeEmpty())
}

func TestIgnitionThatIsNotRenderedYetIsAskedForAgain(t *testing.T) {
	w := newWorld(t)
	w.becomes(HaveField("Message", ContainSubstring("HyperShift has not created Secret dpf-b1/token-b1-1a2b3c4d yet")))
	w.writes(token(download.Token.Name, "dpf/b1", "mine", "1"))
	w.becomes(And(HaveField("Reason", "WaitingForIgnition"), HaveField("Message", ContainSubstring("(511)"))))
	w.server.Has("mine", ours)
	w.becomes(content(ours))
}

func TestARotatedTokenChangesNothingUnlessItsIgnitionDoes(t *testing.T) {
	w := newWorld(t)
	w.writes(token(download.Token.Name, "dpf/b1", "first", "1"))
	w.server.Has("first", ours)
	w.becomes(content(ours))
	w.Consistently(func() int { return len(w.server.Heard()) }, "100ms").Should(Equal(1), "the same token is not used again before the content is old")

	w.server.Has("second", ours)
	w.Expect(w.api.Tracker().Update(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, token(download.Token.Name, "dpf/b1", "second", "2"), namespace)).To(Succeed())
	w.Eventually(w.server.Heard).Should(HaveLen(2))
	w.Consistently(w.changed, 2*pace.TellEvery).ShouldNot(Receive(), "nothing has changed")

	w.server.Has("third", theirs)
	w.Expect(w.api.Tracker().Update(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, token(download.Token.Name, "dpf/b1", "third", "3"), namespace)).To(Succeed())
	w.becomes(content(theirs))
}

func TestContentIsRefreshed(t *testing.T) {
	w := newWorld(t)
	w.all.refreshEvery = 20 * time.Millisecond
	w.writes(token(download.Token.Name, "dpf/b1", "mine", "1"))
	w.server.Has("mine", ours)
	w.becomes(content(ours))
	w.server.Has("mine", theirs)
	w.becomes(content(theirs))
	w.server.Has("mine", nil)
	w.becomes(And(HaveField("Reason", "WaitingForIgnition"), HaveField("Content", theirs), HaveField("Release", release)))
}

func TestAnotherHashIsAnotherDownload(t *testing.T) {
	w := newWorld(t)
	w.writes(token(download.Token.Name, "dpf/b1", "mine", "1"))
	w.server.Has("mine", ours)
	w.becomes(content(ours))
	next := download
	next.Hash, next.Token = "5e6f7a8b", endpoint.IgnitionToken(namespace, "b1", "5e6f7a8b")
	w.Expect(w.all.Follow(by, next)).To(Equal(bridge.Payload{}), "of the new one nothing is known yet")
}

func TestWhyThereIsNoIgnition(t *testing.T) {
	for name, c := range map[string]struct {
		is      func(*world)
		reason  string
		message string
	}{
		"refused": {func(w *world) {
			w.answers(func(r http.ResponseWriter, _ *http.Request) { r.WriteHeader(http.StatusUnauthorized) })
		}, "IgnitionTokenRefused", "refuses the token in Secret dpf-b1/token-b1-1a2b3c4d (401): see that Secret, unless HyperShift is replacing it"},
		"failing": {func(w *world) {
			w.answers(func(r http.ResponseWriter, _ *http.Request) { r.WriteHeader(http.StatusBadGateway) })
		}, "IgnitionServerUnreachable", "(502)"},
		"elsewhere": {func(w *world) {
			w.answers(func(r http.ResponseWriter, q *http.Request) {
				http.Redirect(r, q, "https://elsewhere.example.com/ignition", http.StatusFound)
			})
		}, "IgnitionServerUnreachable", "(302)"},
		"too large": {func(w *world) {
			w.answers(func(r http.ResponseWriter, _ *http.Request) { _, _ = r.Write(bytes.Repeat([]byte(" "), most+1)) })
		}, "IgnitionTooLarge", "more than 4 MiB"},
		"down": {func(w *world) {
			w.all.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("refused") }
		}, "IgnitionServerUnreachable", "ignition-server-proxy.dpf-b1.svc:443: refused; see the pods and Services of ignition-server in namespace dpf-b1"},
		"cut off": {func(w *world) {
			w.answers(func(r http.ResponseWriter, _ *http.Request) {
				r.Header().Set("Content-Length", "1000")
				_, _ = r.Write(ours)
			})
		}, "IgnitionServerUnreachable", "was cut off: unexpected EOF; see the pods and Services of ignition-server in namespace dpf-b1"},
		"of another name": {func(w *world) {
			other, err := ignitionserver.Start("other.example.com")
			w.Expect(err).NotTo(HaveOccurred())
			t.Cleanup(other.Close)
			w.all.Dial = other.Dial
		}, "IgnitionServerUnreachable", "tls: "},
		"not granted": {func(w *world) {
			w.api.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, download.Token.Name, errors.New("no Role"))
			})
		}, "NamespaceNotGranted", "kubectl apply -n dpf-b1 -k config/components/dpu-bridge"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.writes(token(download.Token.Name, "dpf/b1", "mine", "1"))
			w.server.Has("mine", ours)
			c.is(w)
			got := w.becomes(Not(Equal(bridge.Payload{})))
			w.Expect(got).To(And(HaveField("Reason", c.reason), HaveField("Message", ContainSubstring(c.message)), HaveField("Content", BeEmpty())))
		})
	}
}

func TestAFailureThatLastsIsToldOnce(t *testing.T) {
	for name, failure := range map[string]func(int) error{
		"another port": func(n int) error {
			return &net.OpError{Op: "read", Net: "tcp", Source: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: n}, Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 2), Port: 443}, Err: syscall.ECONNRESET}
		},
		"another time": func(n int) error {
			return x509.CertificateInvalidError{Reason: x509.Expired, Detail: fmt.Sprintf("current time 2026-11-27T00:00:%02dZ is after 2026-11-26T00:00:00Z", n)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.writes(token(download.Token.Name, "dpf/b1", "mine", "1"))
			var tries atomic.Int32
			w.all.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, failure(int(tries.Add(1))) }
			w.all.Follow(by, download)
			w.Eventually(w.changed).Should(Receive())
			w.Expect(w.all.Follow(by, download).Reason).To(Equal("IgnitionServerUnreachable"))
			had := tries.Load()
			w.Eventually(tries.Load).Should(BeNumerically(">", had+2))
			w.Expect(w.changed).NotTo(Receive())
		})
	}
}

func (w *world) answers(h http.HandlerFunc) { w.server.Answer(h) }

// Where HyperShift's policies let only the router in, that is used.
func TestTheNextServerIsTriedIfOneDoesNotAnswer(t *testing.T) {
	w := newWorld(t)
	w.writes(token(download.Token.Name, "dpf/b1", "mine", "1"))
	w.server.Has("mine", ours)
	want := download
	want.Servers = []string{"ignition-server-proxy.dpf-b1.svc:443", "router-internal-default.openshift-ingress.svc:443"}
	got, failed := fetch(t.Context(), func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == want.Servers[0] {
			return nil, errors.New("no route")
		}
		return w.server.Dial(ctx, network, address)
	}, want, w.server.CA, []byte("mine"))
	w.Expect(failed).To(BeNil())
	w.Expect(got).To(Equal(ours))
}
