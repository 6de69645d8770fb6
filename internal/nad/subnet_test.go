package nad

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
)

func TestASubnetIsWhatTheNetworkItselfSays(t *testing.T) {
	const ovn = `{"type":"ovn-k8s-cni-overlay","topology":"localnet",`
	bridge := func(ipam string) string { return `{"type":"bridge","ipam":` + ipam + `}` }
	for config, want := range map[string]string{
		ovn + `"subnets":"192.168.203.0/24"}`:                                                    "192.168.203.0/24",
		ovn + `"subnets":"fd00:203::/64, 192.168.203.0/24","excludeSubnets":"192.168.203.0/28"}`: "192.168.203.0/24",
		ovn + `"subnets":"fd00:203::/64"}`:                                                       "fd00:203::/64",
		ovn + `"subnets":"192.168.203.0/24,192.168.204.0/24"}`:                                   "",
		ovn + `"vlanID":2003}`:                                                                   "",
		bridge(`{}`):                                                                             "",
		bridge(`{"type":"dhcp"}`):                                                                "",
		bridge(`{"type":"host-local","subnet":"192.168.203.0/24","rangeStart":"192.168.203.100"}`):   "192.168.203.0/24",
		bridge(`{"type":"host-local","ranges":[[{"subnet":"192.168.203.0/24"}]]}`):                   "192.168.203.0/24",
		bridge(`{"type":"whereabouts","range":"192.168.203.100-192.168.203.110/24"}`):                "192.168.203.0/24",
		bridge(`{"type":"static","addresses":[{"address":"192.168.203.4/24"}]}`):                     "192.168.203.0/24",
		bridge(`{"type":"static","addresses":[{"address":"10.0.0.4/24"},{"address":"10.1.0.4/8"}]}`): "",
	} {
		g := NewWithT(t)
		expected, _ := netip.ParsePrefix(want)
		g.Expect(parsed(t, config).Subnet()).To(Equal(expected), config)
	}
}
