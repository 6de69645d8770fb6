// Command admission measures how long the webhook takes to judge a DPUHCPBridge among many, beside a real kube-apiserver: over HTTPS, as an
// API server asks, reading the image mapping each time.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/controller"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/observe"
	"github.com/cldmnky/oooi/internal/plan/bridge"
	"github.com/cldmnky/oooi/internal/testkit/envtest"
	"github.com/cldmnky/oooi/internal/webhook"
	"github.com/cldmnky/oooi/test/bench/internal/objects"
	"github.com/cldmnky/oooi/test/bench/internal/table"
)

const (
	address = "localhost:29443"
	wanted  = 20 * time.Millisecond
)

func main() {
	bridges := flag.Int("bridges", 200, "how many there are, each with a DPUCluster and Secrets")
	reviews := flag.Int("reviews", 2000, "how many of each kind to ask for")
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *bridges, *reviews); err != nil {
		fmt.Fprintln(os.Stderr, "admission:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, bridges, reviews int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cluster, err := envtest.Start(false)
	if err != nil {
		return err
	}
	defer cluster.Stop() //nolint:errcheck // it ends with us
	if err := populate(ctx, cluster.Admin, bridges); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "oooi-admission")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is the system's for temporary files
	ask, err := serve(ctx, cluster.Admin, dir)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "asking")
	t := table.New()
	t.Say("bridges that are there", bridges)
	for _, c := range casesAmong(bridges) {
		for _, atOnce := range []int{1, 4} {
			took, err := measure(ctx, ask, reviews, atOnce, c.allowed, c.review)
			if err != nil {
				return fmt.Errorf("%s: %w", c.what, err)
			}
			told(t, c.what, atOnce, took)
		}
	}
	return t.End()
}

// asked is one kind of review, and the expected answer.
type asked struct {
	what    string
	allowed bool
	review  func(n int) admissionv1.AdmissionRequest
}

func casesAmong(bridges int) []asked {
	return []asked{
		{"a new bridge", true, func(n int) admissionv1.AdmissionRequest { return creating(n%bridges, "spare", objects.Release) }},
		{"a new bridge, refused: no image", false, func(n int) admissionv1.AdmissionRequest {
			return creating(n%bridges, "spare", "quay.io/openshift-release-dev/ocp-release:4.99.0")
		}},
		{"a new bridge, refused: second claimant", false, func(n int) admissionv1.AdmissionRequest {
			return creating(n%bridges, dpusOf(n%bridges), objects.Release)
		}},
	}
}

func told(t *table.Table, what string, atOnce int, took []time.Duration) {
	p := func(percent int) time.Duration { return table.Percentile(took, percent).Round(10 * time.Microsecond) }
	what = fmt.Sprintf("%s, %d at once: p99 (p50 %s, worst %s)", what, atOnce, p(50), p(100))
	if atOnce == 1 {
		table.Below(t, what, p(99), wanted)
	} else {
		t.Say(what, p(99)) // the processors are shared with the API server and the clients
	}
}

func namespace(n int) string { return fmt.Sprintf("n%d", n%20) }

func dpusOf(n int) string { return fmt.Sprintf("dpus%d", n) }

func at(n int, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace(n), Name: name}
}

func dpuClusterOf(n int, name string) *dpf.DPUCluster {
	return &dpf.DPUCluster{ObjectMeta: at(n, name), Spec: dpf.DPUClusterSpec{Type: dpf.TypeStatic}}
}

func bridgeOf(n int, name, dpuCluster, release string) *dpuv1.DPUHCPBridge {
	return &dpuv1.DPUHCPBridge{
		TypeMeta: metav1.TypeMeta{APIVersion: dpuv1.GroupVersion.String(), Kind: "DPUHCPBridge"}, ObjectMeta: at(n, name),
		Spec: dpuv1.DPUHCPBridgeSpec{
			DPUClusterRef: dpuv1.DPUClusterReference{Name: v1alpha1.ObjectName(dpuCluster)}, BaseDomain: "example.com",
			SSHKey: "ssh-key", PullSecret: "pull-secret", OCPReleaseImage: dpuv1.ReleaseImage(release),
		},
	}
}

// populate creates the bridges and what they refer to. Nothing reconciles them.
func populate(ctx context.Context, config *rest.Config, bridges int) error {
	api, err := client.New(config, client.Options{Scheme: controller.Scheme()})
	if err != nil {
		return err
	}
	if err := objects.Create(ctx, api, objects.Images("images")); err != nil {
		return err
	}
	for n := range min(bridges, 20) {
		err := objects.Create(ctx, api, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace(n)}},
			objects.SSHKey(at(n, "ssh-key")), objects.PullSecret(at(n, "pull-secret")), dpuClusterOf(n, "spare"))
		if err != nil {
			return err
		}
	}
	for n := range bridges {
		if err := objects.Create(ctx, api, dpuClusterOf(n, dpusOf(n)), bridgeOf(n, fmt.Sprintf("b%d", n), dpusOf(n), objects.Release)); err != nil {
			return err
		}
	}
	return nil
}

// serve runs a manager with the webhook and no controller, and returns a function that asks it.
func serve(ctx context.Context, config *rest.Config, dir string) (func(admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error), error) {
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "tls.crt"), certificate, 0o600), os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600)); err != nil {
		return nil, err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: controller.Scheme(), Cache: controller.CacheOptions(), Client: controller.ClientOptions(),
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
	})
	if err != nil {
		return nil, err
	}
	kinds := observe.NewKinds(true, true)
	for _, kind := range kinds.All() {
		kinds.Set(kind, true)
	}
	observer := &observe.Observer{Reader: manager.GetClient(), Live: manager.GetAPIReader(), Kinds: kinds, Listeners: observe.NewListeners(), Now: time.Now}
	settings := bridge.Settings{MetalLBNamespace: "metallb-system", Images: types.NamespacedName{Namespace: "default", Name: "images"}}
	if err := webhook.Setup(manager, observer, webhook.Options{Address: address, CertDir: dir, Bridges: &settings, Now: time.Now}); err != nil {
		return nil, err
	}
	go manager.Start(ctx) //nolint:errcheck // what it does not serve is seen
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(certificate)
	http2 := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS13}}}
	ask := func(r admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
		return reviewed(http2, r)
	}
	return ask, served(ctx, ask)
}

// served waits for the first answer, which in turn waits for the caches.
func served(ctx context.Context, ask func(admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error)) error {
	for deadline := time.Now().Add(time.Minute); ; {
		answer, err := ask(creating(0, "spare", objects.Release))
		if err == nil && answer.Allowed && len(answer.Warnings) > 0 && answer.Warnings[0] != "" {
			return nil
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return fmt.Errorf("the webhook does not serve: %v %w", answer, err)
		}
		time.Sleep(200 * time.Millisecond) // until it listens
	}
}

func creating(n int, dpuCluster, release string) admissionv1.AdmissionRequest {
	text, err := json.Marshal(bridgeOf(n, "new", dpuCluster, release))
	if err != nil {
		panic(err) // it is an object of ours
	}
	return admissionv1.AdmissionRequest{
		UID: "review", Operation: admissionv1.Create, Namespace: namespace(n), Name: "new",
		Kind: metav1.GroupVersionKind(dpuv1.GroupVersion.WithKind("DPUHCPBridge")), Object: runtime.RawExtension{Raw: text},
	}
}

func reviewed(over *http.Client, request admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	review := admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: &request}
	text, err := json.Marshal(review)
	if err != nil {
		return nil, err
	}
	answer, err := over.Post("https://"+address+webhook.Path, "application/json", bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	review.Response = nil
	if err := json.Unmarshal(body, &review); err != nil || review.Response == nil {
		return nil, fmt.Errorf("no review in %q: %w", body, err)
	}
	return review.Response, nil
}

// measure asks times times, atOnce at once, and fails on an unexpected answer.
func measure(ctx context.Context, ask func(admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error), times, atOnce int, allowed bool, review func(n int) admissionv1.AdmissionRequest) ([]time.Duration, error) {
	took, errs := make([]time.Duration, times), make([]error, atOnce)
	var all sync.WaitGroup
	for worker := range atOnce {
		all.Go(func() {
			for n := worker; n < times && ctx.Err() == nil; n += atOnce {
				request, began := review(n), time.Now()
				answer, err := ask(request)
				took[n] = time.Since(began)
				if err == nil && answer.Allowed != allowed {
					err = fmt.Errorf("allowed: %t: %v", answer.Allowed, answer.Result)
				}
				if err != nil {
					errs[worker] = err
					return
				}
			}
		})
	}
	all.Wait()
	return took, errors.Join(append(errs, ctx.Err())...)
}
