package preflight_test

import (
	"bytes"
	"testing"

	. "github.com/onsi/gomega"
)

// clusterNetwork has the fields and values of the how-to.
const clusterNetwork = `---
apiVersion: k8s.ovn.org/v1
kind: ClusterUserDefinedNetwork
metadata: {name: cudn-localnet1-2003}
spec:
  namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [default]}]}
  network:
    topology: Localnet
    localnet: {role: Secondary, physicalNetworkName: localnet1, ipam: {mode: Disabled}, vlan: {mode: Access, access: {id: 2003}}}
`

// A HostedCluster that others published, not written for us, works with two annotations.
func TestTheHostedClusterOfAPublicHowToWorks(t *testing.T) {
	written := read(t, "../../examples/tenant-network.yaml")
	stored := bytes.Replace(written, []byte("baseDomainPassthrough: false}}"), []byte("baseDomainPassthrough: true}}\n  dns: {baseDomain: apps.ocp5.stormshift.coe.muc.redhat.com}"), 1)
	before, _, there := bytes.Cut(written, []byte("---\n# The how-to makes a ClusterUserDefinedNetwork;"))
	NewWithT(t).Expect(there).To(BeTrue())
	manifests := append(bytes.Clone(before), clusterNetwork...)
	for state, text := range map[string][]byte{"as it is written": manifests, "with the network in the cluster": written, "as HyperShift's webhook leaves it": stored} {
		t.Run(state, func(t *testing.T) {
			g := NewWithT(t)
			all := reports(t, text)
			g.Expect(all).To(HaveLen(1))
			g.Expect(all[0].Works).To(BeTrue(), "%v", all[0].Findings)
			g.Expect(all[0].Findings).NotTo(ContainElement(severity("refused")))
			g.Expect(all[0].Serves.Network).To(Equal("default/cudn-localnet1-2003"))
			g.Expect(all[0].Serves.Dials).To(ContainElements("api.tenant-a.coe.muc.redhat.com", "ignition.tenant-a.coe.muc.redhat.com"))
		})
	}
	_, through := found(t, bytes.Replace(stored, []byte("appsDomain: apps.tenant-a."), []byte("appsDomain: apps.tenant-a.apps.ocp5.stormshift."), 1), "BaseDomainPassthrough")
	NewWithT(t).Expect(through).To(HaveLen(1), "applications below the management cluster's own")
}
