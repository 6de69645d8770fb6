package csrcli_test

import (
	"context"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/miekg/dns"
	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/csrcli"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/unroutable"
)

// Whoever controls a kubeconfig's name in DNS chooses the address: even if the name is allowed, it must not lead to this machine.
func TestAKubeconfigsNameLeadsNowhereHere(t *testing.T) {
	var calls atomic.Int32
	api := httptest.NewUnstartedServer(http.NotFoundHandler())
	api.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			calls.Add(1)
		}
	}
	api.StartTLS()
	t.Cleanup(api.Close)
	_, port, err := net.SplitHostPort(api.Listener.Addr().String())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, at := range []string{"127.0.0.1", "169.254.169.254"} {
		t.Run(at, func(t *testing.T) {
			g := NewWithT(t)
			resolves(t, "api.c1.example.com.", at)
			of := types.NamespacedName{Namespace: "clusters", Name: "c1"}
			_, err := csrcli.Explain(t.Context(), bridged(t, of, kubeconfig(t, api, "https://api.c1.example.com:"+port)), of, "csr-7x2kq")
			g.Expect(err).To(MatchError(ContainSubstring(unroutable.ErrUnroutable.Error())))
			g.Expect(calls.Load()).To(BeZero(), "nobody came")
		})
	}
}

// resolves makes this process ask a DNS server that answers for one name.
func resolves(t *testing.T, name, at string) {
	t.Helper()
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	server := &dns.Server{PacketConn: socket, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, asked *dns.Msg) {
		answer := new(dns.Msg).SetReply(asked)
		if q := asked.Question[0]; q.Name == name && q.Qtype == dns.TypeA {
			answer.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeA, Class: dns.ClassINET}, A: net.ParseIP(at)}}
		}
		_ = w.WriteMsg(answer)
	})}
	go func() { _ = server.ActivateAndServe() }()
	before := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", socket.LocalAddr().String())
	}}
	t.Cleanup(func() {
		net.DefaultResolver = before
		socket.Close()
	})
}

func kubeconfig(t *testing.T, api *httptest.Server, server string) []byte {
	t.Helper()
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"contexts": []any{map[string]any{"name": "c", "context": map[string]any{"cluster": "c", "user": "u"}}},
		"clusters": []any{map[string]any{"name": "c", "cluster": map[string]any{
			"server": server, "certificate-authority-data": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw}),
		}}},
		"users": []any{map[string]any{"name": "u", "user": map[string]any{"token": "t"}}},
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return text
}

// bridged is a management cluster with a bridge, and the kubeconfig of its hosted cluster.
func bridged(t *testing.T, of types.NamespacedName, kubeconfig []byte) client.Reader {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, dpuv1.AddToScheme, hyperv1.AddToScheme, dpf.AddToScheme} {
		NewWithT(t).Expect(add(scheme)).To(Succeed())
	}
	at := metav1.ObjectMeta{Namespace: of.Namespace, Name: of.Name}
	hc := &hyperv1.HostedCluster{ObjectMeta: at, Status: hyperv1.HostedClusterStatus{KubeConfig: &corev1.LocalObjectReference{Name: "admin"}}}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: "admin"}, Data: map[string][]byte{"kubeconfig": kubeconfig}}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(&dpuv1.DPUHCPBridge{ObjectMeta: at}, hc, secret).Build()
}
