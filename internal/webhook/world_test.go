package webhook_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/controller"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/observe"
	"github.com/cldmnky/oooi/internal/plan/bridge"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/testkit/envtest"
	"github.com/cldmnky/oooi/internal/testkit/ports"
	"github.com/cldmnky/oooi/internal/webhook"
)

const system, host = "oooi-system", names.Webhook + ".oooi-system.svc"

// started is the one cluster that all tests share.
var started = sync.OnceValues(func() (*envtest.Cluster, error) { return envtest.Start(false) })

var cluster *envtest.Cluster

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	code := m.Run()
	if cluster != nil {
		if err := cluster.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	os.Exit(code)
}

// world is the cluster with config/webhook applied, and a namespace for one test.
type world struct {
	Gomega
	t       *testing.T
	ctx     context.Context
	api     client.Client // as an administrator
	told    *warnings     // that this administrator got
	ns      string
	port    int
	scraped int // the port of metrics; 0 serves none
	clock   atomic.Pointer[time.Time]
	blind   atomic.Bool  // the manager can read no object
	reads   atomic.Int32 // of Secrets in the test's namespace
}

// warnings collects warnings as kubectl would print them.
type warnings struct {
	mu  sync.Mutex
	all []string
}

func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, text)
}

func (w *warnings) taken() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.all
	w.all = nil
	return all
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Gomega: NewWithT(t), t: t, ctx: t.Context(), told: &warnings{}, port: int(ports.Free(t))}
	w.SetDefaultEventuallyTimeout(30 * time.Second)
	w.SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	w.now(time.Now())
	var err error
	cluster, err = started()
	w.Expect(err).NotTo(HaveOccurred())
	as := rest.CopyConfig(cluster.Admin)
	as.WarningHandler = w.told
	w.api, err = client.New(as, client.Options{Scheme: controller.Scheme()})
	w.Expect(err).NotTo(HaveOccurred())
	for _, o := range append([]client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: system}}}, w.manifests()...) {
		if err := w.api.Create(w.ctx, o); !apierrors.IsAlreadyExists(err) {
			w.Expect(err).NotTo(HaveOccurred())
		}
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "w-"}}
	w.Expect(w.api.Create(w.ctx, ns)).To(Succeed())
	w.ns = ns.Name
	t.Cleanup(func() {
		for _, o := range []client.Object{w.secret(), w.configuration(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: names.Webhook}}} {
			w.Expect(client.IgnoreNotFound(w.api.Delete(context.Background(), o))).To(Succeed())
		}
	})
	return w
}

// manifests are the ones that users apply, changed for a manager that runs beside the API server: the Service leads to this machine, and
// the permissions go to the user that the manager runs as here.
func (w *world) manifests() (all []client.Object) {
	w.t.Helper()
	for _, file := range []string{"service.yaml", "validating.yaml", "keys.yaml", "../rbac/leader_election.yaml"} {
		text, err := os.ReadFile(filepath.Join("../../config/webhook", file))
		w.Expect(err).NotTo(HaveOccurred())
		objects, err := envtest.Objects(text, controller.Scheme())
		w.Expect(err).NotTo(HaveOccurred())
		all = append(all, objects...)
	}
	us := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "oooi-manager"}}
	for _, o := range all {
		switch o := o.(type) {
		case *corev1.Service:
			o.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"}
		case *admissionregistrationv1.ValidatingWebhookConfiguration:
			for i := range o.Webhooks {
				o.Webhooks[i].ClientConfig.Service.Port = ptr.To(int32(w.port))
			}
		case *rbacv1.RoleBinding:
			o.Subjects = us
		case *rbacv1.ClusterRoleBinding:
			o.Subjects = us
		}
	}
	return all
}

func (w *world) now(t time.Time) { w.clock.Store(&t) }

// operator runs a manager and returns what ends it; edits change its settings.
func (w *world) operator(edits ...func(*input.Settings, *webhook.Options)) (stop func()) {
	w.t.Helper()
	settings := input.Settings{Image: "example.com/oooi:1", EnvoyImage: "example.com/envoy:1", NADSourceNamespaces: []string{"default"}}
	options := webhook.Options{Address: fmt.Sprintf("localhost:%d", w.port), Namespace: system, Now: func() time.Time { return *w.clock.Load() }, Certificate: &webhook.Certificate{}}
	bridges := &bridge.Settings{MetalLBNamespace: "metallb-system", VirtualIPs: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, Images: client.ObjectKeyFromObject(w.mapping(nil))}
	options.Bridges = bridges
	for _, edit := range edits {
		edit(&settings, &options)
	}
	probes, as := int(ports.Free(w.t)), rest.CopyConfig(cluster.Manager)
	as.Wrap(w.eyes)
	metrics := metricsserver.Options{BindAddress: "0"}
	if w.scraped != 0 {
		metrics = metricsserver.Options{BindAddress: fmt.Sprintf("localhost:%d", w.scraped), SecureServing: true}
		options.ServeBy(&metrics)
	}
	manager, err := ctrl.NewManager(as, ctrl.Options{
		Scheme: controller.Scheme(), Cache: controller.CacheOptions(), Metrics: metrics,
		LeaderElection: true, LeaderElectionID: "oooi-manager", LeaderElectionNamespace: system, LeaderElectionReleaseOnCancel: true,
		HealthProbeBindAddress: net.JoinHostPort("127.0.0.1", strconv.Itoa(probes)), Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(controller.Setup(manager, settings, controller.Groups{VLAN: true, Bridges: bridges}, func(o *observe.Observer, _ *controller.Hosted) error { return webhook.Setup(manager, o, options) })).To(Succeed())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		w.Expect(<-ended).To(Succeed())
	})
	w.t.Cleanup(stop)
	w.Eventually(func(g Gomega) {
		answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/readyz/webhook", probes))
		g.Expect(err).NotTo(HaveOccurred())
		defer answer.Body.Close()
		g.Expect(answer.StatusCode).To(Equal(http.StatusOK))
	}).Should(Succeed())
	return stop
}

// eyes is a manager's transport. While the manager is blind its reads fail; its writes and open watches go on.
func (w *world) eyes(next http.RoundTripper) http.RoundTripper {
	return seeing(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodGet && w.blind.Load() {
			return nil, errors.New("blind")
		}
		if strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/"+w.ns+"/secrets") {
			w.reads.Add(1)
		}
		return next.RoundTrip(r)
	})
}

type seeing func(*http.Request) (*http.Response, error)

func (f seeing) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// asked waits until the API server calls the webhook.
func (w *world) asked() {
	w.t.Helper()
	w.Eventually(w.refusedAsItShould).Should(Succeed())
}

// refusedAsItShould writes an object that has to be refused: with failurePolicy Ignore it is let through when the webhook was not reached.
func (w *world) refusedAsItShould() error {
	infra := w.infra("asks")
	infra.Spec.InfraComponents.DNS.Image = "example.com/mine"
	if err := w.api.Create(w.ctx, infra, client.DryRunAll); !apierrors.IsForbidden(err) {
		return fmt.Errorf("want a refusal, got %w", err)
	}
	return nil
}

func (w *world) infra(name string) *v1alpha1.Infra {
	return &v1alpha1.Infra{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.ns},
		Spec: v1alpha1.InfraSpec{
			HostedClusterRef: &v1alpha1.HostedClusterReference{Name: v1alpha1.ObjectName(name)},
			NetworkConfig:    v1alpha1.NetworkConfig{CIDR: "192.168.100.0/24", NetworkAttachmentDefinition: "vlan"},
		},
	}
}

func (w *world) secret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: names.WebhookKeys}}
}

func (w *world) configuration() *admissionregistrationv1.ValidatingWebhookConfiguration {
	return &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: names.Webhook}}
}

// stored reads an object.
func stored[T client.Object](w *world, o T) T {
	w.t.Helper()
	w.Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
	return o
}

// hosts makes the objects of a hosted cluster, as HyperShift does.
func (w *world) hosts(namespace, name string) {
	w.t.Helper()
	text, err := os.ReadFile("../controller/testdata/hosted.yaml")
	w.Expect(err).NotTo(HaveOccurred())
	text = []byte(strings.NewReplacer("CLUSTER", name, "NAMESPACE", namespace, "LITERAL", "203.0.113.10").Replace(string(text)))
	objects, err := envtest.Objects(text, controller.Scheme())
	w.Expect(err).NotTo(HaveOccurred())
	for _, o := range objects {
		if err := w.api.Create(w.ctx, o); !apierrors.IsAlreadyExists(err) {
			w.Expect(err).NotTo(HaveOccurred())
		}
	}
}

// changes edits an object and retries on a conflict: the manager writes it too.
func (w *world) changes(o client.Object, edit func()) error {
	for {
		if err := w.api.Get(w.ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		edit()
		if err := w.api.Update(w.ctx, o); !apierrors.IsConflict(err) {
			return err
		}
	}
}

// field waits for a field of the Secret.
func (w *world) field(name string) string {
	w.t.Helper()
	secret := w.secret()
	w.Eventually(func(g Gomega) {
		g.Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(secret), secret)).To(Succeed())
		g.Expect(secret.Data[name]).NotTo(BeEmpty())
	}).Should(Succeed())
	return string(secret.Data[name])
}

// trusted is the caBundle of every webhook.
func (w *world) trusted() string {
	w.t.Helper()
	c := stored(w, w.configuration())
	for _, hook := range c.Webhooks {
		w.Expect(hook.ClientConfig.CABundle).To(Equal(c.Webhooks[0].ClientConfig.CABundle))
	}
	return string(c.Webhooks[0].ClientConfig.CABundle)
}

// happens makes an event, so that the rotation reconciles.
func (w *world) happens() {
	w.t.Helper()
	c := w.configuration()
	w.Expect(w.changes(c, func() { c.Annotations = map[string]string{"test": time.Now().String()} })).To(Succeed()) // the operator writes it too
}

// served is the certificate that a client trusting this bundle is shown.
func (w *world) served(trusting string) (string, error) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(trusting))
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: host}}
	conn, err := dialer.DialContext(w.ctx, "tcp", fmt.Sprintf("localhost:%d", w.port))
	if err != nil {
		return "", err
	}
	defer conn.Close()
	leaf := conn.(*tls.Conn).ConnectionState().PeerCertificates[0]
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Raw})), nil
}

// always repeats do until the returned function is called and it ran often enough; one failure fails the test. It opens fewer connections
// than an address may (server.go, beginsPerSecond).
func (w *world) always(do func() error) (ended func()) {
	w.t.Helper()
	stop, done := make(chan struct{}), make(chan struct{})
	var times atomic.Int32
	var failed bytes.Buffer
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if err := do(); err != nil {
				fmt.Fprintln(&failed, err)
			}
			times.Add(1)
			time.Sleep(25 * time.Millisecond)
		}
	}()
	return func() {
		w.t.Helper()
		w.Eventually(times.Load).Should(BeNumerically(">", 20))
		close(stop)
		<-done
		w.Expect(failed.String()).To(BeEmpty())
	}
}
