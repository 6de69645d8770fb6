package webhook

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	acadmission "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/names"
)

// rotation keeps the keys in a Secret, serves with them, and tells the API server whom to trust. Every replica does all of it, leader or
// not: a new one must serve before an old one ends. A replica that writes second gets a conflict, and reads the first one's keys.
type rotation struct {
	cached client.Reader // the Secret and the configuration, nothing else
	writer client.Client
	secret types.NamespacedName
	name   string // of the Service, as the API server verifies it
	now    func() time.Time

	*Certificate
}

// Certificate is what the webhook and the manager's metrics serve with.
type Certificate struct{ served atomic.Pointer[served] }

type served struct {
	pair
	*tls.Certificate
	path string
	// former is the previous path, at which API servers that lag may ask until then.
	former string
	until  time.Time
}

// Reconcile reads the keys, takes a step, stores them, serves with them, and publishes the caBundle.
func (r *rotation) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	secret, err := read(ctx, r.cached, r.secret, &corev1.Secret{})
	if err != nil {
		return ctrl.Result{}, err
	}
	config, err := read(ctx, r.cached, types.NamespacedName{Name: names.Webhook}, &admissionregistrationv1.ValidatingWebhookConfiguration{})
	if err != nil {
		return ctrl.Result{}, err
	}
	now := r.now()
	want, err := r.turned(secret, config, now)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.store(ctx, secret, want); err != nil {
		return ctrl.Result{}, fmt.Errorf("storing the webhook's keys in Secret %s: %w", r.secret, err)
	}
	r.serve(want)
	if err := r.publish(ctx, config, want); err != nil {
		return ctrl.Result{}, fmt.Errorf("writing caBundle and path of ValidatingWebhookConfiguration %s: %w", names.Webhook, err)
	}
	return ctrl.Result{RequeueAfter: want.pause(now)}, nil
}

// configuration is the object of an event, with its UID: kubectl describe finds events by UID.
func (r *rotation) configuration() *corev1.ObjectReference {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	about := configuration()
	config, err := read(ctx, r.cached, types.NamespacedName{Name: names.Webhook}, &admissionregistrationv1.ValidatingWebhookConfiguration{})
	if err == nil && config != nil {
		about.UID = config.UID
	}
	return about
}

// read returns nil where there is no such object.
func read[T client.Object](ctx context.Context, from client.Reader, key types.NamespacedName, into T) (T, error) {
	var none T
	err := from.Get(ctx, key, into)
	if apierrors.IsNotFound(err) {
		return none, nil
	}
	if err != nil {
		return none, fmt.Errorf("reading %T %s: %w", into, key, err)
	}
	return into, nil
}

// turned returns the Secret's keys, one step on. A deleted Secret gets new keys; until these are trusted, the current certificate stays in
// use.
func (r *rotation) turned(secret *corev1.Secret, config *admissionregistrationv1.ValidatingWebhookConfiguration, now time.Time) (k keys, err error) {
	stored := keysIn(secret)
	if s := r.served.Load(); secret == nil && s != nil && s.good(r.name, now) {
		k, err = keys{serving: s.pair}.renewed(r.name, now)
	} else {
		k, err = stored.turned(r.name, now, bundleOf(config))
	}
	if k.path = stored.path; k.path == "" {
		k.path = newPath()
	}
	return k, err
}

func (r *rotation) store(ctx context.Context, secret *corev1.Secret, k keys) error {
	if secret == nil {
		return r.writer.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: r.secret.Namespace, Name: r.secret.Name, Labels: map[string]string{names.LabelManagedBy: names.ManagedBy}},
			Type:       corev1.SecretTypeTLS, Data: k.data(),
		})
	}
	if keysIn(secret) == k && string(secret.Data[fieldTrusted]) == k.trusted() {
		return nil
	}
	secret = secret.DeepCopy()
	secret.Data = k.data()
	return r.writer.Update(ctx, secret)
}

func (r *rotation) serve(k keys) {
	s := r.served.Load()
	if s != nil && s.pair == k.serving && s.path == k.path {
		return
	}
	now := &served{pair: k.serving, Certificate: k.serving.parsed(), path: k.path}
	if s != nil {
		now.former, now.until = s.former, s.until
		if s.path != k.path {
			now.former, now.until = s.path, r.now().Add(settles)
		}
	}
	r.served.Store(now)
}

// isOurs says whether a path is one that the configuration has, or had until recently.
func (r *rotation) isOurs(asked string) bool {
	s := r.served.Load()
	return s != nil && (same(asked, s.path) || same(asked, s.former) && r.now().Before(s.until))
}

func same(asked, path string) bool {
	return subtle.ConstantTimeCompare([]byte(asked), []byte(path)) == 1
}

// certificate is called at each handshake, so a new one needs no restart.
func (c *Certificate) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if s := c.served.Load(); s != nil {
		return s.Certificate, nil
	}
	return nil, errors.New("no serving certificate yet")
}

func (r *rotation) ready(*http.Request) error {
	_, err := r.certificate(nil)
	return err
}

// bundleOf is the caBundle that all webhooks of a configuration have; empty when they differ.
func bundleOf(c *admissionregistrationv1.ValidatingWebhookConfiguration) string {
	if c == nil || len(c.Webhooks) == 0 {
		return ""
	}
	bundle := string(c.Webhooks[0].ClientConfig.CABundle)
	for _, w := range c.Webhooks {
		if string(w.ClientConfig.CABundle) != bundle {
			return ""
		}
	}
	return bundle
}

// asksAt says whether all webhooks of a configuration have this path. One with a URL that somebody wrote keeps its own.
func asksAt(c *admissionregistrationv1.ValidatingWebhookConfiguration, path string) bool {
	for _, w := range c.Webhooks {
		if service := w.ClientConfig.Service; service != nil && ptr.Deref(service.Path, "") != path {
			return false
		}
	}
	return true
}

func (r *rotation) publish(ctx context.Context, c *admissionregistrationv1.ValidatingWebhookConfiguration, k keys) error {
	if c == nil || bundleOf(c) == k.trusted() && asksAt(c, k.path) {
		return nil
	}
	want := acadmission.ValidatingWebhookConfiguration(c.Name) // if it was deleted meanwhile, this does not create it: no permission, and no rules
	for _, w := range c.Webhooks {
		config := acadmission.WebhookClientConfig().WithCABundle([]byte(k.trusted())...)
		if w.ClientConfig.Service != nil {
			config.WithService(acadmission.ServiceReference().WithPath(k.path))
		}
		want.WithWebhooks(acadmission.ValidatingWebhook().WithName(w.Name).WithClientConfig(config))
	}
	return r.writer.Apply(ctx, want, client.FieldOwner(names.ManagerFieldOwner), client.ForceOwnership)
}
