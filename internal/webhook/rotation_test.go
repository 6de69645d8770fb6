package webhook_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/controller"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/testkit/ports"
	"github.com/cldmnky/oooi/internal/webhook"
)

const day = 24 * time.Hour

// uninterrupted keeps sending requests through the API server, and keeps making connections that trust what the API server trusts.
func (w *world) uninterrupted() (ended func()) {
	w.t.Helper()
	requests := w.always(w.refusedAsItShould)
	handshakes := w.always(func() error {
		c := w.configuration()
		if err := w.api.Get(w.ctx, client.ObjectKeyFromObject(c), c); err != nil {
			return err
		}
		_, err := w.served(string(c.Webhooks[0].ClientConfig.CABundle))
		return err
	})
	return func() {
		w.t.Helper()
		requests()
		handshakes()
	}
}

func TestACertificateIsRenewedWithoutARefusalTooFew(t *testing.T) {
	w := newWorld(t)
	w.now(time.Now().Add(-60*day - time.Hour)) // so that every certificate is valid for the API server's own clock
	w.operator()
	w.asked()
	first := w.field("tls.crt")
	w.Expect(w.trusted()).To(Equal(first))
	w.Expect(w.served(first)).To(Equal(first))
	ended := w.uninterrupted()

	w.now(time.Now().Add(-time.Hour))
	w.happens()
	next := w.field("next.crt")
	w.Eventually(w.trusted).Should(Equal(first + next))
	w.Expect(w.served(first)).To(Equal(first), "an API server that lags does not trust the next one yet")

	w.now(time.Now())
	w.happens()
	w.Eventually(func() (string, error) { return w.served(next) }).Should(Equal(next))
	w.Expect(w.field("tls.crt")).To(Equal(next))
	w.Expect(w.trusted()).To(Equal(first + next))
	w.asked()
	ended()
}

func TestASecretThatIsDeletedAsksForNewKeys(t *testing.T) {
	w := newWorld(t)
	w.operator()
	w.asked()
	first := w.field("tls.crt")
	ended := w.uninterrupted()
	w.Expect(w.api.Delete(w.ctx, w.secret())).To(Succeed())
	next := w.field("next.crt")
	w.Expect(w.field("tls.crt")).To(Equal(first), "it is served until the next one is trusted")
	w.Eventually(w.trusted).Should(Equal(first + next))
	w.now(time.Now().Add(10 * time.Minute))
	w.happens()
	w.Eventually(func() (string, error) { return w.served(next) }).Should(Equal(next))
	ended()
}

func TestReplicasServeOneCertificate(t *testing.T) {
	w := newWorld(t)
	ports := []int{w.port, int(ports.Free(t))}
	w.operator()
	w.port = ports[1]
	w.operator()
	cert := w.field("tls.crt")
	for _, w.port = range ports {
		w.Eventually(func() (string, error) { return w.served(cert) }).Should(Equal(cert))
	}
	w.Expect(w.trusted()).To(Equal(cert))
}

// The operator's Role names the one Lease.
func TestTheLeaderMayHaveItsLease(t *testing.T) {
	w := newWorld(t)
	w.operator()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "oooi-manager"}}
	w.Eventually(func() string { return ptr.Deref(stored(w, lease).Spec.HolderIdentity, "") }).ShouldNot(BeEmpty())
}

func TestACABundleThatSomebodyChangedIsPutRight(t *testing.T) {
	w := newWorld(t)
	w.operator()
	w.asked()
	bundle := w.trusted()
	c := stored(w, w.configuration())
	c.Webhooks[1].ClientConfig.CABundle = nil
	w.Expect(w.api.Update(w.ctx, c)).To(Succeed())
	w.Eventually(func() string { return string(stored(w, w.configuration()).Webhooks[1].ClientConfig.CABundle) }).Should(Equal(bundle))

	// A configuration that is made again, as an upgrade may do, gets the caBundle as well.
	w.Expect(w.api.Delete(w.ctx, w.configuration())).To(Succeed())
	for _, o := range w.manifests() {
		if _, is := o.(*admissionregistrationv1.ValidatingWebhookConfiguration); is {
			w.Expect(w.api.Create(w.ctx, o)).To(Succeed())
		}
	}
	w.Eventually(w.trusted).Should(Equal(bundle))
}

// A webhook with another path would not reach us. A deleted Secret gets a new path; API servers that lag may use the former one for a
// while.
func TestAPathThatSomebodyChangedIsPutRight(t *testing.T) {
	w := newWorld(t)
	w.operator()
	w.asked()
	path := w.path()
	w.Expect(path).To(MatchRegexp("^/validate/[a-z2-7]{26}$"))
	c := stored(w, w.configuration())
	c.Webhooks[1].ClientConfig.Service.Path = ptr.To("/validate")
	w.Expect(w.api.Update(w.ctx, c)).To(Succeed())
	w.Eventually(func() *string { return stored(w, w.configuration()).Webhooks[1].ClientConfig.Service.Path }).Should(Equal(&path))

	w.Expect(w.api.Delete(w.ctx, w.secret())).To(Succeed())
	w.Eventually(w.path).ShouldNot(Equal(path))
	w.Expect(w.field("path")).To(Equal(w.path()))
	w.asked()
	s := w.stranger()
	heard := func(at string) int {
		s.path = at
		code, _, err := s.posts(nil)
		w.Expect(err).NotTo(HaveOccurred())
		return code
	}
	w.Expect(heard(path)).To(Equal(http.StatusBadRequest), "and judged to be no review")
	w.now(time.Now().Add(10 * time.Minute))
	w.Expect(heard(path)).To(Equal(http.StatusNotFound))
	w.Expect(heard(w.path())).To(Equal(http.StatusBadRequest))
}

// A webhook that somebody points at a URL keeps its path, and gets our caBundle.
func TestAConfigurationWithAURLIsTrustedToo(t *testing.T) {
	w := newWorld(t)
	w.operator()
	w.asked()
	bundle := w.trusted()
	c := stored(w, w.configuration())
	c.Webhooks[1].ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://example.com/validate")}
	w.Expect(w.api.Update(w.ctx, c)).To(Succeed())
	w.Eventually(func() string { return string(stored(w, w.configuration()).Webhooks[1].ClientConfig.CABundle) }).Should(Equal(bundle))
	w.asked()
}

func TestTheConfigurationsOfOthersAreLeftAlone(t *testing.T) {
	w := newWorld(t)
	theirs := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{{
		Name: "infras.hostedcluster.densityops.com", SideEffects: ptr.To(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
		ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: ptr.To("https://example.com/theirs")},
	}}}
	w.Expect(w.api.Create(w.ctx, theirs)).To(Succeed())
	t.Cleanup(func() { w.Expect(w.api.Delete(context.Background(), theirs)).To(Succeed()) })
	w.operator()
	w.asked()
	w.Expect(stored(w, theirs.DeepCopy())).To(Equal(theirs))

	// It could not anyway: its permissions name our configuration and its own Secret.
	manager, err := client.New(rest.CopyConfig(cluster.Manager), client.Options{Scheme: controller.Scheme()})
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(manager.Patch(w.ctx, theirs.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{}`)))).To(MatchError(apierrors.IsForbidden, "IsForbidden"))
	secret := w.secret()
	secret.Name = "another"
	w.Expect(manager.Get(w.ctx, client.ObjectKeyFromObject(secret), secret)).To(MatchError(apierrors.IsForbidden, "IsForbidden"))
}

// With cert-manager, files are served, replaced as the kubelet does it; we write neither Secret nor caBundle.
func TestFilesOfSomebodyElseAreServedAndFollowed(t *testing.T) {
	w := newWorld(t)
	w.now(time.Now().Add(-60*day - time.Hour))
	stop := w.operator()
	w.field("tls.crt")
	w.now(time.Now())
	w.happens()
	w.field("next.crt")
	made := stored(w, w.secret()).Data
	stop()
	w.Expect(w.api.Delete(w.ctx, w.secret())).To(Succeed())
	bundle := string(made["tls.crt"]) + string(made["next.crt"])
	c := w.configuration()
	w.Expect(w.changes(c, func() { // a write that the manager had begun may still land
		for i := range c.Webhooks {
			c.Webhooks[i].ClientConfig.CABundle = []byte(bundle)
		}
	})).To(Succeed())

	dir := t.TempDir()
	w.mounts(dir, "..1", made["tls.crt"], made["tls.key"])
	for _, file := range []string{"tls.crt", "tls.key"} {
		w.Expect(os.Symlink("..data/"+file, filepath.Join(dir, file))).To(Succeed())
	}
	w.scraped = int(ports.Free(t))
	w.operator(func(_ *input.Settings, o *webhook.Options) { o.CertDir, o.Namespace = dir, "" })
	w.asked()
	w.Expect(w.scrape(host, bundle)).To(Succeed())
	w.Expect(w.served(bundle)).To(Equal(string(made["tls.crt"])))
	ended := w.uninterrupted()
	w.mounts(dir, "..2", made["next.crt"], made["next.key"])
	w.Eventually(func() (string, error) { return w.served(bundle) }).Should(Equal(string(made["next.crt"])))
	ended()
	w.Expect(w.trusted()).To(Equal(bundle))
	w.Expect(apierrors.IsNotFound(w.api.Get(w.ctx, client.ObjectKeyFromObject(w.secret()), w.secret()))).To(BeTrue())
}

// mounts writes a Secret's files as the kubelet does: into a new directory, to which it then moves a symlink (atomic_writer.go).
func (w *world) mounts(dir, version string, cert, key []byte) {
	w.t.Helper()
	w.Expect(os.Mkdir(filepath.Join(dir, version), 0o700)).To(Succeed())
	w.Expect(os.WriteFile(filepath.Join(dir, version, "tls.crt"), cert, 0o600)).To(Succeed())
	w.Expect(os.WriteFile(filepath.Join(dir, version, "tls.key"), key, 0o600)).To(Succeed())
	w.Expect(os.Symlink(version, filepath.Join(dir, "..data_tmp"))).To(Succeed())
	w.Expect(os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data"))).To(Succeed())
}
