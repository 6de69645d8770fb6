//go:build e2e && metallb

package e2e

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cldmnky/oooi/test/lab/scene"
)

const metallbPool = "192.168.100.200-192.168.100.209"

// The real MetalLB, from its own unmodified manifest, on a virtual machine serves c1's applications. `make e2e-metallb` runs this file.
func TestApplicationsAreReachedThroughMetalLB(t *testing.T) {
	ctx := within(t, 12*time.Minute+cutOffFor)
	ready(t, ctx)
	m := worker(7)
	joins(t, ctx, m)
	pem := runApplication(t, ctx)
	managementPods(t, ctx, "c1", pem)
	trust(t, ctx, m, pem)
	vm := onMachine(m)
	manifest(t, ctx, metallb(t, ctx))
	afterwards(t, func(ctx context.Context) error {
		_, err := lab.Kubectl(ctx, "-n", "clusters", "patch", "infra", "c1", "--type=merge", "-p", `{"spec":{"appsIngress":null}}`)
		_, gone := hosted(ctx, "c1", "delete", "node", m.Name)
		return errors.Join(err, gone)
	})

	t.Run("MetalLB that serves no class: the printed YAML makes it serve one", func(t *testing.T) { classIsSet(t, ctx) })
	t.Run("names and traffic from both sides", func(t *testing.T) { bothSides(t, ctx, vm) })
	t.Run("a claimed address outside the network is refused", func(t *testing.T) { claimIsRefused(t, ctx, vm) })
	t.Run("the kubeconfig is rotated", func(t *testing.T) { kubeconfigIsRotated(t, ctx) })
	t.Run("the hosted API is cut off", func(t *testing.T) { apiIsCutOff(t, ctx, vm, appServed) })
	t.Run("the pool is emptied, and the address changes", func(t *testing.T) { addressIsLostAndChanges(t, ctx, vm) })
	t.Run("switched off, nothing of it is left in the hosted cluster", func(t *testing.T) { switchedOff(t, ctx, vm) })
}

// MetalLB without --lb-class serves no Service with a class, and HyperShift's own cloud provider takes every other.
func classIsSet(t *testing.T, ctx context.Context) {
	appsIngress(t, ctx, `{"enabled":true,"metallb":{"ipAddressPoolRange":["192.168.100.200-192.168.100.219"]}}`)
	apps(t, ctx, "Degraded", "NamespaceNotGranted")
	grant(t, ctx)
	message := apps(t, ctx, "Pending", "MetalLBClassNotSet")
	_, yaml, found := strings.Cut(message, "\n---\n")
	if !found {
		t.Fatalf("the message has no YAML: %s", message)
	}
	metallbRuns(t, ctx)
	must(t, applyToGuest(ctx, yaml, "--server-side", "--force-conflicts", "--field-manager=oooi-advice"))
	metallbRuns(t, ctx)
	pool(t, ctx, metallbPool)
	apps(t, ctx, "Ready", "Serving")
}

func metallbRuns(t *testing.T, ctx context.Context) {
	t.Helper()
	inGuest(t, ctx, "-n", "metallb-system", "rollout", "status", "deployment/controller", "--timeout=240s")
	inGuest(t, ctx, "-n", "metallb-system", "rollout", "status", "daemonset/speaker", "--timeout=240s")
}

// pool gives MetalLB addresses. Its webhook in the hosted cluster, reached through konnectivity, may not answer at once.
func pool(t *testing.T, ctx context.Context, addresses string) {
	t.Helper()
	must(t, scene.Until(ctx, "MetalLB's pool", func(ctx context.Context) error {
		return applyToGuest(ctx, fmt.Sprintf(`apiVersion: metallb.io/v1beta1
kind: IPAddressPool
metadata: {name: apps, namespace: metallb-system}
spec: {addresses: [%s]}
---
apiVersion: metallb.io/v1beta1
kind: L2Advertisement
metadata: {name: apps, namespace: metallb-system}
spec: {ipAddressPools: [apps]}
`, addresses))
	}))
}

func addressIsLostAndChanges(t *testing.T, ctx context.Context, vm place) {
	before := told(t, ctx)
	inGuest(t, ctx, "-n", "metallb-system", "rollout", "status", "deployment/controller", "--timeout=120s")
	must(t, scene.Until(ctx, "emptying the pool", func(ctx context.Context) error {
		_, err := hosted(ctx, "c1", "-n", "metallb-system", "delete", "ipaddresspool", "apps", "--ignore-not-found")
		return err
	}))
	apps(t, ctx, "Degraded", "ExternalIPLost")
	unchanged(t, ctx, vm, before)

	pool(t, ctx, otherIP+"-192.168.100.219")
	must(t, scene.Until(ctx, "MetalLB's other address", func(ctx context.Context) error {
		got, err := hosted(ctx, "c1", "-n", "openshift-ingress", "get", "service", "c1-apps", "-o", "jsonpath={.status.loadBalancer.ingress[*].ip}")
		if err == nil && got != otherIP {
			err = fmt.Errorf("the Service has %q", got)
		}
		return err
	}))
	began := time.Now()
	must(t, scene.Until(ctx, "the proxy", func(ctx context.Context) error { return leadsTo(t, ctx, otherIP) }))
	answered(t, ctx, inPod, appsHost, proxyService(t, ctx, "c1"))
	answered(t, ctx, vm, appsHost, otherIP)
	inTime(t, "DNS and proxy followed", began, 5*time.Second)
	apps(t, ctx, "Ready", "Serving")
	appServed(t, ctx, vm)
	appServed(t, ctx, inPod)
}

// Without MetalLB, the proxy balances between two workers, one of which loses its power.
func TestApplicationsAreReachedThroughNodePortsOfTheWorkersThatLive(t *testing.T) {
	ctx := within(t, 8*time.Minute)
	ready(t, ctx)
	dies, stays := worker(7), worker(8)
	joins(t, ctx, stays)
	pem := runApplication(t, ctx)
	joins(t, ctx, dies)
	managementPods(t, ctx, "c1", pem)
	grant(t, ctx)
	trust(t, ctx, stays, pem)
	afterwards(t, func(ctx context.Context) error {
		_, err := lab.Kubectl(ctx, "-n", "clusters", "patch", "infra", "c1", "--type=merge", "-p", `{"spec":{"appsIngress":null}}`)
		return err
	})
	appsIngress(t, ctx, `{"enabled":true,"mode":"NodePort"}`)
	apps(t, ctx, "Ready", "Serving")
	answered(t, ctx, onMachine(stays), appsHost, vips(t, ctx, "c1"))
	answered(t, ctx, inPod, appsHost, proxyService(t, ctx, "c1"))
	inGuest(t, ctx, "-n", "hello", "rollout", "status", "daemonset/hello", "--timeout=180s")
	inGuest(t, ctx, "-n", "openshift-ingress", "rollout", "status", "daemonset/router-default", "--timeout=180s")
	appServed(t, ctx, onMachine(stays))
	appServed(t, ctx, inPod)

	_, err := lab.Lab(ctx, "vm-off", dies.Name)
	must(t, err)
	died := time.Now()
	const mended = 2 * time.Second
	served := 0
	for time.Since(died) < 20*time.Second {
		began := time.Now()
		switch err := serves(ctx, inPod); {
		case err == nil:
			served++
		case began.Sub(died) > mended:
			t.Errorf("%s after the worker died: %v", began.Sub(died), err)
		}
	}
	if served < 10 {
		t.Errorf("served %d times in 20 s, want 10 at least: an outage of 2 s leaves time for more", served)
	}

	inGuest(t, ctx, "delete", "node", dies.Name)
	began := time.Now()
	must(t, scene.Until(ctx, "the Node is gone", func(ctx context.Context) error {
		targets, err := lab.Kubectl(ctx, "-n", "clusters", "get", "proxyserver", "c1-proxy", "-o", `jsonpath={.spec.backends[?(@.name=="apps-https")].targetAddresses[*]}`)
		if err == nil && len(strings.Fields(targets)) != 1 {
			err = fmt.Errorf("the proxy leads to %s", targets)
		}
		return err
	}))
	inTime(t, "the proxy followed the Nodes", began, 5*time.Second)
}

func onMachine(m scene.Machine) place {
	return func(ctx context.Context, command ...string) (string, error) { return lab.On(ctx, m, command...) }
}

// runApplication runs kube-proxy, an application with its own certificate and the HTTP router in hosted cluster c1, where they stay. They
// start one after the other, because an emulated worker that starts all at once takes longer for each than its kubelet waits.
func runApplication(t *testing.T, ctx context.Context) (pem string) {
	t.Helper()
	guest := func(name string) {
		inGuest(t, ctx, "apply", "-f", filepath.Join(scene.Root(), "test/lab/guest", name+".yaml"))
	}
	guest("kube-proxy")
	inGuest(t, ctx, "-n", "kube-system", "rollout", "status", "daemonset/konnectivity-agent", "--timeout=180s")
	inGuest(t, ctx, "-n", "kube-system", "rollout", "status", "daemonset/kube-proxy", "--timeout=180s")
	guest("app")
	pem = certify(t, ctx)
	inGuest(t, ctx, "-n", "hello", "rollout", "status", "daemonset/hello", "--timeout=180s")
	guest("router")
	inGuest(t, ctx, "-n", "openshift-ingress", "rollout", "status", "daemonset/router-default", "--timeout=180s")
	return pem
}

// trust gives a worker the application's certificate.
func trust(t *testing.T, ctx context.Context, m scene.Machine, pem string) {
	t.Helper()
	_, err := lab.On(ctx, m, "echo", base64.StdEncoding.EncodeToString([]byte(pem)), "| base64 -d >", trusted)
	must(t, err)
}

// certify gives the application a certificate and returns it. An existing one stays, because its pods read it only once.
func certify(t *testing.T, ctx context.Context) (pem string) {
	t.Helper()
	if has, err := hosted(ctx, "c1", "-n", "hello", "get", "secret", "hello", "-o", `go-template={{index .data "tls.crt" | base64decode}}`); err == nil {
		return has
	}
	cert, key := certificate(t, ctx)
	must(t, applyToGuest(ctx, fmt.Sprintf("{apiVersion: v1, kind: Secret, type: kubernetes.io/tls, metadata: {name: hello, namespace: hello}, data: {tls.crt: %s, tls.key: %s}}",
		base64.StdEncoding.EncodeToString(content(t, cert)), base64.StdEncoding.EncodeToString(content(t, key)))))
	return string(content(t, cert))
}
