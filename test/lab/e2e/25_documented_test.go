//go:build e2e

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cldmnky/oooi/test/lab/scene"
)

// These are networks from documentation that this kernel supports and that workers can be on. It has no VLAN filtering of bridges, so those
// with a vlan are only planned, as are those that assign addresses (internal/plan/testdata/documented, each with its source; cni-* are
// composed of the plugins' keys). A client on each gets a lease, names and the API. Two are on br1, one after the other.
func TestAClientJoinsThroughADocumentedNetwork(t *testing.T) {
	for _, c := range []struct {
		network, cidr string
		bridge        string // the client's
		before        []string
	}{
		{network: "examples-bridge-empty-ipam", cidr: "192.168.153.0/24", bridge: "br-vlan-2003"},
		{network: "examples-bridge-preserve-default-vlan", cidr: "192.168.154.0/24", bridge: "coe-bridge", before: []string{"link add coe-bridge type bridge", "link set coe-bridge up"}},
		{network: "cni-bridge-port-isolation", cidr: "192.168.155.0/24", bridge: "br1"},
		{network: "openshift-linux-bridge-native", cidr: "192.168.157.0/24", bridge: "br1"},
		{network: "cni-macvlan", cidr: "192.168.156.0/24", bridge: "br156", before: []string{"link add eth1.100 type veth peer name trunk156", "link set trunk156 master br156 up", "link set eth1.100 up"}},
	} {
		t.Run(c.network, func(t *testing.T) {
			if c.bridge != "br1" {
				t.Parallel()
			}
			ctx := within(t, 2*time.Minute)
			if vlan, ok := strings.CutPrefix(c.bridge, "br"); ok {
				_, err := lab.Lab(ctx, "vlan", vlan)
				must(t, err)
			}
			for _, command := range c.before {
				inNode(t, ctx, command)
			}
			apply(t, ctx, documentedInfra(t, "on-"+c.network, c.cidr, c.network))
			n := neighbour(t, ctx, "doc-"+c.cidr[8:11], c.bridge, "")
			if c.network == "cni-bridge-port-isolation" { // like the workers' ports
				inNode(t, ctx, "link set n-doc-155 type bridge_slave isolated on")
			}
			must(t, scene.Until(ctx, "a client joins", func(ctx context.Context) error { return boots(ctx, n) }))
		})
	}
}

// documentedInfra is an Infra on a network from documentation, and the network.
func documentedInfra(t *testing.T, name, cidr, network string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(scene.Root(), "internal/plan/testdata/documented", network, "in.yaml"))
	must(t, err)
	field := func(key string) string {
		_, rest, _ := strings.Cut(string(text), "\n  "+key+": ")
		value, _, _ := strings.Cut(rest, "\n")
		return value
	}
	infra := strings.Replace(infraOn(name, cidr, field("name")), "networkAttachmentNamespace: default", "networkAttachmentNamespace: "+field("namespace"), 1)
	return string(text) + "---\n" + infra
}

// inNode runs ip in the node's network namespace.
func inNode(t *testing.T, ctx context.Context, command string) {
	t.Helper()
	_, err := lab.Run(ctx, "ip", append([]string{"-n", os.Getenv("LAB_NETNS")}, strings.Fields(command)...)...)
	must(t, err)
}
