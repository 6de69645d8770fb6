package cmd

import (
	"os/exec"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// A backup made as the page says has all that a user or the operator decided, and nothing by which the garbage collector would take a
// restored object for one whose owner is gone. The lab restores such a backup (test/lab/e2e, TestARestoredBackupKeepsAddressesAndLeases).
func TestThePageOnOperatingBacksUp(t *testing.T) {
	g := NewWithT(t)
	const list = `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"hostedcluster.densityops.com/v1alpha1","kind":"DHCPServer","metadata":{
"name":"c1-dhcp","namespace":"clusters","labels":{"a":"b"},"annotations":{"c":"d"},"uid":"1","resourceVersion":"2","generation":3,
"creationTimestamp":"2026-11-28T00:00:00Z","finalizers":["f"],"managedFields":[{}],"ownerReferences":[{"kind":"Infra","uid":"4"}]},
"spec":{"networkConfig":{"serverIP":"192.168.100.1"}},"status":{"conditions":[]}}]}`
	const want = `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"hostedcluster.densityops.com/v1alpha1","kind":"DHCPServer","metadata":{
"name":"c1-dhcp","namespace":"clusters","labels":{"a":"b"},"annotations":{"c":"d"}},"spec":{"networkConfig":{"serverIP":"192.168.100.1"}}}]}`
	_, script, found := strings.Cut(pages(t)["docs/OPERATE.md"], "-o json | jq ")
	g.Expect(found).To(BeTrue())
	script, _, _ = strings.Cut(script, " > clusters.json")
	command := exec.CommandContext(t.Context(), "sh", "-c", "jq "+script)
	command.Stdin = strings.NewReader(list)
	got, err := command.Output()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got).To(MatchJSON(want))
}
