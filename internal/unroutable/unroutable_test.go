package unroutable

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
)

// An IPv4 address is the same in each form that a socket takes.
func TestAnAddressIsJudgedInEachForm(t *testing.T) {
	for _, ip := range []string{"127.0.0.1", "0.1.2.3", "169.254.169.254", "168.63.129.16", "100.100.100.200", "224.0.0.1", "255.255.255.255"} {
		four := netip.MustParseAddr(ip).As4()
		embedded := func(prefix string, after int) netip.Addr {
			all := netip.MustParseAddr(prefix).As16()
			copy(all[after:], four[:])
			return netip.AddrFrom16(all)
		}
		for name, is := range map[string]netip.Addr{
			"IPv4": netip.AddrFrom4(four), "mapped": embedded("::ffff:0:0", 12), "compatible": embedded("::", 12), "translated": embedded("::ffff:0:0:0", 12),
			"NAT64": embedded("64:ff9b::", 12), "6to4": embedded("2002::", 2),
		} {
			NewWithT(t).Expect(Is(is)).To(BeTrue(), "%s %s", name, is)
		}
	}
	for _, ip := range []string{"192.168.100.3", "::ffff:192.168.100.3", "64:ff9b::192.168.100.3", "2002:c0a8:6403::1", "fd00::3"} {
		NewWithT(t).Expect(Is(netip.MustParseAddr(ip))).To(BeFalse(), ip)
	}
}
