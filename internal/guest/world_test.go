package guest_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	accore "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/guest/appsingress"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/apps"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/testkit/envtest"
)

// cluster is both the management and the hosted cluster, which nothing notices. Pure code is tested without it.
var (
	cluster *envtest.Cluster
	started = sync.OnceValue(func() (err error) {
		cluster, err = envtest.Start(true)
		return err
	})
)

func TestMain(m *testing.M) {
	os.Setenv("HTTPS_PROXY", "http://proxy.invalid:1") // before Go reads it, once: no connection to a hosted cluster may use it
	code := m.Run()
	if cluster != nil {
		if err := cluster.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	os.Exit(code)
}

const ingress = "openshift-ingress"

// world is one Infra with its hosted cluster behind a wire that can be cut.
type world struct {
	Gomega
	t     *testing.T
	ctx   context.Context
	kube  kubernetes.Interface
	wire  *wire
	infra types.NamespacedName
	want  apps.Access

	clusters *appsingress.Clusters
	leave    func()
	told     atomic.Int32 // how often changed was called
}

var worlds int

func newWorld(t *testing.T, mode v1alpha1.AppsIngressMode) *world {
	t.Helper()
	worlds++
	if err := started(); err != nil {
		t.Fatal(err)
	}
	w := &world{Gomega: NewWithT(t), t: t, ctx: t.Context()}
	w.SetDefaultEventuallyTimeout(20 * time.Second)
	w.SetDefaultEventuallyPollingInterval(10 * time.Millisecond)
	var err error
	w.kube, err = kubernetes.NewForConfig(cluster.Admin)
	w.Expect(err).NotTo(HaveOccurred())
	w.wire = newWire(t, cluster.Admin.Host)
	ns := fmt.Sprintf("w%d", worlds)
	for _, name := range []string{ns, ingress} {
		_, err := w.kube.CoreV1().Namespaces().Create(w.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		w.Expect(err == nil || apierrors.IsAlreadyExists(err)).To(BeTrue(), "%v", err)
	}
	w.infra = types.NamespacedName{Namespace: ns, Name: "c1"}
	w.want = apps.Access{
		Secret: types.NamespacedName{Namespace: ns, Name: "c1-kubeconfig"}, Server: "https://" + w.wire.address(),
		Service: types.NamespacedName{Namespace: ingress, Name: ns + "-apps"}, Mode: mode,
	}
	w.start(w.kube)
	t.Cleanup(func() { w.leave() })
	return w
}

// start starts Clusters with the Secrets that a client can read.
func (w *world) start(secrets kubernetes.Interface) {
	w.clusters = appsingress.NewClusters(secrets.CoreV1(), func(types.NamespacedName) { w.told.Add(1) })
	w.clusters.Dial = new(net.Dialer).DialContext // the test's hosted clusters are on the loopback
	ctx, leave := context.WithCancel(context.Background())
	left := make(chan error, 1)
	clusters := w.clusters
	go func() { left <- clusters.Start(ctx) }()
	w.leave = sync.OnceFunc(func() {
		leave()
		w.Expect(<-left).To(Succeed())
	})
}

// asManager reads Secrets as the operator's own user, which has no grants yet.
func (w *world) asManager() {
	w.leave()
	kube, err := kubernetes.NewForConfig(cluster.Manager)
	w.Expect(err).NotTo(HaveOccurred())
	w.start(kube)
}

// grant grants the operator what the spec allows: get and watch.
func (w *world) grant() {
	ns := w.infra.Namespace
	_, err := w.kube.RbacV1().Roles(ns).Create(w.ctx, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "kubeconfigs"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "watch"}}},
	}, metav1.CreateOptions{})
	w.Expect(err).NotTo(HaveOccurred())
	_, err = w.kube.RbacV1().RoleBindings(ns).Create(w.ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "kubeconfigs"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "kubeconfigs"},
		Subjects: []rbacv1.Subject{{Kind: "User", Name: "oooi-manager"}},
	}, metav1.CreateOptions{})
	w.Expect(err).NotTo(HaveOccurred())
}

// kubeconfig is the hosted cluster's, as HyperShift writes it; its server is not the one that is dialled.
func (w *world) kubeconfig(change ...func(*clientcmdapi.Config)) []byte {
	c := envtest.Kubeconfig("https://api.c1.example.com:6443", cluster.Admin.CAData, cluster.Admin)
	c.Contexts[0].Context.Namespace = "default"
	for _, f := range change {
		f(&c)
	}
	text, err := yaml.Marshal(c)
	w.Expect(err).NotTo(HaveOccurred())
	return text
}

// hasKubeconfig creates or updates the Secret.
func (w *world) hasKubeconfig(text []byte) {
	w.t.Helper()
	secrets := w.kube.CoreV1().Secrets(w.want.Secret.Namespace)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: w.want.Secret.Name}, Data: map[string][]byte{"kubeconfig": text}}
	_, err := secrets.Update(w.ctx, secret, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = secrets.Create(w.ctx, secret, metav1.CreateOptions{})
	}
	w.Expect(err).NotTo(HaveOccurred())
}

// see is what planning would get now.
func (w *world) see() *input.Guest { return w.clusters.See(w.infra, w.want) }

func (w *world) eventually(what string, is func(*input.Guest) bool) *input.Guest {
	w.t.Helper()
	w.Eventually(func() bool { g := w.see(); return g != nil && is(g) }).Should(BeTrue(), func() string { return w.described(what) })
	return w.see()
}

func (w *world) described(what string) string {
	g := w.see()
	if g != nil && g.Problem != nil {
		return fmt.Sprintf("%s; the problem is %+v", what, *g.Problem)
	}
	return fmt.Sprintf("%s; seen is %+v", what, g)
}

func reached(g *input.Guest) bool { return g.Problem == nil }

func troubled(reason string) func(*input.Guest) bool {
	return func(g *input.Guest) bool { return g.Problem != nil && g.Problem.Reason == reason }
}

// service is our Service as planning writes it.
func (w *world) service(change ...func(*accore.ServiceApplyConfiguration)) *accore.ServiceApplyConfiguration {
	s := accore.Service(w.want.Service.Name, w.want.Service.Namespace).
		WithLabels(map[string]string{names.LabelOwnerUID: "uid-" + w.infra.Namespace, names.LabelInfra: w.infra.Name, names.LabelInfraNamespace: w.infra.Namespace}).
		WithSpec(accore.ServiceSpec().WithType(corev1.ServiceTypeLoadBalancer).WithLoadBalancerClass("metallb.io/metallb").
			WithSelector(map[string]string{"ingresscontroller.operator.openshift.io/deployment-ingresscontroller": "default"}).
			WithPorts(accore.ServicePort().WithName("https").WithPort(443).WithTargetPort(intstr.FromInt32(443)).WithProtocol(corev1.ProtocolTCP)))
	for _, f := range change {
		f(s)
	}
	return s
}

func (w *world) apply(s *accore.ServiceApplyConfiguration) {
	w.t.Helper()
	w.Expect(w.clusters.Apply(w.infra, s)).To(Succeed())
}

// live is our Service in the hosted cluster; nil if there is none.
func (w *world) live() *corev1.Service {
	s, err := w.kube.CoreV1().Services(w.want.Service.Namespace).Get(w.ctx, w.want.Service.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.Expect(err).NotTo(HaveOccurred())
	return s
}

// wire is a proxy to a server that can be cut like a cable: requests in progress then get no answer.
type wire struct {
	listener net.Listener
	to       string
	mu       sync.Mutex
	cut      bool // bytes are lost
	refusing bool // connections are closed at once
	open     map[net.Conn]bool
	accepted int
}

func newWire(t *testing.T, to string) *wire {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &wire{listener: listener, to: strings.Trim(strings.TrimPrefix(to, "https:"), "/"), open: map[net.Conn]bool{}}
	go r.serve()
	t.Cleanup(r.close)
	return r
}

func (r *wire) address() string { return r.listener.Addr().String() }

func (r *wire) serve() {
	for {
		here, err := r.listener.Accept()
		if err != nil {
			return
		}
		there, err := net.Dial("tcp", r.to)
		if err != nil {
			here.Close()
			continue
		}
		r.mu.Lock()
		refusing := r.refusing
		r.accepted++
		r.open[here], r.open[there] = true, true
		r.mu.Unlock()
		if refusing {
			r.drop()
			continue
		}
		go r.copy(here, there)
		go r.copy(there, here)
	}
}

// copy copies bytes; those of a wire that is cut are lost.
func (r *wire) copy(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		r.mu.Lock()
		cut := r.cut
		r.mu.Unlock()
		if cut {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// drop closes every connection.
func (r *wire) drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.open {
		c.Close()
	}
	clear(r.open)
}

func (r *wire) setCut(cut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = cut
}

func (r *wire) refuse(refusing bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refusing = refusing
}

func (r *wire) connections() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.accepted
}

func (r *wire) close() {
	r.listener.Close()
	r.drop()
}
