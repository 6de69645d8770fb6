package diffcli

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/pool"
)

// What a holder notices of another configuration is what package pool then decides: TestWhoIsRefused and others of its tests.
func TestWhatAHolderNotices(t *testing.T) {
	ip := netip.MustParseAddr
	config := func(edit func(*pool.Config)) *pool.Config {
		c := &pool.Config{Server: ip("192.168.100.1"), First: ip("192.168.100.10"), Last: ip("192.168.100.99")}
		c.Network.Subnet = netip.MustParsePrefix("192.168.100.0/24")
		edit(c)
		return c
	}
	const holder = "52:54:00:00:00:01"
	same := func(*pool.Config) {}
	reserve := func(at, mac string) func(*pool.Config) {
		return func(c *pool.Config) {
			c.Reservations = append(c.Reservations, pool.Reservation{IP: ip(at), Client: lease.Client{MAC: mac}})
		}
	}
	for name, c := range map[string]struct {
		before, after func(*pool.Config)
		says          string
	}{
		"nothing":                      {same, same, ""},
		"another lease time":           {same, func(c *pool.Config) { c.LeaseTime = 1 }, ""},
		"its address is DNS's":         {same, func(c *pool.Config) { c.Network.DNS = []netip.Addr{ip("192.168.100.50")} }, "it loses the address at its next renewal: it is a server's"},
		"another subnet":               {same, func(c *pool.Config) { c.Network.Subnet = netip.MustParsePrefix("192.168.100.0/27") }, "it loses the address at its next renewal: it is outside 192.168.100.0/27"},
		"reserved for another":         {same, reserve("192.168.100.50", "52:54:00:00:00:09"), "keeps the address until it boots again or its lease ends, and 52:54:00:00:00:09"},
		"it is reserved another":       {same, reserve("192.168.100.60", holder), "then gets 192.168.100.60"},
		"it was reserved another":      {reserve("192.168.100.60", holder), reserve("192.168.100.60", holder), ""},
		"its own address is reserved":  {same, reserve("192.168.100.50", holder), ""},
		"a smaller pool":               {same, func(c *pool.Config) { c.Last = ip("192.168.100.49") }, "the pool no longer has the address"},
		"a smaller pool, and reserved": {same, func(c *pool.Config) { c.Last = ip("192.168.100.49"); reserve("192.168.100.50", holder)(c) }, ""},
		"excluded": {same, func(c *pool.Config) {
			c.Never = []pool.Range{{First: ip("192.168.100.50"), Last: ip("192.168.100.50")}}
		}, "the pool no longer has the address"},
	} {
		t.Run(name, func(t *testing.T) {
			is := notices(config(c.before), config(c.after), v1alpha1.DHCPLeaseSpec{IP: "192.168.100.50", MAC: holder})
			if c.says == "" {
				NewWithT(t).Expect(is).To(BeEmpty())
			}
			NewWithT(t).Expect(is).To(ContainSubstring(c.says))
		})
	}
}
