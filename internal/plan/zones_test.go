package plan

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
	. "github.com/onsi/gomega"
	"pgregory.net/rapid"
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

// Every address of a network has its PTR name in one of the zones.
func TestReverseZonesCoverTheirNetwork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		length := rapid.SampledFrom([]int{4, 16}).Draw(t, "length")
		addr, _ := netip.AddrFromSlice(rapid.SliceOfN(rapid.Byte(), length, length).Draw(t, "address"))
		network := netip.PrefixFrom(addr, rapid.IntRange(1, addr.BitLen()).Draw(t, "bits"))
		name, err := dns.ReverseAddr(addr.String())
		if err != nil {
			t.Fatal(err)
		}
		zones := reverseZones(network)
		if len(zones) > mostReverseZones || !slices.ContainsFunc(zones, func(z string) bool { return strings.HasSuffix(name, "."+z+".") || name == z+"." }) {
			t.Fatalf("%s of %s is in none of %v", name, network, zones)
		}
	})
}
