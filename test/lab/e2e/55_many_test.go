//go:build e2e && many

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cldmnky/oooi/test/lab/scene"
)

// frugal is another Infra of c1 on a VLAN of its own, so small that the node can run many.
func frugal(name, cidr, nad string) string {
	const least = "resources: {requests: {cpu: 1m, memory: 16Mi}}"
	return infraOn(name, cidr, nad) + fmt.Sprintf("  infraComponents: {dhcp: {replicas: 1, %[1]s}, dns: {replicas: 1, %[1]s}, proxy: {replicas: 1, %[1]s}}\n", least)
}

// The line that ForwardingNotPrevented suggests affects the network of every Infra. It takes effect for pods that start later.
func TestALineInTheAllowlistReplacesNoPodOfTwentyInfras(t *testing.T) {
	const infras, list = 20, "cni-sysctl-allowlist"
	ctx := within(t, 10*time.Minute)
	ready(t, ctx)
	kubectl(t, ctx, "create", "namespace", "openshift-multus")
	afterwards(t, func(ctx context.Context) error {
		_, err := lab.Kubectl(ctx, "delete", "namespace", "openshift-multus")
		return err
	})
	kubectl(t, ctx, "-n", "openshift-multus", "create", "configmap", list, "--from-literal=allowlist.conf=^net.ipv4.conf.IFNAME.accept_ra$\n")

	var all strings.Builder
	for i := range infras {
		name := fmt.Sprintf("many%02d", i)
		_, err := lab.Lab(ctx, "vlan", fmt.Sprint(210+i))
		must(t, err)
		all.WriteString(scene.BridgeNAD(name, fmt.Sprintf("br%d", 210+i)) + "---\n" + frugal(name, fmt.Sprintf("192.168.%d.0/24", 210+i), name) + "---\n")
	}
	began := time.Now()
	apply(t, ctx, all.String())
	eachChild(t, ctx, infras, `.status.conditions[?(@.type=="Ready")].status`, "True")
	ready(t, ctx)
	t.Logf("%d Infras are Ready after %s", infras, time.Since(began).Round(time.Second))
	before := ourPods(t, ctx)

	message := kubectl(t, ctx, "-n", "clusters", "get", "infra", "c1", "-o", `jsonpath={.status.conditions[?(@.type=="NetworkReady")].message}`)
	_, line, _ := strings.Cut(message, "add the line ")
	line, _, found := strings.Cut(line, " to ")
	if !found {
		t.Fatalf("c1 does not say which line is missing: %s", message)
	}
	kubectl(t, ctx, "-n", "openshift-multus", "patch", "configmap", list, "--type=merge", "-p", fmt.Sprintf(`{"data":{"allowlist.conf":%q}}`, line+"\n"))
	eachChild(t, ctx, infras, `.status.conditions[?(@.type=="Progressing")].reason`, "TemplateUpdatePending")
	if after := ourPods(t, ctx); !slices.Equal(after, before) {
		t.Errorf("pods before the line %q and after it:\n%v\n%v", line, before, after)
	}

	afterwards(t, func(ctx context.Context) error { // later scenarios expect pods that never forward
		_, err := lab.Kubectl(ctx, "-n", "clusters", "annotate", "statefulset,deployment", "-l", "hostedcluster.densityops.com/infra=c1", "hostedcluster.densityops.com/released-")
		return errors.Join(err, scene.Until(ctx, "c1 settles", func(ctx context.Context) error {
			c, err := conditionOf(ctx, "clusters", "infra/c1", "Progressing")
			if err == nil && c.Reason != "Settled" {
				err = errors.New(c.Message)
			}
			return err
		}))
	})
}

// eachChild waits until a path of every child of the Infras has the wanted value.
func eachChild(t *testing.T, ctx context.Context, infras int, path, want string) {
	t.Helper()
	must(t, scene.Until(ctx, path, func(ctx context.Context) error {
		out, err := lab.Kubectl(ctx, "-n", "clusters", "get", "dhcpservers,dnsservers,proxyservers", "-o",
			fmt.Sprintf(`jsonpath={range .items[*]}{.metadata.name}={%s}{"\n"}{end}`, path))
		if err != nil {
			return err
		}
		left := slices.DeleteFunc(strings.Fields(out), func(s string) bool { return !strings.HasPrefix(s, "many") })
		there := len(left)
		left = slices.DeleteFunc(left, func(s string) bool { return strings.HasSuffix(s, "="+want) })
		if there != 3*infras || len(left) > 0 {
			return fmt.Errorf("%d children, not %s: %v", there, want, left)
		}
		return nil
	}))
}

// ourPods are the pods of all Infras, with their containers' restart counts.
func ourPods(t *testing.T, ctx context.Context) []string {
	t.Helper()
	return strings.Split(podsAndRestarts(t, ctx, "-A", "-l", "app.kubernetes.io/managed-by=oooi,hostedcluster.densityops.com/infra"), "\n")
}
