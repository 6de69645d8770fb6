//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cldmnky/oooi/test/lab/scene"
)

// cutOffFor is how long the hosted API is cut off; `make e2e-cut-off` has it last 5 minutes.
var cutOffFor = func() time.Duration {
	if text := os.Getenv("OOOI_CUT_OFF"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			panic(err)
		}
		return d
	}
	return 75 * time.Second
}()

const (
	firstIP = "192.168.100.200"
	otherIP = "192.168.100.215"
)

// The applications of c1 by the real MetalLB, from its own manifest unmodified, on a virtual machine.
func TestApplicationsAreReachedThroughMetalLB(t *testing.T) {
	ctx := within(t, 12*time.Minute+cutOffFor)
	ready(t, ctx)
	m := worker(7)
	joins(t, ctx, m)
	runApplication(t, ctx)
	managementPod(t, ctx)
	trust(t, ctx, m)
	afterwards(t, func(ctx context.Context) error {
		_, err := lab.Kubectl(ctx, "-n", "clusters", "patch", "infra", "c1", "--type=merge", "-p", `{"spec":{"appsIngress":null}}`)
		return err
	})

	t.Run("MetalLB that serves no class: the printed YAML makes it serve one", func(t *testing.T) { classIsSet(t, ctx) })
	t.Run("names and traffic from both sides", func(t *testing.T) { bothSides(t, ctx, m) })
	t.Run("a claimed address outside the network is refused", func(t *testing.T) { claimIsRefused(t, ctx, m) })
	t.Run("the kubeconfig is rotated", func(t *testing.T) { kubeconfigIsRotated(t, ctx) })
	t.Run("the hosted API is cut off", func(t *testing.T) { apiIsCutOff(t, ctx, m) })
	t.Run("the pool is emptied, and the address changes", func(t *testing.T) { addressIsLostAndChanges(t, ctx, m) })
	t.Run("switched off, nothing of it is left in the hosted cluster", func(t *testing.T) { switchedOff(t, ctx, m) })
}

// MetalLB without --lb-class serves no Service that HyperShift's own cloud provider leaves alone.
func classIsSet(t *testing.T, ctx context.Context) {
	manifest(t, ctx, metallb(t, ctx))
	appsIngress(t, ctx, `{"enabled":true,"metallb":{"ipAddressPoolRange":["192.168.100.200-192.168.100.219"]}}`)
	apps(t, ctx, "Degraded", "NamespaceNotGranted")
	grant(t, ctx)
	message := apps(t, ctx, "Pending", "MetalLBClassNotSet")
	_, yaml, found := strings.Cut(message, "\n---\n")
	if !found {
		t.Fatalf("the message has no YAML: %s", message)
	}
	must(t, applyToGuest(ctx, yaml, "--server-side", "--force-conflicts", "--field-manager=oooi-advice"))
	apps(t, ctx, "Pending", "WaitingForExternalIP")
	inGuest(t, ctx, "-n", "metallb-system", "rollout", "status", "deployment/controller", "--timeout=240s")
	inGuest(t, ctx, "-n", "metallb-system", "rollout", "status", "daemonset/speaker", "--timeout=240s")
	pool(t, ctx, metallbPool)
	apps(t, ctx, "Ready", "Serving")
}

// pool has MetalLB give addresses. Its webhook in the hosted cluster, reached through konnectivity, may not answer at once.
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

func bothSides(t *testing.T, ctx context.Context, m scene.Machine) {
	if got := field(t, ctx, "infra/c1", ".status.appsIngress.externalIP"); got != firstIP {
		t.Errorf("the status has external IP %q, want %s", got, firstIP)
	}
	vm, service := onMachine(m), proxyService(t, ctx)
	answered(t, ctx, vm, appsHost, firstIP)
	answered(t, ctx, vm, "any.thing.apps.c1.hosted.example.com", firstIP)
	appServed(t, ctx, vm)
	answered(t, ctx, inPod, appsHost, service)
	answered(t, ctx, inPod, apiHost, service)
	appServed(t, ctx, inPod)
	// The certificate of an API that is published as an IP literal has no such name.
	out, err := inPod(ctx, "curl", "-sS", "-m", "5", "-k", "https://"+apiHost+":6443/version")
	if err != nil || !strings.Contains(out, "gitVersion") {
		t.Errorf("the API answers a management pod %q: %v", out, err)
	}
	if targets := field(t, ctx, "proxyserver/c1-proxy", ".spec.backends[*].targetAddresses"); !strings.Contains(targets, firstIP+":443") || !strings.Contains(targets, firstIP+":80") {
		t.Errorf("the proxy leads to %s, want the hosted cluster's load balancer at %s", targets, firstIP)
	}
}

// unchanged says that DNS and proxy are as before, for clients too where the address still answers.
func unchanged(t *testing.T, ctx context.Context, m scene.Machine, before string) {
	t.Helper()
	if now := told(t, ctx); now != before {
		t.Errorf("DNS and proxy were told\n%s\nand before\n%s", now, before)
	}
	answered(t, ctx, onMachine(m), appsHost, firstIP)
	answered(t, ctx, inPod, appsHost, proxyService(t, ctx))
}

// The guest's administrator says that *.apps is at a node of the management cluster. MetalLB's controller, which would put that
// right, is stopped meanwhile.
func claimIsRefused(t *testing.T, ctx context.Context, m scene.Machine) {
	before := told(t, ctx)
	node := kubectl(t, ctx, "get", "nodes", "-o", `jsonpath={.items[0].status.addresses[?(@.type=="InternalIP")].address}`)
	inGuest(t, ctx, "-n", "metallb-system", "scale", "deployment/controller", "--replicas=0", "--timeout=60s")
	inGuest(t, ctx, "-n", "metallb-system", "wait", "--for=delete", "pod", "-l", "component=controller", "--timeout=60s")
	claim := func(ip string) {
		inGuest(t, ctx, "-n", "openshift-ingress", "patch", "service", "c1-apps", "--subresource=status", "--type=merge", "-p",
			`{"status":{"loadBalancer":{"ingress":[{"ip":"`+ip+`"}]}}}`)
	}
	claim(node)
	if message := apps(t, ctx, "Degraded", "ExternalIPOutsideNetwork"); !strings.Contains(message, node) {
		t.Errorf("the message does not name %s: %s", node, message)
	}
	unchanged(t, ctx, m, before)
	appServed(t, ctx, inPod)
	claim(firstIP)
	apps(t, ctx, "Ready", "Serving")
	inGuest(t, ctx, "-n", "metallb-system", "scale", "deployment/controller", "--replicas=1")
}

// The Secret first holds who may do nothing, then the administrator again: each is used within 10 s, by the same process.
func kubeconfigIsRotated(t *testing.T, ctx context.Context) {
	manager := func() string {
		return kubectl(t, ctx, "-n", "oooi-system", "get", "pods", "-o", "jsonpath={.items[*].metadata.uid} {.items[*].status.containerStatuses[*].restartCount}")
	}
	process := manager()
	path := `jsonpath={.data.kubeconfig}`
	admin := kubectl(t, ctx, "-n", "clusters", "get", "secret", "c1-admin-kubeconfig", "-o", path)
	// The kubelets' bootstrap credentials may ask for certificates and nothing else.
	nobody := kubectl(t, ctx, "-n", "clusters-c1", "get", "secret", "bootstrap-kubeconfig", "-o", path)
	rotate := func(kubeconfig string) time.Time {
		kubectl(t, ctx, "-n", "clusters", "patch", "secret", "c1-admin-kubeconfig", "--type=merge", "-p", `{"data":{"kubeconfig":"`+kubeconfig+`"}}`)
		return time.Now()
	}
	afterwards(t, func(ctx context.Context) error { rotate(admin); return ctx.Err() })
	at := rotate(nobody)
	apps(t, ctx, "Degraded", "HostedClusterUnreachable")
	inTime(t, "credentials that may do nothing were noticed", at, 10*time.Second)
	at = rotate(admin)
	apps(t, ctx, "Ready", "Serving")
	inTime(t, "the administrator's were used", at, 10*time.Second)
	if now := manager(); now != process {
		t.Errorf("the manager was restarted: %s, was %s", now, process)
	}
}

// Every packet between the manager and the hosted API is lost, those of open connections too.
func apiIsCutOff(t *testing.T, ctx context.Context, m scene.Machine) {
	before, began := told(t, ctx), time.Now()
	mend := cutOff(t, ctx)
	apps(t, ctx, "Degraded", "HostedClusterUnreachable")
	t.Logf("Degraded after %s", time.Since(began))
	for end := began.Add(cutOffFor); time.Now().Before(end); {
		unchanged(t, ctx, m, before)
		must(t, serves(ctx, inPod))
		must(t, serves(ctx, onMachine(m)))
		wait(ctx, min(10*time.Second, time.Until(end)))
	}
	must(t, mend(ctx))
	began = time.Now()
	apps(t, ctx, "Ready", "Serving")
	inTime(t, "Ready again", began, 30*time.Second)
	unchanged(t, ctx, m, before)
}

// wait is the length of an outage, not a wait for something to happen.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func cutOff(t *testing.T, ctx context.Context) (mend func(context.Context) error) {
	t.Helper()
	from := kubectl(t, ctx, "-n", "oooi-system", "get", "pods", "-o", "jsonpath={.items[0].status.podIP}")
	to := kubectl(t, ctx, "-n", "clusters-c1", "get", "pods", "-l", "app=kube-apiserver", "-o", "jsonpath={.items[0].status.podIP}")
	rules := fmt.Sprintf(`table ip cutoff {
  chain forward {
    type filter hook forward priority -300
    ip saddr %[1]s ip daddr %[2]s drop
    ip saddr %[2]s ip daddr %[1]s drop
  }
}`, from, to)
	_, err := lab.Pipe(ctx, rules, filepath.Join(scene.Root(), "test/lab/lab"), "exec", "nft", "-f", "-")
	must(t, err)
	mend = func(ctx context.Context) error {
		_, err := lab.Lab(ctx, "exec", "nft", "destroy", "table", "ip", "cutoff")
		return err
	}
	afterwards(t, mend)
	return mend
}

func addressIsLostAndChanges(t *testing.T, ctx context.Context, m scene.Machine) {
	before := told(t, ctx)
	inGuest(t, ctx, "-n", "metallb-system", "rollout", "status", "deployment/controller", "--timeout=120s")
	must(t, scene.Until(ctx, "emptying the pool", func(ctx context.Context) error {
		_, err := hosted(ctx, "c1", "-n", "metallb-system", "delete", "ipaddresspool", "apps", "--ignore-not-found")
		return err
	}))
	apps(t, ctx, "Degraded", "ExternalIPLost")
	unchanged(t, ctx, m, before)

	pool(t, ctx, otherIP+"-192.168.100.219")
	must(t, scene.Until(ctx, "MetalLB's other address", func(ctx context.Context) error {
		got, err := hosted(ctx, "c1", "-n", "openshift-ingress", "get", "service", "c1-apps", "-o", "jsonpath={.status.loadBalancer.ingress[*].ip}")
		if err == nil && got != otherIP {
			err = fmt.Errorf("the Service has %q", got)
		}
		return err
	}))
	began := time.Now()
	answered(t, ctx, onMachine(m), appsHost, otherIP)
	must(t, scene.Until(ctx, "the proxy", func(ctx context.Context) error { return serves(ctx, inPod) }))
	inTime(t, "DNS and proxy followed", began, 5*time.Second)
	apps(t, ctx, "Ready", "Serving")
	appServed(t, ctx, onMachine(m))
}

func switchedOff(t *testing.T, ctx context.Context, m scene.Machine) {
	appsIngress(t, ctx, `{"enabled":false}`)
	inGuest(t, ctx, "-n", "openshift-ingress", "wait", "--for=delete", "service/c1-apps", "--timeout=30s")
	answered(t, ctx, onMachine(m), appsHost, "")
	answered(t, ctx, inPod, appsHost, "")
	ready(t, ctx)
}

// No MetalLB at all: the proxy spreads over two workers, and one of them loses its power.
func TestApplicationsAreReachedThroughNodePortsOfTheWorkersThatLive(t *testing.T) {
	ctx := within(t, 8*time.Minute)
	ready(t, ctx)
	dies, stays := worker(7), worker(8)
	joins(t, ctx, stays)
	runApplication(t, ctx)
	joins(t, ctx, dies)
	managementPod(t, ctx)
	grant(t, ctx)
	trust(t, ctx, stays)
	afterwards(t, func(ctx context.Context) error {
		_, err := lab.Kubectl(ctx, "-n", "clusters", "patch", "infra", "c1", "--type=merge", "-p", `{"spec":{"appsIngress":null}}`)
		return err
	})
	appsIngress(t, ctx, `{"enabled":true,"mode":"NodePort"}`)
	apps(t, ctx, "Ready", "Serving")
	answered(t, ctx, onMachine(stays), appsHost, vip(t, ctx, "c1"))
	answered(t, ctx, inPod, appsHost, proxyService(t, ctx))
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
	t.Logf("%d times served in 20 s", served)

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

// Deleting a HostedCluster leaves nothing of ours, whether its API is still there or not.
func TestADeletedHostedClusterLeavesNothing(t *testing.T) {
	ctx := within(t, 5*time.Minute)
	args := []string{"--cluster", "c3", "--lb-address", "203.0.113.30", "--nad", "default/vlan300"}
	_, err := lab.Standin(ctx, append([]string{"apply"}, args...)...)
	must(t, err)
	afterwards(t, func(ctx context.Context) error {
		_, err := lab.Standin(ctx, append([]string{"delete"}, args...)...)
		return err
	})
	_, err = lab.Lab(ctx, "vlan", "300")
	must(t, err)
	apply(t, ctx, scene.BridgeNAD("vlan300", "br300"))
	_, err = hosted(ctx, "c3", "create", "namespace", "openshift-ingress")
	must(t, err)
	grant(t, ctx)
	before := everything(t, ctx)

	publish := func() {
		t.Helper()
		kubectl(t, ctx, "-n", "clusters", "annotate", "hostedcluster", "c3",
			"hostedcluster.densityops.com/infra=auto", "hostedcluster.densityops.com/cidr=192.168.130.0/24")
		kubectl(t, ctx, "-n", "clusters", "wait", "--for=create", "infra/c3", "--timeout=30s")
		kubectl(t, ctx, "-n", "clusters", "patch", "infra", "c3", "--type=merge", "-p", `{"spec":{"appsIngress":{"enabled":true,"metallb":{"loadBalancerClass":"lab/none"}}}}`)
		_, err := hosted(ctx, "c3", "-n", "openshift-ingress", "wait", "--for=create", "service/c3-apps", "--timeout=60s")
		must(t, err)
	}
	deleted := func(limit time.Duration) {
		t.Helper()
		began := time.Now()
		kubectl(t, ctx, "-n", "clusters", "delete", "hostedcluster", "c3", "--timeout=90s")
		kubectl(t, ctx, "-n", "clusters", "wait", "--for=delete", "infra/c3", "--timeout=90s")
		inTime(t, "HostedCluster and Infra were gone", began, limit)
		must(t, scene.Until(ctx, "nothing left", func(context.Context) error {
			for o := range everything(t, ctx) {
				if !before[o] {
					return errors.New(o + " is left")
				}
			}
			return nil
		}))
	}
	publish()
	deleted(time.Minute)

	_, err = lab.Standin(ctx, append([]string{"apply"}, args...)...)
	must(t, err)
	publish()
	kubectl(t, ctx, "-n", "clusters-c3", "scale", "deployment/kube-apiserver", "--replicas=0")
	kubectl(t, ctx, "-n", "clusters-c3", "wait", "--for=delete", "pod", "-l", "app=kube-apiserver", "--timeout=60s")
	deleted(time.Minute)
}

// everything lists every object of every type, without those that come and go by themselves.
func everything(t *testing.T, ctx context.Context) map[string]bool {
	t.Helper()
	var types []string
	for _, kind := range strings.Fields(kubectl(t, ctx, "api-resources", "--verbs=list", "-o", "name")) {
		if !strings.HasPrefix(kind, "events") && kind != "pods" && kind != "replicasets.apps" {
			types = append(types, kind)
		}
	}
	all := map[string]bool{}
	for _, o := range strings.Fields(kubectl(t, ctx, "get", strings.Join(types, ","), "-A", "--ignore-not-found",
		"-o", `jsonpath={range .items[*]}{.kind}/{.metadata.namespace}/{.metadata.name}{"\n"}{end}`)) {
		all[o] = true
	}
	return all
}
