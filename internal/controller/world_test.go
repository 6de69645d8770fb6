package controller_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	acmeta "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/cldmnky/oooi/api/v1alpha1"
	ac "github.com/cldmnky/oooi/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/controller"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/observe"
	"github.com/cldmnky/oooi/internal/plan/bridge"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/registry"
	"github.com/cldmnky/oooi/internal/testkit/envtest"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	if err := flag.Set("test.parallel", strconv.Itoa(cap(grounds))); err != nil { // tests wait more than they work
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for range cap(grounds) {
		grounds <- &ground{}
	}
	code := m.Run()
	if left, err := used.never(); code == 0 && whole() && (err != nil || len(left) > 0) {
		fmt.Fprintf(os.Stderr, "granted to the operator, and used by no test: %q %v\n", left, err)
		code = 1
	}
	var stopping errgroup.Group
	for range cap(grounds) {
		stopping.Go((<-grounds).stop)
	}
	if err := stopping.Wait(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// world is a namespace of a cluster with the operator at work.
type world struct {
	Gomega
	t        *testing.T
	ctx      context.Context
	ground   *ground
	cluster  *envtest.Cluster // the ground's, or the test's own
	api      client.Client    // as an administrator
	ns       string
	settings input.Settings
	groups   controller.Groups
	calls    *ledger
	looks    *looks
	faults   *faults
	wire     *wire
	// registries connects to them; nil trusts those of tests.
	registries *http.Transport
	ahead      time.Duration // how far the manager's clock is ahead
	patience   time.Duration // with hosted clusters; 0 is the product's
	stop       func()        // ends the manager
}

var worlds atomic.Int32

// newWorld has a running operator and an empty namespace, in parallel with other tests.
func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	on := takes(t)
	return newWorldIn(t, on, on.Cluster)
}

// newBareWorld is one whose cluster has only our own kinds.
func newBareWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	on := takes(t)
	bare, err := envtest.Start(true)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { NewWithT(t).Expect(bare.Stop()).To(Succeed()) })
	return newWorldIn(t, on, bare)
}

func newWorldIn(t *testing.T, on *ground, in *envtest.Cluster) *world {
	t.Helper()
	w := &world{
		Gomega: NewWithT(t), t: t, ctx: t.Context(), ground: on, cluster: in, ns: fmt.Sprintf("w%d", worlds.Add(1)), calls: &ledger{}, looks: &looks{at: map[string]int{}}, faults: newFaults(), wire: &wire{},
		settings: input.Settings{Image: "example.com/oooi:1", EnvoyImage: "example.com/envoy:1", NADSourceNamespaces: []string{"default"}, MetricsNamespaces: []string{"monitoring"}},
	}
	w.groups = controller.Groups{VLAN: true, Bridges: &bridge.Settings{MetalLBNamespace: "metallb-system", VirtualIPs: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, Images: types.NamespacedName{Namespace: "oooi-system", Name: w.ns + "-images"}}}
	w.SetDefaultEventuallyTimeout(time.Minute)
	w.SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	w.api = w.clientOf(in.Admin)
	w.start()
	t.Cleanup(func() {
		w.forget()
		w.stop()
	})
	return w
}

// clientOf is a client of an API server, which under load may not answer at once.
func (w *world) clientOf(config *rest.Config) (c client.Client) {
	w.t.Helper()
	w.Eventually(func() (err error) {
		if c, err = client.New(config, client.Options{Scheme: controller.Scheme()}); err == nil {
			_, err = c.RESTMapper().RESTMapping(schema.GroupKind{Kind: "Pod"}) // the client discovers this once, at its first use
		}
		return err
	}).Should(Succeed())
	return c
}

// start runs a manager as the operator's own user.
func (w *world) start() {
	w.t.Helper()
	asManager := rest.CopyConfig(w.cluster.Manager)
	if !w.groups.VLAN {
		asManager = rest.CopyConfig(w.cluster.Bridges)
	}
	faulty := w.faults.before()
	asManager.Wrap(func(next http.RoundTripper) http.RoundTripper { return w.calls.of(faulty(next)) })
	manager, err := ctrl.NewManager(asManager, managerOptions())
	w.Expect(err).NotTo(HaveOccurred())
	ahead, patience := w.ahead, w.patience
	w.Expect(controller.Setup(manager, w.settings, w.groups, func(o *observe.Observer, in *controller.Hosted) error {
		in.Guests.Dial, o.Now = w.wire.dial, func() time.Time { return time.Now().Add(ahead) }
		o.Reader = counting{o.Reader, w.looks}
		in.Guests.Patience = cmp.Or(patience, in.Guests.Patience)
		if in.Approvals != nil {
			in.Approvals.Dial, in.Downloads.Dial = w.wire.dial, w.wire.dialIgnition
			for _, lookups := range []*registry.Lookups{in.Lookups, in.OVN} {
				lookups.Transport, lookups.Backoff = cmp.Or(w.registries, trusting()), func(int) time.Duration { return 100 * time.Millisecond }
			}
		}
		return nil
	})).To(Succeed())
	w.stop = w.runs(manager)
}

// runs a manager until it is stopped.
func (w *world) runs(manager ctrl.Manager) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		w.Expect(<-ended).To(Succeed())
	})
}

func managerOptions() ctrl.Options {
	return ctrl.Options{
		Scheme: controller.Scheme(), Cache: controller.CacheOptions(), Client: controller.ClientOptions(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	}
}

// standby is the observer of a manager that does not lead: another holds the lease.
func (w *world) standby() (sees *observe.Observer) {
	w.t.Helper()
	const name, namespace = "held-by-another", "default"
	w.creates(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To("another"), LeaseDurationSeconds: ptr.To[int32](3600), RenewTime: ptr.To(metav1.NowMicro()),
	}})
	options := managerOptions()
	options.LeaderElection, options.LeaderElectionID, options.LeaderElectionNamespace, options.LeaderElectionConfig = true, name, namespace, w.cluster.Admin
	manager, err := ctrl.NewManager(w.cluster.Manager, options)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(controller.Setup(manager, w.settings, w.groups, func(o *observe.Observer, _ *controller.Hosted) error { sees = o; return nil })).To(Succeed())
	w.t.Cleanup(w.runs(manager))
	return sees
}

// forget removes what needs an operator: the next test's newer manager on this ground would update it.
func (w *world) forget() {
	if w.cluster != w.ground.Cluster {
		return
	}
	hosted := &hyperv1.HostedClusterList{}
	w.Expect(w.api.List(context.Background(), hosted, client.InNamespace(w.ns))).To(Succeed())
	for i := range hosted.Items {
		asked := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":null}}`))
		w.Expect(client.IgnoreNotFound(w.api.Patch(context.Background(), &hosted.Items[i], asked))).To(Succeed())
	}
	w.removesAllOf(w.ns)
}

// removesAllOf removes our kinds' objects from a namespace.
func (w *world) removesAllOf(namespace string) {
	for _, left := range []client.ObjectList{&v1alpha1.InfraList{}, &v1alpha1.DHCPServerList{}, &v1alpha1.DNSServerList{}, &v1alpha1.ProxyServerList{}} {
		w.Eventually(func(g Gomega) {
			g.Expect(w.api.List(context.Background(), left, client.InNamespace(namespace))).To(Succeed())
			for _, o := range items(left) {
				g.Expect(client.IgnoreNotFound(w.api.Delete(context.Background(), o))).To(Succeed())
			}
			g.Expect(items(left)).To(BeEmpty(), "%T", left)
		}).WithTimeout(5 * time.Minute).Should(Succeed()) // Delete only requests the end, and under load 20 Infras need longer than a minute
	}
}

// ledger counts the manager's calls to the API server.
type ledger struct {
	mu     sync.Mutex
	reads  []string
	writes []string
	loses  string // the call that never arrives
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (l *ledger) of(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		l.mu.Lock()
		call := r.Method + " " + r.URL.Path
		if r.Method == http.MethodGet {
			l.reads = append(l.reads, call)
		} else {
			l.writes = append(l.writes, call)
		}
		lost := call == l.loses
		l.mu.Unlock()
		if lost {
			return nil, errors.New("lost")
		}
		return next.RoundTrip(r)
	})
}

// lose makes one call never arrive, until another is set.
func (l *ledger) lose(call string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.loses = call
}

func (l *ledger) touching(namespace string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []string
	for _, call := range append(append([]string(nil), l.reads...), l.writes...) {
		if strings.Contains(call, "/namespaces/"+namespace+"/") {
			all = append(all, call)
		}
	}
	return all
}

func (l *ledger) read() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.reads)
}

// written are the writes so far, except Events.
func (l *ledger) written() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []string
	for _, call := range l.writes {
		if !strings.Contains(call, "/events") {
			all = append(all, call)
		}
	}
	return all
}

// published is the address of each cluster's API.
var published = map[string]string{"c1": "203.0.113.10", "c2": "203.0.113.20", squatted: "203.0.113.30"}

// hosts makes a hosted cluster with its control plane's objects in namespace ns-cluster, as HyperShift does.
func (w *world) hosts(name string) {
	w.t.Helper()
	w.puts(w.hosted(name))
}

func (w *world) hosted(name string) string {
	w.t.Helper()
	text, err := os.ReadFile("testdata/hosted.yaml")
	w.Expect(err).NotTo(HaveOccurred())
	return strings.NewReplacer("CLUSTER", name, "NAMESPACE", w.ns, "LITERAL", published[name]).Replace(string(text))
}

// puts makes the objects of a manifest that do not exist yet, and writes its status of a HostedCluster.
func (w *world) puts(text string) {
	w.t.Helper()
	objects, err := envtest.Objects([]byte(text), w.api.Scheme())
	w.Expect(err).NotTo(HaveOccurred())
	for _, o := range objects {
		var state *hyperv1.HostedClusterStatus
		if hc, ok := o.(*hyperv1.HostedCluster); ok {
			state = hc.Status.DeepCopy()
		}
		if err := w.api.Create(w.ctx, o); !apierrors.IsAlreadyExists(err) {
			w.Expect(err).NotTo(HaveOccurred(), "%T %s", o, o.GetName())
		}
		if hc, ok := o.(*hyperv1.HostedCluster); ok {
			hc.Status = *state
			w.Expect(w.api.Status().Update(w.ctx, hc)).To(Succeed())
		}
	}
}

func (w *world) controlPlane(cluster string) string { return w.ns + "-" + cluster }

// smallest is the smallest Infra of a cluster.
func (w *world) smallest(name string) *v1alpha1.Infra {
	return &v1alpha1.Infra{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.ns},
		Spec: v1alpha1.InfraSpec{
			HostedClusterRef: &v1alpha1.HostedClusterReference{Name: v1alpha1.ObjectName(name)},
			NetworkConfig:    v1alpha1.NetworkConfig{CIDR: "192.168.100.0/24", NetworkAttachmentDefinition: v1alpha1.ObjectName(name + "-vlan")},
		},
	}
}

// withOneOfEach is the smallest Infra with one instance of DHCP and of DNS: of two, one that is away is not missed.
func (w *world) withOneOfEach(name string) *v1alpha1.Infra {
	infra := w.smallest(name)
	infra.Spec.InfraComponents.DHCP.Replicas, infra.Spec.InfraComponents.DNS.Replicas = 1, 1
	return infra
}

func (w *world) creates(objects ...client.Object) {
	w.t.Helper()
	for _, o := range objects {
		w.Expect(w.api.Create(w.ctx, o)).To(Succeed())
	}
}

// appliesRole applies the Role of a component in config/components.
func (w *world) appliesRole(component, namespace string) {
	w.t.Helper()
	text, err := os.ReadFile("../../config/components/" + component + "/namespace_role.yaml")
	w.Expect(err).NotTo(HaveOccurred())
	objects, err := envtest.Objects(text, w.api.Scheme())
	w.Expect(err).NotTo(HaveOccurred())
	for _, o := range objects {
		o.SetNamespace(namespace)
		if binding, is := o.(*rbacv1.RoleBinding); is { // the operator of tests has no ServiceAccount
			binding.Subjects = envtest.Managers
		}
		w.Expect(client.IgnoreAlreadyExists(w.api.Create(w.ctx, o))).To(Succeed())
	}
}

func (w *world) changes(o client.Object, edit func()) {
	w.t.Helper()
	w.Eventually(func(g Gomega) {
		g.Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
		edit()
		g.Expect(w.api.Update(w.ctx, o)).To(Succeed())
	}).Should(Succeed())
}

func named[T client.Object](o T, namespace, name string) T {
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// sees reads an object until it satisfies a check.
func sees[T client.Object](w *world, o T, satisfies func(Gomega, T)) T {
	w.t.Helper()
	w.Eventually(func(g Gomega) {
		g.Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
		satisfies(g, o)
	}).Should(Succeed())
	return o
}

func there[T client.Object](Gomega, T) {}

func (w *world) gone(o client.Object) {
	w.t.Helper()
	w.Eventually(func() bool { return apierrors.IsNotFound(w.api.Get(w.ctx, client.ObjectKeyFromObject(o), o)) }).
		Should(BeTrue(), "%T %s is still there", o, o.GetName())
}

// says waits until an Infra's condition has a status and reason.
func (w *world) says(name, condition string, status metav1.ConditionStatus, reason string) string {
	w.t.Helper()
	infra := sees(w, named(&v1alpha1.Infra{}, w.ns, name), func(g Gomega, i *v1alpha1.Infra) {
		c := meta.FindStatusCondition(i.Status.Conditions, condition)
		g.Expect(c).NotTo(BeNil(), "condition %s", condition)
		g.Expect(*c).To(And(HaveField("Status", status), HaveField("Reason", reason)), "all: %v", i.Status.Conditions)
	})
	return meta.FindStatusCondition(infra.Status.Conditions, condition).Message
}

// settled waits until all of a cluster's Infra is applied, then plays kubelet and daemons: the pods run and serve.
func (w *world) settled(name string) {
	w.t.Helper()
	var sets []*appsv1.StatefulSet
	expects := func(component, server string, instances int) {
		for number := range instances {
			sets = append(sets, sees(w, named(&appsv1.StatefulSet{}, w.ns, names.InstanceWorkload(component, server, number)), there))
		}
	}
	dhcp := sees(w, named(&v1alpha1.DHCPServer{}, w.ns, names.DHCPServer(name)), there)
	expects(names.DHCP, dhcp.Name, len(dhcp.Spec.NetworkConfig.ServerIPs()))
	dns := sees(w, named(&v1alpha1.DNSServer{}, w.ns, names.DNSServer(name)), there)
	expects(names.DNS, dns.Name, len(dns.Spec.NetworkConfig.ServerIPs()))
	proxy := sees(w, named(&v1alpha1.ProxyServer{}, w.ns, names.ProxyServer(name)), there)
	for _, s := range sets {
		w.reports(s, func() {
			s.Status = appsv1.StatefulSetStatus{ObservedGeneration: s.Generation, Replicas: 1, ReadyReplicas: 1, UpdatedReplicas: 1, CurrentRevision: "a", UpdateRevision: "a"}
		})
	}
	for number := range proxy.Spec.NetworkConfig.ServerIPs() {
		d := sees(w, named(&appsv1.Deployment{}, w.ns, names.InstanceWorkload(names.Proxy, proxy.Name, number)), there)
		w.reports(d, func() {
			d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 1, ReadyReplicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
		})
	}
	w.Eventually(func(g Gomega) {
		w.daemonsAccept(g, name)
		i := &v1alpha1.Infra{}
		g.Expect(w.api.Get(w.ctx, client.ObjectKey{Namespace: w.ns, Name: name}, i)).To(Succeed())
		g.Expect(meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionReady)).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("ObservedGeneration", i.Generation)), "%v", i.Status.Conditions)
	}).WithPolling(300 * time.Millisecond).Should(Succeed())
}

// reports writes the status of an object's current version: the manager may have written the object since it was read.
func (w *world) reports(o client.Object, status func()) {
	w.t.Helper()
	w.Eventually(func(g Gomega) {
		g.Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
		status()
		g.Expect(w.api.Status().Update(w.ctx, o)).To(Succeed())
	}).Should(Succeed())
}

// daemonsAccept writes that each daemon has accepted its newest spec.
func (w *world) daemonsAccept(g Gomega, name string) {
	accepted := func(o client.Object) *acmeta.ConditionApplyConfiguration {
		g.Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
		return acmeta.Condition().WithType(v1alpha1.ConditionConfigAccepted).WithStatus(metav1.ConditionTrue).WithReason("Served").WithMessage("").
			WithLastTransitionTime(metav1.Unix(1, 0)).WithObservedGeneration(o.GetGeneration())
	}
	dhcp, dns, proxy := named(&v1alpha1.DHCPServer{}, w.ns, names.DHCPServer(name)), named(&v1alpha1.DNSServer{}, w.ns, names.DNSServer(name)), named(&v1alpha1.ProxyServer{}, w.ns, names.ProxyServer(name))
	of := func(server client.Object, number int) *acmeta.ConditionApplyConfiguration {
		return accepted(server).WithType(v1alpha1.InstanceCondition(v1alpha1.ConditionConfigAccepted, number))
	}
	g.Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(dhcp), dhcp)).To(Succeed())
	for number := range dhcp.Spec.NetworkConfig.ServerIPs() {
		status := ac.DHCPServerStatus().WithConditions(of(dhcp, number)).WithPoolSize(200)
		g.Expect(w.api.Status().Apply(w.ctx, ac.DHCPServer(dhcp.Name, w.ns).WithStatus(status), client.FieldOwner(names.InstanceFieldOwner(names.DHCPFieldOwner, number)))).To(Succeed())
	}
	g.Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(dns), dns)).To(Succeed())
	for number := range dns.Spec.NetworkConfig.ServerIPs() {
		said := of(dns, number)
		g.Expect(w.api.Status().Apply(w.ctx, ac.DNSServer(dns.Name, w.ns).WithStatus(ac.DNSServerStatus().WithConditions(said)), client.FieldOwner(names.InstanceFieldOwner(names.DNSFieldOwner, number)))).To(Succeed())
	}
	g.Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(proxy), proxy)).To(Succeed())
	for number := range proxy.Spec.NetworkConfig.ServerIPs() {
		status := ac.ProxyServerStatus().WithConditions(of(proxy, number))
		if number == 0 {
			status.WithBackends(answering(proxy)...)
		}
		g.Expect(w.api.Status().Apply(w.ctx, ac.ProxyServer(proxy.Name, w.ns).WithStatus(status), client.FieldOwner(names.InstanceFieldOwner(names.ProxyFieldOwner, number)))).To(Succeed())
	}
}

// answering is what a proxy's sidecar reports while each backend has a pod that answers.
func answering(proxy *v1alpha1.ProxyServer) (all []*ac.BackendStatusApplyConfiguration) {
	for _, b := range proxy.Spec.Backends {
		all = append(all, ac.BackendStatus().WithName(b.Name).WithHealthy(1).WithTotal(1))
	}
	return all
}

// silent waits until the manager has written nothing for aWhile, and returns the number of its writes so far.
func (w *world) silent() int {
	w.t.Helper()
	return w.quiet(func() int { return len(w.calls.written()) }, "the manager keeps writing")
}

// aWhile is longer than any delay of the manager: Ready stays for 3 s while a daemon has not accepted a change (status/write.go).
const aWhile = 4 * time.Second

// quiet waits until a count has not changed for aWhile, and returns it.
func (w *world) quiet(count func() int, message string) int {
	w.t.Helper()
	last, since := -1, time.Now()
	w.Eventually(func() time.Duration {
		if n := count(); n != last {
			last, since = n, time.Now()
		}
		return time.Since(since)
	}).WithTimeout(2*time.Minute).Should(BeNumerically(">", aWhile), func() string { return fmt.Sprintf("%s; written: %v", message, w.calls.written()) })
	return last
}

// looks counts the cache reads of each type of object: each reconcile begins with one.
type looks struct {
	mu sync.Mutex
	at map[string]int
}

type counting struct {
	client.Reader
	*looks
}

func (c counting) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	c.mu.Lock()
	c.at[fmt.Sprintf("%T", o)]++
	c.mu.Unlock()
	return c.Reader.Get(ctx, key, o, opts...)
}

// passes counts the reconciles of a type by all of this world's managers so far.
func (w *world) passes(of client.Object) int {
	w.t.Helper()
	w.looks.mu.Lock()
	defer w.looks.mu.Unlock()
	n := w.looks.at[fmt.Sprintf("%T", of)]
	w.Expect(n).NotTo(BeZero(), "nobody counts")
	return n
}

func items(list client.ObjectList) []client.Object {
	all, err := meta.ExtractList(list)
	if err != nil {
		panic(err) // every list has items
	}
	var objects []client.Object
	for _, o := range all {
		objects = append(objects, o.(client.Object))
	}
	return objects
}
