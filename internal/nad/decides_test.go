package nad_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/cldmnky/oooi/internal/nad"
)

func TestWhatDecidesOverPodsIsWhatAConfigurationSays(t *testing.T) {
	const (
		bridge   = `{"cniVersion":"0.3.1","name":"v","type":"bridge","bridge":"br1","vlan":100,"ipam":{"type":"host-local"}}`
		localnet = `{"cniVersion":"0.3.1","name":"v","type":"ovn-k8s-cni-overlay","topology":"localnet","physicalNetworkName":"p","vlanID":100,"netAttachDefName":"a/b"}`
	)
	for name, c := range map[string]struct {
		was, is             string
		carrier, attachment bool // whether the two have the same
	}{
		"another order, and what says nothing": {bridge, `{ "bridge": "br1", "type": "bridge", "vlan": 100, "ipam": {"type": "host-local"}, "args": {}, "dns": null }`, true, true},
		"a list of one":                        {bridge, `{"cniVersion":"1.0.0","name":"w","plugins":[{"type":"bridge","bridge":"br1","vlan":100,"ipam":{"type":"host-local"}}]}`, true, true},
		"another IPAM":                         {bridge, `{"type":"bridge","bridge":"br1","vlan":100}`, true, false},
		"what a derived network leaves out":    {bridge, `{"type":"bridge","bridge":"br1","vlan":100,"isGateway":true,"ipam":{"type":"host-local"}}`, true, false},
		"another VLAN":                         {bridge, `{"type":"bridge","bridge":"br1","vlan":101,"ipam":{"type":"host-local"}}`, false, false},
		"a key that we do not know":            {bridge, `{"type":"bridge","bridge":"br1","vlan":100,"promiscMode":true,"ipam":{"type":"host-local"}}`, false, false},
		"another plugin in the chain":          {bridge, `{"plugins":[{"type":"bridge","bridge":"br1","vlan":100,"ipam":{"type":"host-local"}},{"type":"sbr"}]}`, false, false},

		"OVN-Kubernetes, rendered anew":     {localnet, `{"cniVersion":"1.1.0","name":"w","type":"ovn-k8s-cni-overlay","role":"secondary","topology":"localnet","physicalNetworkName":"p","vlanID":100,"netAttachDefName":"a/c","allowPersistentIPs":true}`, true, true},
		"OVN-Kubernetes, another VLAN":      {localnet, `{"name":"v","type":"ovn-k8s-cni-overlay","topology":"localnet","physicalNetworkName":"p","vlanID":101}`, false, false},
		"OVN-Kubernetes, another bridge":    {localnet, `{"name":"v","type":"ovn-k8s-cni-overlay","topology":"localnet","physicalNetworkName":"q","vlanID":100}`, false, false},
		"OVN-Kubernetes, another MTU":       {localnet, `{"name":"v","type":"ovn-k8s-cni-overlay","topology":"localnet","physicalNetworkName":"p","vlanID":100,"mtu":1400}`, false, false},
		"OVN-Kubernetes, with addresses":    {localnet, `{"name":"v","type":"ovn-k8s-cni-overlay","topology":"localnet","physicalNetworkName":"p","vlanID":100,"subnets":"192.0.2.0/24"}`, true, false},
		"OVN-Kubernetes, its bridge's name": {`{"name":"p","type":"ovn-k8s-cni-overlay","topology":"localnet"}`, `{"name":"v","physicalNetworkName":"p","type":"ovn-k8s-cni-overlay","topology":"localnet"}`, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			was, err := nad.Parse(c.was)
			g.Expect(err).NotTo(HaveOccurred())
			is, err := nad.Parse(c.is)
			g.Expect(err).NotTo(HaveOccurred())
			equal := func(same bool, want any) types.GomegaMatcher {
				if same {
					return Equal(want)
				}
				return Not(Equal(want))
			}
			g.Expect(is.Carrier()).To(equal(c.carrier, was.Carrier()))
			g.Expect(is.Attachment()).To(equal(c.attachment, was.Attachment()))
		})
	}
}
