package dhcp

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/pool"
	"github.com/cldmnky/oooi/internal/dhcp/wire"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/valid"
)

// ConfigOf reads and checks a DHCPServer for the instance with this number. The API server has validated most of an object, but nothing of a file.
func ConfigOf(server *v1alpha1.DHCPServer, number int) (pool.Config, error) {
	p, spec := parser{}, server.Spec
	n := spec.NetworkConfig
	if number >= len(n.ServerIPs()) {
		return pool.Config{}, valid.Unset(v1alpha1.ServerIPField(number))
	}
	servers := p.servers(n)
	c := pool.Config{
		Server: servers[number], Instances: []netip.Addr{servers[number]},
		First: p.addr("leaseConfig.rangeStart", spec.LeaseConfig.RangeStart),
		Last:  p.addr("leaseConfig.rangeEnd", spec.LeaseConfig.RangeEnd),
		Network: wire.Network{
			Subnet: p.prefix("networkConfig.cidr", v1alpha1.CIDR(n.CIDR)),
			DNS:    p.hosts("networkConfig.dnsServers", n.DNSServers),
			NTP:    p.hosts("networkConfig.ntpServers", n.NTPServers),
			MTU:    uint16(n.MTU), Domain: string(n.Domain), Search: texts(n.SearchDomains),
			Further: p.options(spec.Options),
		},
		KnownOnly:  spec.UnknownClients == v1alpha1.UnknownClientsIgnore,
		LooksUpVMs: spec.VMNamespace != "",
		LeaseTime:  spec.LeaseConfig.LeaseTime.Duration,
		Born:       server.CreationTimestamp.Time,
		Owner:      server.Labels[names.LabelOwnerUID],
	}
	p.values(spec)
	if n.Gateway != "" {
		c.Network.Router = p.addr("networkConfig.gateway", n.Gateway)
	}
	p.lists(spec, &c)
	if c.LeaseTime == 0 {
		c.LeaseTime = valid.DefaultLease
	}
	p.fit(c, servers)
	return c, errors.Join(p.wrong...)
}

// lists reads the fields that have several entries.
func (p *parser) lists(spec v1alpha1.DHCPServerSpec, c *pool.Config) {
	for i, r := range spec.NetworkConfig.Routes {
		at := fmt.Sprintf("networkConfig.routes[%d]", i)
		c.Network.Routes = append(c.Network.Routes, wire.Route{To: p.prefix(at+".destination", r.Destination), Via: p.addr(at+".gateway", r.Gateway)})
	}
	for i, r := range spec.ExcludeRanges {
		at := fmt.Sprintf("excludeRanges[%d]", i)
		c.Never = append(c.Never, pool.Range{First: p.addr(at+".start", r.Start), Last: p.addr(at+".end", r.End)})
	}
	for i, r := range spec.Relays {
		c.Relays = append(c.Relays, p.relay(fmt.Sprintf("relays[%d]", i), r))
	}
	for i, r := range spec.Reservations {
		c.Reservations = append(c.Reservations, p.reservation(fmt.Sprintf("reservations[%d]", i), r))
	}
}

// unknownClients are the valid values. A file may leave the field empty; in a cluster the schema fills it.
var unknownClients = []v1alpha1.UnknownClients{"", v1alpha1.UnknownClientsPool, v1alpha1.UnknownClientsIgnore}

// values checks the fields that are used as they are written.
func (p *parser) values(spec v1alpha1.DHCPServerSpec) {
	n := spec.NetworkConfig
	p.must(slices.Contains(unknownClients, spec.UnknownClients), "unknownClients", fmt.Sprintf("%q must be Pool or Ignore", spec.UnknownClients))
	p.must(spec.UnknownClients != v1alpha1.UnknownClientsIgnore || spec.VMNamespace != "" || len(spec.Reservations) > 0, "unknownClients",
		"Ignore serves nobody without reservations or vmNamespace, e.g. vmNamespace: clusters-c1")
	p.must(n.MTU == 0 || n.MTU >= 576 && n.MTU <= 65535, "networkConfig.mtu", fmt.Sprintf("%d must be 576 to 65535", n.MTU))
	p.name("networkConfig.domain", n.Domain)
	for i, name := range n.SearchDomains {
		p.name(fmt.Sprintf("networkConfig.searchDomains[%d]", i), name)
	}
}

// fit checks the fields against each other.
func (p *parser) fit(c pool.Config, servers []netip.Addr) {
	if len(p.wrong) > 0 {
		return // values that do not parse cannot be compared
	}
	subnet := c.Network.Subnet
	inside := fmt.Sprintf("must lie inside %s", subnet)
	p.must(subnet.Addr().Is4(), "networkConfig.cidr", "must be IPv4; there is no DHCPv6 yet")
	p.must(valid.Subnet(subnet), "networkConfig.cidr",
		fmt.Sprintf("%s cannot be served: give a network of unicast addresses, /8 or smaller, e.g. 192.168.100.0/24", subnet))
	for i, at := range servers {
		p.must(usable(subnet, at), v1alpha1.ServerIPField(i), fmt.Sprintf("must lie inside %s, and not be its first or last address", subnet))
		p.must(at != c.Network.Router, v1alpha1.ServerIPField(i), fmt.Sprintf("%s is the gateway; give the server an address of its own", at))
		p.must(i == 0 || at != servers[0], v1alpha1.ServerIPField(i), fmt.Sprintf("%s is the first instance's; give each one of its own", at))
	}
	p.must(!c.Network.Router.IsValid() || subnet.Contains(c.Network.Router), "networkConfig.gateway", inside)
	p.must(subnet.Contains(c.First) && subnet.Contains(c.Last), "leaseConfig", fmt.Sprintf("rangeStart and rangeEnd must lie inside %s", subnet))
	p.must(!c.Last.Less(c.First), "leaseConfig", "rangeEnd lies before rangeStart; swap them")
	p.must(valid.LeaseTime(c.LeaseTime), "leaseConfig.leaseTime", "must be between 2m and 8760h, e.g. 24h")
	for i, r := range c.Never {
		p.must(!r.Last.Less(r.First), fmt.Sprintf("excludeRanges[%d]", i), "end lies before start; swap them")
		p.must(subnet.Contains(r.First) && subnet.Contains(r.Last), fmt.Sprintf("excludeRanges[%d]", i), inside)
	}
	for i, r := range c.Reservations {
		p.must(subnet.Contains(r.IP), fmt.Sprintf("reservations[%d].ip", i), inside)
	}
	for i, r := range c.Network.Routes {
		p.must(r.To.Addr().Is4(), fmt.Sprintf("networkConfig.routes[%d].destination", i), "must be IPv4")
		p.must(subnet.Contains(r.Via), fmt.Sprintf("networkConfig.routes[%d].gateway", i), inside)
	}
	for i, o := range c.Network.Further {
		p.must(i == 0 || c.Network.Further[i-1].Code != o.Code, "options", fmt.Sprintf("has code %d twice; keep one of them", o.Code))
	}
}

// usable says whether a host may have an address of a subnet. A /31 has no network or broadcast address (RFC 3021).
func usable(subnet netip.Prefix, a netip.Addr) bool {
	return subnet.Contains(a) && (subnet.Bits() > 30 || a != subnet.Addr() && a != pool.Broadcast(subnet))
}

// parser collects all errors, so that the user sees them at once.
type parser struct{ wrong []error }

func (p *parser) must(ok bool, field, wish string) {
	if !ok {
		p.wrong = append(p.wrong, fmt.Errorf("%s %s", field, wish))
	}
}

func (p *parser) addr(field string, a v1alpha1.IPv4Address) netip.Addr {
	ip, err := netip.ParseAddr(string(a))
	p.must(err == nil && ip.Is4(), field, fmt.Sprintf("%q must be an IPv4 address, e.g. 192.168.100.2", a))
	return ip
}

// hosts are the addresses of resolvers or time servers.
func (p *parser) hosts(field string, list []v1alpha1.IPv4Address) []netip.Addr {
	out := make([]netip.Addr, len(list))
	for i, a := range list {
		at := fmt.Sprintf("%s[%d]", field, i)
		out[i] = p.addr(at, a)
		p.must(!out[i].IsValid() || valid.Server(out[i]), at, fmt.Sprintf("%s must be the address of a server: not 0.0.0.0, loopback or multicast, e.g. 10.0.0.53", a))
	}
	return out
}

// servers are the addresses of all instances that are wanted.
func (p *parser) servers(n v1alpha1.DHCPNetworkConfig) (all []netip.Addr) {
	for i, a := range n.ServerIPs() {
		all = append(all, p.addr(v1alpha1.ServerIPField(i), a))
	}
	return all
}

func (p *parser) prefix(field string, c v1alpha1.CIDR) netip.Prefix {
	prefix, err := netip.ParsePrefix(string(c))
	p.must(err == nil && prefix == prefix.Masked(), field, fmt.Sprintf("%q must be a network with its host bits zero, e.g. 192.168.100.0/24", c))
	return prefix
}

// relay parses a network of giaddrs; an address is a network by itself.
func (p *parser) relay(field string, r v1alpha1.IPv4AddressOrCIDR) netip.Prefix {
	prefix, err := netip.ParsePrefix(string(r))
	if ip, isAddr := netip.ParseAddr(string(r)); isAddr == nil {
		prefix, err = ip.Prefix(ip.BitLen())
	}
	p.must(err == nil && prefix == prefix.Masked() && prefix.Addr().Is4() && prefix.Bits() > 0, field,
		fmt.Sprintf("%q must be an IPv4 address or a network with its host bits zero, and not all of IPv4, e.g. 192.168.100.1 or 192.168.100.0/28", r))
	return prefix
}

// name checks a DNS name, whose labels have at most 63 octets.
func (p *parser) name(field string, name v1alpha1.DNSName) {
	p.must(name == "" || len(validation.IsDNS1123Subdomain(string(name))) == 0 && !slices.ContainsFunc(strings.Split(string(name), "."), tooLong), field,
		fmt.Sprintf("%q must be a DNS name in lower case, with at most 63 characters between its dots, e.g. c1.example.com", name))
}

func tooLong(label string) bool { return len(label) > validation.DNS1123LabelMaxLength }

// The forms of a client in which messages of clients are compared. A reservation in another form would match no client.
var (
	macAddress = regexp.MustCompile(`^[0-9a-f][02468ace](:[0-9a-f]{2}){5}$`)
	clientID   = regexp.MustCompile(`^([0-9a-f]{2}:)+[0-9a-f]{2}$`)
)

func (p *parser) reservation(field string, r v1alpha1.Reservation) pool.Reservation {
	p.must((r.MAC == "") != (r.ClientID == ""), field, "must have exactly one of mac and clientID")
	mac, id := string(r.MAC.Address()), r.Identifier()
	p.must(mac == "" || macAddress.MatchString(mac) && mac != "00:00:00:00:00:00", field+".mac",
		fmt.Sprintf("%q must be a network card's address with colons or hyphens, e.g. 52:54:00:00:01:01", r.MAC))
	p.must(id == "" || clientID.MatchString(id), field+".clientID",
		fmt.Sprintf("%q must be octets in hex with colons, the type first, e.g. 01:52:54:00:00:01:01", r.ClientID))
	p.must(r.Hostname == "" || len(validation.IsDNS1123Label(r.Hostname)) == 0, field+".hostname",
		fmt.Sprintf("%q must be one label of a name in lower case, without a domain, e.g. worker-1", r.Hostname))
	return pool.Reservation{
		IP:       p.addr(field+".ip", r.IP),
		Client:   lease.Client{MAC: mac, ID: id},
		Hostname: r.Hostname,
	}
}

func (p *parser) options(list []v1alpha1.DHCPOption) []wire.Option {
	var out []wire.Option
	for i, o := range list {
		data, err := encodeOption(o.Type, o.Value)
		p.must(err == nil, fmt.Sprintf("options[%d]", i), fmt.Sprintf("(code %d): %v", o.Code, err))
		p.must(err != nil || len(data) > 0, fmt.Sprintf("options[%d].value", i), fmt.Sprintf("(code %d): %q is empty as type %s; give a value, or remove the option", o.Code, o.Value, o.Type))
		p.must(valid.OptionCode(o.Code), fmt.Sprintf("options[%d].code", i),
			fmt.Sprintf("%d is the server's or the protocol's own, or is none; use the field that is made for it (3: gateway, 6: dnsServers, 26: mtu, 42: ntpServers, 51: leaseTime, 119: searchDomains, 121: routes), or remove the option", o.Code))
		out = append(out, wire.Option{Code: byte(o.Code), Data: data})
	}
	slices.SortFunc(out, func(a, b wire.Option) int { return int(a.Code) - int(b.Code) })
	return out
}

func encodeOption(kind, value string) ([]byte, error) {
	switch kind {
	case "IPv4List":
		return encodeAddrs(value)
	case "String":
		return []byte(value), nil
	case "UInt8", "UInt16", "UInt32":
		return encodeNumber(kind, value)
	case "Bool":
		octets, ok := map[string][]byte{"true": {1}, "false": {0}}[value]
		if !ok {
			return nil, fmt.Errorf("%q must be true or false", value)
		}
		return octets, nil
	case "Hex":
		octets, err := hex.DecodeString(strings.ReplaceAll(value, ":", ""))
		if err != nil {
			return nil, fmt.Errorf("%q must be octets of two hex digits, e.g. 01:0a:ff", value)
		}
		return octets, nil
	}
	return nil, fmt.Errorf("type %q is not one of IPv4List, String, UInt8, UInt16, UInt32, Bool, Hex", kind)
}

func encodeAddrs(value string) ([]byte, error) {
	var out []byte
	for text := range strings.SplitSeq(value, ",") {
		ip, err := netip.ParseAddr(strings.TrimSpace(text))
		if err != nil || !ip.Is4() {
			return nil, fmt.Errorf("%q must be IPv4 addresses separated by commas, e.g. 192.168.100.5,192.168.100.6", value)
		}
		out = append(out, ip.AsSlice()...)
	}
	return out, nil
}

func encodeNumber(kind, value string) ([]byte, error) {
	octets := map[string]int{"UInt8": 1, "UInt16": 2, "UInt32": 4}[kind]
	n, err := strconv.ParseUint(value, 10, 8*octets)
	if err != nil {
		return nil, fmt.Errorf("%q must be a whole number that fits %s, e.g. 42", value, kind)
	}
	return binary.BigEndian.AppendUint32(nil, uint32(n))[4-octets:], nil
}

func texts[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, t := range list {
		out[i] = string(t)
	}
	return out
}
