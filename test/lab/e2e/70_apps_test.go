//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/test/lab/scene"
)

// cutOffFor is how long the hosted API is cut off; `make e2e-cut-off` sets 5 minutes.
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

// c1's applications have an external IP that is a host of the VLAN. MetalLB's own unmodified manifest is applied, but no worker runs it:
// the test writes into the Service's status what MetalLB would.
func TestApplicationsAreReachedFromBothSides(t *testing.T) {
	ctx := within(t, 5*time.Minute+cutOffFor)
	ready(t, ctx)
	manifest(t, ctx, filepath.Join(scene.Root(), "test/lab/guest/router.yaml"))
	manifest(t, ctx, metallb(t, ctx))
	pem, client := externalHost(t, ctx, ":80", ":443")
	managementPods(t, ctx, "c1", pem)
	afterwards(t, func(ctx context.Context) error {
		_, err := lab.Kubectl(ctx, "-n", "clusters", "patch", "infra", "c1", "--type=merge", "-p", `{"spec":{"appsIngress":null}}`)
		return err
	})

	t.Run("MetalLB that serves no class: the printed YAML makes it serve one", func(t *testing.T) { classIsPrinted(t, ctx) })
	t.Run("names and traffic from both sides", func(t *testing.T) { bothSides(t, ctx, client) })
	t.Run("through the management cluster's own DNS", func(t *testing.T) {
		forwardedByTheClustersDNS(t, ctx)
		answered(t, ctx, inPlainPod, appsHost, proxyService(t, ctx, "c1"))
		appServed(t, ctx, inPlainPod)
	})
	t.Run("a claimed address outside the network is refused", func(t *testing.T) { claimIsRefused(t, ctx, client) })
	t.Run("the kubeconfig is rotated", func(t *testing.T) { kubeconfigIsRotated(t, ctx) })
	t.Run("the hosted API is cut off", func(t *testing.T) { apiIsCutOff(t, ctx, client, servedAtOnce) })
	t.Run("the address is lost, and another one given", func(t *testing.T) { addressFollows(t, ctx, client) })
	t.Run("switched off, nothing of it is left in the hosted cluster", func(t *testing.T) { switchedOff(t, ctx, client) })
}

// externalHost serves the application at both external IPs, and returns its certificate and an on-link client that uses the lab's DNS.
func externalHost(t *testing.T, ctx context.Context, http, https string) (pem string, client place) {
	t.Helper()
	cert, key := certificate(t, ctx)
	host := neighbour(t, ctx, "apps-host", "br100", firstIP+"/24")
	// The MAC address is always the same, or a neighbour cache with one of an earlier run would lose packets for 10 s. MetalLB announces when
	// an address moves to another.
	_, err := host.Run(ctx, "ip", "link", "set", "eth0", "address", "02:00:00:00:64:c8")
	must(t, err)
	_, err = host.Run(ctx, "ip", "addr", "add", otherIP+"/24", "dev", "eth0")
	must(t, err)
	serving, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		_, err := host.Run(serving, "unshare", "--uts", "sh", "-c", "hostname hello-host; exec testapp serve "+http+" "+https+" "+cert+" "+key)
		ended <- err
	}()
	afterwards(t, func(context.Context) error { stop(); <-ended; return nil })

	pem = string(content(t, cert))
	must(t, os.WriteFile(trusted, []byte(pem), 0o644))
	onlink := neighbour(t, ctx, "apps-onlink", "br100", "192.168.100.248/24")
	afterwards(t, func(context.Context) error { return os.Remove(trusted) })
	must(t, onlink.Asks(addressesOf(t, ctx, "c1", "dns")[0]))
	return pem, func(ctx context.Context, command ...string) (string, error) { return onlink.Run(ctx, command...) }
}

// MetalLB without --lb-class serves no Service with a class, and HyperShift's own cloud provider takes every other.
func classIsPrinted(t *testing.T, ctx context.Context) {
	appsIngress(t, ctx, `{"enabled":true,"metallb":{"ipAddressPoolRange":["192.168.100.200-192.168.100.219"]}}`)
	apps(t, ctx, "Degraded", "NamespaceNotGranted")
	grant(t, ctx)
	_, yaml, found := strings.Cut(apps(t, ctx, "Pending", "MetalLBClassNotSet"), "\n---\n")
	if !found {
		t.Fatal("the message has no YAML")
	}
	must(t, applyToGuest(ctx, yaml, "--server-side", "--force-conflicts", "--field-manager=oooi-advice"))
	apps(t, ctx, "Pending", "WaitingForExternalIP")
	claim(t, ctx, firstIP)
	apps(t, ctx, "Ready", "Serving")
}

// claim writes an address into the Service's status; an empty one removes it.
func claim(t *testing.T, ctx context.Context, ip string) {
	t.Helper()
	ingress := "null"
	if ip != "" {
		ingress = `[{"ip":"` + ip + `"}]`
	}
	inGuest(t, ctx, "-n", "openshift-ingress", "patch", "service", "c1-apps", "--subresource=status", "--type=merge", "-p", `{"status":{"loadBalancer":{"ingress":`+ingress+`}}}`)
}

func addressFollows(t *testing.T, ctx context.Context, client place) {
	before := told(t, ctx)
	claim(t, ctx, "")
	apps(t, ctx, "Degraded", "ExternalIPLost")
	unchanged(t, ctx, client, before)
	claim(t, ctx, otherIP)
	began := time.Now()
	follows(t, ctx, client)
	inTime(t, "DNS and proxy followed", began, 5*time.Second)
	apps(t, ctx, "Ready", "Serving")
}

// follows waits until DNS and proxy use the other address.
func follows(t *testing.T, ctx context.Context, client place) {
	t.Helper()
	answered(t, ctx, client, appsHost, otherIP)
	must(t, scene.Until(ctx, "the proxy", func(ctx context.Context) error {
		if err := leadsTo(t, ctx, otherIP); err != nil {
			return err
		}
		return serves(ctx, inPod)
	}))
}

// leadsTo says whether the proxy's configuration has an address.
func leadsTo(t *testing.T, ctx context.Context, ip string) error {
	if now := told(t, ctx); !strings.Contains(now, ip+":443") {
		return errors.New("it was told " + now)
	}
	return nil
}

func bothSides(t *testing.T, ctx context.Context, vm place) {
	if got := field(t, ctx, "infra/c1", ".status.appsIngress.externalIP"); got != firstIP {
		t.Errorf("the status has external IP %q, want %s", got, firstIP)
	}
	service := proxyService(t, ctx, "c1")
	answered(t, ctx, vm, appsHost, firstIP)
	answered(t, ctx, vm, "any.thing.apps.c1.hosted.example.com", firstIP)
	appServed(t, ctx, vm)
	answered(t, ctx, inPod, appsHost, service)
	appServed(t, ctx, inPod)
	if targets := field(t, ctx, "proxyserver/c1-proxy", ".spec.backends[*].targetAddresses"); !strings.Contains(targets, firstIP+":443") || !strings.Contains(targets, firstIP+":80") {
		t.Errorf("the proxy leads to %s, want the hosted cluster's load balancer at %s", targets, firstIP)
	}
}

// forwardedByTheClustersDNS: the management cluster's DNS forwards what `oooi render --openshift-dns` says, with a block of its Corefile for
// each server, as OpenShift's operator writes it (cluster-dns-operator, controller_dns_configmap.go). Its own names still resolve.
func forwardedByTheClustersDNS(t *testing.T, ctx context.Context) {
	t.Helper()
	dns := func(ctx context.Context, args ...string) (string, error) {
		return lab.Kubectl(ctx, append([]string{"-n", "kube-system"}, args...)...)
	}
	serve := func(ctx context.Context, corefile string) error {
		patch, err := json.Marshal(map[string]any{"data": map[string]string{"Corefile": corefile}})
		must(t, err)
		_, err = dns(ctx, "patch", "configmap", "coredns", "--type=merge", "-p", string(patch))
		_, restarted := dns(ctx, "rollout", "restart", "deployment/coredns")
		_, rolled := dns(ctx, "rollout", "status", "deployment/coredns", "--timeout=60s")
		return errors.Join(err, restarted, rolled)
	}
	own, err := dns(ctx, "get", "configmap", "coredns", "-o", "jsonpath={.data.Corefile}")
	must(t, err)
	afterwards(t, func(ctx context.Context) error { return serve(ctx, own) })
	must(t, serve(ctx, own+forwarding(t, ctx)))
	answered(t, ctx, inPlainPod, "kubernetes.default.svc.cluster.local", "10.96.0.1")
}

// forwarding is the Corefile of the servers that the printed patch has.
func forwarding(t *testing.T, ctx context.Context) (blocks string) {
	t.Helper()
	files := t.TempDir()
	must(t, os.WriteFile(filepath.Join(files, "dnsservers.yaml"), []byte(kubectl(t, ctx, "get", "dnsservers", "-A", "-o", "yaml")), 0o600))
	must(t, os.WriteFile(filepath.Join(files, "dns.yaml"), []byte("{apiVersion: operator.openshift.io/v1, kind: DNS, metadata: {name: default}, spec: {}}\n"), 0o600))
	out, err := lab.Run(ctx, "oooi", "render", "--openshift-dns", "-f", files)
	must(t, err)
	var patch struct {
		Spec struct {
			Servers []struct {
				Zones         []string
				ForwardPlugin struct{ Upstreams []string }
			}
		}
	}
	must(t, yaml.Unmarshal([]byte(out), &patch))
	for _, s := range patch.Spec.Servers {
		blocks += strings.Join(s.Zones, ":53 ") + ":53 {\n    forward . " + strings.Join(s.ForwardPlugin.Upstreams, " ") + "\n    errors\n    cache 5\n}\n"
	}
	return blocks
}

// unchanged checks that DNS and proxy are as before, and still answer clients.
func unchanged(t *testing.T, ctx context.Context, vm place, before string) {
	t.Helper()
	if now := told(t, ctx); now != before {
		t.Errorf("DNS and proxy were told\n%s\nand before\n%s", now, before)
	}
	ctx, stop := context.WithTimeout(ctx, 10*time.Second) // long enough to repeat a lost query
	defer stop()
	answered(t, ctx, vm, appsHost, firstIP)
	answered(t, ctx, inPod, appsHost, proxyService(t, ctx, "c1"))
}

// The hosted cluster's administrator claims the address of a node of the management cluster for *.apps. MetalLB's controller, which would
// correct that, is stopped meanwhile.
func claimIsRefused(t *testing.T, ctx context.Context, vm place) {
	before := told(t, ctx)
	node := kubectl(t, ctx, "get", "nodes", "-o", `jsonpath={.items[0].status.addresses[?(@.type=="InternalIP")].address}`)
	inGuest(t, ctx, "-n", "metallb-system", "scale", "deployment/controller", "--replicas=0", "--timeout=60s")
	inGuest(t, ctx, "-n", "metallb-system", "wait", "--for=delete", "pod", "-l", "component=controller", "--timeout=60s")
	claim(t, ctx, node)
	if message := apps(t, ctx, "Degraded", "ExternalIPOutsideNetwork"); !strings.Contains(message, node) {
		t.Errorf("the message does not name %s: %s", node, message)
	}
	unchanged(t, ctx, vm, before)
	appServed(t, ctx, inPod)
	claim(t, ctx, firstIP)
	apps(t, ctx, "Ready", "Serving")
	inGuest(t, ctx, "-n", "metallb-system", "scale", "deployment/controller", "--replicas=1")
}

// The Secret has a kubeconfig without permissions first, and then the administrator's again: the same process uses each within 10 s.
func kubeconfigIsRotated(t *testing.T, ctx context.Context) {
	manager := func() string {
		return kubectl(t, ctx, "-n", "oooi-system", "get", "pods", "-o", "jsonpath={.items[*].metadata.uid} {.items[*].status.containerStatuses[*].restartCount}")
	}
	process := manager()
	rotate, admin, nobody := kubeconfigs(t, ctx, "c1")
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

// kubeconfigs are a hosted cluster's: the administrator's, and one that may only request certificates, with the kubelets' bootstrap
// credentials. rotate writes one into the Secret that HyperShift writes; the administrator's is restored when the test ends.
func kubeconfigs(t *testing.T, ctx context.Context, cluster string) (rotate func(kubeconfig string) time.Time, admin, nobody string) {
	t.Helper()
	secret := cluster + "-admin-kubeconfig"
	read := func(namespace, name string) string {
		return kubectl(t, ctx, "-n", namespace, "get", "secret", name, "-o", "jsonpath={.data.kubeconfig}")
	}
	write := func(ctx context.Context, kubeconfig string) error {
		_, err := lab.Kubectl(ctx, "-n", "clusters", "patch", "secret", secret, "--type=merge", "-p", `{"data":{"kubeconfig":"`+kubeconfig+`"}}`)
		return err
	}
	admin, nobody = read("clusters", secret), read("clusters-"+cluster, "bootstrap-kubeconfig")
	afterwards(t, func(ctx context.Context) error {
		if there, err := lab.Kubectl(ctx, "-n", "clusters", "get", "secret", secret, "--ignore-not-found", "-o", "name"); err != nil || there == "" {
			return err // it was deleted with the hosted cluster
		}
		return write(ctx, admin)
	})
	return func(kubeconfig string) time.Time {
		t.Helper()
		must(t, write(ctx, kubeconfig))
		return time.Now()
	}, admin, nobody
}

// Every packet between the manager and the hosted API is lost, including those of open connections.
func apiIsCutOff(t *testing.T, ctx context.Context, client place, served func(*testing.T, context.Context, place)) {
	before, began := told(t, ctx), time.Now()
	mend := cutOff(t, ctx)
	apps(t, ctx, "Degraded", "HostedClusterUnreachable")
	t.Logf("Degraded after %s", time.Since(began))
	for end := began.Add(cutOffFor); time.Now().Before(end); {
		unchanged(t, ctx, client, before)
		served(t, ctx, inPod)
		served(t, ctx, client)
		wait(ctx, min(10*time.Second, time.Until(end)))
	}
	must(t, mend(ctx))
	began = time.Now()
	apps(t, ctx, "Ready", "Serving")
	inTime(t, "Ready again", began, 30*time.Second)
	unchanged(t, ctx, client, before)
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
	load := func(ctx context.Context, rules string) error {
		_, err := lab.Pipe(ctx, rules, filepath.Join(scene.Root(), "test/lab/lab"), "exec", "nft", "-f", "-")
		return err
	}
	must(t, load(ctx, rules))
	mend = func(ctx context.Context) error { return load(ctx, "table ip cutoff\ndelete table ip cutoff\n") } // adds it first, so that it may be gone
	afterwards(t, mend)
	return mend
}

func switchedOff(t *testing.T, ctx context.Context, vm place) {
	appsIngress(t, ctx, `{"enabled":false}`)
	inGuest(t, ctx, "-n", "openshift-ingress", "wait", "--for=delete", "service/c1-apps", "--timeout=30s")
	answered(t, ctx, vm, appsHost, "")
	answered(t, ctx, inPod, appsHost, "")
	ready(t, ctx)
}

// Deleting a HostedCluster leaves nothing of ours, whether its API still answers or not.
func TestADeletedHostedClusterLeavesNothing(t *testing.T) {
	ctx := within(t, 5*time.Minute)
	args := []string{"--cluster", "c3", "--lb-address", "203.0.113.30", "--nad", "default/vlan300", "--strategy", "loadbalancer-hostname"}
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
		kubectl(t, ctx, "-n", "clusters", "delete", "hostedcluster", "c3", "--ignore-not-found", "--timeout=90s")
		kubectl(t, ctx, "-n", "clusters", "wait", "--for=delete", "infra/c3", "--timeout=90s")
		inTime(t, "HostedCluster and Infra were gone", began, limit)
		must(t, scene.Until(ctx, "nothing left", func(context.Context) error {
			if left := without(everything(t, ctx), before); len(left) > 0 {
				return fmt.Errorf("left: %v", left)
			}
			return nil
		}))
	}
	publish()
	apiIsReachedFromThePodNetwork(t, ctx)
	deleted(time.Minute)

	_, err = lab.Standin(ctx, append([]string{"apply"}, args...)...)
	must(t, err)
	publish()
	kubectl(t, ctx, "-n", "clusters-c3", "scale", "deployment/kube-apiserver", "--replicas=0")
	kubectl(t, ctx, "-n", "clusters-c3", "wait", "--for=delete", "pod", "-l", "app=kube-apiserver", "--timeout=60s")
	// HyperShift's finalizer keeps the HostedCluster until the control plane is gone, and the hosted API goes before that.
	finalizers := func(by string) {
		t.Helper()
		kubectl(t, ctx, "-n", "clusters", "patch", "hostedcluster", "c3", "--type=merge", "-p", `{"metadata":{"finalizers":[`+by+`]}}`)
	}
	finalizers(`"hypershift.openshift.io/finalizer"`)
	kubectl(t, ctx, "-n", "clusters", "delete", "hostedcluster", "c3", "--wait=false")
	began := time.Now()
	kubectl(t, ctx, "-n", "clusters", "delete", "infra", "c3", "--timeout=90s")
	inTime(t, "the Infra was gone, whose Service nobody can take away,", began, time.Minute)
	finalizers("")
	deleted(time.Minute)
}

// This API is published by name; for one that is published at an address, as c1's, no name is in its certificate.
func apiIsReachedFromThePodNetwork(t *testing.T, ctx context.Context) {
	t.Helper()
	const api = "api.c3.hosted.example.com"
	awaitCondition(t, ctx, "clusters", "infra/c3", "Ready", "True", "")
	t.Run("the API by its name from the pod network", func(t *testing.T) {
		managementPods(t, ctx, "c3", kubectl(t, ctx, "-n", "clusters-c3", "get", "configmap", "root-ca", "-o", `jsonpath={.data.ca\.crt}`)+"\n")
		forwardedByTheClustersDNS(t, ctx)
		answered(t, ctx, inPlainPod, api, proxyService(t, ctx, "c3"))
		out, err := inPlainPod(ctx, "curl", "-sS", "-m", "5", "--cacert", trusted, "https://"+api+":6443/version")
		if err != nil || !strings.Contains(out, "gitVersion") {
			t.Errorf("the API answers a management pod %q: %v", out, err)
		}
	})
}

// everything lists all objects but those of the cluster's own DNS and of its test clients, which come and go.
func everything(t *testing.T, ctx context.Context) []string {
	t.Helper()
	return slices.DeleteFunc(everyObject(t, ctx), func(o string) bool {
		return strings.HasPrefix(o, "Pod/default/apps-") || strings.Contains(o, "/kube-system/coredns-")
	})
}
