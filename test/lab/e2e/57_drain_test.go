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

// A node is drained as docs/OPERATE.md says: its instances come up on the other node, and nobody misses a service meanwhile. While one instance
// does not run, the drain of the other's node waits for it.
func TestADrainIsNotNoticed(t *testing.T) {
	ctx := within(t, 4*time.Minute)
	_, err := lab.Lab(ctx, "vlan", "138")
	must(t, err)
	apply(t, ctx, scene.BridgeNAD("vlan138", "br138")+"---\n"+infraOn("drained", "192.168.138.0/24", "vlan138"))
	onOneNode(t, ctx, "drained")
	secondNode(t, ctx)
	second, _ := apart(t, ctx, "drained")

	client := neighbour(t, ctx, "drained", "br138", "")
	lease, err := client.Lease(ctx)
	must(t, err)
	proxies := addressesOf(t, ctx, "drained", "proxy")
	look := lookups{T: t, client: client, resolvers: lease.Resolvers, proxies: proxies}
	connected := connects(t, ctx, neighbour(t, ctx, "caller", "br138", ""), proxies[1])
	drained := make(chan error, 1)
	go func() {
		_, err := lab.Kubectl(ctx, strings.Fields("drain node2 --ignore-daemonsets --delete-emptydir-data --timeout=120s")...)
		drained <- err
	}()
	for number, ended := 0, false; !ended; number++ {
		select {
		case err := <-drained:
			must(t, err)
			ended = true
		default:
			look.once(ctx)
			_, err := neighbour(t, ctx, fmt.Sprintf("new%d", number), "br138", "").Lease(ctx)
			must(t, err)
		}
	}
	onOneNode(t, ctx, "drained")
	if gap := connected(); gap > unscheduled || look.failed > 0 {
		t.Errorf("no connection by name for %s; %d of %d lookups failed", gap, look.failed, look.all)
	}

	kubectl(t, ctx, "uncordon", "node2")
	apart(t, ctx, "drained")
	afterwards(t, func(ctx context.Context) error {
		_, err := lab.Kubectl(ctx, "uncordon", "node1")
		return err
	})
	kubectl(t, ctx, "cordon", "node1")
	kubectl(t, ctx, "-n", "clusters", "delete", "pod", "drained-dns-deployment-0")
	// An eviction is judged by what the budget's status says, which comes after the pod has gone (kubernetes, registry/core/pod/storage/eviction.go).
	kubectl(t, ctx, "-n", "clusters", "wait", "--for=jsonpath={.status.disruptionsAllowed}=0", "pdb/drained-dns", "--timeout=60s")
	out, err := lab.Kubectl(ctx, strings.Fields("drain node2 --ignore-daemonsets --delete-emptydir-data --timeout=10s --pod-selector app.kubernetes.io/instance=drained-dns")...)
	if err == nil {
		t.Errorf("the node of the only DNS instance that serves was drained: %s", out)
	}
	if node := kubectl(t, ctx, append([]string{"get", "pod", "-o", "jsonpath={.items[*].spec.nodeName}"}, second("dns")...)...); node != "node2" {
		t.Errorf("the DNS instance that served is on %q", node)
	}
	look.once(ctx)
	if look.failed > 0 {
		t.Error("DNS was gone")
	}
}
