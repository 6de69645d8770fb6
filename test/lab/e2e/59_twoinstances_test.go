//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cldmnky/oooi/test/lab/scene"
)

// Of two instances of DNS and of DHCP one dies with its node, without notice. No lookup of a client with both name servers in its resolv.conf
// fails; a client that is new gets an address, one that is bound keeps its own; and the Infra says which does not serve. With one node both run
// there, and DNSReady and DHCPReady say so.
func TestANodeDiesAndTheOtherInstancesServe(t *testing.T) {
	ctx := within(t, 10*time.Minute)
	_, err := lab.Lab(ctx, "vlan", "139")
	must(t, err)
	apply(t, ctx, scene.BridgeNAD("vlan139", "br139")+"---\n"+infraOn("twin", "192.168.139.0/24", "vlan139"))
	for _, part := range []string{"DHCPReady", "DNSReady"} {
		awaitMessage(t, ctx, "clusters", "infra/twin", part, "True", "InstancesShareNode", "on node node1: its failure stops both")
	}

	secondNode(t, ctx)
	for _, component := range []string{"dhcp", "dns"} {
		kubectl(t, ctx, "-n", "clusters", "delete", "pod", "twin-"+component+"-deployment-1-0") // as the message says
	}
	serve := func() {
		t.Helper()
		for component, part := range map[string]string{"dhcp": "DHCPReady", "dns": "DNSReady"} {
			awaitCondition(t, ctx, "clusters", "infra/twin", part, "True", "Serving")
			if node := field(t, ctx, "pod/twin-"+component+"-deployment-1-0", ".spec.nodeName"); node != "node2" {
				t.Fatalf("the second instance of %s is on %s", component, node)
			}
		}
	}
	serve()

	bound := neighbour(t, ctx, "twin", "br139", "")
	lease, err := bound.Lease(ctx)
	must(t, err)
	if len(lease.Resolvers) != 2 {
		t.Fatalf("option 6 has %v", lease.Resolvers)
	}
	look := lookups{T: t, client: bound, resolvers: lease.Resolvers, proxy: addressesOf(t, ctx, "twin", "proxy")[0]}
	look.once(ctx)
	_, err = lab.Lab(ctx, "cut", "all")
	must(t, err)
	leasesOf := map[string]string{"bound": lease.Address}
	for n := range 3 {
		name := fmt.Sprintf("new%d", n)
		client, began := neighbour(t, ctx, name, "br139", ""), time.Now()
		lease, err := client.Lease(ctx)
		must(t, err)
		leasesOf[name] = lease.Address
		t.Logf("%s, whom no instance knew, has %s after %.1f s", name, lease.Address, time.Since(began).Seconds())
	}
	again, err := bound.Lease(ctx)
	must(t, err)
	if again.Address != lease.Address {
		t.Errorf("who had %s is given %s", lease.Address, again.Address)
	}
	for told := false; !told; {
		look.once(ctx)
		ready, _ := lab.Kubectl(ctx, "-n", "clusters", "get", "infra", "twin", "-o", `jsonpath={.status.conditions[?(@.type=="DNSReady")].reason}`)
		told = strings.TrimSpace(ready) == "InstanceDown"
	}
	awaitCondition(t, ctx, "clusters", "infra/twin", "DHCPReady", "True", "InstanceDown")
	awaitCondition(t, ctx, "clusters", "infra/twin", "Degraded", "True", "InstanceDown")
	_, err = lab.Lab(ctx, "mend")
	must(t, err)
	serve()
	look.once(ctx)
	last, err := neighbour(t, ctx, "last", "br139", "").Lease(ctx)
	must(t, err)
	leasesOf["last"] = last.Address
	signal(t, ctx, "pod/twin-dhcp-deployment-0", "dhcp", "SIGSTOP")
	alone, err := neighbour(t, ctx, "alone", "br139", "").Lease(ctx)
	must(t, err) // by the second alone
	leasesOf["alone"] = alone.Address
	signal(t, ctx, "pod/twin-dhcp-deployment-0", "dhcp", "SIGCONT")
	for name, at := range leasesOf {
		for other, its := range leasesOf {
			if name != other && at == its {
				t.Errorf("%s and %s have %s", name, other, at)
			}
		}
	}
	t.Logf("%d of %d lookups failed", look.failed, look.all)
	if look.failed > 0 {
		t.Fail()
	}
}

// lookups of a client that has two name servers.
type lookups struct {
	*testing.T
	client      *scene.Neighbour
	resolvers   []string
	proxy       string // the address that names have
	failed, all int
}

// once looks a name up, by a resolv.conf with the name servers in either order.
func (l *lookups) once(ctx context.Context) {
	for i := range l.resolvers {
		first, second := l.resolvers[i], l.resolvers[1-i]
		script := fmt.Sprintf("dig +short +time=2 +tries=2 @%[1]s %[3]s || dig +short +time=2 +tries=2 @%[2]s %[3]s", first, second, "ignition-server-clusters-c1.apps.mgmt.example.com")
		out, err := l.client.Run(ctx, "sh", "-c", script)
		if l.all++; err != nil || strings.TrimSpace(out[strings.LastIndex(strings.TrimSpace(out), "\n")+1:]) != l.proxy {
			l.failed++
			l.Logf("lookup %d: %q %v", l.all, out, err)
		}
	}
}
