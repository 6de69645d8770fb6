//go:build e2e

package e2e

import (
	"testing"
	"time"

	"github.com/cldmnky/oooi/test/lab/scene"
)

// KubeVirt's own example: no interface in the container, and MAC spoof check.
func TestAWorkerJoinsThroughKubeVirtsExample(t *testing.T) {
	ctx := within(t, 4*time.Minute)
	_, err := lab.Lab(ctx, "vlan", "10")
	must(t, err)
	apply(t, ctx, documentedInfra(t, "kubevirts", "192.168.152.0/24", "kubevirt-list-without-interface"))
	awaitCondition(t, ctx, "clusters", "infra/kubevirts", "ProxyReady", "True", "")
	joins(t, ctx, scene.Machine{Name: "worker-25", MAC: "52:54:00:00:01:25", Cluster: "c1", Bridge: "br10", NAD: "clusters/linux-bridge-net-ipam"})
}
