//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cldmnky/oooi/test/lab/scene"
)

const (
	appsHost = "hello.apps.c1.hosted.example.com"
	trusted  = "/tmp/trusted.crt" // the application's own certificate, in the worker and the management pod
)

// place is where a command runs.
type place func(ctx context.Context, command ...string) (string, error)

// inPod is a pod of the management cluster that queries the DNSServer's Service on the pod network, as a cluster's DNS that forwards to it
// does.
func inPod(ctx context.Context, command ...string) (string, error) {
	return lab.Kubectl(ctx, append([]string{"-n", "default", "exec", "apps-client", "--"}, command...)...)
}

// inPlainPod is a pod of the management cluster that queries the cluster's own DNS.
func inPlainPod(ctx context.Context, command ...string) (string, error) {
	return lab.Kubectl(ctx, append([]string{"-n", "default", "exec", "apps-plain", "--"}, command...)...)
}

// ask is what dig answers for a name's IPv4 addresses, sorted.
func ask(ctx context.Context, at place, name string) (string, error) {
	out, err := at(ctx, "dig", "+short", "+tries=1", "+time=2", name)
	return sorted(out), err
}

// answered waits until dig at a place answers a name with want.
func answered(t *testing.T, ctx context.Context, at place, name, want string) {
	t.Helper()
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	must(t, scene.Until(ctx, name, func(ctx context.Context) error {
		got, err := ask(ctx, at, name)
		if err == nil && got != want {
			err = fmt.Errorf("dig answers %q, want %q", got, want)
		}
		return err
	}))
}

// vips are the addresses of an Infra's proxies, as ask has them.
func vips(t *testing.T, ctx context.Context, infra string) string {
	t.Helper()
	return sorted(strings.Join(addressesOf(t, ctx, infra, "proxy"), " "))
}

// serves fetches the application over HTTP, and over HTTPS with its own certificate. Names are resolved as by any client.
func serves(ctx context.Context, at place) error {
	for _, url := range []string{"http://" + appsHost + "/", "https://" + appsHost + "/"} {
		out, err := at(ctx, "curl", "-sS", "-m", "5", "--cacert", trusted, url)
		if err == nil && !strings.HasPrefix(out, "host=hello-") {
			err = fmt.Errorf("%s answers %q", url, out)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func servedAtOnce(t *testing.T, ctx context.Context, at place) {
	t.Helper()
	must(t, serves(ctx, at))
}

// appServed waits for a minute, because on an emulated worker, MetalLB's speaker above all may miss its kubelet's probes and be restarted.
func appServed(t *testing.T, ctx context.Context, at place) {
	t.Helper()
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	must(t, scene.Until(ctx, "the application", func(ctx context.Context) error { return serves(ctx, at) }))
}

// field reads one field of an object in namespace clusters.
func field(t *testing.T, ctx context.Context, object, path string) string {
	t.Helper()
	return kubectl(t, ctx, "-n", "clusters", "get", object, "-o", "jsonpath={"+path+"}")
}

func proxyService(t *testing.T, ctx context.Context, infra string) string {
	t.Helper()
	ip := field(t, ctx, "proxyserver/"+infra+"-proxy", ".status.serviceIP")
	if net.ParseIP(ip) == nil {
		t.Fatalf("proxyserver/%s-proxy has Service IP %q in its status", infra, ip)
	}
	return ip
}

// inGuest runs kubectl on hosted cluster c1, and fails the test if it fails.
func inGuest(t *testing.T, ctx context.Context, args ...string) string {
	t.Helper()
	out, err := hosted(ctx, "c1", args...)
	must(t, err)
	return strings.TrimSpace(out)
}

// applyToGuest applies YAML to hosted cluster c1, with further arguments of kubectl apply.
func applyToGuest(ctx context.Context, yaml string, args ...string) error {
	kubeconfig, err := lab.Standin(ctx, "kubeconfig", "--cluster", "c1")
	if err != nil {
		return err
	}
	all := append([]string{"exec", "kubectl", "--kubeconfig", kubeconfig, "apply", "-f", "-"}, args...)
	_, err = lab.Pipe(ctx, yaml, filepath.Join(scene.Root(), "test/lab/lab"), all...)
	return err
}

// certificate makes a key pair for the application and returns its two files.
func certificate(t *testing.T, ctx context.Context) (cert, key string) {
	t.Helper()
	cert, key = filepath.Join(t.TempDir(), "tls.crt"), filepath.Join(t.TempDir(), "tls.key")
	_, err := lab.Run(ctx, "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
		"-subj", "/CN=hello", "-addext", "subjectAltName=DNS:"+appsHost, "-out", cert, "-keyout", key)
	must(t, err)
	return cert, key
}

// metallb is the manifest in MetalLB's module.
func metallb(t *testing.T, ctx context.Context) string {
	t.Helper()
	dir, err := lab.Run(ctx, "go", "-C", "test/lab/build/metallb", "list", "-m", "-f", "{{.Dir}}", "go.universe.tf/metallb")
	must(t, err)
	return filepath.Join(strings.TrimSpace(dir), "config/manifests/metallb-native.yaml")
}

func content(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return text
}

// managementPods starts the pods of inPod, which queries an Infra's DNS, and of inPlainPod. Both trust a certificate.
func managementPods(t *testing.T, ctx context.Context, infra, pem string) {
	t.Helper()
	apply(t, ctx, fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: apps-client, namespace: default}\ndata: {trusted.crt: %q}\n", pem))
	for name, dns := range map[string]string{
		"apps-client": fmt.Sprintf(`dnsPolicy: None, dnsConfig: {nameservers: [%q]}`, field(t, ctx, "dnsserver/"+infra+"-dns", ".status.serviceClusterIP")),
		"apps-plain":  "dnsPolicy: ClusterFirst",
	} {
		apply(t, ctx, fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: default}
spec: {terminationGracePeriodSeconds: 0, %s, volumes: [{name: ca, configMap: {name: apps-client}}],
  containers: [{name: client, image: "e2e.local/client:1", command: [sleep, infinity], volumeMounts: [{name: ca, mountPath: %s, subPath: trusted.crt}]}]}
`, name, dns, trusted))
		kubectl(t, ctx, "-n", "default", "wait", "--for=condition=Ready", "pod/"+name, "--timeout=60s")
	}
}

// grant lets the operator read the kubeconfigs of namespace clusters, as the message of NamespaceNotGranted says.
func grant(t *testing.T, ctx context.Context) {
	t.Helper()
	const role = "config/components/apps-ingress"
	kubectl(t, ctx, "apply", "-n", "clusters", "-k", role)
	afterwards(t, func(ctx context.Context) error {
		_, err := lab.Kubectl(ctx, "delete", "-n", "clusters", "--ignore-not-found", "-k", role)
		return err
	})
}

// appsIngress changes spec.appsIngress of Infra c1 by a merge patch.
func appsIngress(t *testing.T, ctx context.Context, patch string) {
	t.Helper()
	kubectl(t, ctx, "-n", "clusters", "patch", "infra", "c1", "--type=merge", "-p", `{"spec":{"appsIngress":`+patch+`}}`)
}

// apps waits for the phase of *.apps and the reason of its condition, and returns the message.
func apps(t *testing.T, ctx context.Context, phase, reason string) string {
	t.Helper()
	status := map[string]string{"Ready": "True"}[phase]
	if status == "" {
		status = "False"
	}
	message := awaitCondition(t, ctx, "clusters", "infra/c1", "AppsIngressReady", status, reason)
	if got := field(t, ctx, "infra/c1", ".status.appsIngress.phase"); got != phase {
		t.Errorf("AppsIngressReady is %s/%s and the phase is %q, want %q", status, reason, got, phase)
	}
	return message
}

// inTime fails the test if what began at a time took longer than a limit.
func inTime(t *testing.T, what string, began time.Time, limit time.Duration) {
	t.Helper()
	took := time.Since(began)
	t.Logf("%s after %.1f s", what, took.Seconds())
	if took > limit {
		t.Errorf("%s after %s, want %s at most", what, took, limit)
	}
}

// told is what the specs of c1's proxy and DNS have for *.apps.
func told(t *testing.T, ctx context.Context) string {
	t.Helper()
	return field(t, ctx, "proxyserver/c1-proxy", ".spec.backends[*].targetAddresses") + " " + field(t, ctx, "dnsserver/c1-dns", ".spec.staticEntries")
}

// manifest applies a file to hosted cluster c1 as it is, and deletes its objects when the test ends.
func manifest(t *testing.T, ctx context.Context, path string) {
	t.Helper()
	inGuest(t, ctx, "apply", "-f", path)
	afterwards(t, func(ctx context.Context) error {
		_, err := hosted(ctx, "c1", "delete", "--ignore-not-found", "--wait=false", "-f", path)
		return err
	})
}
