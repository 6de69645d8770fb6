package endpoints

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/proxy/intent"
	"github.com/cldmnky/oooi/internal/testkit/envtest"
)

// soon allows for a reflector's second try.
const soon = 30 * time.Second

var api = intent.Service{Namespace: "c1", Name: "api", Port: 443}

// behind returns a Service, its one running pod, and its slice.
func behind() (*corev1.Service, *discoveryv1.EndpointSlice, *corev1.Pod) {
	at := metav1.ObjectMeta{Namespace: "c1", Name: "api", Labels: map[string]string{discoveryv1.LabelServiceName: "api"}}
	service := &corev1.Service{ObjectMeta: at, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: 443, TargetPort: intstr.FromString("https")}}}}
	slice := v4(ready("10.0.0.1"))
	slice.ObjectMeta, slice.Endpoints[0].TargetRef.Name = at, "api"
	return service, slice, runs("api", "10.0.0.1", "serve")
}

// runs returns a running pod that declares port 8443.
func runs(name, address string, args ...string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/a", Args: args, Ports: []corev1.ContainerPort{{Name: "https", ContainerPort: 8443}}}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}}},
	}
}

// serving starts an API server with the Service and its pod. It returns an admin's client, and one that may read these kinds in the namespace.
func serving(t *testing.T) (admin, proxys client.WithWatch) {
	t.Helper()
	g := NewWithT(t)
	cluster := envtest.For(t, true)
	as := func(user string) client.WithWatch {
		config := rest.CopyConfig(cluster.Admin)
		if user != "" {
			config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
		}
		c, err := client.NewWithWatch(config, client.Options{Scheme: daemon.Scheme()})
		g.Expect(err).NotTo(HaveOccurred())
		return c
	}
	admin = as("")
	g.Expect(admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "c1"}})).To(Succeed())
	service, slice, pod := behind()
	for _, o := range []client.Object{service, slice} {
		g.Expect(admin.Create(t.Context(), o)).To(Succeed())
	}
	g.Expect(started(t.Context(), admin, pod)).To(Succeed())
	grants(t, admin, "services", "pods", "endpointslices")
	return admin, as("proxy")
}

// started creates a pod, with the status that a kubelet would write.
func started(ctx context.Context, admin client.Client, pod *corev1.Pod) error {
	status := pod.Status
	if err := admin.Create(ctx, pod); err != nil {
		return err
	}
	pod.Status = status
	return admin.Status().Update(ctx, pod)
}

// grants allows the proxy to read some kinds, and nothing else.
func grants(t *testing.T, admin client.Client, resources ...string) {
	t.Helper()
	at := metav1.ObjectMeta{Namespace: "c1", Name: "proxy"}
	role := &rbacv1.Role{ObjectMeta: at, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"", "discovery.k8s.io"}, Resources: resources, Verbs: []string{"get", "list", "watch"}}}}
	binding := &rbacv1.RoleBinding{ObjectMeta: at, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "proxy"}, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "proxy"}}}
	err := admin.Create(t.Context(), role)
	if apierrors.IsAlreadyExists(err) {
		err = admin.Update(t.Context(), role)
	}
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(client.IgnoreAlreadyExists(admin.Create(t.Context(), binding))).To(Succeed())
}

// finds waits until a watch has found the Service's targets.
func (w *Watch) finds(g Gomega, want ...string) {
	g.Eventually(func(g Gomega) {
		found, known, _ := w.Targets(api)
		g.Expect(known).To(BeTrue())
		g.Expect(texts(found)).To(Equal(want))
	}, soon).Should(Succeed())
}

// highest returns the largest heap during a call of done.
func highest(done func()) (most uint64) {
	runtime.GC()
	ended, sampled := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(sampled)
		for now := (runtime.MemStats{}); ; time.Sleep(time.Millisecond) {
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapAlloc)
			select {
			case <-ended:
				return
			default:
			}
		}
	}()
	done()
	close(ended)
	<-sampled
	return most
}

// A tenant runs pods of 1 MiB in a namespace of ours: the sidecar, which may have 128 MiB, reads a few at a time and keeps little.
func TestLargePodsThatRunFillNoProxy(t *testing.T) {
	g := NewWithT(t)
	admin, proxys := serving(t)
	const many = 80
	all := &errgroup.Group{}
	all.SetLimit(8)
	for n := range many {
		all.Go(func() error {
			return started(t.Context(), admin, runs(fmt.Sprintf("a-%03d", n), fmt.Sprintf("10.0.1.%d", n), strings.Repeat("x", 1<<20)))
		})
	}
	g.Expect(all.Wait()).To(Succeed())
	page := 0
	w := NewWatch(interceptor.NewClient(proxys, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
		err := c.List(ctx, list, o...)
		if _, are := list.(*corev1.PodList); are {
			page = max(page, meta.LenList(list))
		}
		return err
	}}))
	most := highest(func() {
		w.Need(t.Context(), []intent.Service{api})
		w.finds(g, "10.0.0.1:8443")
		g.Expect(started(t.Context(), admin, runs("late", "10.0.2.1", strings.Repeat("x", 1<<20)))).To(Succeed())
		g.Eventually(func() int { return len(w.pods["c1"].listed()) }, soon).Should(Equal(many + 2))
	})
	t.Logf("the heap had %d MiB at most", most>>20)
	g.Expect(page).To(And(BeNumerically(">", 0), BeNumerically("<=", atOnce)), "pods in one answer")
	g.Expect(most).To(BeNumerically("<", 100<<20))
	runtime.GC()
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	g.Expect(now.HeapAlloc).To(BeNumerically("<", 40<<20), "what is kept")
}

// The Role of an older release does not let the proxy read pods: the old targets stay, and the proxy reports it until it may read them.
func TestWhatAProxyMayNotReadIsSaid(t *testing.T) {
	g := NewWithT(t)
	admin, proxys := serving(t)
	grants(t, admin, "services", "endpointslices")
	w := NewWatch(proxys)
	w.Need(t.Context(), []intent.Service{api})
	told := func() error { _, _, err := w.Targets(api); return err }
	g.Eventually(told, soon).Should(MatchError("the proxy may not read pods of namespace c1, and dials what it knew before; a Role there has to allow it get, list and watch"))
	_, known, _ := w.Targets(api)
	g.Expect(known).To(BeFalse(), "or what is dialled would go")
	grants(t, admin, "services", "pods", "endpointslices")
	g.Eventually(told, 2*soon).Should(Succeed())
	w.finds(g, "10.0.0.1:8443")
}

func fakes(objects ...client.Object) client.WithWatch {
	return fake.NewClientBuilder().WithScheme(daemon.Scheme()).WithObjects(objects...).
		WithIndex(&corev1.Service{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).
		WithIndex(&corev1.Pod{}, "status.phase", func(o client.Object) []string { return []string{string(o.(*corev1.Pod).Status.Phase)} }).Build()
}

// Above a bound the sidecar goes on with what it has, says so, and reads the rest when there is room again.
func TestMorePodsThanAreKeptAreSaid(t *testing.T) {
	g := NewWithT(t)
	admin, proxys := serving(t)
	few := pods
	few.most = 20
	create := func(from, to int) {
		t.Helper()
		for n := from; n < to; n++ {
			g.Expect(started(t.Context(), admin, runs(fmt.Sprintf("b-%04d", n), "10.1.0.1"))).To(Succeed())
		}
	}
	create(0, 20) // besides the Service's own pod
	kept := follow(t.Context(), proxys, few, "c1", "namespace c1", func() {}, running)
	has := func(number int, beyond OmegaMatcher) {
		t.Helper()
		g.Eventually(func(g Gomega) {
			_, lacks := kept.state()
			g.Expect(lacks).To(beyond)
			g.Expect(kept.listed()).To(HaveLen(number))
		}, soon).Should(Succeed())
	}
	beyond := MatchError("namespace c1 has more than 20 pods, of which the proxy knows the oldest")
	has(20, beyond)
	for n := range 5 {
		g.Expect(admin.Delete(t.Context(), runs(fmt.Sprintf("b-%04d", n), ""), client.GracePeriodSeconds(0))).To(Succeed())
	}
	has(16, Succeed())
	create(20, 30)
	has(20, beyond)
}

// The author of EndpointSlices for a Service of ours cannot fill the memory, nor push out Kubernetes' own slice by any name or by deleting one.
// Other Services of the namespace are not even read.
func TestMoreSlicesThanAreKeptAreSaid(t *testing.T) {
	g := NewWithT(t)
	service, slice, pod := behind()
	objects := []client.Object{service, slice, pod}
	for n := range 3 * mostSlices {
		more := v4(ready("10.0.0.2"))
		more.ObjectMeta = metav1.ObjectMeta{CreationTimestamp: metav1.Now(), Namespace: "c1", Name: fmt.Sprintf("a-%02d", n), Labels: slice.Labels, Annotations: map[string]string{"a": strings.Repeat("x", 1<<10)}}
		another := service.DeepCopy()
		another.Name = more.Name
		objects = append(objects, more, another)
	}
	cluster, watched := fakes(objects...), make(chan struct{}, 1)
	w := NewWatch(interceptor.NewClient(cluster, interceptor.Funcs{Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) (watch.Interface, error) {
		i, err := c.Watch(ctx, list, o...)
		if _, is := list.(*discoveryv1.EndpointSliceList); is {
			select {
			case watched <- struct{}{}:
			default:
			}
		}
		return i, err
	}}))
	w.Need(t.Context(), []intent.Service{api})
	w.finds(g, "10.0.0.1:8443")
	_, _, err := w.Targets(api)
	g.Expect(err).To(MatchError("service c1/api has more than 4 endpointslices, of which the proxy knows the oldest"))
	of := w.services[api.Key()]
	g.Expect(of.slices.listed()).To(And(HaveLen(mostSlices), HaveEach(HaveField("Annotations", BeEmpty()))))
	g.Expect(of.object.listed()).To(HaveLen(1))
	_, keptOf := of.slices.get("a-00")
	g.Expect(keptOf).To(BeTrue())
	g.Eventually(watched, soon).Should(Receive(), "the stand-in tells a watch only of what comes after it")
	g.Expect(cluster.Delete(t.Context(), &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "a-00"}})).To(Succeed())
	g.Eventually(func() bool { _, there := of.slices.get("a-03"); return there }, soon).Should(BeTrue(), "all is read anew")
	w.finds(g, "10.0.0.1:8443")
}

// Little is kept of the largest objects.
func TestOfEachObjectAPartIsKept(t *testing.T) {
	g := NewWithT(t)
	var ports []corev1.ContainerPort
	var offered []corev1.ServicePort
	for n := range int32(2000) {
		ports = append(ports, corev1.ContainerPort{Name: "https", ContainerPort: 1 + n, HostIP: strings.Repeat("1", 1<<10)})
		offered = append(offered, corev1.ServicePort{Name: fmt.Sprint(n), Port: 1 + n})
	}
	pod := pods.part(&corev1.Pod{Spec: corev1.PodSpec{Volumes: make([]corev1.Volume, 9), Containers: []corev1.Container{{Ports: ports}, {Ports: ports}}}})
	g.Expect(pod.Spec).To(And(HaveField("Volumes", BeEmpty()), HaveField("Containers", ConsistOf(HaveField("Ports", And(HaveLen(mostPorts), HaveEach(HaveField("HostIP", BeEmpty()))))))))
	g.Expect(services.part(&corev1.Service{Spec: corev1.ServiceSpec{Ports: offered}}).Spec.Ports).To(HaveLen(mostPorts))
	slice, endless := v4(), ready("10.0.0.1")
	endless.TargetRef = endless.TargetRef.DeepCopy()
	endless.TargetRef.Name = strings.Repeat("p", 1<<10)
	slice.Endpoints = append(slice.Endpoints, endless)
	for range 1000 {
		e := ready("10.0.0.1")
		e.Addresses = append(e.Addresses, make([]string, 99)...)
		e.Hostname, e.NodeName, e.DeprecatedTopology = ptr.To("h"), ptr.To("n"), map[string]string{"a": "b"}
		slice.Endpoints = append(slice.Endpoints, e)
	}
	g.Expect(endpointSlices.part(slice).Endpoints).To(And(HaveLen(mostTargets+1), HaveEach(And(
		HaveField("Addresses", HaveLen(mostAddresses)), HaveField("TargetRef.Name", Not(HavePrefix("pp"))), HaveField("Hostname", BeNil()), HaveField("NodeName", BeNil()), HaveField("DeprecatedTopology", BeNil())))))
}
