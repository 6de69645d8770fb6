package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/testkit/envtest"
)

// lines are a page's commands that begin with some words. What they read of this machine is below the shell's directory.
func lines(t *testing.T, page, begins string) (all []string) {
	t.Helper()
	for _, b := range blocks(pages(t)[page]) {
		for _, line := range b.commands() {
			if strings.HasPrefix(line, begins) {
				all = append(all, strings.NewReplacer(" /etc/", " etc/", " /var/", " var/").Replace(line))
			}
		}
	}
	NewWithT(t).Expect(all).NotTo(BeEmpty(), "%s has no command that begins with %q", page, begins)
	return all
}

// Each line prints an Infra with what the files say, and tells what is left by file and line.
func TestThePageOnMovingInImportsFiles(t *testing.T) {
	if args := os.Getenv("OOOI_TEST_ARGS"); args != "" {
		asProcess(t, args)
	}
	s := inDirectory(t)
	s.writesExample()
	for dir, from := range map[string]string{"etc": "dnsmasq", "etc/haproxy": "haproxy", "etc/dhcp": "isc-dhcpd", "etc/bind": "bind", "etc/kea": "kea"} {
		s.Expect(os.CopyFS(filepath.Join(s.dir, dir), os.DirFS("testdata/moving/"+from))).To(Succeed())
	}
	s.runs("mkdir -p var/cache/bind; cp etc/bind/example/zone var/cache/bind/example.com.zone")
	infra, err := os.ReadFile("testdata/moving/infra.yaml")
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(os.WriteFile(filepath.Join(s.dir, "infra.yaml"), infra, 0o600)).To(Succeed())
	for i, line := range lines(t, "docs/MOVING_IN.md", "oooi import") {
		left := s.runs(line + " 2>left || [ $? = 1 ]; cat left")
		printed, err := os.ReadFile(filepath.Join(s.dir, "imported.yaml"))
		s.Expect(err).NotTo(HaveOccurred())
		s.Expect(decoded(strings.TrimPrefix(string(printed), "---\n"))).To(Succeed(), line)
		s.Expect(left).To(MatchRegexp(`(?m)^etc/[\w/.-]+:\d+: `), line)
		s.Expect(string(printed)).To(And(ContainSubstring("rangeStart: 192.168.77.100\n"), ContainSubstring([]string{"192.168.77.81", "registry.example.com", "192.168.77.20"}[i])), line)
	}
}

// moved is an Infra with addresses and a lease, and in both clusters what it refers to.
const moved = `
for context in x west; do
  kubectl --context $context create namespace clusters
  kubectl --context $context apply -f - <<E` + adminsHostedCluster + `E
done
kubectl apply -f nad.yaml -f infra.yaml
kubectl annotate -n clusters infra c1 'hostedcluster.densityops.com/given={"of":"clusters/c1","addresses":{"dhcp":"192.168.100.7"}}'
kubectl apply -f - <<E
{apiVersion: hostedcluster.densityops.com/v1alpha1, kind: DHCPLease, metadata: {name: c1-dhcp-192.168.100.50, namespace: clusters}, spec: {
  ip: 192.168.100.50, mac: '52:54:00:00:00:01', serverRef: {name: c1-dhcp}, state: Bound, durableUntilTime: '2026-11-28T00:00:00.000000Z'}}
E
`

// The page's commands move an Infra between two clusters of one kubeconfig, after a rehearsal that changes neither.
func TestThePageOnMovingInMovesAnInfra(t *testing.T) {
	if args := os.Getenv("OOOI_TEST_ARGS"); args != "" {
		asProcess(t, args)
	}
	s := newShell(t)
	s.reaches("west", envtest.For(t, false))
	s.writesExample()
	s.runs(moved)
	move := lines(t, "docs/MOVING_IN.md", "oooi move")
	s.Expect(move).To(HaveLen(2))
	const there, here = "kubectl --context west get infra,olease -n clusters -o name 2>&1; ", "kubectl get infra c1 -n clusters -o jsonpath={.spec.infraComponents}"
	s.Expect(s.runs(move[0] + "; cat move-c1/*.yaml")).To(And(
		ContainSubstring("not in the files: HostedCluster clusters/c1"), ContainSubstring(`paused: "true"`), ContainSubstring("52:54:00:00:00:01")))
	s.Expect(s.runs(move[0] + " -o after >out 2>&1; ls after; " + there + here)).To(HavePrefix("1-network.yaml\n2-infra.yaml\n3-leases.yaml\n"))
	s.Expect(s.runs(there+here)).NotTo(Or(ContainSubstring("c1"), ContainSubstring("enabled")), "neither cluster has changed")
	s.runs(move[1])
	s.Expect(s.runs(there + here)).To(And(
		HavePrefix("infra.hostedcluster.densityops.com/c1\ndhcplease.hostedcluster.densityops.com/c1-dhcp-192.168.100.50\n"), ContainSubstring(`"dhcp":{"enabled":false`)))
	s.Expect(s.runs("kubectl --context west get infra c1 -n clusters -o jsonpath={.metadata.annotations}")).To(And(ContainSubstring("/given"), Not(ContainSubstring("/paused"))))
	s.Expect(s.runs("! " + move[1] + " 2>&1")).To(ContainSubstring("serves in the other cluster already"))
}

// The check's commands run on a cluster without the operator. The one that waits is the lab's, which has one.
func TestThePageOnChecksRunsWithoutAnOperator(t *testing.T) {
	if args := os.Getenv("OOOI_TEST_ARGS"); args != "" {
		asProcess(t, args)
	}
	s := newShell(t)
	s.runs("kubectl create namespace oooi-system")
	s.Expect(s.runs(lines(t, "docs/CHECK.md", "oooi check --pre")[0])).To(And(ContainSubstring("Kubernetes"), Not(MatchRegexp(`(?m)^  (fail|unread) `))))
	s.Expect(s.runs(lines(t, "docs/CHECK.md", "oooi check -n clusters")[0] + " || [ $? = 1 ]")).To(MatchRegexp(`(?s)"outcome": "fail".*"name": "operator"`))
	for _, line := range lines(t, "docs/CHECK.md", "kubectl") {
		s.runs(line)
	}
	s.Expect(s.runs("kubectl get clusterrolebinding,rolebinding -A -o name | grep anna")).To(Equal(
		"clusterrolebinding.rbac.authorization.k8s.io/anna-oooi-check\nrolebinding.rbac.authorization.k8s.io/anna-oooi-check\n"))
}
