//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cldmnky/oooi/test/lab/scene"
)

// infraOn is another Infra of c1, on a VLAN of its own.
func infraOn(name, cidr, nad string) string {
	return fmt.Sprintf(`apiVersion: hostedcluster.densityops.com/v1alpha1
kind: Infra
metadata: {name: %s, namespace: clusters}
spec:
  hostedClusterRef: {name: c1}
  networkConfig: {cidr: %s, networkAttachmentDefinition: %s, networkAttachmentNamespace: default}
`, name, cidr, nad)
}

func TestAMissingNADIsNamedAndNothingIsCreated(t *testing.T) {
	ctx := within(t, time.Minute)
	apply(t, ctx, infraOn("nonad", "192.168.150.0/24", "vlan150"))
	message := awaitCondition(t, ctx, "clusters", "infra/nonad", "NetworkReady", "False", "NADNotFound")
	if !strings.Contains(message, "default/vlan150") {
		t.Errorf("the message does not name the NAD: %s", message)
	}
	if found := inventory(t, ctx, "nonad"); len(found) != 0 {
		t.Errorf("there are objects although the NAD is missing: %v", found)
	}
}

func TestANADWithItsOwnIPAMGivesOurPodsADerivedOne(t *testing.T) {
	ctx := within(t, 2*time.Minute)
	_, err := lab.Lab(ctx, "vlan", "151")
	must(t, err)
	apply(t, ctx, `apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: vlan151, namespace: default}
spec: {config: '{"cniVersion":"0.3.1","name":"vlan151","type":"bridge","bridge":"br151","ipam":{"type":"host-local","subnet":"192.168.151.0/24","rangeStart":"192.168.151.200","rangeEnd":"192.168.151.220"}}'}
`)
	apply(t, ctx, infraOn("ipam", "192.168.151.0/24", "vlan151"))
	awaitCondition(t, ctx, "clusters", "infra/ipam", "NetworkReady", "False", "WorkerNADHasIPAM")
	for _, c := range []string{"DHCPReady", "DNSReady", "ProxyReady"} {
		awaitCondition(t, ctx, "clusters", "infra/ipam", c, "True", "")
	}
}

func TestSwitchingDHCPOffRemovesExactlyDHCP(t *testing.T) {
	ctx := within(t, 2*time.Minute)
	ready(t, ctx)
	before := inventory(t, ctx, "c1")
	kubectl(t, ctx, "-n", "clusters", "patch", "infra", "c1", "--type=merge", "-p", `{"spec":{"infraComponents":{"dhcp":{"enabled":false}}}}`)
	afterwards(t, func(ctx context.Context) error {
		_, err := lab.Kubectl(ctx, "-n", "clusters", "patch", "infra", "c1", "--type=merge", "-p", `{"spec":{"infraComponents":{"dhcp":null}}}`)
		return errors.Join(err, scene.Until(ctx, "DHCP back", func(ctx context.Context) error {
			c, err := conditionOf(ctx, "clusters", "infra/c1", "DHCPReady")
			if err == nil && c.Status != "True" {
				err = errors.New(c.Message)
			}
			return err
		}))
	})
	kubectl(t, ctx, "-n", "clusters", "wait", "--for=delete", "dhcpserver/c1-dhcp", "statefulset/c1-dhcp-deployment", "statefulset/c1-dhcp-deployment-1", "--timeout=60s")
	var wrong []string
	must(t, scene.Until(ctx, "only DHCP's objects gone", func(context.Context) error {
		after := inventory(t, ctx, "c1")
		wrong = nil
		for _, o := range before {
			// DHCP's own objects are deleted, its leases stay: to disable DHCP does not revoke a lease.
			mine := strings.Contains(o, "dhcp") && !strings.HasPrefix(o, "DHCPLease/")
			if mine == contains(after, o) {
				wrong = append(wrong, o)
			}
		}
		if len(wrong) > 0 {
			return fmt.Errorf("wrongly kept or removed: %v", wrong)
		}
		return nil
	}))
	if c, err := conditionOf(ctx, "clusters", "infra/c1", "DHCPReady"); err == nil {
		t.Errorf("the condition of a component that is off is still there: %+v", c)
	}
	for _, c := range []string{"DNSReady", "ProxyReady"} {
		awaitCondition(t, ctx, "clusters", "infra/c1", c, "True", "")
	}
}

func contains(all []string, one string) bool {
	for _, s := range all {
		if s == one {
			return true
		}
	}
	return false
}
