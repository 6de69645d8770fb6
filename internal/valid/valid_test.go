package valid

import (
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// judged tests a check with values that pass and values that fail; internal/apitest sends the same to an API server.
func judged[T any](t *testing.T, check func(T) bool, passes, fails []T) {
	t.Helper()
	g := NewWithT(t)
	for _, value := range passes {
		g.Expect(check(value)).To(BeTrue(), "%v", value)
	}
	for _, value := range fails {
		g.Expect(check(value)).To(BeFalse(), "%v", value)
	}
}

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func TestNetworks(t *testing.T) {
	judged(t, Subnet, prefixes("192.168.100.0/24", "10.0.0.0/8", "127.0.0.0/8", "fd00::/8", "fec0::/64"),
		append(prefixes("10.0.0.0/7", "0.1.0.0/16", "169.254.7.0/24", "169.254.0.0/15", "240.0.0.0/24", "fc00::/7", "::2:0/112", "fe80::/64", "ff02::/64"), netip.Prefix{}))
	judged(t, VLAN, prefixes("192.168.100.0/24"), prefixes("127.0.0.0/8", "169.254.7.0/24"))
}

func TestAddresses(t *testing.T) {
	is := func(read func(string) (netip.Addr, bool)) func(string) bool {
		return func(text string) bool { _, ok := read(text); return ok }
	}
	judged(t, is(Address), []string{"10.0.0.1", "fd00::1"}, []string{"", "10.0.0", "fe80::1%eth0"})
	judged(t, is(Canonical), []string{"10.0.0.1", "fd00::1"}, []string{"10.0.0", "FD00::1", "fd00:0::1", "::ffff:10.0.0.1", "fe80::1%eth0"})
	judged(t, func(text string) bool { _, ok := Target(text); return ok }, []string{"10.0.0.1:443", "[fd00::1]:1"}, []string{"10.0.0.1", "10.0.0.1:0", "[fe80::1%eth0]:443"})
	judged(t, Server, []netip.Addr{netip.MustParseAddr("10.0.0.53"), netip.MustParseAddr("fe80::1")},
		[]netip.Addr{{}, netip.MustParseAddr("0.0.0.0"), netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("224.0.0.1")})
	mapped, _ := Address("::ffff:10.0.0.1")
	at, _ := Target("[::ffff:10.0.0.1]:1")
	NewWithT(t).Expect([]netip.Addr{mapped, at.Addr()}).To(HaveEach(netip.MustParseAddr("10.0.0.1")), "one address is written in one way")
}

func TestNumbersAndTexts(t *testing.T) {
	judged(t, Port[int32], []int32{1, 65535}, []int32{-1, 0, 65536})
	judged(t, OptionCode, []int32{2, 66, 254}, []int32{0, 1, 51, 121, 255})
	judged(t, LeaseTime, []time.Duration{2 * time.Minute, 8760 * time.Hour}, []time.Duration{0, 2*time.Minute - 1, 8760*time.Hour + 1})
	judged(t, Image, []string{"quay.io/a/b:1", "a/b@sha256:0000000000000000000000000000000000000000000000000000000000000000"}, []string{"a/b", "b:1", "a/B:1", "a/b:1\n"})
}
