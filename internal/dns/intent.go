package dns

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	mdns "github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/dns/records"
	"github.com/cldmnky/oooi/internal/valid"
)

// IntentOf parses and validates the object, once: in file mode no schema has. The error names every wrong field.
func IntentOf(server *v1alpha1.DNSServer, leases []*v1alpha1.DHCPLease) (records.Intent, error) {
	p, spec := parser{}, server.Spec
	in := records.Intent{
		Domain:    p.name("hostedClusterDomain", string(spec.HostedClusterDomain)),
		VLAN:      p.entries("staticEntries", spec.StaticEntries, valid.MostStaticEntries),
		Pods:      p.entries("internalEntries", spec.InternalEntries, valid.MostInternalEntries),
		Clients:   p.clients(spec.NetworkConfig),
		Upstreams: p.upstreams(spec),
		CacheTTL:  cmp.Or(spec.CacheTTL.Duration, valid.DefaultCacheTTL),
		Leases:    named(leases),
		Denied:    p.denied(spec.DeniedZones),
	}
	in.Network = in.Clients[0]
	p.healthChecks(spec)
	if !valid.CacheTTL(in.CacheTTL) {
		p.wrong("cacheTTL", "%s must be between 1s and 168h, e.g. 1h", in.CacheTTL)
	}
	return in, errors.Join(p.errs...)
}

// parser parses fields into typed values, and collects the errors.
type parser struct{ errs []error }

func (p *parser) wrong(field, format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf("spec.%s: %s", field, fmt.Sprintf(format, args...)))
}

func (p *parser) name(field, value string) string {
	if problems := validation.IsDNS1123Subdomain(value); len(problems) > 0 {
		p.wrong(field, "%q is not a DNS name such as c1.example.com", value)
	}
	return mdns.Fqdn(value)
}

func (p *parser) entryName(field, value string) string {
	if len(value) > 2 && value[:2] == "*." {
		return "*." + p.name(field, value[2:])
	}
	return p.name(field, value)
}

func (p *parser) addr(field, value string) netip.Addr {
	addr, ok := valid.Canonical(value)
	if !ok {
		p.wrong(field, "%q is not an IP address in canonical form, such as 192.168.100.10 or fd00:100::10", value)
	}
	return addr
}

func (p *parser) atMost(most, n int, field string) {
	if n > most {
		p.wrong(field, "%d are listed; list at most %d", n, most)
	}
}

// once refuses what a list has already.
func once[T comparable](p *parser, list string, entries []T) {
	for i, e := range entries {
		if before := slices.Index(entries[:i], e); before >= 0 {
			p.wrong(fmt.Sprintf("%s[%d]", list, i), "%v is %s[%d] already; keep one of them", e, list, before)
		}
	}
}

func (p *parser) entries(list string, entries []v1alpha1.DNSEntry, most int) (out []records.Record) {
	p.atMost(most, len(entries), list)
	once(p, list, entries)
	for i, e := range entries {
		field := fmt.Sprintf("%s[%d]", list, i)
		out = append(out, records.Record{Name: p.entryName(field+".hostname", string(e.Hostname)), Addr: p.addr(field+".ip", string(e.IP))})
	}
	return out
}

// clients are the VLAN's network, which has the instances' addresses, and those behind its router.
func (p *parser) clients(network v1alpha1.DNSNetworkConfig) []netip.Prefix {
	subnet := p.prefix("networkConfig.secondaryNetworkCIDR", v1alpha1.CIDR(network.SecondaryNetworkCIDR))
	if subnet.IsValid() && !valid.Subnet(subnet) {
		p.wrong("networkConfig.secondaryNetworkCIDR", "%s must be /8 or longer, and neither link-local nor multicast nor reserved, e.g. 192.168.100.0/24", subnet)
	}
	p.atMost(valid.MostFurtherInstances, len(network.AdditionalServerIPs), "networkConfig.additionalServerIPs")
	for i, a := range network.ServerIPs() {
		field := v1alpha1.ServerIPField(i)
		switch at := p.addr(field, string(a)); {
		case at.IsValid() && subnet.IsValid() && !subnet.Contains(at):
			p.wrong(field, "%s must lie inside networkConfig.secondaryNetworkCIDR, %s", at, subnet)
		case i > 0 && a == network.ServerIP:
			p.wrong(field, "%s is the first instance's; give each one of its own", at)
		}
	}
	out := []netip.Prefix{subnet}
	p.atMost(valid.MostClientNetworks, len(network.ClientCIDRs), "networkConfig.clientCIDRs")
	for i, cidr := range network.ClientCIDRs {
		out = append(out, p.prefix(fmt.Sprintf("networkConfig.clientCIDRs[%d]", i), cidr))
	}
	return out
}

func (p *parser) prefix(field string, value v1alpha1.CIDR) netip.Prefix {
	prefix, err := netip.ParsePrefix(string(value))
	if err != nil || prefix != prefix.Masked() {
		p.wrong(field, "%q is not a network with its host bits zero, such as 192.168.100.0/24", value)
	}
	return prefix
}

func (p *parser) denied(zones []v1alpha1.DNSName) (out []string) {
	p.atMost(valid.MostDeniedZones, len(zones), "deniedZones")
	once(p, "deniedZones", zones)
	for i, zone := range zones {
		out = append(out, p.name(fmt.Sprintf("deniedZones[%d]", i), string(zone)))
	}
	return out
}

// upstreams refuses this server's own addresses, where queries would come straight back.
func (p *parser) upstreams(spec v1alpha1.DNSServerSpec) (out []netip.AddrPort) {
	p.atMost(valid.MostResolvers, len(spec.UpstreamDNS), "upstreamDNS")
	for i, a := range spec.UpstreamDNS {
		field := fmt.Sprintf("upstreamDNS[%d]", i)
		addr := p.addr(field, string(a))
		switch {
		case slices.Contains(spec.NetworkConfig.ServerIPs(), a):
			p.wrong(field, "%s is this server itself; name the resolver behind it", a)
		case addr.IsValid() && !valid.Server(addr):
			p.wrong(field, "%s must be the address of a server: not 0.0.0.0, loopback or multicast, e.g. 10.0.0.53", a)
		}
		out = append(out, netip.AddrPortFrom(addr, dnsPort))
	}
	return out
}

func (p *parser) healthChecks(spec v1alpha1.DNSServerSpec) {
	p.atMost(valid.MostHealthChecks, len(spec.HealthChecks), "healthChecks")
	var all []v1alpha1.IPAddress
	for i, check := range spec.HealthChecks {
		field := fmt.Sprintf("healthChecks[%d]", i)
		ip := p.addr(field+".ip", string(check.IP))
		if own, _ := valid.Address(string(spec.NetworkConfig.ServerIP)); ip.IsValid() && ip.Is4() != own.Is4() {
			p.wrong(field+".ip", "%s is not of the family of networkConfig.serverIP, from which it is checked", ip)
		}
		if check.Port != 0 && !valid.Port(check.Port) {
			p.wrong(field+".port", "%d is not a port (1 to 65535)", check.Port)
		}
		all = append(all, check.IP)
	}
	once(p, "healthChecks", all)
}

// healthChecks are those of an object whose intent is valid.
func healthChecks(server *v1alpha1.DNSServer) (all []netip.AddrPort) {
	for _, check := range server.Spec.HealthChecks {
		if addr, ok := valid.Address(string(check.IP)); ok {
			all = append(all, netip.AddrPortFrom(addr, uint16(check.Port)))
		}
	}
	return all
}

// named returns the leases that have a name, the latest horizon first: of two machines with one name, the first is the one that still renews.
func named(leases []*v1alpha1.DHCPLease) (out []records.Lease) {
	leases = slices.Clone(leases)
	slices.SortFunc(leases, func(a, b *v1alpha1.DHCPLease) int {
		return cmp.Or(b.Spec.DurableUntilTime.Compare(a.Spec.DurableUntilTime.Time), cmp.Compare(a.Spec.IP, b.Spec.IP))
	})
	for _, l := range leases {
		addr, err := netip.ParseAddr(string(l.Spec.IP))
		if err == nil && l.Spec.State == v1alpha1.LeaseBound && len(validation.IsDNS1123Label(l.Spec.Hostname)) == 0 {
			out = append(out, records.Lease{Host: l.Spec.Hostname, Addr: addr.Unmap()})
		}
	}
	return out
}
