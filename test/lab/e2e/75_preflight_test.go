//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cldmnky/oooi/test/lab/scene"
)

// These examples of preflight, with other names and VLANs, fail in the lab, and work once the changes that preflight prints are applied. Of
// the others, the lab cannot show:
//   - WorkerNADHasIPAM, DefaultNetworkAttached: it has no virt-launcher, and machines have one interface;
//   - PolicyRoutingUnavailable, MTUNotSpecified, ForwardingNotPrevented: its networks are bridges;
//   - ExternalInfra, SharedIngressUnsupported, BaseDomainPassthrough: it is one cluster, without OpenShift's router;
//   - NoTimeSource, MTUMismatch: machines have this machine's clock, and TCP uses the smaller MSS of both sides;
//   - CIDROverlapsNetwork, CapturedAddressInUse: CapturedAddressRefused shows a HostedCluster that is recreated;
//   - DNSServersOutsideVLAN: nothing fails, because its nodes reach every resolver; OneInstanceServes: that instance answers;
//   - StaticEntryIgnored: DNS answers with the endpoint;
//   - NetworkAttachmentMissing and NetworkAttachmentAmbiguous, which a HostedCluster's owner can mend in several ways, and AnnotationInvalid,
//     which TestAnAnnotationIsAllThatIsTyped shows; VLANInUse, whose YAML is for two Infras;
//   - what admission refuses (InvalidCIDR, RangeOutsideCIDR, ImageOverrideNotAllowed …), and what has no YAML, because there are several ways.
// All else that condition Accepted refuses fails like AddressInUse: nothing is applied, and nobody answers.

// mended is an example whose VLAN a client joins from a network namespace.
type mended struct {
	code string
	// fails is the step at which the client fails.
	fails string
	// before runs first; what it starts ends once the client has failed. Nil: the Infra is refused.
	before func(*testing.T, context.Context, *scene.Neighbour)
}

func TestWhatPreflightPrintsMakesAClientJoin(t *testing.T) {
	for i, c := range []mended{
		{"AddressInUse", "lease", nil},
		{"NoFreeAddress", "lease", nil},
		{"InvalidRoute", "lease", nil},
		{"InvalidDNSServer", "lease", nil},
		{"ClientCIDROverlapsCluster", "lease", nil},
		{"PoolTooSmall", "lease", threeBefore},
		{"DNSServersUnreachable", "names", leased},
		{"CapturedAddressNeedsRoute", "api", leasedElsewhere},
	} {
		t.Run(c.code, func(t *testing.T) {
			t.Parallel()
			c.shown(t, within(t, 5*time.Minute), 160+i)
		})
	}
}

func (c mended) shown(t *testing.T, ctx context.Context, vlan int) {
	infra, bridge := strings.ToLower(c.code), fmt.Sprintf("br%d", vlan)
	example := failing(t, c.code, strings.NewReplacer(
		"kind: Infra\nmetadata: {name: c1,", "kind: Infra\nmetadata: {name: "+infra+",",
		"10.128.4.0/24", "10.96.4.0/24", // in the lab's network of Services
		"vlan100", fmt.Sprintf("vlan%d", vlan), `"bridge":"br100","vlan":100`, `"bridge":"`+bridge+`"`))
	_, err := lab.Lab(ctx, "vlan", fmt.Sprint(vlan))
	must(t, err)
	apply(t, ctx, documents(example, "Infra", "NetworkAttachmentDefinition"))
	n := neighbour(t, ctx, fmt.Sprintf("on-%d", vlan), bridge, "")
	failing, failed := context.WithCancel(ctx)
	defer failed()
	if c.before == nil {
		awaitCondition(t, ctx, "clusters", "infra/"+infra, "Accepted", "False", c.code)
	} else {
		awaitCondition(t, ctx, "clusters", "infra/"+infra, "ProxyReady", "True", "")
		c.before(t, failing, n)
	}
	if err := boots(ctx, n); err == nil || !strings.HasPrefix(err.Error(), c.fails+": ") {
		t.Fatalf("with the failing example a client should not get past %s: %v", c.fails, err)
	}
	failed()

	patch(t, ctx, printed(t, ctx, example, c.code))
	must(t, scene.Until(ctx, "a client joins", func(ctx context.Context) error { return boots(ctx, n) }))
}

// boots does what a worker does before it has its root disk: it gets a lease, resolves Ignition's host, and connects to the API.
func boots(ctx context.Context, n *scene.Neighbour) error {
	lease, err := n.Lease(ctx)
	if err != nil {
		return fmt.Errorf("lease: %w", err)
	}
	for _, server := range lease.Resolvers {
		if _, err := n.Resolve(ctx, server, "ignition-server-clusters-c1.apps.mgmt.example.com"); err != nil {
			return fmt.Errorf("names: %w", err)
		}
	}
	if _, err := answers(n, net.JoinHostPort("203.0.113.10", "6443"), ""); err != nil {
		return fmt.Errorf("api: %w", err)
	}
	return nil
}

// leased waits for a lease.
func leased(t *testing.T, ctx context.Context, n *scene.Neighbour) {
	t.Helper()
	must(t, scene.Until(ctx, "a lease", func(ctx context.Context) error { _, err := n.Lease(ctx); return err }))
}

// threeBefore has as many machines lease as the NodePool has replicas, before one is replaced.
func threeBefore(t *testing.T, ctx context.Context, n *scene.Neighbour) {
	t.Helper()
	for i := 1; i <= 4; i++ {
		mac := fmt.Sprintf("52:54:00:00:75:%02x", i)
		machine := []string{"worker", "--cluster", "c1", "--name", fmt.Sprintf("pool-%d", i), "--mac", mac, "--nad", "default/" + strings.Replace(n.Bridge, "br", "vlan", 1)}
		_, err := lab.Standin(ctx, machine...)
		must(t, err)
		afterwards(t, func(ctx context.Context) error {
			_, err := lab.Standin(ctx, append(machine, "--remove")...)
			return err
		})
		must(t, n.Becomes(ctx, mac))
		if i < 4 {
			leased(t, ctx, n)
		}
	}
}

// leasedElsewhere: another DHCP server leases addresses, without our routes.
func leasedElsewhere(t *testing.T, ctx context.Context, n *scene.Neighbour) {
	foreign := neighbour(t, ctx, "foreign-dhcp", n.Bridge, "192.168.100.250/24")
	go foreign.Run(ctx, "dnsmasq", "--no-daemon", "--conf-file=/dev/null", "--port=0", "--leasefile-ro", "--dhcp-range=192.168.100.200,192.168.100.240,1h", "--dhcp-option=3", "--dhcp-option=6")
	leased(t, ctx, n)
}

// The control plane is published at an address that no pod may carry, and the NodePool is on another VLAN. The HostedCluster is recreated
// with the name that preflight prints, the NodePool is changed as preflight says, and its machine joins.
func TestWhatPreflightPrintsMakesAMachineJoin(t *testing.T) {
	ctx := within(t, 10*time.Minute)
	onC2 := strings.NewReplacer("c1-workers", "c2", "c1", "c2", "example.com", "hosted.example.com",
		"vlan200", "vlan201", `"bridge":"br200","vlan":200`, `"bridge":"br201"`, "vlan100", "vlan200", `"bridge":"br100","vlan":100`, `"bridge":"br200"`)
	refused, astray := failing(t, "CapturedAddressRefused", onC2), failing(t, "NodePoolNotOnVLAN", onC2)

	published := []string{"--strategy", "nodeport", "--nad", "default/vlan201", "--node-address"}
	hostedC2(t, ctx, append(published, "169.254.7.7")...)
	_, err := lab.Lab(ctx, "vlan", "201")
	must(t, err)
	apply(t, ctx, documents(refused, "Infra", "NetworkAttachmentDefinition"))
	awaitCondition(t, ctx, "clusters", "infra/c2", "EndpointsResolved", "False", "CapturedAddressRefused")
	n := neighbour(t, ctx, "on-200", "br200", "")
	if lease, err := n.Lease(ctx); err == nil {
		t.Fatalf("there is a lease although nothing may be applied: %v", lease)
	}

	// spec.services is immutable, so the HostedCluster is recreated.
	file := filepath.Join(t.TempDir(), "hostedcluster.yaml")
	must(t, os.WriteFile(file, []byte(documents(refused, "HostedCluster")), 0o600))
	name := kubectl(t, ctx, "patch", "--local", "--type=merge", "-f", file, "--patch-file", printed(t, ctx, refused, "CapturedAddressRefused"),
		"-o", "jsonpath={.spec.services[0].servicePublishingStrategy.nodePort.address}")
	kubectl(t, ctx, "-n", "clusters", "delete", "hostedcluster", "c2", "--timeout=30s")
	_, err = lab.Standin(ctx, append(append([]string{"apply", "--cluster", "c2"}, published...), name)...)
	must(t, err)

	apply(t, ctx, documents(astray, "NetworkAttachmentDefinition"))
	awaitCondition(t, ctx, "clusters", "infra/c2", "NetworkReady", "False", "NodePoolNotOnVLAN")
	awaitCondition(t, ctx, "clusters", "infra/c2", "DHCPReady", "True", "")
	there := neighbour(t, ctx, "on-201", bridgeOfC2(t, ctx), "")
	if lease, err := there.Lease(ctx); err == nil {
		t.Fatalf("there is a lease on the NodePool's VLAN, which is not the Infra's: %v", lease)
	}
	patch(t, ctx, printed(t, ctx, astray, "NodePoolNotOnVLAN"))
	awaitCondition(t, ctx, "clusters", "infra/c2", "Ready", "True", "")
	joins(t, ctx, scene.Machine{Name: "worker-75", MAC: "52:54:00:00:02:75", Cluster: "c2", Bridge: bridgeOfC2(t, ctx), NAD: "default/vlan200", StandinFlags: []string{"--strategy", "nodeport", "--node-address", name}})
}

// bridgeOfC2 is the bridge to which KubeVirt would attach a machine of the NodePool.
func bridgeOfC2(t *testing.T, ctx context.Context) string {
	t.Helper()
	network := kubectl(t, ctx, "-n", "clusters", "get", "nodepool", "c2", "-o", "jsonpath={.spec.platform.kubevirt.additionalNetworks[0].name}")
	namespace, name, _ := strings.Cut(network, "/")
	config := kubectl(t, ctx, "-n", namespace, "get", "net-attach-def", name, "-o", "jsonpath={.spec.config}")
	return regexp.MustCompile(`"bridge":"(\w+)"`).FindStringSubmatch(config)[1]
}

// failing is a code's failing example, adapted to the lab.
func failing(t *testing.T, code string, here *strings.Replacer) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(scene.Root(), "examples/preflight", code, "fails.yaml"))
	must(t, err)
	return here.Replace(string(text))
}

// documents are those of a YAML text with some kinds.
func documents(text string, kinds ...string) string {
	all := strings.Split(text, "---\n")
	return strings.Join(slices.DeleteFunc(all, func(doc string) bool {
		return !slices.ContainsFunc(kinds, func(kind string) bool { return strings.Contains(doc, "\nkind: "+kind+"\n") })
	}), "---\n")
}

// printed writes the changes that preflight prints for a code into a file, and returns its path.
func printed(t *testing.T, ctx context.Context, example, code string) string {
	t.Helper()
	out, err := lab.Pipe(ctx, example, "oooi", "preflight", "-f", "-", "-o", "json", "--pod-cidrs", "10.244.0.0/24", "--service-cidrs", "10.96.0.0/16")
	var said struct {
		Infras []struct {
			Findings []struct{ Code, YAML string }
		}
	}
	must(t, json.Unmarshal([]byte(out), &said))
	for _, infra := range said.Infras {
		for _, f := range infra.Findings {
			if f.Code == code {
				file := filepath.Join(t.TempDir(), code+".yaml")
				must(t, os.WriteFile(file, []byte(f.YAML), 0o600))
				return file
			}
		}
	}
	t.Fatalf("preflight does not find %s: %s %v", code, out, err)
	return ""
}

// patch applies what preflight printed, in the way that it says.
func patch(t *testing.T, ctx context.Context, file string) {
	t.Helper()
	kubectl(t, ctx, "patch", "--type=merge", "-f", file, "--patch-file", file)
}
