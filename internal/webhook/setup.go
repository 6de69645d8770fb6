package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/observe"
	"github.com/cldmnky/oooi/internal/plan"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// Path is the prefix of every path at which reviews are judged.
const Path = "/validate"

// Options of the server.
type Options struct {
	// Address is the server's ip:port.
	Address string
	// CertDir has tls.crt and tls.key, which somebody else renews, as they do the caBundle. Empty: the webhook does both itself.
	CertDir string
	// Namespace is that of the Secret and the Service; only needed without CertDir.
	Namespace string
	// Bridges is what planning a DPUHCPBridge depends on; nil where none are served.
	Bridges *bridge.Settings
	// Now is the clock by which certificates age.
	Now func() time.Time
	// Certificate is made and renewed by the webhook; only needed without CertDir.
	Certificate *Certificate
}

// ServeBy serves the manager's metrics with the webhook's certificate: its Secret says whom to trust, so a scraper sends its token to
// nobody else (docs/adr/0010).
func (o Options) ServeBy(metrics *metricsserver.Options) {
	switch {
	case o.Address == "0":
	case o.CertDir != "":
		metrics.CertDir = o.CertDir
	default:
		metrics.TLSOpts = append(metrics.TLSOpts, func(c *tls.Config) { c.GetCertificate = o.Certificate.certificate })
	}
}

// Setup adds the server and its certificates to a manager, which is ready once both serve.
func Setup(manager ctrl.Manager, observer *observe.Observer, o Options) error {
	if _, err := net.ResolveTCPAddr("tcp", o.Address); err != nil {
		return fmt.Errorf("--webhook-bind-address %q: write ip:port, e.g. :9443: %w", o.Address, err)
	}
	log := manager.GetLogger().WithName("webhook")
	turns := &away{log: log, events: manager.GetEventRecorder("oooi"), about: configuration}
	judging := newGate(handlerOf(o.reviewer(manager, observer), log))
	judging.away = turns
	serving := &server{address: o.Address, files: o.CertDir, handler: judging, away: turns}
	ready := []healthz.Checker{serving.started}
	if o.CertDir == "" {
		own, err := addRotation(manager, o)
		if err != nil {
			return err
		}
		turns.about = own.configuration
		serving.certificate, serving.handler = own.certificate, behind(own.isOurs, serving.handler)
		ready = append(ready, own.ready)
	}
	return errors.Join(manager.AddReadyzCheck("webhook", allOf(ready)), manager.Add(serving))
}

// configuration is the object of an event when its UID is not known.
func configuration() *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration", Name: names.Webhook}
}

// behind hides a handler at paths that only API servers know. Of any other request it reads no body.
func behind(isOurs func(path string) bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isOurs(r.URL.Path) {
			w.Header().Set("Connection", "close")
			http.NotFound(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (o Options) reviewer(manager ctrl.Manager, observer *observe.Observer) reviewer {
	r := reviewer{observer: observer, plan: plan.Infra, scheme: manager.GetScheme(), decoder: admission.NewDecoder(manager.GetScheme()), log: manager.GetLogger().WithName("webhook")}
	if o.Bridges != nil { // without Watches: a bridge that is not stored is not followed
		r.bridges = &observe.Bridges{Observer: observer, Settings: *o.Bridges, Secretless: true}
	}
	return r
}

func allOf(checks []healthz.Checker) healthz.Checker {
	return func(r *http.Request) error {
		for _, check := range checks {
			if err := check(r); err != nil {
				return err
			}
		}
		return nil
	}
}

// handlerOf lets a panic end the connection: the API server treats that as a webhook that does not answer, and lets the write through. A
// recovered panic would be a refusal.
func handlerOf(r admission.Handler, log logr.Logger) http.Handler {
	judge := (&admission.Webhook{Handler: r}).WithRecoverPanic(false)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if problem := recover(); problem != nil {
				log.Error(fmt.Errorf("%v", problem), "a review that was not answered, a bug in oooi", "stack", string(debug.Stack()))
				panic(http.ErrAbortHandler)
			}
		}()
		judge.ServeHTTP(w, r)
	})
}

// addRotation watches the two objects by name and no others of their kinds, so it needs no wider permission.
func addRotation(manager ctrl.Manager, o Options) (*rotation, error) {
	if o.Namespace == "" {
		return nil, errors.New("the webhook's keys have no namespace: set --leader-election-namespace, or --webhook-cert-dir")
	}
	secret := types.NamespacedName{Namespace: o.Namespace, Name: names.WebhookKeys}
	only := func(name string) fields.Selector { return fields.OneTermEqualSelector("metadata.name", name) }
	two, err := cache.New(manager.GetConfig(), cache.Options{
		HTTPClient: manager.GetHTTPClient(), Scheme: manager.GetScheme(), Mapper: manager.GetRESTMapper(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}: {Field: only(secret.Name), Namespaces: map[string]cache.Config{secret.Namespace: {}}},
			&admissionregistrationv1.ValidatingWebhookConfiguration{}: {Field: only(names.Webhook)},
		},
	})
	if err != nil {
		return nil, err
	}
	r := &rotation{cached: two, writer: manager.GetClient(), secret: secret, name: names.Webhook + "." + secret.Namespace + ".svc", now: o.Now, Certificate: o.Certificate}
	toAll := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{{}} })
	err = ctrl.NewControllerManagedBy(manager).Named("webhook").WithOptions(controller.Options{NeedLeaderElection: ptr.To(false)}).
		WatchesRawSource(source.Kind[client.Object](two, &corev1.Secret{}, toAll)).
		WatchesRawSource(source.Kind[client.Object](two, &admissionregistrationv1.ValidatingWebhookConfiguration{}, toAll)).
		WatchesRawSource(source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			queue.Add(reconcile.Request{}) // at first neither object exists, so no event comes
			return nil
		})).Complete(r)
	if err != nil {
		return nil, err
	}
	return r, manager.Add(standby{two})
}

// standby starts a cache before its manager leads: a new replica is Ready before the old one ends. A cache of one kind declares this
// itself; one of several kinds does not (controller-runtime, delegatingByGVKCache).
type standby struct{ cache.Cache }

// NeedLeaderElection is manager.LeaderElectionRunnable.
func (standby) NeedLeaderElection() bool { return false }
