// Package pool decides which client gets which address: the lease protocol of docs/reference/dhcp-rules.md as a pure function of what is known.
// What memory does not tell, it requests (Read, Probe, Create, Update), and the caller asks again with the answer.
package pool

import (
	"net/netip"
	"slices"
	"time"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/wire"
)

// Config is what a DHCPServer asks for.
type Config struct {
	// Server is the address of this instance, Instances are those of all that serve the pool, this one included.
	Server    netip.Addr
	Instances []netip.Addr
	Network   wire.Network
	// First and Last bound the pool; Never lists addresses in it that nobody gets.
	First, Last  netip.Addr
	Never        []Range
	Reservations []Reservation
	// Relays are the giaddrs that may send on behalf of clients.
	Relays []netip.Prefix
	// KnownOnly serves only reservations and virtual machines.
	KnownOnly bool
	// LooksUpVMs: hardware addresses are looked up among virtual machines. Clients without machine and reservation are then guests.
	LooksUpVMs bool
	// InFile: the leases are in a file of this server's own.
	InFile    bool
	LeaseTime time.Duration
	// Owner is the UID of the Infra whose leases these are.
	Owner string
	// Born is when the server first served: a young server probes each address before it offers it (dhcp-rules.md#lease-12).
	Born time.Time

	reserved map[netip.Addr]Reservation // by address; made by remember
}

// Range is a range of addresses, both ends included.
type Range struct{ First, Last netip.Addr }

// Reservation ties an address to a client.
type Reservation struct {
	IP       netip.Addr
	Client   lease.Client
	Hostname string
}

func (r Range) offers(a netip.Addr) bool { return !a.Less(r.First) && !r.Last.Less(a) }

// never says whether no client can have an address: it is outside the subnet, its network or broadcast address, or a server's or gateway's.
func (c *Config) never(a netip.Addr) bool {
	return c.foreign(a) != "" || a == c.Network.Subnet.Addr() || a == Broadcast(c.Network.Subnet) || slices.Contains(c.Network.NTP, a)
}

// Probes says whether a message is a probe: an instance's INFORM, which comes by no relay.
func (c *Config) Probes(m wire.Message) bool {
	return m.Kind == wire.Inform && !m.Relay.IsValid() && slices.Contains(c.Instances, m.Current) && m.Client == wire.Probing(m.Current)
}

// Closed says why a client cannot be bound to an address; empty if it can.
func (c *Config) Closed(a netip.Addr, to lease.Client) string {
	switch r, reserved := c.ReservationAt(a); {
	case !c.Network.Subnet.Contains(a):
		return "it is outside " + c.Network.Subnet.String()
	case c.never(a):
		return "it is a server's, a gateway's, or the network's own"
	case reserved && r.Client != to:
		return "it is reserved for " + r.Client.String()
	}
	return ""
}

// foreign says why even its holder must leave an address (dhcp-rules.md#wire-6, a). A holder keeps an excluded address: why it is excluded is
// not known here.
func (c *Config) foreign(a netip.Addr) string {
	switch {
	case !c.Network.Subnet.Contains(a):
		return "wrong-network"
	case a == c.Server || slices.Contains(c.Instances, a):
		return "our-own-address"
	case a == c.Network.Router || slices.ContainsFunc(c.Network.Routes, func(r wire.Route) bool { return r.Via == a }):
		return "gateway"
	case slices.Contains(c.Network.DNS, a):
		return "name-server"
	}
	return ""
}

// open says whether an address is for any client: in the pool, not excluded, and not reserved.
func (c *Config) open(a netip.Addr) bool {
	_, reserved := c.reservedIP(a)
	return !reserved && c.Covers(a) && !c.never(a)
}

// Covers says whether an address is in the pool, and not excluded.
func (c *Config) Covers(a netip.Addr) bool {
	return Range{c.First, c.Last}.offers(a) && !slices.ContainsFunc(c.Never, func(r Range) bool { return r.offers(a) })
}

// Size counts the addresses that the pool can lease, reservations included. It counts whole ranges, because a pool may hold millions.
func (c *Config) Size() int {
	next, end := int(number(c.First)), int(number(c.Last))+1
	size := len(c.Reservations)
	for _, r := range c.closed() {
		size += max(0, min(int(number(r.First)), end)-next)
		next = max(next, int(number(r.Last))+1)
	}
	return size + max(0, end-next)
}

// closed are the ranges of the subnet that open refuses, sorted by their first addresses.
func (c *Config) closed() []Range {
	ranges := slices.Clone(c.Never)
	one := func(a netip.Addr) {
		if a.IsValid() {
			ranges = append(ranges, Range{a, a})
		}
	}
	for _, a := range slices.Concat(c.Instances, c.Network.DNS, c.Network.NTP,
		[]netip.Addr{c.Server, c.Network.Router, c.Network.Subnet.Addr(), Broadcast(c.Network.Subnet)}) {
		one(a)
	}
	for _, r := range c.Network.Routes {
		one(r.Via)
	}
	for _, r := range c.Reservations {
		one(r.IP)
	}
	slices.SortFunc(ranges, func(a, b Range) int { return a.First.Compare(b.First) })
	return ranges
}

// remember indexes the reservations by address, because each change of a lease looks for one.
func (c *Config) remember() {
	c.reserved = map[netip.Addr]Reservation{}
	for _, r := range slices.Backward(c.Reservations) { // of two with the same address the first counts
		c.reserved[r.IP] = r
	}
}

func (c *Config) reservedIP(a netip.Addr) (Reservation, bool) {
	r, found := c.reserved[a]
	return r, found
}

// reservation finds a client's reservation: by its key, or by the client-id that it sent. Anybody may have heard a client-id, because DISCOVER
// is broadcast: it opens the address that is reserved for it, and nothing else.
func (c *Config) reservation(client lease.Client, clientID string) (Reservation, bool) {
	if r, ok := c.ReservationOf(client); ok {
		return r, true
	}
	return find(c.Reservations, func(r Reservation) bool { return clientID != "" && r.Client.ID == clientID })
}

// ReservationAt is the first one of an address.
func (c *Config) ReservationAt(a netip.Addr) (Reservation, bool) {
	return find(c.Reservations, func(r Reservation) bool { return r.IP == a })
}

// ReservationOf is a client's by its key.
func (c *Config) ReservationOf(client lease.Client) (Reservation, bool) {
	return find(c.Reservations, func(r Reservation) bool { return r.Client == client })
}

func find[T any](list []T, is func(T) bool) (T, bool) {
	if i := slices.IndexFunc(list, is); i >= 0 {
		return list[i], true
	}
	var none T
	return none, false
}

// Grace is how long after its horizon an address waits before another client gets it.
func (c *Config) Grace() time.Duration { return max(10*time.Minute, c.LeaseTime/10) }

// relays says whether a relay may speak for clients (dhcp-rules.md#wire-9): configured, and on the subnet.
func (c *Config) relays(giaddr netip.Addr) bool {
	return c.Network.Subnet.Contains(giaddr) && slices.ContainsFunc(c.Relays, func(p netip.Prefix) bool { return p.Contains(giaddr) })
}

// Broadcast is the last address of a subnet; invalid where the subnet has none (RFC 3021).
func Broadcast(subnet netip.Prefix) netip.Addr {
	if subnet.Bits() > 30 {
		return netip.Addr{}
	}
	octets := subnet.Addr().As4()
	for bit := subnet.Bits(); bit < 32; bit++ {
		octets[bit/8] |= 0x80 >> (bit % 8)
	}
	return netip.AddrFrom4(octets)
}
