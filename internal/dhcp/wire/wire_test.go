package wire

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/insomniacslk/dhcp/dhcpv4"
	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
)

var (
	mac    = net.HardwareAddr{0x52, 0x54, 0, 0, 0, 1}
	server = netip.MustParseAddr("192.168.100.2")
	yours  = netip.MustParseAddr("192.168.100.57")
)

// sent is a client's message, as octets.
func sent(t dhcpv4.MessageType, with ...dhcpv4.Modifier) []byte {
	m, err := dhcpv4.New(append([]dhcpv4.Modifier{dhcpv4.WithHwAddr(mac), dhcpv4.WithMessageType(t)}, with...)...)
	if err != nil {
		panic(err)
	}
	return m.ToBytes()
}

func option(code uint8, octets ...byte) dhcpv4.Modifier {
	return dhcpv4.WithGeneric(dhcpv4.GenericOptionCode(code), octets)
}

func ciaddr(a string) dhcpv4.Modifier { return dhcpv4.WithClientIP(net.ParseIP(a)) }

func giaddr(a string) dhcpv4.Modifier { return dhcpv4.WithGatewayIP(net.ParseIP(a)) }

func requested(a string) dhcpv4.Modifier {
	return dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(net.ParseIP(a)))
}

func chosen(a string) dhcpv4.Modifier {
	return dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.ParseIP(a)))
}

func parsed(t *testing.T, octets []byte) Message {
	t.Helper()
	m, err := Parse(octets)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return m
}

func TestMessagesAreToldApart(t *testing.T) {
	for name, c := range map[string]struct {
		octets []byte
		kind   Kind
		wanted string
	}{
		"DISCOVER":                          {sent(dhcpv4.MessageTypeDiscover), Discover, ""},
		"DISCOVER with a wish":              {sent(dhcpv4.MessageTypeDiscover, requested("192.168.100.9")), Discover, "192.168.100.9"},
		"REQUEST that chose a server":       {sent(dhcpv4.MessageTypeRequest, requested("192.168.100.9"), chosen("192.168.100.2")), Selecting, "192.168.100.9"},
		"REQUEST after a reboot":            {sent(dhcpv4.MessageTypeRequest, requested("192.168.100.9")), InitReboot, "192.168.100.9"},
		"REQUEST that renews":               {sent(dhcpv4.MessageTypeRequest, ciaddr("192.168.100.9")), Renewing, "192.168.100.9"},
		"REQUEST that renews and says more": {sent(dhcpv4.MessageTypeRequest, ciaddr("192.168.100.9"), requested("192.168.100.8"), chosen("192.168.100.2")), Renewing, "192.168.100.9"},
		"RELEASE":                           {sent(dhcpv4.MessageTypeRelease, ciaddr("192.168.100.9"), chosen("192.168.100.2")), Release, "192.168.100.9"},
		"DECLINE":                           {sent(dhcpv4.MessageTypeDecline, requested("192.168.100.9"), chosen("192.168.100.2")), Decline, "192.168.100.9"},
		"INFORM":                            {sent(dhcpv4.MessageTypeInform, ciaddr("192.168.100.9")), Inform, "192.168.100.9"},
	} {
		t.Run(name, func(t *testing.T) {
			m := parsed(t, c.octets)
			wanted, _ := netip.ParseAddr(c.wanted)
			NewWithT(t).Expect([]any{m.Kind, m.Wanted}).To(Equal([]any{c.kind, wanted}))
		})
	}
}

func TestGarbageIsNotAnswered(t *testing.T) {
	good := sent(dhcpv4.MessageTypeDiscover)
	changed := func(at int, to byte) []byte { out := bytes.Clone(good); out[at] = to; return out }
	for name, octets := range map[string][]byte{
		"nothing":                        {},
		"a reply":                        changed(0, 2),
		"hlen beyond chaddr":             changed(2, 17),
		"another cookie":                 changed(236, 0),
		"cut off in the header":          good[:200],
		"cut off in an option":           good[:242],
		"a REQUEST about nothing":        sent(dhcpv4.MessageTypeRequest),
		"a server's message":             sent(dhcpv4.MessageTypeOffer),
		"option 50 of three octets":      sent(dhcpv4.MessageTypeRequest, option(50, 192, 168, 100)),
		"neither chaddr nor client-id":   sent(dhcpv4.MessageTypeDiscover, dhcpv4.WithHwAddr(make(net.HardwareAddr, 6))),
		"chaddr of zeros, and client-id": sent(dhcpv4.MessageTypeDiscover, dhcpv4.WithHwAddr(make(net.HardwareAddr, 6)), option(61, 1, 2)),
		"chaddr of everybody":            sent(dhcpv4.MessageTypeDiscover, dhcpv4.WithHwAddr(net.HardwareAddr{255, 255, 255, 255, 255, 255})),
		"chaddr of a group":              sent(dhcpv4.MessageTypeDiscover, dhcpv4.WithHwAddr(net.HardwareAddr{1, 0, 0x5e, 0, 0, 1})),
		"option 54 of no octets":         sent(dhcpv4.MessageTypeRequest, requested("192.168.100.9"), option(54)),
		"option 50 of no octets":         sent(dhcpv4.MessageTypeDiscover, option(50)),
		"a client-id beyond an option":   sent(dhcpv4.MessageTypeDiscover, option(61, make([]byte, 300)...)),
		"overload with broken options":   overloaded(dhcpv4.OptionServerIdentifier.Code(), 200),
		"BOOTP without any message type": {1, 1, 6, 0},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(octets)
			NewWithT(t).Expect(err).To(HaveOccurred())
		})
	}
}

// overloaded lends the field file to options, the first of which claims the given length.
func overloaded(code, length byte) []byte {
	octets := sent(dhcpv4.MessageTypeRequest, option(52, overloadFile))
	octets[fileStart], octets[fileStart+1] = code, length
	copy(octets[fileStart+2:], []byte{192, 168, 100, 9, 255})
	return octets
}

func TestOptionsInOverloadedFieldsAreRead(t *testing.T) {
	m := parsed(t, overloaded(dhcpv4.OptionRequestedIPAddress.Code(), 4))
	NewWithT(t).Expect(m.Wanted).To(Equal(netip.MustParseAddr("192.168.100.9")))
}

func TestTheKeyIsTheHardwareAddress(t *testing.T) {
	for name, c := range map[string]struct {
		octets []byte
		key    lease.Client
	}{
		"whatever the client-id":       {sent(dhcpv4.MessageTypeDiscover, option(61, 255, 1, 2, 3)), lease.Client{MAC: "52:54:00:00:00:01"}},
		"the client-id without one":    {sent(dhcpv4.MessageTypeDiscover, dhcpv4.WithHwAddr(nil), option(61, 255, 1, 2, 3)), lease.Client{ID: "ff:01:02:03"}},
		"with its type, if no 802 one": {otherHardware(32, 8), lease.Client{ID: "20:00:00:00:00:00:00:00:09"}},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(parsed(t, c.octets).Client).To(Equal(c.key)) })
	}
}

func otherHardware(kind, length byte) []byte {
	address := make(net.HardwareAddr, length)
	address[length-1] = 9
	octets := sent(dhcpv4.MessageTypeDiscover, dhcpv4.WithHwAddr(address))
	octets[1] = kind
	return octets
}

var network = Network{
	Subnet: netip.MustParsePrefix("192.168.100.0/22"), Router: netip.MustParseAddr("192.168.100.1"),
	DNS: []netip.Addr{netip.MustParseAddr("192.168.100.3"), netip.MustParseAddr("192.168.100.4")},
	NTP: []netip.Addr{netip.MustParseAddr("192.168.100.5")}, MTU: 1400, Domain: "c1.example.com", Search: []string{"c1.example.com", "example.com"},
	Routes:  []Route{{netip.MustParsePrefix("172.20.0.9/32"), netip.MustParseAddr("192.168.100.5")}, {netip.MustParsePrefix("10.128.0.0/9"), netip.MustParseAddr("192.168.100.6")}},
	Further: []Option{{66, []byte("tftp.example.com")}},
}

func ack() Reply {
	return Reply{Type: dhcpv4.MessageTypeAck, Yours: yours, Server: server, Lease: 24 * time.Hour, Options: network.Options("worker-1")}
}

// read decodes a reply as a client does.
func read(t *testing.T, octets []byte) *dhcpv4.DHCPv4 {
	t.Helper()
	reply, err := dhcpv4.FromBytes(octets)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return reply
}

func TestTheHeaderIsCopied(t *testing.T) {
	g := NewWithT(t)
	m := parsed(t, sent(dhcpv4.MessageTypeDiscover, dhcpv4.WithBroadcast(true), giaddr("192.168.100.9")))
	reply := read(t, m.Encode(ack(), 1500))
	g.Expect(reply.OpCode).To(Equal(dhcpv4.OpcodeBootReply))
	g.Expect(reply.HWType).To(Equal(m.header.HWType))
	g.Expect(reply.ClientHWAddr).To(Equal(mac))
	g.Expect(reply.TransactionID).To(Equal(m.header.TransactionID))
	g.Expect(reply.IsBroadcast()).To(BeTrue())
	g.Expect(reply.GatewayIPAddr.Equal(m.header.GatewayIPAddr)).To(BeTrue())
	g.Expect(reply.YourIPAddr.String()).To(Equal(yours.String()))
}

// The server receives the next datagram into the same buffer while this message is still answered.
func TestAMessageSharesNothingWithItsDatagram(t *testing.T) {
	octets := sent(dhcpv4.MessageTypeRequest, ciaddr("192.168.100.57"), giaddr("192.168.100.9"), requested("192.168.100.57"), chosen("192.168.100.2"),
		option(61, 1, 2, 3), option(55, 1, 3), option(82, 1, 1, 7), func(m *dhcpv4.DHCPv4) { m.ServerHostName, m.BootFileName = "server", "file" })
	m, same := parsed(t, octets), parsed(t, slices.Clone(octets))
	for i := range octets {
		octets[i] = 0xff
	}
	NewWithT(t).Expect(m).To(Equal(same))
}

func TestEveryOptionAsItsRFCHasIt(t *testing.T) {
	m := parsed(t, sent(dhcpv4.MessageTypeDiscover))
	got := map[uint8][]byte{}
	for code, data := range read(t, m.Encode(ack(), 1500)).Options {
		got[code] = data
	}
	want := map[uint8][]byte{
		53: {5}, 54: {192, 168, 100, 2}, 51: {0, 1, 0x51, 0x80}, 58: {0, 0, 0xa8, 0xc0}, 59: {0, 1, 0x27, 0x50},
		1: {255, 255, 252, 0}, 3: {192, 168, 100, 1}, 6: {192, 168, 100, 3, 192, 168, 100, 4}, 12: []byte("worker-1"), 15: []byte("c1.example.com"),
		26: {5, 120}, 42: {192, 168, 100, 5}, 66: []byte("tftp.example.com"),
		119: []byte("\x02c1\x07example\x03com\x00\x07example\x03com\x00"),
		121: {32, 172, 20, 0, 9, 192, 168, 100, 5, 9, 10, 128, 192, 168, 100, 6, 0, 192, 168, 100, 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAnIsolatedNetworkHasNoRouter(t *testing.T) {
	isolated := network
	isolated.Router = netip.Addr{}
	for _, o := range isolated.Options("") {
		NewWithT(t).Expect(o.Code).NotTo(BeElementOf(uint8(3), uint8(12)))
		if o.Code == 121 {
			NewWithT(t).Expect(bytes.HasSuffix(o.Data, []byte{9, 10, 128, 192, 168, 100, 6})).To(BeTrue(), "no default route inside")
		}
	}
}

func TestOnlyWhatTheClientAskedForAndWhatMustBe(t *testing.T) {
	m := parsed(t, sent(dhcpv4.MessageTypeDiscover, option(55, 1, 3, 50, 55, 57)))
	codes := codesOf(m.Encode(ack(), 1500))
	NewWithT(t).Expect(codes).To(Equal([]byte{53, 54, 51, 58, 59, 1, 3}), "53 first; never 50, 55 or 57")
}

// codesOf are the options of a reply in their order.
func codesOf(reply []byte) (codes []byte) {
	for rest := reply[240:]; len(rest) > 0 && rest[0] != 255; rest = rest[2+int(rest[1]):] {
		codes = append(codes, rest[0])
	}
	return codes
}

func TestNakHasNeitherAddressNorLease(t *testing.T) {
	g := NewWithT(t)
	refusal := Reply{Type: dhcpv4.MessageTypeNak, Server: server}
	direct := parsed(t, sent(dhcpv4.MessageTypeRequest, ciaddr("192.168.100.9"), option(61, 1, 2, 3)))
	reply := direct.Encode(refusal, 1500)
	g.Expect(codesOf(reply)).To(Equal([]byte{53, 54, 61}))
	g.Expect(read(t, reply).YourIPAddr.IsUnspecified()).To(BeTrue())
	g.Expect(read(t, reply).ClientIPAddr.IsUnspecified()).To(BeTrue())
	g.Expect(direct.Destination(refusal.Type).String()).To(Equal("255.255.255.255:68"))

	relayed := parsed(t, sent(dhcpv4.MessageTypeRequest, requested("10.0.0.1"), giaddr("192.168.100.9")))
	g.Expect(read(t, relayed.Encode(refusal, 1500)).IsBroadcast()).To(BeTrue())
	g.Expect(relayed.Destination(refusal.Type).String()).To(Equal("192.168.100.9:67"))
}

func TestTheClientIDIsReturnedIffSent(t *testing.T) {
	g := NewWithT(t)
	id := []byte{255, 0, 0, 0, 1, 0, 2}
	g.Expect(read(t, parsed(t, sent(dhcpv4.MessageTypeDiscover, option(61, id...))).Encode(ack(), 1500)).Options[61]).To(Equal(id))
	g.Expect(read(t, parsed(t, sent(dhcpv4.MessageTypeDiscover)).Encode(ack(), 1500)).Options).NotTo(HaveKey(uint8(61)))
}

func TestTheRelaysOptionIsReturnedLastAndToRelaysOnly(t *testing.T) {
	g := NewWithT(t)
	agent := option(82, 1, 3, 'e', 't', 'h')
	codes := codesOf(parsed(t, sent(dhcpv4.MessageTypeDiscover, agent, giaddr("192.168.100.9"))).Encode(ack(), 1500))
	g.Expect(codes[len(codes)-1]).To(Equal(byte(82)))
	g.Expect(codesOf(parsed(t, sent(dhcpv4.MessageTypeDiscover, agent)).Encode(ack(), 1500))).NotTo(ContainElement(byte(82)))
}

func TestDestination(t *testing.T) {
	for name, c := range map[string]struct {
		octets []byte
		to     string
	}{
		"a relay":                     {sent(dhcpv4.MessageTypeRequest, ciaddr("192.168.100.9"), giaddr("192.168.100.7")), "192.168.100.7:67"},
		"a client with an address":    {sent(dhcpv4.MessageTypeRequest, ciaddr("192.168.100.9")), "192.168.100.9:68"},
		"a client without an address": {sent(dhcpv4.MessageTypeDiscover), "255.255.255.255:68"},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(parsed(t, c.octets).Destination(dhcpv4.MessageTypeAck).String()).To(Equal(c.to))
		})
	}
}

func TestSizes(t *testing.T) {
	large := ack()
	large.Options = append(large.Options, Option{200, bytes.Repeat([]byte{7}, 300)}, Option{201, []byte("small")})
	size := func(n uint16) dhcpv4.Modifier { return option(57, binary.BigEndian.AppendUint16(nil, n)...) }
	for name, c := range map[string]struct {
		with   []dhcpv4.Modifier
		mtu    int
		atMost int
		large  bool
	}{
		"576 without option 57":             {nil, 1500, 548, false},
		"what option 57 says":               {[]dhcpv4.Modifier{size(1400)}, 1500, 1372, true},
		"never less than 576":               {[]dhcpv4.Modifier{size(100)}, 1500, 548, false},
		"the link's MTU":                    {[]dhcpv4.Modifier{size(9000)}, 700, 672, false},
		"with the largest client-id and 82": {[]dhcpv4.Modifier{option(61, make([]byte, 255)...), option(82, make([]byte, 255)...), giaddr("192.168.100.9")}, 1500, 548, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			reply := parsed(t, sent(dhcpv4.MessageTypeDiscover, c.with...)).Encode(large, c.mtu)
			g.Expect(len(reply)).To(And(BeNumerically(">=", 300), BeNumerically("<=", c.atMost)))
			options := read(t, reply).Options
			if c.large {
				g.Expect(options[200]).To(HaveLen(300), "split and joined (RFC 3396)")
			} else {
				g.Expect(options).NotTo(HaveKey(uint8(200)))
			}
			g.Expect(options).To(HaveKey(uint8(51)))
		})
	}
	t.Run("what is left out is the least important", func(t *testing.T) {
		reply := read(t, parsed(t, sent(dhcpv4.MessageTypeDiscover)).Encode(large, 1500))
		NewWithT(t).Expect(reply.Options).To(And(HaveKey(uint8(121)), HaveKey(uint8(12)), HaveKey(uint8(201)), Not(HaveKey(uint8(200)))))
	})
}

func TestInformTellsOptionsButNoLease(t *testing.T) {
	m := parsed(t, sent(dhcpv4.MessageTypeInform, ciaddr("192.168.100.9"), option(55, 6)))
	reply := m.Encode(Reply{Type: dhcpv4.MessageTypeAck, Server: server, Options: network.Options("")}, 1500)
	g := NewWithT(t)
	g.Expect(codesOf(reply)).To(Equal([]byte{53, 54, 6}))
	g.Expect(read(t, reply).YourIPAddr.IsUnspecified()).To(BeTrue())
	g.Expect(m.Destination(dhcpv4.MessageTypeAck).String()).To(Equal("192.168.100.9:68"))
}

// FuzzParse: no datagram breaks the parser, and no reply exceeds its size.
func FuzzParse(f *testing.F) {
	f.Add(sent(dhcpv4.MessageTypeDiscover))
	f.Add(sent(dhcpv4.MessageTypeRequest, requested("192.168.100.9"), chosen("192.168.100.2"), option(61, 1, 2, 3), option(82, 1, 1, 1), giaddr("192.168.100.9")))
	f.Add(overloaded(50, 4))
	f.Add([]byte(strings.Repeat("\x01", 600)))
	f.Fuzz(func(t *testing.T, octets []byte) {
		m, err := Parse(octets)
		if err != nil {
			return
		}
		if !m.Client.Known() || m.Kind == "" {
			t.Fatalf("accepted without a client or a kind: %+v", m)
		}
		for _, r := range []Reply{ack(), {Type: dhcpv4.MessageTypeNak, Server: server}} {
			reply := m.Encode(r, 1500)
			if len(reply) < 300 || len(reply) > max(m.maxSize(), 576)-headers || len(reply) > 1472 {
				t.Fatalf("a reply of %d octets to a client that takes %d", len(reply), m.maxSize())
			}
			if _, err := dhcpv4.FromBytes(reply); err != nil {
				t.Fatalf("a reply that does not parse: %v", err)
			}
		}
	})
}

// A client that takes the smallest reply needs its resolver and its name more than routes: those either fit beside them, or are left out.
func TestRoutesThatFitAreSentToEveryClient(t *testing.T) {
	m := parsed(t, sent(dhcpv4.MessageTypeDiscover, option(61, make([]byte, 19)...)))
	n, both := network, map[bool]bool{}
	n.Routes = nil
	for i := range byte(64) {
		n.Routes = append(n.Routes, Route{netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 20, 0, i}), 32), network.Router})
		options := n.Options(strings.Repeat("n", 63))
		reply, err := dhcpv4.FromBytes(m.Encode(Reply{Type: dhcpv4.MessageTypeOffer, Yours: yours, Server: server, Lease: time.Hour, Options: options}, 1500))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(reply.Options.Has(dhcpv4.OptionClasslessStaticRoute)).To(Equal(n.RoutesFit()), "%d routes", i+1)
		NewWithT(t).Expect(reply.Options).To(And(HaveKey(uint8(1)), HaveKey(uint8(3)), HaveKey(uint8(6)), HaveKey(uint8(12))), "%d routes", i+1)
		both[n.RoutesFit()] = true
	}
	NewWithT(t).Expect(both).To(HaveLen(2))
	n.Routes = nil
	NewWithT(t).Expect(n.RoutesFit()).To(BeTrue(), "none")
}
