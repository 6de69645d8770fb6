package draft

import (
	"encoding/hex"
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Encodings of an option, as v1alpha1.DHCPOption names them.
const (
	Addresses = "IPv4List"
	String    = "String"
	Octet     = "UInt8"
	Short     = "UInt16"
	Long      = "UInt32"
	Bool      = "Bool"
	Hex       = "Hex"
)

// known are options of RFC 2132 and its successors: codes, encodings, and the names of ISC dhcpd, which Kea shares, and dnsmasq.
var known = []struct {
	code         int
	form         string
	isc, dnsmasq string
}{
	{1, Addresses, "subnet-mask", "netmask"}, {2, Long, "time-offset", "time-offset"}, {3, Addresses, "routers", "router"},
	{4, Addresses, "time-servers", ""}, {5, Addresses, "ien116-name-servers", ""}, {6, Addresses, "domain-name-servers", "dns-server"},
	{7, Addresses, "log-servers", "log-server"}, {8, Addresses, "cookie-servers", ""}, {9, Addresses, "lpr-servers", "lpr-server"},
	{10, Addresses, "impress-servers", ""}, {11, Addresses, "resource-location-servers", ""}, {12, String, "host-name", ""},
	{13, Short, "boot-size", "boot-file-size"}, {14, String, "merit-dump", ""}, {15, String, "domain-name", "domain-name"},
	{16, Addresses, "swap-server", "swap-server"}, {17, String, "root-path", "root-path"}, {18, String, "extensions-path", "extension-path"},
	{19, Bool, "ip-forwarding", "ip-forward-enable"}, {20, Bool, "non-local-source-routing", "non-local-source-routing"},
	{21, Addresses, "policy-filter", "policy-filter"}, {22, Short, "max-dgram-reassembly", "max-datagram-reassembly"},
	{23, Octet, "default-ip-ttl", "default-ttl"}, {26, Short, "interface-mtu", "mtu"}, {27, Bool, "all-subnets-local", "all-subnets-local"},
	{28, Addresses, "broadcast-address", "broadcast"}, {31, Bool, "router-discovery", "router-discovery"},
	{32, Addresses, "router-solicitation-address", "router-solicitation"}, {33, Addresses, "static-routes", "static-route"},
	{34, Bool, "trailer-encapsulation", "trailer-encapsulation"}, {35, Long, "arp-cache-timeout", "arp-timeout"},
	{36, Bool, "ieee802-3-encapsulation", "ethernet-encap"}, {37, Octet, "default-tcp-ttl", "tcp-ttl"},
	{38, Long, "tcp-keepalive-interval", "tcp-keepalive"}, {40, String, "nis-domain", "nis-domain"},
	{41, Addresses, "nis-servers", "nis-server"}, {42, Addresses, "ntp-servers", "ntp-server"},
	{44, Addresses, "netbios-name-servers", "netbios-ns"}, {45, Addresses, "netbios-dd-server", "netbios-dd"},
	{46, Octet, "netbios-node-type", "netbios-nodetype"}, {47, String, "netbios-scope", "netbios-scope"},
	{48, Addresses, "font-servers", "x-windows-fs"}, {49, Addresses, "x-display-manager", "x-windows-dm"},
	{51, Long, "dhcp-lease-time", "lease-time"}, {54, Addresses, "dhcp-server-identifier", "server-identifier"},
	{58, Long, "dhcp-renewal-time", "T1"}, {59, Long, "dhcp-rebinding-time", "T2"}, {60, String, "vendor-class-identifier", "vendor-class"},
	{64, String, "nisplus-domain", "nis+-domain"}, {65, Addresses, "nisplus-servers", "nis+-server"},
	{66, String, "tftp-server-name", "tftp-server"}, {67, String, "bootfile-name", "bootfile-name"},
	{68, Addresses, "mobile-ip-home-agent", "mobile-ip-home"}, {69, Addresses, "smtp-server", "smtp-server"},
	{70, Addresses, "pop-server", "pop3-server"}, {71, Addresses, "nntp-server", "nntp-server"}, {72, Addresses, "www-server", ""},
	{73, Addresses, "finger-server", ""}, {74, Addresses, "irc-server", "irc-server"}, {100, String, "pcode", "posix-timezone"},
	{101, String, "tcode", "tzdb-timezone"}, {114, String, "default-url", ""}, {119, String, "domain-search", "domain-search"},
	{121, Addresses, "classless-static-routes", "classless-static-route"}, {150, Addresses, "tftp-server-address", "tftp-server-address"},
}

// ISCOption is the code of an option by ISC dhcpd's name of it; 0 if nobody knows it.
func ISCOption(name string) int {
	for _, o := range known {
		if o.isc == name {
			return o.code
		}
	}
	// Kea's own names (src/lib/dhcp/std_option_defs.h).
	return map[string]int{"boot-file-name": 67, "nis-domain-name": 40, "v4-captive-portal": 114, "classless-static-route": 121, "name-servers": 5, "mtu": 26}[name]
}

// DnsmasqOption is the code of an option by dnsmasq's name of it; 0 if nobody knows it.
func DnsmasqOption(name string) int {
	for _, o := range known {
		if o.dnsmasq == strings.ToLower(name) || o.dnsmasq == name {
			return o.code
		}
	}
	return 0
}

// form of a code, or the one that the file says.
func (o Option) form() string {
	for _, k := range known {
		if k.code == o.Code && !o.Raw {
			return k.form
		}
	}
	return o.Form
}

// Defined says that the file defines the option's form, which may be another than the code's.
func (o *Option) Defined() { o.Raw = o.Raw || o.form() != o.Form }

// value of an option in the words of v1alpha1.DHCPOption; an empty one cannot be said in them.
func (o Option) value() (form, value string) {
	form, value = o.form(), strings.Join(o.Values, ",")
	switch form {
	case Bool:
		return form, map[string]string{"1": "true", "true": "true", "on": "true", "0": "false", "false": "false", "off": "false"}[value]
	case Octet, Short, Long:
		n, err := strconv.ParseUint(value, 0, map[string]int{Octet: 8, Short: 16, Long: 32}[form])
		if err != nil {
			return form, ""
		}
		return form, strconv.FormatUint(n, 10)
	case Addresses:
		for _, text := range o.Values {
			if a, err := netip.ParseAddr(text); err != nil || !a.Is4() {
				return form, ""
			}
		}
	case String: // which an object has in UTF-8
		if !utf8.ValidString(value) {
			return Hex, hex.EncodeToString([]byte(value))
		}
	case Hex:
		if _, err := hex.DecodeString(strings.ReplaceAll(value, ":", "")); err != nil {
			return form, ""
		}
	}
	return form, value
}

// SetRoutes reads the octets of option 121: the length of a network, as many of its octets as are needed, and the router (RFC 3442).
func (o *Option) SetRoutes(raw []byte) bool {
	o.Values, o.Raw, o.Form = nil, false, Addresses
	for len(raw) > 0 {
		length := int(raw[0])
		octets := (length + 7) / 8
		if length > 32 || len(raw) < 1+octets+4 {
			return false
		}
		var to, via [4]byte
		copy(to[:], raw[1:1+octets])
		copy(via[:], raw[1+octets:])
		o.Values = append(o.Values, netip.PrefixFrom(netip.AddrFrom4(to), length).String(), netip.AddrFrom4(via).String())
		raw = raw[5+octets:]
	}
	return true
}

// addresses of an option's value.
func (o Option) addresses() (all []netip.Addr) {
	for _, text := range o.Values {
		if a, err := netip.ParseAddr(strings.TrimSpace(text)); err == nil && a.Is4() {
			all = append(all, a)
		}
	}
	return all
}
