package diffcli

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/change"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/workload"
	"github.com/cldmnky/oooi/internal/testkit/envtest"
)

// said is what Envoy 1.40 says with three streams open to the API, whose target it checks every second, and none to Ignition.
const said = `oooi_proxy_ready 1
# TYPE envoy_cluster_upstream_cx_active gauge
envoy_cluster_upstream_cx_active{envoy_cluster_name="api"} 3
envoy_cluster_upstream_cx_active{envoy_cluster_name="ignition"} 0
envoy_cluster_upstream_cx_active{envoy_cluster_name="xds"} 1
envoy_cluster_upstream_cx_active{envoy_cluster_name="konnectivity"} 4
# TYPE envoy_listener_downstream_cx_active gauge
envoy_listener_downstream_cx_active{envoy_listener_address="192.168.100.3_6443"} 3
# TYPE envoy_server_live gauge
envoy_server_live{} 1
`

func TestStreamsAreThoseToBackends(t *testing.T) {
	g := NewWithT(t)
	backends := []v1alpha1.ProxyBackend{{Name: "api"}, {Name: "ignition"}, {Name: "konnectivity"}, {Name: "oauth"}}
	open, err := counted([]byte(said), backends)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(Streams{IP: "192.168.100.3", Open: open}.String()).To(Equal("through 192.168.100.3: 7 open: api 3, konnectivity 4"))
	open, err = counted([]byte("oooi_proxy_ready 1\n# TYPE envoy_server_live gauge\nenvoy_server_live{} 1\n"), backends)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(Streams{IP: "192.168.100.3", Open: open}.String()).To(Equal("through 192.168.100.3: none is open"))
	_, err = counted([]byte("oooi_proxy_ready 0\n"), backends)
	g.Expect(Streams{IP: "192.168.100.3", NotKnown: err.Error()}.String()).To(Equal("through 192.168.100.3: not known how many are open: its Envoy does not answer"))
}

// The API server asks a pod at an address of this machine, and tells whom it does not let.
func TestAPodIsAskedThroughTheAPIServer(t *testing.T) {
	g := NewWithT(t)
	at := address(t)
	l, err := net.Listen("tcp", net.JoinHostPort(at, "0"))
	g.Expect(err).NotTo(HaveOccurred())
	port := l.Addr().(*net.TCPAddr).Port
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, said+"# "+r.URL.Path+"\n")
	})}}
	server.Start()
	t.Cleanup(server.Close)
	cluster, err := envtest.Start(true)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(cluster.Stop()).To(Succeed()) })
	api, err := client.New(cluster.Admin, client.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "proxy"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	g.Expect(api.Create(t.Context(), pod)).To(Succeed())
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: at, PodIPs: []corev1.PodIP{{IP: at}}}
	g.Expect(api.Status().Update(t.Context(), pod)).To(Succeed())

	metrics, err := atPort(cluster.Admin, port)
	g.Expect(err).NotTo(HaveOccurred())
	text, err := metrics(t.Context(), client.ObjectKeyFromObject(pod))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(text)).To(Equal(said + "# /metrics\n"))

	stranger := rest.CopyConfig(cluster.Admin)
	stranger.Impersonate.UserName = "anna"
	metrics, err = atPort(stranger, port)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = metrics(t.Context(), client.ObjectKeyFromObject(pod))
	g.Expect(notTold(err, "default")).To(MatchError("you may not get pods/proxy in namespace default"))
	server.Close()
	metrics, err = atPort(cluster.Admin, port)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = metrics(t.Context(), client.ObjectKeyFromObject(pod))
	g.Expect(notTold(err, "default")).To(MatchError(HavePrefix("its pod does not answer the API server, which a NetworkPolicy may keep from it: ")))
}

// The pods of each instance that ends are asked, by their labels; after one that does not answer in time no other is.
func TestThePodsThatEndAreAsked(t *testing.T) {
	g := NewWithT(t)
	cluster, err := envtest.Start(true)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(cluster.Stop()).To(Succeed()) })
	api, err := client.New(cluster.Admin, client.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	for name, ordinal := range map[string]string{"first": "", "second": "1", "of-another": ""} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{names.LabelApp: names.Proxy, names.LabelInstance: "c1-proxy", names.LabelManagedBy: names.ManagedBy}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
		if ordinal != "" {
			pod.Labels[names.LabelOrdinal] = ordinal
		}
		if name == "of-another" {
			pod.Labels[names.LabelInstance] = "c2-proxy"
		}
		g.Expect(api.Create(t.Context(), pod)).To(Succeed())
	}
	server := &v1alpha1.ProxyServer{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c1-proxy"}}
	server.Spec.NetworkConfig.ServerIP, server.Spec.NetworkConfig.AdditionalServerIPs = "192.168.100.3", []v1alpha1.IPAddress{"192.168.100.6"}
	server.Spec.Backends = []v1alpha1.ProxyBackend{{Name: "api"}}
	before := change.Picture{Children: map[component.Name]workload.Child[component.Server]{component.Proxy: {Server: server}}}
	ends := []change.Pod{{Verb: change.Replace, Workload: names.InstanceWorkload(names.Proxy, "c1-proxy", 0)}, {Verb: change.Delete, Workload: names.InstanceWorkload(names.Proxy, "c1-proxy", 1)}}
	var asked []string
	answers := func(err error) Metrics {
		return func(_ context.Context, pod types.NamespacedName) ([]byte, error) {
			asked = append(asked, pod.Name)
			return []byte(said), err
		}
	}
	d := differ{cluster: newCluster(api, nil), metrics: answers(nil)}
	g.Expect(d.streams(t.Context(), before, ends)).To(Equal([]Streams{{IP: "192.168.100.3", Open: map[string]int{"api": 3}}, {IP: "192.168.100.6", Open: map[string]int{"api": 3}}}))
	g.Expect(d.streams(t.Context(), before, []change.Pod{{Verb: change.Create, Workload: ends[0].Workload}})).To(BeEmpty())
	g.Expect(asked).To(Equal([]string{"first", "second"}))
	asked, d.metrics = nil, answers(context.DeadlineExceeded)
	for range 2 {
		g.Expect(d.streams(t.Context(), before, ends)).To(HaveEach(HaveField("NotKnown", HavePrefix("its pod does not answer the API server"))))
	}
	g.Expect(asked).To(Equal([]string{"first"}))
}

// address of this machine, other than the loopback ones, which the API server refuses to ask.
func address(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	i := slices.IndexFunc(all, func(a net.Addr) bool {
		of, is := a.(*net.IPNet)
		return is && of.IP.To4() != nil && of.IP.IsGlobalUnicast()
	})
	NewWithT(t).Expect(i).To(BeNumerically(">=", 0), "this machine has no address but loopback ones")
	return all[i].(*net.IPNet).IP.String()
}
