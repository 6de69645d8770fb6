package pool

import (
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	"github.com/cldmnky/oooi/internal/dhcp/wire"
)

func TestTheSizeOfAPoolIsTheNumberOfItsOpenAddresses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := somePool(t)
		c.remember()
		walked := len(c.Reservations)
		for a := c.First; a.IsValid() && !c.Last.Less(a); a = a.Next() { // none is next to the last of all
			if c.open(a) {
				walked++
			}
		}
		if counted := c.Size(); counted != walked {
			t.Fatalf("counted %d, there are %d", counted, walked)
		}
	})
}

// somePool is a pool in a network of 16 addresses, or of 64 at the end of the address space.
func somePool(t *rapid.T) Config {
	subnet := rapid.SampledFrom([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/28"), netip.MustParsePrefix("255.255.255.192/26")}).Draw(t, "subnet")
	addr := rapid.Custom(func(t *rapid.T) netip.Addr {
		return addrOf(number(subnet.Addr()) + rapid.Uint64Range(0, 1<<(32-subnet.Bits())-1).Draw(t, "host"))
	})
	addrs := rapid.SliceOfN(addr, 0, 3)
	span := rapid.Custom(func(t *rapid.T) Range {
		a, b := addr.Draw(t, "one end"), addr.Draw(t, "other end")
		if b.Less(a) {
			a, b = b, a
		}
		return Range{a, b}
	})
	pool := span.Draw(t, "pool")
	c := Config{
		Server: addr.Draw(t, "server"), First: pool.First, Last: pool.Last, Never: rapid.SliceOfN(span, 0, 3).Draw(t, "never"),
		Network: wire.Network{Subnet: subnet, DNS: addrs.Draw(t, "DNS"), NTP: addrs.Draw(t, "NTP")},
	}
	c.Instances = []netip.Addr{c.Server}
	if rapid.Bool().Draw(t, "routed") {
		c.Network.Router = addr.Draw(t, "router")
		c.Network.Routes = []wire.Route{{Via: addr.Draw(t, "via")}}
	}
	for _, ip := range rapid.SliceOfNDistinct(addr, 0, 3, rapid.ID[netip.Addr]).Draw(t, "reserved") {
		c.Reservations = append(c.Reservations, Reservation{IP: ip})
	}
	return c
}

func TestALargePoolIsConfiguredAtOnce(t *testing.T) {
	c := Config{
		Server: netip.MustParseAddr("10.0.0.2"), First: netip.MustParseAddr("10.0.0.0"), Last: netip.MustParseAddr("10.255.255.255"),
		Network: wire.Network{Subnet: netip.MustParsePrefix("10.0.0.0/8")},
	}
	start := time.Now()
	g := NewWithT(t)
	g.Expect(c.Size()).To(Equal(1<<24-3), "all but the server, the network and its broadcast address")
	g.Expect(time.Since(start)).To(BeNumerically("<", 100*time.Millisecond))
}
