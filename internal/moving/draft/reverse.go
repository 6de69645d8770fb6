package draft

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/plan/desired"
)

// inReturn says which names of addresses (PTR) DNS does not answer as they are written, and that it answers some which nothing did. Of several
// static names it answers the first: those after the Infra's own are put in that order.
func (m *maker) inReturn(own int) {
	for _, n := range m.Reverses {
		m.putFirst(n, own)
		switch said := m.nameOfAddress(n.IP); said {
		case n.Host:
		case "":
			m.Leave(n.Line, "DNS asks its resolvers for the name of %s: it answers addresses on the VLAN that a name of the Infra has", n.IP)
		default:
			m.Leave(n.Line, "DNS answers %s with %s", n.IP, said)
		}
	}
	m.ofLeases()
	for _, n := range m.Names {
		written := slices.ContainsFunc(m.Reverses, func(r Name) bool { return r.IP == n.IP })
		if !written && m.nameOfAddress(n.IP) == n.Host && !m.reserved(n) {
			m.Leave(n.Line, "DNS answers %s with this name (PTR), which nothing did, and so it does for other names on the VLAN", n.IP)
			return
		}
	}
}

// ofLeases says of the first reservation whose name and address no file gives each other that DNS does.
func (m *maker) ofLeases() {
	for _, r := range m.Reservations {
		said := m.nameOfLease(r.IP)
		written := slices.ContainsFunc(m.Reverses, func(n Name) bool { return n.IP == r.IP && n.Host == said })
		if said != "" && !written {
			m.Leave(r.Line, "DNS answers %s with %s, and the other way round, once the client has its lease; and so it does for other clients that have a name", r.IP, said)
			return
		}
	}
}

// putFirst moves a name before others of its address.
func (m *maker) putFirst(n Name, own int) {
	all := m.infra.Spec.InfraComponents.DNS.StaticEntries
	of := func(e v1alpha1.DNSEntry) bool { return e.IP == desired.IP(n.IP) }
	first := slices.IndexFunc(all, of)
	at := slices.IndexFunc(all, func(e v1alpha1.DNSEntry) bool { return of(e) && string(e.Hostname) == n.Host })
	if first < own || at < 0 {
		return
	}
	entry := all[at]
	copy(all[first+1:at+1], all[first:at])
	all[first] = entry
}

// nameOfAddress is what DNS answers for an address, as internal/dns/records does; empty if its resolvers do.
func (m *maker) nameOfAddress(at netip.Addr) string {
	if name := m.nameOfLease(at); name != "" {
		return name
	}
	components := m.infra.Spec.InfraComponents
	switch {
	case m.cidr.IsValid() && !m.cidr.Contains(at):
		return ""
	case components.Proxy.ServerIP == desired.IP(at) && m.ofControlPlane("api."+m.domain):
		return "api." + m.domain
	}
	for _, e := range components.DNS.StaticEntries {
		if e.IP == desired.IP(at) && !strings.HasPrefix(string(e.Hostname), "*.") {
			return string(e.Hostname)
		}
	}
	return ""
}

// nameOfLease is that of the host for whom an address is reserved.
func (m *maker) nameOfLease(at netip.Addr) string {
	for _, r := range m.infra.Spec.InfraComponents.DHCP.Reservations {
		if name := r.Hostname + "." + m.domain; m.reserved(Name{Host: name, IP: at}) {
			return name
		}
	}
	return ""
}
