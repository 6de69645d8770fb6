package children

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	mdns "github.com/miekg/dns"
	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/plan/input"
)

func TestReverseZonesAreCutWhereReverseDNSIs(t *testing.T) {
	for network, want := range map[string][]string{
		"10.128.0.0/14":      {"128.10.in-addr.arpa", "129.10.in-addr.arpa", "130.10.in-addr.arpa", "131.10.in-addr.arpa"},
		"172.30.0.0/16":      {"30.172.in-addr.arpa"},
		"192.168.5.6/32":     {"6.5.168.192.in-addr.arpa"},
		"10.0.0.0/8":         {"10.in-addr.arpa"},
		"10.64.0.0/10":       {"10.in-addr.arpa"}, // 64 zones would be too many
		"255.255.255.254/31": {"254.255.255.255.in-addr.arpa", "255.255.255.255.in-addr.arpa"},
		"fd01::/48":          {"0.0.0.0.0.0.0.0.1.0.d.f.ip6.arpa"},
		"fd02::/31":          {"0.0.0.0.2.0.d.f.ip6.arpa", "1.0.0.0.2.0.d.f.ip6.arpa"},
	} {
		NewWithT(t).Expect(reverseZones(netip.MustParsePrefix(network))).To(Equal(want), network)
	}
}

// The PTR name of every address of a network is in one of its zones.
func TestReverseZonesCoverTheirNetwork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := rapid.SampledFrom([]int{4, 16}).Draw(t, "length")
		addr, _ := netip.AddrFromSlice(rapid.SliceOfN(rapid.Byte(), length, length).Draw(t, "address"))
		network := netip.PrefixFrom(addr, rapid.IntRange(1, addr.BitLen()).Draw(t, "bits"))
		name, err := mdns.ReverseAddr(addr.String())
		if err != nil {
			t.Fatal(err)
		}
		zones := reverseZones(network)
		if len(zones) > mostReverseZones || !slices.ContainsFunc(zones, func(z string) bool { return strings.HasSuffix(name, "."+z+".") || name == z+"." }) {
			t.Fatalf("%s of %s is in none of %v", name, network, zones)
		}
	})
}

func TestManyNodesAreDeniedWithTheNetworkThatTheyShare(t *testing.T) {
	nodes := func(format string, count int) []netip.Prefix {
		var all []netip.Prefix
		for i := range count {
			all = append(all, netip.MustParsePrefix(fmt.Sprintf(format, i/250, i%250)))
		}
		return all
	}
	for name, c := range map[string]struct {
		pods []netip.Prefix
		want []string
	}{
		"few stay as they are":            {nodes("10.%d.%d.0/24", 2), []string{"0.0.10.in-addr.arpa", "1.0.10.in-addr.arpa"}},
		"what lies in another is dropped": {append(nodes("10.%d.%d.0/24", 2), netip.MustParsePrefix("10.0.0.0/16")), []string{"0.10.in-addr.arpa"}},
		"500 in two /16":                  {nodes("10.%d.%d.0/24", 500), []string{"0.10.in-addr.arpa", "1.10.in-addr.arpa"}},
		"more than 60 /16":                {nodes("10.%d.%d.0/24", 250*61), []string{"10.in-addr.arpa"}},
		"500 of both families":            {append(nodes("10.%d.%d.0/24", 500), nodes("fd00:1:%d:%d::/64", 500)...), []string{"0.10.in-addr.arpa", "1.10.in-addr.arpa"}},
	} {
		t.Run(name, func(t *testing.T) {
			services := netip.MustParsePrefix("fd00:9::/64")
			zones := deniedZones(input.Settings{ClusterDomain: "cluster.local", PodCIDRs: c.pods, ServiceCIDRs: []netip.Prefix{services}})
			g := NewWithT(t)
			g.Expect(len(zones)).To(BeNumerically("<=", 64))
			for _, z := range append(c.want, "cluster.local", reverseZones(services)[0]) {
				g.Expect(zones).To(ContainElement(BeEquivalentTo(z)))
			}
			for _, p := range c.pods {
				g.Expect(slices.ContainsFunc(zones, func(z v1alpha1.DNSName) bool { return strings.HasSuffix("."+reverseZones(p)[0], "."+string(z)) })).
					To(BeTrue(), "%s is in none of %v", p, zones)
			}
		})
	}
}
