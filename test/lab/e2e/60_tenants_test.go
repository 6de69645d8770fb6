//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cldmnky/oooi/test/lab/scene"
)

// An Infra of another namespace names a HostedCluster without a reference grant: nothing is created in its control-plane namespace, nothing
// there is read by name, and no daemon is let in. The audit log does not show what the manager reads from its cache, which lists whole kinds
// in every namespace: internal/observe/permission_test.go does.
func TestAHostedClusterOfAnotherNamespaceNeedsPermission(t *testing.T) {
	ctx := within(t, 4*time.Minute)
	_, err := lab.Standin(ctx, "apply", "--cluster", "c2", "--lb-address", "203.0.113.20", "--nad", "default/vlan200")
	must(t, err)
	kubectl(t, ctx, "create", "namespace", "intruder")
	afterwards(t, func(ctx context.Context) error {
		_, err := lab.Kubectl(ctx, "delete", "namespace", "intruder")
		return err
	})
	_, err = lab.Lab(ctx, "vlan", "200")
	must(t, err)
	must(t, lab.Apply(ctx, scene.BridgeNAD("vlan200", "br200")))

	from := auditSize(t)
	apply(t, ctx, `apiVersion: hostedcluster.densityops.com/v1alpha1
kind: Infra
metadata: {name: theirs, namespace: intruder}
spec:
  hostedClusterRef: {name: c2, namespace: clusters}
  networkConfig: {cidr: 192.168.200.0/24, networkAttachmentDefinition: vlan200, networkAttachmentNamespace: default}
`)
	message := awaitCondition(t, ctx, "intruder", "infra/theirs", "Accepted", "False", "RefNotPermitted")
	if !strings.Contains(message, "allowed-namespaces") {
		t.Errorf("the message does not say what would permit it: %s", message)
	}
	judged := false
	for _, e := range auditSince(t, from) {
		if e.User.Username != "system:serviceaccount:oooi-system:oooi-controller-manager" {
			continue
		}
		judged = judged || e.Verb == "patch" && e.ObjectRef.Resource == "infras" && e.ObjectRef.Namespace == "intruder"
		if e.ObjectRef.Namespace == "clusters-c2" || e.ObjectRef.Resource == "secrets" {
			t.Errorf("the manager did %s %s %s/%s", e.Verb, e.ObjectRef.Resource, e.ObjectRef.Namespace, e.ObjectRef.Name)
		}
	}
	if !judged {
		t.Error("the audit log has no status of the Infra: it cannot show what else the manager did")
	}
	letIn := kubectl(t, ctx, "get", "rolebindings,clusterrolebindings", "-A", "-o", "jsonpath={.items[*].subjects[*].namespace}")
	if slices.Contains(strings.Fields(letIn), "intruder") {
		t.Error("an account of the intruder's namespace is bound to a Role")
	}
	if found := inventory(t, ctx, "theirs"); len(found) != 0 {
		t.Errorf("objects were made: %v", found)
	}
}

type auditEvent struct {
	Verb      string
	User      struct{ Username string }
	ObjectRef struct{ Resource, Namespace, Name string }
}

func auditSize(t *testing.T) int64 {
	t.Helper()
	info, err := os.Stat(os.Getenv("AUDIT_LOG"))
	must(t, err)
	return info.Size()
}

// auditSince reads the API server's audit log from an offset.
func auditSince(t *testing.T, offset int64) []auditEvent {
	t.Helper()
	f, err := os.Open(os.Getenv("AUDIT_LOG"))
	must(t, err)
	defer f.Close()
	_, err = f.Seek(offset, 0)
	must(t, err)
	var all []auditEvent
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e auditEvent
		must(t, json.Unmarshal(lines.Bytes(), &e))
		all = append(all, e)
	}
	must(t, lines.Err())
	return all
}

// Of two Infras of two hosted clusters in one namespace, nothing of one leads to the other.
func TestTwoInfrasInOneNamespaceNeverMix(t *testing.T) {
	ctx := within(t, 5*time.Minute)
	ready(t, ctx)
	_, err := lab.Standin(ctx, "apply", "--cluster", "c2", "--lb-address", "203.0.113.20", "--nad", "default/vlan200")
	must(t, err)
	_, err = lab.Lab(ctx, "vlan", "200")
	must(t, err)
	must(t, lab.Apply(ctx, scene.BridgeNAD("vlan200", "br200")))
	apply(t, ctx, strings.NewReplacer("name: c1", "name: c2", "192.168.100.", "192.168.200.", "vlan100", "vlan200").Replace(infraC1))
	awaitCondition(t, ctx, "clusters", "infra/c2", "Ready", "True", "")

	one := neighbour(t, ctx, "of-c1", "br100", "192.168.100.249/24")
	two := neighbour(t, ctx, "of-c2", "br200", "192.168.200.249/24")
	names := endpointHosts(t, ctx, "c1")
	for _, host := range append(names, endpointHosts(t, ctx, "c2")...) {
		mine := slices.Contains(names, host)
		if got := resolved(t, ctx, one, "c1", host); areProxies(t, ctx, got, "c1") != mine {
			t.Errorf("DNS of c1 answers %s with %q; the name is c1's: %v", host, got, mine)
		}
		if got := resolved(t, ctx, two, "c2", host); areProxies(t, ctx, got, "c2") == mine {
			t.Errorf("DNS of c2 answers %s with %q; the name is c1's: %v", host, got, mine)
		}
	}
	for infra, n := range map[string]*scene.Neighbour{"c1": one, "c2": two} {
		cert, err := answers(n, net.JoinHostPort(vip(t, ctx, infra), "6443"), "")
		must(t, err)
		if want := "api." + infra + ".hypershift.local"; !slices.Contains(cert, want) {
			t.Errorf("the API behind Infra %s shows a certificate for %v, want %s among them", infra, cert, want)
		}
		other := map[string]string{"c1": "c2", "c2": "c1"}[infra]
		for _, host := range endpointHosts(t, ctx, other) {
			if cert, err := answers(n, net.JoinHostPort(vip(t, ctx, infra), "443"), host); err == nil {
				t.Errorf("the proxy of %s lets a client through to %s of %s: %v", infra, host, other, cert)
			}
		}
	}
	for _, infra := range []string{"c1", "c2"} {
		pods := sorted(kubectl(t, ctx, "-n", "clusters", "get", "pods", "-l", "app=proxy,app.kubernetes.io/instance="+infra+"-proxy", "-o", "jsonpath={.items[*].status.podIP}"))
		slices := sorted(kubectl(t, ctx, "-n", "clusters", "get", "endpointslices", "-l", "kubernetes.io/service-name="+infra+"-proxy-svc", "-o", "jsonpath={.items[*].endpoints[*].addresses[*]}"))
		if pods == "" || pods != slices {
			t.Errorf("the Service of %s leads to %q; its pods are %q", infra, slices, pods)
		}
	}
}

// sorted are the words of a text in order.
func sorted(text string) string {
	return strings.Join(slices.Sorted(slices.Values(strings.Fields(text))), " ")
}

// endpointHosts are the names (not addresses) of an Infra's endpoint table.
func endpointHosts(t *testing.T, ctx context.Context, infra string) []string {
	t.Helper()
	all := strings.Fields(kubectl(t, ctx, "-n", "clusters", "get", "infra", infra, "-o", "jsonpath={range .status.endpoints[*]}{.hostnames[*]} {end}"))
	return slices.DeleteFunc(all, func(h string) bool { return net.ParseIP(h) != nil })
}

// resolved queries an Infra's DNS server as a client of its VLAN.
func resolved(t *testing.T, ctx context.Context, n *scene.Neighbour, infra, host string) []string {
	t.Helper()
	server := addressesOf(t, ctx, infra, "dns")[0]
	out, err := n.Run(ctx, "dig", "+short", "+tries=1", "+time=2", "@"+server, host)
	must(t, err)
	return strings.Fields(out)
}

// areProxies says whether there are answers, each an address of an Infra's proxies.
func areProxies(t *testing.T, ctx context.Context, answers []string, infra string) bool {
	t.Helper()
	proxies := addressesOf(t, ctx, infra, "proxy")
	return len(answers) > 0 && !slices.ContainsFunc(answers, func(a string) bool { return !slices.Contains(proxies, a) })
}
