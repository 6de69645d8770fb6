package dnsmasq

import (
	"encoding/hex"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/cldmnky/oooi/internal/moving/draft"
	"github.com/cldmnky/oooi/internal/valid"
)

// ofSome is why what is for tagged clients is left.
const ofSome = "it is for some clients only, and an Infra serves all alike"

// address of either family begins a range: all before it are tags.
var address = regexp.MustCompile(`^[ .:0-9a-fA-F]*$`)

func (r *reader) dhcpRange(at draft.Line, values []string) {
	limited := false
	rest := values
	for ; len(rest) > 1 && !address.MatchString(rest[0]); rest = rest[1:] { // set:TAG is TAG, too (dnsmasq: option.c, one_opt)
		limited = limited || strings.HasPrefix(rest[0], "tag:") || strings.HasPrefix(rest[0], "net:")
	}
	if len(rest) == 0 {
		r.Leave(at, "it has no addresses")
		return
	}
	first, is := ipv4(rest[0])
	if !is {
		r.Leave(at, "there is no DHCPv6, and nobody announces routers of IPv6")
		return
	}
	subnet, static, ok := r.limits(at, first, rest[1:])
	switch {
	case !ok:
		return
	case len(subnet.Ranges) == 0 && !static:
		r.Leave(at, "it has no last address")
		return
	}
	if limited {
		r.Leave(at, "%s; its addresses are left, too", ofSome)
		for i := range subnet.Ranges {
			subnet.Ranges[i].Of = draft.Some
		}
	}
	if r.first == nil {
		r.first = &at
	}
	r.Subnets = append(r.Subnets, subnet)
}

// hour is how long a lease lasts if nothing is written.
const hour = time.Hour

// limits are what follows the first address: the last one or how the range is used, the netmask and the broadcast address, and a time.
func (r *reader) limits(at draft.Line, first netip.Addr, values []string) (made draft.Subnet, static, ok bool) {
	made = draft.Subnet{Line: at, Within: first, Lease: &draft.Lease{Line: at, Time: hour}}
	for _, v := range values {
		a, isAddress := ipv4(v)
		d, isTime := lease(v)
		switch {
		case isAddress && !static && len(made.Ranges) == 0 && !isMask(a):
			made.Ranges = []draft.Range{{Line: at, First: first, Last: a}}
		case isAddress && !made.Prefix.IsValid() && !isMask(a):
			r.Leave(at, "%s is no netmask: its ones have to come first, eight at least", v)
			return made, static, false
		case isAddress && !made.Prefix.IsValid():
			made.Prefix = prefix(first, a)
		case isAddress: // the broadcast address, which follows from the mask
		case v == "static":
			static = true
		case isTime:
			made.Lease.Time = d
		default:
			r.Leave(at, "%s: an Infra has nothing like it", v)
			return made, static, false
		}
	}
	return made, static, true
}

// isMask says whether an address is a netmask of /8 or more.
func isMask(a netip.Addr) bool {
	b := a.As4()
	_, bits := net.IPMask(b[:]).Size()
	return bits == 32 && b[0] == 255
}

func prefix(a, mask netip.Addr) netip.Prefix {
	b := mask.As4()
	ones, _ := net.IPMask(b[:]).Size()
	return netip.PrefixFrom(a, ones).Masked()
}

// lasting is a time: a number with a unit, seconds without one.
var lasting = regexp.MustCompile(`^([0-9]+)([smhdw]?)$`)

func lease(text string) (time.Duration, bool) {
	text = strings.ToLower(text)
	if text == "infinite" {
		return valid.LongestLease, true
	}
	said := lasting.FindStringSubmatch(text)
	if said == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(said[1], 10, 32)
	unit := map[string]time.Duration{"": time.Second, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour}[said[2]]
	return time.Duration(n) * unit, err == nil
}

var (
	ethernet = regexp.MustCompile(`^(?:0*1-)?([0-9a-fA-F*]{1,2}(?::[0-9a-fA-F*]{1,2}){5})$`)
	octets   = regexp.MustCompile(`^[0-9a-fA-F]{2}(:[0-9a-fA-F]{2})*$`)
)

func (r *reader) dhcpHost(at draft.Line, values []string) {
	var host draft.Reservation
	var clients []draft.Reservation
	for _, v := range values {
		a, isAddress := ipv4(v)
		_, isTime := lease(v)
		switch mac := ethernet.FindStringSubmatch(v); {
		case v == "ignore":
			r.Leave(at, "an Infra refuses nobody by name: dhcp.unknownClients: Ignore serves only clients that have a reservation, and the hosted cluster's VMs")
			return
		case v == "id:*": // a reservation is of the MAC address, whatever identifier the client sends
		case strings.HasPrefix(v, "tag:"):
			r.Leave(at, ofSome)
			return
		case strings.HasPrefix(v, "set:") || strings.HasPrefix(v, "net:"):
			r.Leave(at, "%s: options for some clients only are left, and so are their tags", v)
		case strings.HasPrefix(v, "["):
			r.Leave(at, "%s: there is no DHCPv6", v)
		case strings.HasPrefix(v, "id:"):
			clients = append(clients, draft.Reservation{ClientID: identifier(v[3:])})
		case mac != nil && strings.Contains(v, "*"):
			r.Leave(at, "%s: a reservation is for one client", v)
			return
		case mac != nil:
			clients = append(clients, draft.Reservation{MAC: draft.Padded(mac[1])})
		case isAddress:
			host.IP = a
		case isTime:
			r.Leave(at, "%s: all leases last for dhcp.leaseTime", v)
		default:
			host.Host = v
		}
	}
	if len(clients) == 0 {
		clients = []draft.Reservation{{}}
	}
	for _, c := range clients {
		c.Line, c.IP, c.Host = at, host.IP, host.Host
		r.Reservations = append(r.Reservations, c)
	}
}

// identifier is a client identifier in hex; what is not written so are its octets.
func identifier(text string) string {
	if octets.MatchString(text) {
		return strings.ToLower(text)
	}
	return colons([]byte(text))
}

func colons(raw []byte) string {
	var all []string
	for _, b := range raw {
		all = append(all, hex.EncodeToString([]byte{b}))
	}
	return strings.Join(all, ":")
}

func (r *reader) dhcpOption(at draft.Line, values []string) {
	if len(values) == 0 {
		r.Leave(at, "it names no option")
		return
	}
	for _, p := range []string{"tag:", "net:", "encap:", "vi-encap:", "vendor:"} {
		if strings.HasPrefix(values[0], p) {
			r.Leave(at, ofSome)
			return
		}
	}
	name, named := strings.CutPrefix(values[0], "option:")
	code, err := strconv.Atoi(values[0])
	if named {
		code, err = draft.DnsmasqOption(name), nil
	}
	switch {
	case strings.HasPrefix(values[0], "option6:"):
		r.Leave(at, "there is no DHCPv6")
		return
	case err != nil || code == 0:
		r.Leave(at, "nobody here knows the option %s: write it by its number", values[0])
		return
	}
	r.routed = r.routed || code == 3
	o := draft.Option{Line: at, Code: code, Values: values[1:]}
	o.Form, o.Values = encoded(values[1:])
	if raw, is := routes(values[1:]); is && code != 121 {
		o.Form, o.Values = draft.Hex, []string{raw}
	}
	r.Options = append(r.Options, o)
}

// routes are addresses of which some have a length behind them, in hex as dnsmasq sends them with any code (RFC 3442; dnsmasq: option.c,
// parse_dhcp_opt).
func routes(values []string) (raw string, is bool) {
	var octets []byte
	for _, v := range values {
		if a, is := ipv4(v); is {
			octets = append(octets, a.AsSlice()...)
			continue
		}
		to, err := netip.ParsePrefix(v)
		if err != nil || !to.Addr().Is4() {
			return "", false
		}
		is = true
		octets = append(append(octets, byte(to.Bits())), to.Addr().AsSlice()[:(to.Bits()+7)/8]...)
	}
	return hex.EncodeToString(octets), is
}

// sized is a number with dnsmasq's letter for its size.
var sized = regexp.MustCompile(`^([0-9]+)([bsi]?)$`)

// encoded is how dnsmasq sends a value whose option it does not know (dnsmasq: option.c, parse_dhcp_opt).
func encoded(values []string) (form string, plain []string) {
	if len(values) == 0 {
		return draft.String, nil
	}
	addresses := true
	for _, v := range values {
		_, is := ipv4(v)
		addresses = addresses && is
	}
	if addresses {
		return draft.Addresses, values
	}
	if number := sized.FindStringSubmatch(values[0]); number != nil && len(values) == 1 {
		n, _ := strconv.ParseUint(number[1], 10, 32)
		form = map[string]string{"b": draft.Octet, "s": draft.Short, "i": draft.Long}[number[2]]
		switch {
		case form != "":
		case n > 0xffff:
			form = draft.Long
		case n > 0xff:
			form = draft.Short
		default:
			form = draft.Octet
		}
		return form, []string{number[1]}
	}
	if len(values) == 1 && strings.Contains(values[0], ":") && octets.MatchString(values[0]) {
		return draft.Hex, values
	}
	return draft.String, values
}

// dhcpBoot is what a client boots: a file, the name of its server, and the server's address.
func (r *reader) dhcpBoot(at draft.Line, values []string) {
	if tags, _ := cut(values, "tag:", "net:"); len(tags) > 0 {
		r.Leave(at, ofSome)
		return
	}
	for i, v := range values {
		switch {
		case v == "" || i > 2:
		case i == 0:
			r.Options = append(r.Options, draft.Option{Line: at, Code: 67, Values: []string{v}})
		case i == 1:
			r.Options = append(r.Options, draft.Option{Line: at, Code: 66, Values: []string{v}})
		case values[1] == "":
			r.Options = append(r.Options, draft.Option{Line: at, Code: 66, Values: []string{v}})
		default:
			r.Leave(at, "clients are told the name of the boot server (option 66), and not its address %s, which had a place in the header (siaddr)", v)
		}
	}
}

func (r *reader) dhcpIgnore(at draft.Line, values []string) {
	if len(values) == 1 && (values[0] == "tag:!known" || values[0] == "#known") {
		r.OnlyKnown = append(r.OnlyKnown, at)
		return
	}
	r.Leave(at, "an Infra refuses nobody by tag: dhcp.unknownClients: Ignore serves only clients that have a reservation, and the hosted cluster's VMs")
}

// domainName is what clients are told as their domain.
func (r *reader) domainName(at draft.Line, values []string) {
	if len(values) != 1 {
		r.Leave(at, "%s", "a domain for some addresses only has no place in an Infra")
		return
	}
	r.Options = append(r.Options, draft.Option{Line: at, Code: 15, Values: values})
}
