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

// onNode2 is an Infra with all its pods on the second node.
func onNode2(name, cidr, nad string) string {
	where := "nodeSelector: {kubernetes.io/hostname: node2}"
	return infraOn(name, cidr, nad) + fmt.Sprintf("  infraComponents: {dhcp: {replicas: 1, %[1]s}, dns: {replicas: 1, %[1]s}, proxy: {replicas: 1, %[1]s}}\n", where)
}

// secondNode is there until the test ends.
func secondNode(t *testing.T, ctx context.Context) {
	t.Helper()
	afterwards(t, func(ctx context.Context) error {
		if _, err := lab.Lab(ctx, "node2-off"); err != nil {
			return err
		}
		for _, command := range []string{
			"delete node node2 --ignore-not-found",
			"delete pods -A --field-selector spec.nodeName=node2 --force", // else Kubernetes does, amid the next scenario
			"-n oooi-system rollout status deployment/oooi-controller-manager --timeout=60s",
		} {
			if _, err := lab.Kubectl(ctx, strings.Fields(command)...); err != nil {
				return err
			}
		}
		return nil
	})
	_, err := lab.Lab(ctx, "node2")
	must(t, err)
}

// A node is cut off from its VLANs only, from the API server only, and from everything, without notice. Pods that can still reach clients
// serve them, a lost node is named, and when it is back, everything serves again.
func TestASecondNodeIsCutOffAndComesBack(t *testing.T) {
	ctx := within(t, 8*time.Minute)
	_, err := lab.Lab(ctx, "vlan", "138")
	must(t, err)
	secondNode(t, ctx)
	apply(t, ctx, scene.BridgeNAD("vlan138", "br138")+"---\n"+onNode2("far", "192.168.138.0/24", "vlan138"))
	served := func() { // it is not Ready, because c1's machines are on another VLAN
		for _, part := range []string{"DHCPReady", "DNSReady", "ProxyReady"} {
			awaitCondition(t, ctx, "clusters", "infra/far", part, "True", "")
		}
	}
	served()

	client := neighbour(t, ctx, "far", "br138", "")
	lease, err := client.Lease(ctx)
	must(t, err)
	t.Logf("leased %s, resolvers %v", lease.Address, lease.Resolvers)
	answers := func() bool {
		out, err := client.Run(ctx, "dig", "+short", "+tries=1", "+time=1", "@192.168.138.2", "ignition-server-clusters-c1.apps.mgmt.example.com")
		return err == nil && strings.TrimSpace(out) == "192.168.138.3"
	}
	serves := func(after string, want bool) {
		t.Helper()
		began := time.Now()
		for answers() != want {
			if ctx.Err() != nil {
				t.Fatalf("%s: DNS answers: %t, want %t", after, !want, want)
			}
		}
		t.Logf("%s: DNS answers: %t, after %.1f s", after, want, time.Since(began).Seconds())
	}
	serves("at first", true)
	cut := func(from string) { _, err := lab.Lab(ctx, "cut", from); must(t, err) }
	mend := func() { _, err := lab.Lab(ctx, "mend"); must(t, err) }

	cut("vlan")
	serves("without its VLANs", false)
	mend()
	serves("with them again", true)

	cut("api")
	kubectl(t, ctx, "wait", "--for=condition=Ready=Unknown", "node/node2", "--timeout=120s")
	serves("without the API server", true)
	mend()
	kubectl(t, ctx, "wait", "--for=condition=Ready", "node/node2", "--timeout=60s")

	cut("all")
	serves("without anything", false)
	awaitMessage(t, ctx, "clusters", "infra/far", "DNSReady", "False", "NodeLost", "kubectl taint node node2 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute")
	mend()
	serves("when it is back", true)
	served()
}
