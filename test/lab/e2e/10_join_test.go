//go:build e2e

package e2e

import (
	"context"
	"strings"
	"testing"
	"time"
)

// The API is published in HyperShift's default way, at a load balancer's address, which the proxy captures.
func TestWorkersJoinThroughACapturedAddress(t *testing.T) {
	ctx := within(t, 5*time.Minute)
	if host := kubectl(t, ctx, "-n", "clusters", "get", "hostedcluster", "c1", "-o", "jsonpath={.status.controlPlaneEndpoint.host}"); host != "203.0.113.10" {
		t.Fatalf("the stand-in publishes the API as %q; this scenario wants HyperShift's default, an address", host)
	}
	before := kubectl(t, ctx, "-n", "clusters", "get", "hostedcluster", "c1", "-o", "jsonpath={.metadata.generation}")

	t.Logf("worker-1 was Ready %s after power-on", joins(t, ctx, worker(1)))
	runsPod(t, ctx, "c1", "on-worker-1", "worker-1")
	lease := kubectl(t, ctx, "-n", "clusters", "get", "dhcplease", "-o", `jsonpath={range .items[?(@.spec.mac=="52:54:00:00:01:01")]}{.spec.hostname} {.spec.vmRef.name} {.spec.state}{end}`)
	if lease != "worker-1 worker-1 Bound" {
		t.Errorf("the lease of worker-1 says %q, want its VM's name twice and Bound", lease)
	}
	if after := kubectl(t, ctx, "-n", "clusters", "get", "hostedcluster", "c1", "-o", "jsonpath={.metadata.generation}"); after != before {
		t.Errorf("the HostedCluster was changed: generation %s, was %s", after, before)
	}

	t.Run("a second worker joins on a NAD with ipam {}", func(t *testing.T) {
		kubectl(t, ctx, "-n", "default", "patch", "net-attach-def", "vlan100", "--type=merge", "-p",
			`{"spec":{"config":"{\"cniVersion\":\"0.3.1\",\"name\":\"vlan100\",\"type\":\"bridge\",\"bridge\":\"br100\",\"ipam\":{}}"}}`)
		ready(t, ctx)
		joins(t, ctx, worker(2))
		runsPod(t, ctx, "c1", "on-worker-2", "worker-2")
	})
}

func TestANewWorkerFollowsAChangedIgnitionHost(t *testing.T) {
	ctx := within(t, 4*time.Minute)
	generation := kubectl(t, ctx, "-n", "clusters", "get", "infra", "c1", "-o", "jsonpath={.metadata.generation}")
	const host = "ignition-moved.apps.mgmt.example.com"
	_, err := lab.Standin(ctx, "apply", "--cluster", "c1", "--ignition-host", host)
	must(t, err)
	afterwards(t, func(ctx context.Context) error { _, err := lab.Standin(ctx, "apply", "--cluster", "c1"); return err })

	m := worker(3)
	m.StandinFlags = []string{"--ignition-host", host}
	joins(t, ctx, m)
	if got := kubectl(t, ctx, "-n", "clusters", "get", "infra", "c1", "-o", "jsonpath={.status.endpoints[?(@.name=='ignition')].hostnames[0]}"); got != host {
		t.Errorf("status.endpoints names ignition host %q, want %q", got, host)
	}
	if now := kubectl(t, ctx, "-n", "clusters", "get", "infra", "c1", "-o", "jsonpath={.metadata.generation}"); now != generation {
		t.Errorf("the Infra was touched: generation %s, was %s", now, generation)
	}
}

// Without our policy in the control-plane namespace, HyperShift's own keep the proxy from Ignition.
func TestIgnitionNeedsOurNetworkPolicy(t *testing.T) {
	ctx := within(t, 3*time.Minute)
	policies := kubectl(t, ctx, "-n", "clusters-c1", "get", "networkpolicy", "-l", "hostedcluster.densityops.com/infra=c1", "-o", "name")
	if policies == "" {
		t.Fatal("there is no NetworkPolicy of ours in clusters-c1")
	}
	kubectl(t, ctx, "-n", "clusters", "annotate", "infra/c1", "hostedcluster.densityops.com/paused=true")
	kubectl(t, ctx, append([]string{"-n", "clusters-c1", "delete"}, strings.Fields(policies)...)...)
	m := worker(4)
	console, err := lab.PowerOn(ctx, m)
	must(t, err)
	afterwards(t, func(ctx context.Context) error { return leaves(ctx, m) })
	if _, err := console.Await(ctx, "names"); err != nil {
		t.Fatal(err)
	}
	if at, err := console.Await(within(t, 15*time.Second), "ignition"); err == nil {
		t.Fatalf("Ignition was fetched without our policy: %+v", at)
	}
	kubectl(t, ctx, "-n", "clusters", "annotate", "infra/c1", "hostedcluster.densityops.com/paused-")
	if _, err := console.Await(ctx, "ignition"); err != nil {
		t.Fatalf("with the policy back Ignition still fails: %v", err)
	}
}
