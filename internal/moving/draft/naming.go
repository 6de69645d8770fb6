package draft

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/plan/desired"
)

// servers gives the addresses of the servers that go to the Infra's own, so that clients keep what they know. One machine served all three;
// here each has an address. The resolver comes first: clients keep its address as long as their lease, and ask it for all others.
func (m *maker) servers() {
	for _, n := range m.Names {
		if m.ofControlPlane(n.Host) {
			m.Served = append(m.Served, Served{n.Line, Forwarding, n.IP})
		}
	}
	if router, err := netip.ParseAddr(string(m.infra.Spec.NetworkConfig.Gateway)); err == nil {
		m.taken[router] = "the router"
	}
	m.resolver()
	for _, at := range m.takes(Forwarding, "the proxy") {
		once(m, at.Line, "proxy.serverIP", &m.infra.Spec.InfraComponents.Proxy.ServerIP, desired.IP(at.At))
	}
	for _, at := range m.takes(Leasing, "DHCP") {
		once(m, at.Line, "dhcp.serverIP", &m.infra.Spec.InfraComponents.DHCP.ServerIP, desired.IPv4(at.At))
	}
}

func (m *maker) resolver() {
	dns := &m.infra.Spec.InfraComponents.DNS
	for _, at := range m.takes(Naming, "DNS") {
		switch a := desired.IP(at.At); {
		case dns.ServerIP == "" || dns.ServerIP == a:
			dns.ServerIP = a
		case len(dns.AdditionalServerIPs) == 0:
			dns.AdditionalServerIPs = []v1alpha1.IPAddress{a}
		default:
			m.Leave(at.Line, "DNS has two instances: nobody answers at %s any more", a)
		}
	}
	for _, u := range m.Upstreams {
		m.upstream(u)
	}
}

// takes has the addresses of one service, each once, and takes them from the services after it.
func (m *maker) takes(by Service, called string) (all []Served) {
	for _, s := range m.Served {
		switch of := m.taken[s.At]; {
		case s.By != by || of == called:
		case !m.cidr.Contains(s.At):
			if by != Forwarding || !m.ofControlPlane(nameOf(m.Names, s)) {
				m.Leave(s.Line, "%s is not on the VLAN, where %s serves", s.At, called)
			}
		case of != "":
			m.Leave(s.Line, "%s has %s now: %s gets another address, which clients learn at their next renewal or from DNS", of, s.At, called)
		default:
			m.taken[s.At] = called
			all = append(all, s)
		}
	}
	return all
}

// nameOf is the name that a statement gives to an address.
func nameOf(names []Name, s Served) string {
	for _, n := range names {
		if n.Line == s.Line && n.IP == s.At {
			return n.Host
		}
	}
	return ""
}

// shared are host names of the control plane below the management cluster's *.apps, as HyperShift makes them.
var shared = regexp.MustCompile(`^(oauth|ignition|ignition-server|konnectivity|konnectivity-server)-`)

// ofControlPlane says whether the operator serves a name by itself, which it knows from the HostedCluster.
func (m *maker) ofControlPlane(host string) bool {
	if len(m.served) > 0 {
		return slices.Contains(m.served, host)
	}
	if first, below := strings.CutSuffix(host, "."+m.domain); below && m.domain != "" {
		return slices.Contains([]string{"api", "oauth", "ignition", "konnectivity"}, first)
	}
	return shared.MatchString(host)
}

// ofApps says whether a name is one of the hosted cluster's applications.
func (m *maker) ofApps(host string) bool {
	apps := "apps." + m.domain
	return m.domain != "" && (host == apps || strings.HasSuffix(host, "."+apps))
}

// hostname that an Infra may have, which may begin with "*.".
var hostname = regexp.MustCompile(`^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// names become static entries, except those that a service of the Infra knows by itself.
func (m *maker) names() {
	written := len(m.infra.Spec.InfraComponents.DNS.StaticEntries)
	for _, n := range m.Names {
		m.name(n)
	}
	for _, a := range m.Aliases {
		at, known := m.address(a.Of)
		if !known {
			m.Leave(a.Line, "no file says the address of %s: write dns.staticEntries with one", a.Of)
			continue
		}
		m.name(Name{a.Line, a.Host, at})
	}
	for _, z := range m.Zones {
		if z.Host != m.domain && !strings.HasSuffix(z.Host, ".in-addr.arpa") && !strings.HasSuffix(z.Host, ".ip6.arpa") {
			m.Leave(z.Line, "DNS asks its resolvers for the names of %s that it does not know, where there were none", z.Host)
		}
	}
	m.inReturn(written)
}

func (m *maker) name(n Name) {
	proxy := m.infra.Spec.InfraComponents.Proxy.ServerIP
	switch apps := m.infra.Spec.AppsIngress; {
	case !hostname.MatchString(n.Host):
		m.Leave(n.Line, "%q is no name that the Infra's DNS answers: lower case letters, digits and -, with *. before them at most", n.Host)
	case m.ofControlPlane(n.Host) && proxy != desired.IP(n.IP):
		m.Leave(n.Line, "DNS answers %s with the address of the proxy, not with %s", n.Host, n.IP)
	case m.ofControlPlane(n.Host), m.reserved(n), m.published(n.Host):
	case m.ofApps(n.Host) && apps != nil && apps.Enabled:
	case m.ofApps(n.Host) && m.forwarded(n.IP):
		m.Leave(n.Line, "applications go through the proxy once appsIngress is enabled: docs/APPS_INGRESS.md")
	case m.forwarded(n.IP) && m.plain() != nil:
		e := m.plain()
		name := v1alpha1.DNSNameOrWildcard(n.Host)
		one(m, n.Line, "extraEndpoints["+e.Name+"].hostnames", &e.Hostnames, 32, name, func(o v1alpha1.DNSNameOrWildcard) bool { return o == name })
	default:
		entry := v1alpha1.DNSEntry{Hostname: v1alpha1.DNSNameOrWildcard(n.Host), IP: desired.IP(n.IP)}
		entries := &m.infra.Spec.InfraComponents.DNS.StaticEntries
		one(m, n.Line, "dns.staticEntries", entries, mostStaticEntries, entry, func(o v1alpha1.DNSEntry) bool { return o == entry })
	}
}

// reserved: DNS answers a reservation's host once it has its lease.
func (m *maker) reserved(n Name) bool {
	return m.domain != "" && slices.ContainsFunc(m.infra.Spec.InfraComponents.DHCP.Reservations, func(r v1alpha1.Reservation) bool {
		return r.Hostname != "" && r.Hostname+"."+m.domain == n.Host && string(r.IP) == n.IP.String()
	})
}

// published says whether an extra endpoint has a name.
func (m *maker) published(host string) bool {
	return slices.ContainsFunc(m.infra.Spec.ExtraEndpoints, func(e v1alpha1.ExtraEndpoint) bool {
		return slices.Contains(e.Hostnames, v1alpha1.DNSNameOrWildcard(host))
	})
}

// forwarded says whether an address is of a proxy that goes.
func (m *maker) forwarded(at netip.Addr) bool {
	return slices.ContainsFunc(m.Served, func(s Served) bool { return s.By == Forwarding && s.At == at })
}

// plain is the first endpoint that is not chosen by name, and may have any.
func (m *maker) plain() *v1alpha1.ExtraEndpoint {
	i := slices.IndexFunc(m.infra.Spec.ExtraEndpoints, func(e v1alpha1.ExtraEndpoint) bool { return e.Protocol == v1alpha1.ProtocolTCP })
	if i < 0 {
		return nil
	}
	return &m.infra.Spec.ExtraEndpoints[i]
}
