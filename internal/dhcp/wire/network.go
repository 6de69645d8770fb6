package wire

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/rfc1035label"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Network is what clients are told of their link.
type Network struct {
	Subnet  netip.Prefix
	Router  netip.Addr // invalid on an isolated VLAN
	DNS     []netip.Addr
	NTP     []netip.Addr
	MTU     uint16 // 0: not sent
	Domain  string
	Search  []string
	Routes  []Route
	Further []Option
}

// Route is one classless route.
type Route struct {
	To  netip.Prefix
	Via netip.Addr
}

// Options are what a client of the network may ask for, most important first: the last ones are left out of a full datagram.
func (n Network) Options(hostname string) []Option {
	var options []Option
	add := func(code dhcpv4.OptionCode, data []byte) {
		if len(data) > 0 {
			options = append(options, Option{code.Code(), data})
		}
	}
	add(dhcpv4.OptionSubnetMask, mask(n.Subnet)) // before 3: RFC 2132 §3.3
	if n.Router.IsValid() {
		add(dhcpv4.OptionRouter, n.Router.AsSlice())
	}
	add(dhcpv4.OptionDomainNameServer, addrs(n.DNS))
	add(dhcpv4.OptionHostName, []byte(hostname))
	add(dhcpv4.OptionClasslessStaticRoute, n.classlessRoutes()) // after what is small: many routes leave room for nothing else
	if n.MTU > 0 {
		add(dhcpv4.OptionInterfaceMTU, binary.BigEndian.AppendUint16(nil, n.MTU))
	}
	add(dhcpv4.OptionNTPServers, addrs(n.NTP))
	add(dhcpv4.OptionDomainName, []byte(n.Domain))
	if len(n.Search) > 0 {
		add(dhcpv4.OptionDNSDomainSearchList, (&rfc1035label.Labels{Labels: n.Search}).ToBytes())
	}
	return append(options, n.Further...)
}

// classlessRoutes is option 121. A client that takes it ignores option 3 (RFC 3442), so it contains the default route.
func (n Network) classlessRoutes() []byte {
	if len(n.Routes) == 0 {
		return nil
	}
	var out []byte
	for _, r := range n.Routes {
		out = appendRoute(out, r)
	}
	if n.Router.IsValid() {
		out = appendRoute(out, Route{netip.PrefixFrom(netip.IPv4Unspecified(), 0), n.Router})
	}
	return out
}

// leastRoom is the room for options in a reply to a client that takes 576 octets (RFC 2131 §2) and sends a client-id of 19 octets, as RFC
// 4361 makes it: 576 less both headers, the fixed part, END, options 53, 54, 51, 58 and 59, and the client-id.
const leastRoom = dhcpv4.MaxMessageSize - headers - fileEnd - len(cookie{}) - 1 - (3 + 4*6) - (2 + 19)

// RoutesFit says whether every client that asks for the routes gets them. Where they do not fit they are left out as a whole.
func (n Network) RoutesFit() bool {
	upToRoutes := n.Options(strings.Repeat("n", validation.DNS1123LabelMaxLength))
	at := slices.IndexFunc(upToRoutes, func(o Option) bool { return o.Code == dhcpv4.OptionClasslessStaticRoute.Code() })
	return len(encode(upToRoutes[:at+1])) <= leastRoom
}

func appendRoute(out []byte, r Route) []byte {
	significant := (r.To.Bits() + 7) / 8
	out = append(out, byte(r.To.Bits()))
	out = append(out, r.To.Masked().Addr().AsSlice()[:significant]...)
	return append(out, r.Via.AsSlice()...)
}

func mask(subnet netip.Prefix) []byte {
	return binary.BigEndian.AppendUint32(nil, ^uint32(0)<<(32-subnet.Bits()))
}

func addrs(list []netip.Addr) []byte {
	var out []byte
	for _, a := range list {
		out = append(out, a.AsSlice()...)
	}
	return out
}
