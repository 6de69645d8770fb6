package checkcli_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/internal/check"
	"github.com/cldmnky/oooi/internal/checkcli"
	"github.com/cldmnky/oooi/internal/controller"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/step"
	"github.com/cldmnky/oooi/internal/testkit/envtest"
	"github.com/cldmnky/oooi/internal/testkit/golden"
)

const system, version = "oooi-system", "v0.1.0"

// world is an API server with the operator's manifests, as users apply them. Pods and their Deployment's status are what a node would make.
type world struct {
	Gomega
	t       *testing.T
	cluster *envtest.Cluster
	api     client.Client
	served  tls.Certificate // what the webhook's server shows
	port    int32
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Gomega: NewWithT(t), t: t}
	w.SetDefaultEventuallyTimeout(envtest.Patience)
	var err error
	w.cluster = envtest.For(t, true)
	scheme := controller.Scheme()
	w.Expect(apiextensionsv1.AddToScheme(scheme)).To(Succeed())
	w.api, err = client.New(w.cluster.Admin, client.Options{Scheme: scheme})
	w.Expect(err).NotTo(HaveOccurred())
	w.listen()
	return w
}

// listen starts the webhook's server.
func (w *world) listen() {
	w.t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &w.served, nil }})
	w.Expect(err).NotTo(HaveOccurred())
	w.t.Cleanup(func() { _ = l.Close() })
	w.port = int32(l.Addr().(*net.TCPAddr).Port)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _ = conn.(*tls.Conn).Handshake(); _ = conn.Close() }()
		}
	}()
}

// pair is a certificate of the webhook that is valid until then, as the operator makes it, and its PEM.
func (w *world) pair(until time.Time, name string) (tls.Certificate, []byte) {
	w.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	w.Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotBefore: until.Add(-90 * 24 * time.Hour), NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	w.Expect(err).NotTo(HaveOccurred())
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// serve has the webhook show a certificate that is valid until then, and API servers trust it.
func (w *world) serve(until time.Time) {
	w.t.Helper()
	shown, bundle := w.pair(until, names.Webhook+"."+system+".svc")
	w.served = shown
	w.trust(bundle)
}

func (w *world) trust(bundle []byte) {
	w.t.Helper()
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: names.Webhook}}
	w.change(configuration, func() {
		for i := range configuration.Webhooks {
			configuration.Webhooks[i].ClientConfig.CABundle = bundle
			configuration.Webhooks[i].ClientConfig.Service.Port = &w.port
		}
	})
}

// change reads an object, and writes it as it is then.
func (w *world) change(o client.Object, to func()) {
	w.t.Helper()
	w.Eventually(func() error {
		if err := w.api.Get(w.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		to()
		return w.api.Update(w.t.Context(), o)
	}).Should(Succeed())
}

// install applies the operator's manifests, and makes what a node and the operator would.
func (w *world) install() {
	w.t.Helper()
	w.ensure(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: system}})
	w.kubectl("apply", "--server-side", "--force-conflicts", "-k", "../../config/default")
	w.outside()
	w.scale(2)
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: check.LeaseName}}
	w.change(lease, func() {
		lease.Labels = map[string]string{check.LabelVersion: check.Version(version)}
		lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: ptr.To("oooi-controller-manager-1_a"), RenewTime: ptr.To(metav1.NowMicro()), LeaseDurationSeconds: ptr.To(int32(3600))}
	})
	w.serve(time.Now().Add(60 * 24 * time.Hour))
}

// outside gives the webhook's Service a name outside the cluster.
func (w *world) outside() {
	w.t.Helper()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: names.Webhook}}
	w.change(service, func() {
		service.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"}
	})
}

// kubectl runs as the administrator.
func (w *world) kubectl(args ...string) {
	w.t.Helper()
	kubeconfig := filepath.Join(w.t.TempDir(), "kubeconfig")
	text, err := yaml.Marshal(envtest.Kubeconfig(w.cluster.Admin.Host, w.cluster.Admin.CAData, w.cluster.Admin))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(os.WriteFile(kubeconfig, text, 0o600)).To(Succeed())
	out, err := exec.Command(filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), append(args, "--kubeconfig="+kubeconfig)...).CombinedOutput()
	w.Expect(err).NotTo(HaveOccurred(), string(out))
}

// scale sets the replicas of the operator, and their status as a cluster's controllers would.
func (w *world) scale(replicas int32) {
	w.t.Helper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "oooi-controller-manager"}}
	w.change(d, func() { d.Spec.Replicas = &replicas })
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas}
	w.Expect(w.api.Status().Update(w.t.Context(), d)).To(Succeed())
}

func (w *world) ensure(o client.Object) {
	w.t.Helper()
	w.Expect(client.IgnoreAlreadyExists(w.api.Create(w.t.Context(), o))).To(Succeed())
}

// without deletes CRDs until back installs them.
func (w *world) without(all ...*apiextensionsv1.CustomResourceDefinition) (back func()) {
	w.t.Helper()
	for _, crd := range all {
		w.Expect(w.api.Delete(w.t.Context(), crd.DeepCopy())).To(Succeed())
	}
	for _, crd := range all {
		w.Eventually(func() any {
			is := &apiextensionsv1.CustomResourceDefinition{}
			if err := w.api.Get(w.t.Context(), client.ObjectKeyFromObject(crd), is); err != nil {
				return err
			}
			for _, c := range is.Status.Conditions {
				if c.Reason == "InstanceDeletionFailed" { // its end is tried again later and later, and at once where it changes (apiextensions-apiserver, finalizer)
					touched := is.DeepCopy()
					touched.Annotations = map[string]string{"touched": time.Now().String()}
					_ = w.api.Patch(w.t.Context(), touched, client.MergeFrom(is)) // or it is gone
				}
			}
			return is.Status.Conditions // what holds its end up
		}).Should(MatchError(apierrors.IsNotFound, "not found"), crd.Name)
	}
	return func() { w.Expect(w.cluster.Install(copies(all)...)).To(Succeed()) }
}

func copies(all []*apiextensionsv1.CustomResourceDefinition) (copied []*apiextensionsv1.CustomResourceDefinition) {
	for _, crd := range all {
		copied = append(copied, crd.DeepCopy())
	}
	return copied
}

// as is a user with these ClusterRoles everywhere.
func (w *world) as(user string, roles ...string) *rest.Config {
	w.t.Helper()
	for _, role := range roles {
		w.ensure(&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: user + "-" + strings.ReplaceAll(role, ":", "-")}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
		})
	}
	config := rest.CopyConfig(w.cluster.Admin)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	return config
}

// asked is one run of the check.
type asked struct {
	as      *rest.Config
	version string
	before  bool
	only    string // namespace of the Infras
}

func (w *world) run(a asked) ([]step.Step, error) {
	r := checkcli.Reader{Namespace: system, Only: a.only, Version: version, Manager: func([]string) (check.Manager, error) {
		return check.Manager{VLAN: true, Bridges: true, Elects: true, Webhook: true, OwnCertificate: true, Lenders: []string{"default"}}, nil
	}}
	if a.version != "" {
		r.Version = a.version
	}
	if a.as == nil {
		a.as = w.cluster.Admin
	}
	if err := r.Connect(a.as); err != nil {
		return nil, err
	}
	if a.before {
		facts, err := r.Before(context.Background())
		return check.Before(facts), err
	}
	facts, err := r.Installed(context.Background())
	return check.Installed(facts), err
}

// varying is what differs from run to run.
var varying = regexp.MustCompile(`\d{4}-\d\d-\d\d|localhost:\d+|127\.0\.0\.1:\d+`)

// says compares what the check says with a golden file.
func (w *world) says(t *testing.T, name string, a asked) {
	t.Helper()
	g := NewWithT(t)
	steps, err := w.run(a)
	g.Expect(err).NotTo(HaveOccurred())
	var text bytes.Buffer
	g.Expect(step.Lines(&text, steps)).To(Succeed())
	golden.Compare(t, filepath.Join("testdata", name+".txt"), varying.ReplaceAllStringFunc(text.String(), func(s string) string {
		if strings.Contains(s, ":") {
			return "localhost:PORT"
		}
		return "DATE"
	}))
}
