package proxy

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/proxy/ads"
	"github.com/cldmnky/oooi/internal/proxy/endpoints"
	"github.com/cldmnky/oooi/internal/proxy/intent"
	"github.com/cldmnky/oooi/internal/proxy/translate"
)

// cluster holds a ProxyServer and, in a control plane's namespace, a Service whose pods are targets of the test.
func cluster(l *lab, objects ...client.Object) client.WithWatch {
	return fake.NewClientBuilder().WithScheme(daemon.Scheme()).WithObjects(append(objects, l.server)...).WithStatusSubresource(l.server, &v1alpha1.DHCPLease{}).
		WithIndex(l.server, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).
		WithIndex(&corev1.Service{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).
		WithIndex(&corev1.Pod{}, "status.phase", func(o client.Object) []string { return []string{string(o.(*corev1.Pod).Status.Phase)} }).Build()
}

func kasService(port v1alpha1.Port) v1alpha1.ProxyBackend {
	return v1alpha1.ProxyBackend{Name: "api", Port: port, Protocol: v1alpha1.ProtocolTLS, CatchAll: true,
		TargetService: "kube-apiserver", TargetPort: 6443, TargetNamespace: "clusters-c1"}
}

func service() *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-c1", Name: "kube-apiserver"}}
	s.Spec.Ports = []corev1.ServicePort{{Name: "client", Port: 6443, TargetPort: intstr.FromString("client")}}
	return s
}

func slice(to target) *discoveryv1.EndpointSlice {
	at := netip.MustParseAddrPort(to.address())
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "clusters-c1", Name: "kube-apiserver-x", Labels: map[string]string{discoveryv1.LabelServiceName: "kube-apiserver"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("client"), Port: ptr.To(int32(at.Port()))}},
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{at.Addr().String()}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: "clusters-c1", Name: "kube-apiserver-0"}}},
	}
}

// pod is the pod behind the Service, with the ports of some of the test's targets.
func pod(t *testing.T, all ...target) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters-c1", Name: "kube-apiserver-0"}}
	for _, at := range all {
		port := netip.MustParseAddrPort(at.address()).Port()
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Ports: []corev1.ContainerPort{{Name: "client", ContainerPort: int32(port)}}})
	}
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: hostAddress(t).String()}}}
	return p
}

func TestAChangedEndpointIsInEnvoyWithinHalfASecond(t *testing.T) {
	g := NewWithT(t)
	a, b, port := newTarget(t, "a"), newTarget(t, "b"), freePort(t)
	l := prepareLab(t, kasService(port))
	c := cluster(l, service(), slice(a), pod(t, a, b))
	l.startSidecar(c)
	l.startEnvoy()
	l.awaitReady()
	g.Eventually(func() (string, error) { return reached(port, "") }).Should(Equal("a"))

	now := &discoveryv1.EndpointSlice{}
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(slice(a)), now)).To(Succeed())
	now.Ports, now.Endpoints = slice(b).Ports, slice(b).Endpoints
	written := time.Now()
	g.Expect(c.Update(t.Context(), now)).To(Succeed())
	g.Eventually(func() (string, error) { return reached(port, "") }, 10*time.Second, "5ms").Should(Equal("b"))
	took := time.Since(written)
	t.Logf("from the write to the first connection: %v", took)
	g.Expect(took).To(BeNumerically("<", 500*time.Millisecond))
}

// The author of an EndpointSlice can lead the VLAN's clients only to the pod that it names: an address is dialled as soon as that pod's status
// has it.
func TestAnAddressIsDialledWhenItsPodHasIt(t *testing.T) {
	g := NewWithT(t)
	a, port := newTarget(t, "a"), freePort(t)
	l := prepareLab(t, kasService(port))
	elsewhere := pod(t, a)
	elsewhere.Status.PodIPs = []corev1.PodIP{{IP: "10.9.9.9"}}
	c := cluster(l, service(), slice(a), elsewhere)
	l.startSidecar(c)
	l.startEnvoy()
	l.awaitReady()
	key := intent.Service{Namespace: "clusters-c1", Name: "kube-apiserver", Port: 6443}
	g.Eventually(func() (known bool) { _, known, _ = l.proxy.watch.Targets(key); return known }).Should(BeTrue())
	targets, _, err := l.proxy.watch.Targets(key)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(targets).To(BeEmpty())
	g.Consistently(func() error { _, err := reached(port, ""); return err }, time.Second, "50ms").ShouldNot(Succeed())

	g.Expect(c.Status().Update(t.Context(), pod(t, a))).To(Succeed())
	g.Eventually(func() (string, error) { return reached(port, "") }).Should(Equal("a"))
}

// A pod that does not run costs its author nothing: it is not even read.
func TestOnlyPodsThatRunAreRead(t *testing.T) {
	g := NewWithT(t)
	a, port := newTarget(t, "a"), freePort(t)
	l := prepareLab(t, kasService(port))
	waits := pod(t, a)
	waits.Status.Phase = corev1.PodPending
	l.startSidecar(cluster(l, service(), slice(a), waits))
	key := intent.Service{Namespace: "clusters-c1", Name: "kube-apiserver", Port: 6443}
	g.Eventually(func() (known bool) { _, known, _ = l.proxy.watch.Targets(key); return known }).Should(BeTrue())
	targets, _, err := l.proxy.watch.Targets(key)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(targets).To(BeEmpty())
}

func TestStatusTellsWhatEnvoySees(t *testing.T) {
	g := NewWithT(t)
	a, b, port := newTarget(t, "a"), newTarget(t, "b"), freePort(t)
	l := prepareLab(t, kasService(port))
	c := cluster(l, service(), slice(a), pod(t, a, b))
	l.startSidecar(c)
	l.startEnvoy()
	l.awaitReady()
	seen := func() (v1alpha1.ProxyServerStatus, error) {
		s := &v1alpha1.ProxyServer{}
		err := c.Get(t.Context(), client.ObjectKeyFromObject(l.server), s)
		return s.Status, err
	}
	g.Eventually(seen, soon).Should(And(
		HaveField("Backends", ConsistOf(v1alpha1.BackendStatus{Name: "api", Healthy: 1, Total: 1})),
		HaveField("Instances", ConsistOf(v1alpha1.Instance{IP: vip, Ready: true})),
		HaveField("Conditions", ConsistOf(And(HaveField("Type", "ConfigAccepted"), HaveField("Status", metav1.ConditionTrue)))),
	))
	says := func(healthy, total int32, message string) {
		t.Helper()
		g.Eventually(seen, soon).Should(HaveField("Backends", ConsistOf(And(
			HaveField("Healthy", healthy), HaveField("Total", total), HaveField("Message", message)))))
	}
	g.Expect(a.listener.Close()).To(Succeed())
	answer := httptest.NewRecorder()
	g.Expect(l.proxy.unanswered()).To(BeZero())
	says(0, 1, "no ready pod of service clusters-c1/kube-apiserver takes a connection on port 6443; see: kubectl -n clusters-c1 get endpointslices -l kubernetes.io/service-name=kube-apiserver")
	l.proxy.metrics().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	g.Expect(answer.Body.String()).To(ContainSubstring("oooi_proxy_backends_unanswered 1"))
	now := slice(b)
	g.Expect(c.Delete(t.Context(), slice(a))).To(Succeed())
	says(0, 0, "service clusters-c1/kube-apiserver has no ready pod with the address and the port that its EndpointSlice says; see: kubectl -n clusters-c1 get endpointslices -l kubernetes.io/service-name=kube-apiserver")
	g.Expect(c.Create(t.Context(), now)).To(Succeed())
	says(1, 1, "")
	g.Expect(c.Delete(t.Context(), service())).To(Succeed())
	says(0, 0, "service clusters-c1/kube-apiserver does not exist")
}

// soon is the time in which an Infra's Ready must report a failure.
const soon = 10 * time.Second

func TestBackendsThatEnvoyHasNotTriedAreSaidAsBefore(t *testing.T) {
	before := v1alpha1.BackendStatus{Name: "api", Healthy: 2, Total: 3}
	for name, c := range map[string]struct {
		counts map[string]tally
		want   []v1alpha1.BackendStatus
	}{
		"Envoy does not answer":                  {nil, []v1alpha1.BackendStatus{before}},
		"Envoy has yet to try a pod that came":   {map[string]tally{"api": {untried: 1, total: 1}}, []v1alpha1.BackendStatus{before}},
		"one of several pods is yet to be tried": {map[string]tally{"api": {healthy: 1, untried: 1, total: 2}}, []v1alpha1.BackendStatus{{Name: "api", Healthy: 1, Total: 2}}},
		"another was never heard of":             {map[string]tally{"api": {healthy: 3, total: 3}, "new": {untried: 1, total: 1}}, []v1alpha1.BackendStatus{{Name: "api", Healthy: 3, Total: 3}}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Proxy{probes: newProbes(), said: newSaid(), seen: &v1alpha1.ProxyServer{Status: v1alpha1.ProxyServerStatus{Backends: []v1alpha1.BackendStatus{before}}}}
			p.told.Backends = []intent.Backend{{Name: "api", Service: &intent.Service{}}, {Name: "new", Service: &intent.Service{}}}
			NewWithT(t).Expect(p.backends(c.counts)).To(Equal(c.want))
		})
	}
}

func TestABackendWhosePodsAreNotReadYetIsNotAway(t *testing.T) {
	p := &Proxy{probes: newProbes(), said: newSaid(), seen: &v1alpha1.ProxyServer{}, watch: endpoints.NewWatch(nil)}
	p.told.Backends = []intent.Backend{{Name: "new", Service: &intent.Service{Namespace: "clusters", Name: "mirror", Port: 5000}}}
	NewWithT(t).Expect(p.backends(map[string]tally{"new": {}})).To(BeEmpty())
}

func TestATargetThatComesAndGoesIsWrittenNowAndThen(t *testing.T) {
	g := NewWithT(t)
	up, down := []v1alpha1.BackendStatus{{Name: "api", Healthy: 1, Total: 1}}, []v1alpha1.BackendStatus{{Name: "api", Total: 1}}
	s, written, last := newSaid(), 0, []v1alpha1.BackendStatus(nil)
	start := time.Now()
	for second := range 60 {
		now := s.next([][]v1alpha1.BackendStatus{up, down}[second%2], start.Add(time.Duration(second)*time.Second))
		if !reflect.DeepEqual(now, last) {
			last, written = now, written+1
		}
	}
	g.Expect(written).To(BeNumerically("<=", 15))
	g.Expect(s.next(up, start.Add(2*time.Minute))).To(Equal(up))
	g.Expect(s.next(down, start.Add(2*time.Minute))).To(Equal(down), "a change after another does not wait")
	g.Expect(s.next(slices.Concat(up, []v1alpha1.BackendStatus{{Name: "new"}}), start.Add(2*time.Minute))).To(HaveLen(2), "what was never told is told at once")
}

func TestARestartWithoutTheAPIServerServesAsBefore(t *testing.T) {
	g := NewWithT(t)
	a, port := newTarget(t, "a"), freePort(t)
	l := prepareLab(t, kasService(port))
	c := cluster(l, service(), slice(a), pod(t, a))
	l.startSidecar(c)
	l.startEnvoy()
	l.awaitReady()
	g.Eventually(l.file("acknowledged.json")).Should(BeAnExistingFile())
	l.stop()
	g.Expect(l.envoy.Process.Kill()).To(Succeed())

	l.startSidecar(interceptor.NewClient(c, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("the API server is away")
	}}))
	l.startEnvoy()
	l.awaitReady()
	g.Eventually(func() (string, error) { return reached(port, "") }).Should(Equal("a"))
}

func TestTargetsOfANamespaceThatCannotBeReadStay(t *testing.T) {
	g := NewWithT(t)
	a, port := newTarget(t, "a"), freePort(t)
	l := prepareLab(t, kasService(port))
	c := cluster(l, service(), slice(a), pod(t, a))
	l.startSidecar(c)
	l.startEnvoy()
	l.awaitReady()
	g.Eventually(l.file("acknowledged.json")).Should(BeAnExistingFile())
	l.stop()
	// As with the Role of a release that read no pods. (A fake client checks no permissions.)
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no Role allows it"))
	l.startSidecar(interceptor.NewClient(c, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
		if _, are := list.(*corev1.PodList); are {
			return denied
		}
		return c.List(ctx, list, o...)
	}}))
	l.awaitReady()
	g.Eventually(func() (v1alpha1.ProxyServerStatus, error) {
		s := &v1alpha1.ProxyServer{}
		err := c.Get(t.Context(), client.ObjectKeyFromObject(l.server), s)
		return s.Status, err
	}, soon).Should(HaveField("Backends", ConsistOf(v1alpha1.BackendStatus{Name: "api", Healthy: 1, Total: 1,
		Message: "the proxy may not read pods of namespace clusters-c1, and dials what it knew before; a Role there has to allow it get, list and watch"})))
	g.Expect(reached(port, "")).To(Equal("a"))
}

func TestAFirstSpecThatIsRefusedIsTold(t *testing.T) {
	l := prepareLab(t, kasService(0))
	c := cluster(l)
	l.startSidecar(c)
	NewWithT(t).Eventually(func() ([]metav1.Condition, error) {
		s := &v1alpha1.ProxyServer{}
		err := c.Get(t.Context(), client.ObjectKeyFromObject(l.server), s)
		return s.Status.Conditions, err
	}, 5*time.Second).Should(ConsistOf(And(HaveField("Status", metav1.ConditionFalse), HaveField("Message", ContainSubstring("port 0 is not a port")))))
}

// The intent refuses chains with the same match; if one slips through, Envoy's message is reported and nothing breaks.
func TestADuplicateChainIsRejectedByEnvoyAndTheOldStays(t *testing.T) {
	g := NewWithT(t)
	a, port := newTarget(t, "a"), freePort(t)
	l := newLab(t, route("a", port, a, "a.example.com"))
	s := mustOpen(t, port, "a.example.com")
	l.proxy.mu.Lock()
	config := translate.Intent(l.proxy.told, l.proxy.Connections)
	config.Listeners[0].FilterChains = append(config.Listeners[0].FilterChains, config.Listeners[0].FilterChains[0])
	g.Expect(l.proxy.ads.Set(t.Context(), config)).To(Succeed())
	l.proxy.mu.Unlock()
	g.Eventually(l.proxy.ads.Verdict).Should(And(
		HaveField("Accepted", false),
		HaveField("Rejection", ContainSubstring("has the same matching rules")),
	))
	g.Eventually(l.condition, 2*reportPause).Should(ContainSubstring("has the same matching rules"))
	g.Expect(s.alive()).To(Succeed())
	g.Expect(reached(port, "a.example.com")).To(Equal("a"))
	g.Expect(l.proxy.ads.Set(t.Context(), translate.Intent(l.proxy.told, l.proxy.Connections))).To(Succeed())
	g.Eventually(l.proxy.ads.Verdict).Should(Equal(ads.Verdict{Connected: true, Accepted: true}))
}

func TestEnvoysMetricsArePassedOn(t *testing.T) {
	a, port := newTarget(t, "a"), freePort(t)
	l := newLab(t, route("a", port, a, "a.example.com"))
	NewWithT(t).Expect(reached(port, "a.example.com")).To(Equal("a"))
	answer := httptest.NewRecorder()
	l.proxy.metrics().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	NewWithT(t).Expect(answer.Body.String()).To(ContainSubstring("oooi_proxy_configuration_accepted 1"))
	NewWithT(t).Expect(answer.Body.String()).To(ContainSubstring(`envoy_cluster_upstream_cx_total{envoy_cluster_name="a"}`))
	last := ""
	for line := range strings.Lines(answer.Body.String()) {
		if name, is := strings.CutPrefix(line, "# TYPE "); is {
			name, _, _ = strings.Cut(name, " ")
			NewWithT(t).Expect(last).To(HavePrefix("# HELP " + name + " "))
		}
		last = line
	}
}
