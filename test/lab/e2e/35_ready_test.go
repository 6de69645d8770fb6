//go:build e2e && clusters

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cldmnky/oooi/test/lab/scene"
)

// promptly is within what Ready may take to say what became untrue, or true again.
const promptly = 10 * time.Second

// turns waits until an Infra's Ready has a status and, when given, reason, and holds the time that it took against promptly.
func turns(t *testing.T, ctx context.Context, infra, status, reason string) string {
	t.Helper()
	began := time.Now()
	message := awaitCondition(t, ctx, "clusters", "infra/"+infra, "Ready", status, reason)
	took := time.Since(began)
	t.Logf("%s %s after %.1f s: %s", status, reason, took.Seconds(), message)
	if took > promptly {
		t.Errorf("Ready was %s/%s after %s, want %s", status, reason, took, promptly)
	}
	return message
}

// Each state in which a worker could not join is said, with its cause, while all pods of ours are well; and its end, too.
func TestReadySaysWhatAWorkerWouldMeet(t *testing.T) {
	ctx := within(t, 4*time.Minute)
	ready(t, ctx)
	patched := func(spec string) {
		kubectl(t, ctx, "-n", "clusters", "patch", "infra", "c1", "--type=merge", "-p", spec)
	}
	for _, c := range []struct {
		name, says string
		away, back func()
	}{
		{
			"no pod behind ignition", "ignition: service clusters-c1/ignition-server-proxy has no ready pod",
			func() {
				kubectl(t, ctx, "-n", "clusters-c1", "scale", "deployment/ignition-server-proxy", "--replicas=0")
			},
			func() {
				kubectl(t, ctx, "-n", "clusters-c1", "scale", "deployment/ignition-server-proxy", "--replicas=1")
				kubectl(t, ctx, "-n", "clusters-c1", "rollout", "status", "deployment/ignition-server-proxy", "--timeout=60s")
			},
		},
		{
			"the NetworkPolicies deleted in a pause", "a NetworkPolicy of namespace clusters-c1",
			func() {
				kubectl(t, ctx, "-n", "clusters", "annotate", "infra", "c1", "hostedcluster.densityops.com/paused=true")
				kubectl(t, ctx, "-n", "clusters-c1", "delete", "networkpolicy", "-l", "hostedcluster.densityops.com/infra=c1")
			},
			func() {
				kubectl(t, ctx, "-n", "clusters", "annotate", "infra", "c1", "hostedcluster.densityops.com/paused-")
			},
		},
		{
			"an extra endpoint that leads to nothing", "mirror: service clusters/mirror does not exist",
			func() {
				patched(`{"spec":{"extraEndpoints":[{"name":"mirror","hostnames":["mirror.example.com"],"port":5000,"protocol":"TLS","target":{"service":"mirror","port":5000}}]}}`)
			},
			func() { patched(`{"spec":{"extraEndpoints":null}}`) },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.away()
			if message := turns(t, ctx, "c1", "False", "BackendsUnhealthy"); !strings.Contains(message, c.says) {
				t.Errorf("the message does not say %q: %s", c.says, message)
			}
			c.back()
			turns(t, ctx, "c1", "True", "")
		})
	}
}

// A pool of one address, which a real client leases, and a second asks in vain.
func TestAPoolWithNoAddressLeftIsNotReady(t *testing.T) {
	ctx := within(t, 2*time.Minute)
	_, err := lab.Lab(ctx, "vlan", "135")
	must(t, err)
	must(t, lab.Apply(ctx, scene.BridgeNAD("vlan135", "br135")))
	apply(t, ctx, strings.Replace(infraOn("full", "192.168.135.0/24", "vlan135"), "  networkConfig:", "  infraComponents: {dhcp: {rangeStart: 192.168.135.50, rangeEnd: 192.168.135.50}}\n  networkConfig:", 1))
	awaitCondition(t, ctx, "clusters", "infra/full", "Ready", "True", "")
	first, second := neighbour(t, ctx, "first", "br135", ""), neighbour(t, ctx, "second", "br135", "")
	leased(t, ctx, first)
	message := turns(t, ctx, "full", "False", "PoolExhausted")
	if !strings.Contains(message, "1 are leased") {
		t.Errorf("the message does not say how many are leased: %s", message)
	}
	if lease, err := second.Lease(ctx); err == nil {
		t.Fatalf("the second client has a lease: %v", lease)
	}
	kubectl(t, ctx, "-n", "clusters", "patch", "infra", "full", "--type=merge", "-p", `{"spec":{"infraComponents":{"dhcp":{"rangeEnd":"192.168.135.60"}}}}`)
	turns(t, ctx, "full", "True", "")
	leased(t, ctx, second)
}

// What happens every day turns Ready at no time.
func TestReadyDoesNotFlicker(t *testing.T) {
	ctx := within(t, 3*time.Minute)
	ready(t, ctx)
	turned := follow(t, ctx)
	const behind = "deployment/ignition-server-proxy"
	afterwards(t, func(ctx context.Context) error {
		_, err := lab.Kubectl(ctx, "-n", "clusters-c1", "scale", behind, "--replicas=1")
		return err
	})
	kubectl(t, ctx, "-n", "clusters-c1", "scale", behind, "--replicas=2")
	kubectl(t, ctx, "-n", "clusters-c1", "rollout", "status", behind, "--timeout=60s")
	pods := strings.Fields(kubectl(t, ctx, "-n", "clusters-c1", "get", "pods", "-l", "app=ignition-server-proxy", "-o", "name"))
	kubectl(t, ctx, "-n", "clusters-c1", "delete", pods[0], "--wait=false")
	for _, lease := range []string{`"12h"`, "null"} {
		kubectl(t, ctx, "-n", "clusters", "patch", "infra", "c1", "--type=merge", "-p", `{"spec":{"infraComponents":{"dhcp":{"leaseTime":`+lease+`}}}}`)
		must(t, scene.Until(ctx, "the lease time", func(ctx context.Context) error {
			c, err := conditionOf(ctx, "clusters", "infra/c1", "DHCPReady")
			if err == nil && c.Status != "True" {
				err = fmt.Errorf("DHCPReady is %s: %s", c.Status, c.Message)
			}
			return err
		}))
	}
	kubectl(t, ctx, "-n", "oooi-system", "rollout", "restart", "deployment/oooi-controller-manager")
	kubectl(t, ctx, "-n", "oooi-system", "rollout", "status", "deployment/oooi-controller-manager", "--timeout=60s")
	kubectl(t, ctx, "-n", "clusters-c1", "rollout", "status", behind, "--timeout=60s")
	if all := turned(); len(all) > 0 {
		t.Errorf("Ready turned: %v", all)
	}
}

// follow watches Infra c1, and tells in the end what Ready said other than True.
func follow(t *testing.T, ctx context.Context) func() []string {
	t.Helper()
	ctx, stop := context.WithCancel(ctx)
	watch := exec.CommandContext(ctx, "kubectl", "-n", "clusters", "get", "infra", "c1", "-w", "-o", "json")
	out, err := watch.StdoutPipe()
	must(t, err)
	must(t, watch.Start())
	var turned []string
	var done sync.WaitGroup
	done.Go(func() {
		for dec := json.NewDecoder(out); ; {
			var o struct {
				Status struct{ Conditions []condition }
			}
			if dec.Decode(&o) != nil {
				return
			}
			for _, c := range o.Status.Conditions {
				if c.Type == "Ready" && c.Status != "True" {
					turned = append(turned, c.Reason+": "+c.Message)
				}
			}
		}
	})
	t.Cleanup(stop)
	return func() []string {
		stop()
		done.Wait()
		_ = watch.Wait() // ended just now
		return turned
	}
}
