//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cldmnky/oooi/test/lab/scene"
)

// Of two DNS instances one dies with its node, without notice: no lookup of a client with both in its resolv.conf fails, and the Infra says
// which does not serve. With one node both run there, and DNSReady says so.
func TestANodeDiesAndNoLookupFails(t *testing.T) {
	ctx := within(t, 8*time.Minute)
	_, err := lab.Lab(ctx, "vlan", "139")
	must(t, err)
	apply(t, ctx, scene.BridgeNAD("vlan139", "br139")+"---\n"+infraOn("twin", "192.168.139.0/24", "vlan139"))
	awaitMessage(t, ctx, "clusters", "infra/twin", "DNSReady", "True", "InstancesShareNode", "on node node1: its failure stops both")

	secondNode(t, ctx)
	kubectl(t, ctx, "-n", "clusters", "delete", "pod", "twin-dns-deployment-1-0") // as the message says
	awaitCondition(t, ctx, "clusters", "infra/twin", "DNSReady", "True", "Serving")
	if node := field(t, ctx, "pod/twin-dns-deployment-1-0", ".spec.nodeName"); node != "node2" {
		t.Fatalf("the second instance is on %s", node)
	}

	client := neighbour(t, ctx, "twin", "br139", "")
	lease, err := client.Lease(ctx)
	must(t, err)
	if len(lease.Resolvers) != 2 {
		t.Fatalf("option 6 has %v", lease.Resolvers)
	}
	failed, lookups := 0, 0
	look := func() {
		for i := range lease.Resolvers { // resolv.conf in either order
			first, second := lease.Resolvers[i], lease.Resolvers[1-i]
			script := fmt.Sprintf("dig +short +time=2 +tries=2 @%[1]s %[3]s || dig +short +time=2 +tries=2 @%[2]s %[3]s", first, second, "ignition-server-clusters-c1.apps.mgmt.example.com")
			out, err := client.Run(ctx, "sh", "-c", script)
			if lookups++; err != nil || strings.TrimSpace(out[strings.LastIndex(strings.TrimSpace(out), "\n")+1:]) != "192.168.139.3" {
				failed++
				t.Logf("lookup %d: %q %v", lookups, out, err)
			}
		}
	}
	look()
	_, err = lab.Lab(ctx, "cut", "all")
	must(t, err)
	for told := false; !told; {
		look()
		ready, _ := lab.Kubectl(ctx, "-n", "clusters", "get", "infra", "twin", "-o", `jsonpath={.status.conditions[?(@.type=="DNSReady")].reason}`)
		told = strings.TrimSpace(ready) == "InstanceDown"
	}
	awaitCondition(t, ctx, "clusters", "infra/twin", "Degraded", "True", "InstanceDown")
	_, err = lab.Lab(ctx, "mend")
	must(t, err)
	awaitCondition(t, ctx, "clusters", "infra/twin", "DNSReady", "True", "Serving")
	look()
	t.Logf("%d of %d lookups failed", failed, lookups)
	if failed > 0 {
		t.Fail()
	}
}
