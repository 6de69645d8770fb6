package standin

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// tokenStore finds a token's config, and records that a worker asked for it.
type tokenStore interface {
	Payload(ctx context.Context, token []byte) (config []byte, found bool, err error)
	Reached(ctx context.Context, token []byte) error
	// Refused records why the config that a request named was not given.
	Refused(asked http.Header, why string)
}

// ignitionPath is HyperShift's: any path directly under the root that begins with /ignition.
var ignitionPath = regexp.MustCompile(`^/ignition[^/ ]*$`)

// ignitionHandler answers as HyperShift's ignition server does (ignition-server/cmd/start.go): it checks the path before the token, and an
// unknown token gets a 511, on which Ignition backs off and retries. Its words are that server's.
func ignitionHandler(tokens tokenStore) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if !ignitionPath.MatchString(r.URL.Path) {
			http.NotFound(w, r)
			return
		}
		encoded, isBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		token, err := base64.StdEncoding.DecodeString(encoded)
		if !isBearer || err != nil {
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			tokens.Refused(r.Header, map[bool]string{false: "Bad header", true: "Token invalid"}[isBearer])
			return
		}
		config, found, err := tokens.Payload(r.Context(), token)
		switch {
		case err != nil:
			slog.Error("reading tokens", "error", err)
			http.Error(w, "Tokens cannot be read", http.StatusInternalServerError)
		case !found:
			http.Error(w, "Token not found", http.StatusNetworkAuthenticationRequired)
			tokens.Refused(r.Header, "Token not found in cache")
		default:
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			if _, err := w.Write(config); err != nil { //nolint:gosec // JSON that the cluster keeps, not what the request said
				slog.Warn("config not delivered", "error", err)
				return
			}
			slog.Info("config delivered", "from", r.RemoteAddr, "nodePool", r.Header.Get("NodePool"))
			if err := tokens.Reached(r.Context(), token); err != nil {
				slog.Error("marking the token as used", "error", err)
			}
		}
	})
	return mux
}

// secretTokens keeps tokens where HyperShift's NodePool controller does: in annotated Secrets of the control plane's namespace.
type secretTokens struct {
	client    client.Client
	namespace string
	events    record.EventRecorder
}

func (s secretTokens) find(ctx context.Context, token []byte) (*corev1.Secret, error) {
	var all corev1.SecretList
	if err := s.client.List(ctx, &all, client.InNamespace(s.namespace)); err != nil {
		return nil, err
	}
	for i, secret := range all.Items {
		if secret.Annotations[ignitionConfigAnno] == "true" && len(token) > 0 && bytes.Equal(secret.Data["token"], token) {
			return &all.Items[i], nil
		}
	}
	return nil, nil
}

func (s secretTokens) Payload(ctx context.Context, token []byte) ([]byte, bool, error) {
	secret, err := s.find(ctx, token)
	if err != nil || secret == nil {
		return nil, false, err
	}
	return secret.Data["payload"], true, nil
}

func (s secretTokens) Reached(ctx context.Context, token []byte) error {
	secret, err := s.find(ctx, token)
	if err != nil || secret == nil {
		return err
	}
	before := client.MergeFrom(secret.DeepCopy())
	secret.Annotations[ignitionReachedAnno] = "True"
	return s.client.Patch(ctx, secret, before)
}

// Refused makes an event of the Secret that the request's headers name, whether it is there or not.
func (s secretTokens) Refused(asked http.Header, why string) {
	pool := asked.Get("NodePool")
	name := "token-" + pool[strings.LastIndex(pool, "/")+1:] + "-" + asked.Get("TargetConfigVersionHash")
	s.events.Event(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}, corev1.EventTypeWarning, "GetPayloadFailed", why)
}

// ServeIgnition is the ignition server, which is behind a proxy.
func ServeIgnition(ctx context.Context, namespace, certDir string) error {
	c, cfg, err := Connect("")
	if err != nil {
		return err
	}
	set, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	events := record.NewBroadcaster(record.WithContext(ctx)) // as controller-runtime's: of many events of one Secret it writes few
	events.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: set.CoreV1().Events("")})
	recorder := events.NewRecorder(scheme, corev1.EventSource{Component: ignitionServer})
	return serveTLS(ctx, ignitionPort, certDir, ignitionHandler(secretTokens{c, namespace, recorder}))
}

// ServeIgnitionProxy terminates the workers' TLS and connects to the ignition server: HyperShift's HAProxy, HTTP/1.1 on both sides.
func ServeIgnitionProxy(ctx context.Context, certDir, backend, backendCA string) error {
	to, err := url.Parse(backend)
	if err != nil {
		return fmt.Errorf("--backend: %w", err)
	}
	ca, err := os.ReadFile(backendCA)
	if err != nil {
		return fmt.Errorf("--backend-ca: %w", err)
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(ca) {
		return fmt.Errorf("--backend-ca %s holds no certificate", backendCA)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, ForceAttemptHTTP2: false},
	}
	return serveTLS(ctx, ignitionProxyPort, certDir, proxy)
}

// serveTLS serves HTTP/1.1 over TLS, with a directory's tls.crt and tls.key, until ctx ends.
func serveTLS(ctx context.Context, port int, certDir string, handler http.Handler) error {
	server := &http.Server{
		Addr: fmt.Sprintf(":%d", port), Handler: handler, ReadHeaderTimeout: 5 * time.Second,
		TLSConfig:    &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}},
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	slog.Info("serving", "port", port)
	err := server.ListenAndServeTLS(filepath.Join(certDir, "tls.crt"), filepath.Join(certDir, "tls.key"))
	if ctx.Err() != nil {
		return nil
	}
	return err
}
