package draft

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/plan/desired"
	"github.com/cldmnky/oooi/internal/valid"
)

// options puts each into its field, those of the network first: which router there is decides whose the resolvers are.
func (m *maker) options(all []Option) {
	slices.SortStableFunc(all, func(a, b Option) int { return a.Code - b.Code })
	for _, o := range all {
		if o.form() == Addresses && !m.resolve(&o) {
			continue
		}
		if o.Raw && fields[o.Code] != nil {
			why := "the file gives it another type"
			if o.Form == Hex {
				why = "its value is in hex"
			}
			m.Leave(o.Line, "%s: write the field of the Infra that is made for option %d", why, o.Code)
			continue
		}
		if into, is := fields[o.Code]; is {
			into(m, o)
			continue
		}
		m.further(o)
	}
}

// resolve replaces names by the addresses that the files say.
func (m *maker) resolve(o *Option) bool {
	o.Values = slices.Clone(o.Values)
	for i, text := range o.Values {
		a, err := netip.ParseAddr(text)
		if err != nil && o.Code == 121 {
			continue
		}
		if err != nil {
			var known bool
			if a, known = m.address(text); !known {
				m.Leave(o.Line, "no file says the address of %s: write it into the Infra", text)
				return false
			}
		}
		if a.IsUnspecified() && o.Code != 121 {
			m.Leave(o.Line, "0.0.0.0 stands for the host that the server runs on, which goes: write the address of another, if clients need it")
			return false
		}
		o.Values[i] = a.String()
	}
	return true
}

// fields have what an Infra says in words of its own. Subnet mask and broadcast address follow from the CIDR.
var fields = map[int]func(*maker, Option){
	1:   func(*maker, Option) {},
	3:   (*maker).router,
	6:   (*maker).resolvers,
	15:  (*maker).domainName,
	26:  (*maker).mtu,
	28:  (*maker).broadcast,
	42:  (*maker).ntp,
	51:  (*maker).leaseOption,
	54:  (*maker).identifier,
	119: (*maker).search,
	121: (*maker).routes,
}

// router: an empty option says that there is none.
func (m *maker) router(o Option) {
	for i, a := range o.addresses() {
		switch n := &m.infra.Spec.NetworkConfig; {
		case i > 0:
			m.Leave(o.Line, "a VLAN has one router in an Infra: clients get the first alone, not %s", a)
		case m.cidr.IsValid() && !m.cidr.Contains(a):
			m.Leave(o.Line, "the router %s is outside of %s", a, m.cidr)
		default:
			once(m, o.Line, "networkConfig.gateway", &n.Gateway, desired.IP(a))
		}
	}
}

// resolvers on the VLAN go if the files have their configuration: our DNS takes over their addresses. Others are asked by it.
func (m *maker) resolvers(o Option) {
	for _, a := range o.addresses() {
		switch ours := m.Resolves && m.cidr.Contains(a) && string(m.infra.Spec.NetworkConfig.Gateway) != a.String(); {
		case ours:
			m.Served = append(m.Served, Served{o.Line, Naming, a})
		case len(m.Upstreams) > 0 && !slices.ContainsFunc(m.Upstreams, func(u Upstream) bool { return u.IP == a }):
			m.Leave(o.Line, "clients asked %s themselves; now they ask the Infra's DNS, which does not: add it to networkConfig.dnsServers, if it should", a)
		default:
			m.Leave(o.Line, "clients ask the Infra's DNS, which asks %s for the names that it does not know", a)
			m.upstream(Upstream{o.Line, a})
		}
	}
}

func (m *maker) upstream(u Upstream) {
	if !valid.Server(u.IP) {
		m.Leave(u.Line, "%s is no resolver that a pod can ask: write another into networkConfig.dnsServers, or none for those of the nodes", u.IP)
		return
	}
	a := desired.IP(u.IP)
	one(m, u.Line, "networkConfig.dnsServers", &m.infra.Spec.NetworkConfig.DNSServers, valid.MostResolvers, a, func(o v1alpha1.IPAddress) bool { return o == a })
}

// domainName: clients get that of the hosted cluster. Names of another domain they find by searching it.
func (m *maker) domainName(o Option) {
	name := strings.ToLower(strings.TrimSuffix(strings.Join(o.Values, ","), "."))
	if name == m.domain {
		return
	}
	m.Leave(o.Line, "clients get the domain of the hosted cluster%s as their own, in which DNS answers their names; %s is a search domain", called(m.domain), name)
	m.searched(o.Line, name)
}

func (m *maker) search(o Option) {
	for _, name := range o.Values {
		m.searched(o.Line, strings.ToLower(strings.TrimSuffix(strings.TrimSpace(name), ".")))
	}
}

func (m *maker) searched(at Line, name string) {
	if !hostname.MatchString(name) || strings.HasPrefix(name, "*") {
		m.Leave(at, "%q is no name of a domain", name)
		return
	}
	one(m, at, "networkConfig.searchDomains", &m.infra.Spec.NetworkConfig.SearchDomains, mostSearchDomains, v1alpha1.DNSName(name), func(o v1alpha1.DNSName) bool { return string(o) == name })
}

func (m *maker) mtu(o Option) {
	n, err := strconv.ParseInt(strings.Join(o.Values, ","), 10, 32)
	if err != nil || n < 576 || n > 65535 {
		m.Leave(o.Line, "it is no MTU: write networkConfig.mtu, from 576 to 65535")
		return
	}
	once(m, o.Line, "networkConfig.mtu", &m.infra.Spec.NetworkConfig.MTU, int32(n))
}

func (m *maker) broadcast(o Option) {
	for _, a := range o.addresses() {
		if m.cidr.IsValid() && a != LastOf(m.cidr) {
			m.Leave(o.Line, "clients take the broadcast address of %s, %s", m.cidr, LastOf(m.cidr))
		}
	}
}

// LastOf is the last address of an IPv4 network.
func LastOf(p netip.Prefix) netip.Addr {
	last := p.Masked().Addr().As4()
	for bit := p.Bits(); bit < 32; bit++ {
		last[bit/8] |= 1 << (7 - bit%8)
	}
	return netip.AddrFrom4(last)
}

func (m *maker) ntp(o Option) {
	for _, a := range o.addresses() {
		v := desired.IPv4(a)
		one(m, o.Line, "networkConfig.ntpServers", &m.infra.Spec.NetworkConfig.NTPServers, mostNTPServers, v, func(other v1alpha1.IPv4Address) bool { return other == v })
	}
}

func (m *maker) leaseOption(o Option) {
	seconds, err := strconv.ParseUint(strings.Join(o.Values, ","), 10, 32)
	if err != nil {
		m.Leave(o.Line, "it is no number of seconds: write dhcp.leaseTime")
		return
	}
	m.leaseTime(Lease{o.Line, time.Duration(seconds) * time.Second})
}

func (m *maker) identifier(o Option) {
	for _, a := range o.addresses() {
		m.Served = append(m.Served, Served{o.Line, Leasing, a})
	}
}

// routes are pairs of a network and a router; a router of 0.0.0.0/0 is the gateway, which DHCP sends among them (RFC 3442).
func (m *maker) routes(o Option) {
	for i := 0; i < len(o.Values); i += 2 {
		to, err := netip.ParsePrefix(o.Values[i])
		if err != nil || i+1 == len(o.Values) {
			m.Leave(o.Line, "its routes cannot be read from %s on: write networkConfig.routes", o.Values[i])
			return
		}
		via, err := netip.ParseAddr(o.Values[i+1])
		switch n := &m.infra.Spec.NetworkConfig; {
		case err != nil || m.cidr.IsValid() && !m.cidr.Contains(via):
			m.Leave(o.Line, "the route to %s has a router that is not inside %s", to, m.cidr)
		case to.Bits() == 0:
			once(m, o.Line, "networkConfig.gateway", &n.Gateway, desired.IP(via))
		default:
			route := v1alpha1.Route{Destination: v1alpha1.CIDR(to.Masked().String()), Gateway: desired.IPv4(via)}
			one(m, o.Line, "networkConfig.routes", &n.Routes, mostRoutes, route, func(other v1alpha1.Route) bool { return other.Destination == route.Destination })
		}
	}
}

// further are options that DHCP sends as they are.
func (m *maker) further(o Option) {
	form, value := o.value()
	switch {
	case !valid.OptionCode(int32(o.Code)):
		m.Leave(o.Line, "the server sets option %d itself", o.Code)
	case value == "" || form == "" || len(value) > 1024:
		m.Leave(o.Line, "its value cannot be said in dhcp.options: write code %d there with type Hex, if clients need it", o.Code)
	default:
		dhcp := &m.infra.Spec.InfraComponents.DHCP
		made := v1alpha1.DHCPOption{Code: int32(o.Code), Type: form, Value: value}
		for _, other := range dhcp.Options {
			if other.Code == made.Code && other != made {
				m.Leave(o.Line, "dhcp.options has code %d already, with %s", o.Code, other.Value)
				return
			}
		}
		one(m, o.Line, "dhcp.options", &dhcp.Options, mostOptions, made, func(other v1alpha1.DHCPOption) bool { return other == made })
	}
}
