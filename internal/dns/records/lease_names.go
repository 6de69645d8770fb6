package records

import "net/netip"

// add adds a lease's records, unless its name or address is taken: a guest that calls itself "api" or "apps" gets none. A wildcard takes no name.
// Of two leases with one name, the first has the later horizon and is in use.
func (z *zones) add(l Lease, domain string) {
	name, reverse := l.Host+"."+domain, reverseName(l.Addr)
	if z.nodes[name] != nil || z.nodes[reverse] != nil {
		return
	}
	z.apexes[reverse] = true
	z.grow(name).addrs = []netip.Addr{l.Addr}
	z.grow(reverse).host = name
}
