package records

import "net/netip"

// add names a lease, unless its name is taken: a guest that calls itself "api" or "apps" gets no record, and of two of
// one name the lease promised longest, which comes first, is the one in use.
func (z *zones) add(l Lease, domain string) {
	name, reverse := l.Host+"."+domain, reverseName(l.Addr)
	if taken, _ := z.find(name); taken != nil || z.nodes[reverse] != nil {
		return
	}
	z.apexes[reverse] = true
	z.grow(name).addrs = []netip.Addr{l.Addr}
	z.grow(reverse).host = name
}
