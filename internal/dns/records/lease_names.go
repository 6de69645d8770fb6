package records

import (
	"net/netip"
	"strings"
)

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

// inReturn adds the names of addresses on the VLAN that no lease has: of several the API's, else the first that is written. Who asks for the
// name of an address elsewhere is told what its own network says.
func (z zones) inReturn(in Intent) zones {
	var apis, others []Record
	for _, r := range in.VLAN {
		if r.Name == "api."+in.Domain {
			apis = append(apis, r)
		} else {
			others = append(others, r)
		}
	}
	for _, r := range append(apis, others...) {
		reverse := reverseName(r.Addr)
		if !in.Network.Contains(r.Addr) || strings.HasPrefix(r.Name, "*.") || z.nodes[reverse] != nil {
			continue
		}
		z.apexes[reverse] = true
		z.grow(reverse).host = r.Name
	}
	return z
}
