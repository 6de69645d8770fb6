//go:build e2e

package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/cldmnky/oooi/test/lab/scene"
)

// A node that no longer reports is named, with what to do, and so is what blocks the deletion of an Infra; when the node is back, all
// continues. The kubelet is stopped, as on a machine without power; the lab has one node, so its containers cannot be.
func TestANodeThatIsLostIsNamed(t *testing.T) {
	ctx := within(t, 6*time.Minute)
	_, err := lab.Lab(ctx, "vlan", "136")
	must(t, err)
	apply(t, ctx, scene.BridgeNAD("vlan136", "br136")+"---\n"+infraOn("stranded", "192.168.136.0/24", "vlan136"))
	awaitCondition(t, ctx, "clusters", "infra/stranded", "DHCPReady", "True", "")
	ready(t, ctx)

	kubelet := func(signal string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := lab.Lab(ctx, "exec", "busybox", "killall", signal, "kubelet")
			return err
		}
	}
	afterwards(t, kubelet("-CONT"))
	must(t, kubelet("-STOP")(ctx))
	kubectl(t, ctx, "wait", "--for=condition=Ready=Unknown", "node/node1", "--timeout=120s")
	turns(t, ctx, "c1", "False", "NodeLost", "kubectl taint node node1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute")
	kubectl(t, ctx, "-n", "clusters", "delete", "infra", "stranded", "--wait=false")
	awaitMessage(t, ctx, "clusters", "infra/stranded", "Degraded", "True", "NodeLost", "cannot end: its node node1 is not Ready")

	must(t, kubelet("-CONT")(ctx))
	kubectl(t, ctx, "-n", "clusters", "wait", "--for=delete", "infra/stranded", "--timeout=120s")
	ready(t, ctx)
}
