package wire

import (
	"encoding/binary"
	"net"
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// Reply is what the server says.
type Reply struct {
	Type dhcpv4.MessageType // OFFER, ACK or NAK
	// Yours is yiaddr: invalid in a NAK and in the ACK of an INFORM.
	Yours netip.Addr
	// Server is option 54.
	Server netip.Addr
	// Lease is option 51; none in a NAK and in the ACK of an INFORM.
	Lease time.Duration
	// Options in order of importance: where the datagram is full, the later ones are left out.
	Options []Option
}

// Option is one option, encoded.
type Option struct {
	Code byte
	Data []byte
}

// headers is the size of the IP and UDP headers, which option 57 and the MTU include.
const headers = 28

const broadcastFlag = 0x8000

// Encode writes the reply to a message for a link with this MTU: option 53, the other mandatory options, then the rest by importance while there
// is room; option 82 comes last (RFC 3046 §2.2).
func (m Message) Encode(r Reply, linkMTU int) []byte {
	header := dhcpv4.DHCPv4{
		OpCode: dhcpv4.OpcodeBootReply, HWType: m.header.HWType, ClientHWAddr: m.header.ClientHWAddr,
		TransactionID: m.header.TransactionID, Flags: m.header.Flags, GatewayIPAddr: m.header.GatewayIPAddr,
	}
	if r.Yours.IsValid() {
		header.YourIPAddr = r.Yours.AsSlice()
	}
	if r.Type == dhcpv4.MessageTypeAck {
		header.ClientIPAddr = m.header.ClientIPAddr
	}
	if r.Type == dhcpv4.MessageTypeNak && m.Relay.IsValid() {
		header.Flags |= broadcastFlag // RFC 2131 §4.3.2: the client has no usable address, the relay must broadcast
	}
	fixed := header.ToBytes()[:fileEnd+len(cookie{})]
	must, last := encode(r.mandatory(m)), encode(m.echoes())
	space := min(m.maxSize(), linkMTU) - headers - len(fixed) - len(must) - 1
	if len(last) > space {
		last = nil // a relay that leaves no room for its own option goes without it
	}
	body := append(append(must, m.fitting(r, space-len(last))...), last...)
	return pad(append(append(fixed, body...), dhcpv4.OptionEnd.Code()))
}

type cookie [4]byte

// fitting encodes what the client asked for, as far as there is room.
func (m Message) fitting(r Reply, space int) []byte {
	var body []byte
	for _, o := range r.Options {
		if octets := encode([]Option{o}); m.asksFor(o.Code) && len(body)+len(octets) <= space {
			body = append(body, octets...)
		}
	}
	return body
}

// mandatory are the options that come first. T1 and T2 are 0.5 and 0.875 of the lease (RFC 2131 §4.4.5).
func (r Reply) mandatory(m Message) []Option {
	options := []Option{
		{dhcpv4.OptionDHCPMessageType.Code(), []byte{byte(r.Type)}},
		{dhcpv4.OptionServerIdentifier.Code(), r.Server.AsSlice()},
	}
	if r.Lease > 0 {
		options = append(options,
			Option{dhcpv4.OptionIPAddressLeaseTime.Code(), seconds(r.Lease)},
			Option{dhcpv4.OptionRenewTimeValue.Code(), seconds(r.Lease / 2)},
			Option{dhcpv4.OptionRebindingTimeValue.Code(), seconds(r.Lease * 7 / 8)})
	}
	if m.ClientID != nil { // RFC 6842 §3: unaltered, in every reply, iff sent
		options = append(options, Option{dhcpv4.OptionClientIdentifier.Code(), m.ClientID})
	}
	return options
}

// echoes returns option 82 to the relay that added it (RFC 3046 §2.2), and never to a client of our own link.
func (m Message) echoes() []Option {
	agent := m.header.Options.Get(dhcpv4.OptionRelayAgentInformation)
	if agent == nil || !m.Relay.IsValid() {
		return nil
	}
	return []Option{{dhcpv4.OptionRelayAgentInformation.Code(), agent}}
}

// encode writes options, and splits those that are longer than 255 octets (RFC 3396 §7).
func encode(options []Option) []byte {
	var out []byte
	for _, o := range options {
		rest := o.Data
		for first := true; first || len(rest) > 0; first = false {
			part := rest[:min(len(rest), 255)]
			out = append(append(out, o.Code, byte(len(part))), part...)
			rest = rest[len(part):]
		}
	}
	return out
}

// minSize is the size of a BOOTP message; some relays drop smaller ones (RFC 1542 §2.1).
const minSize = 300

func pad(datagram []byte) []byte {
	return append(datagram, make([]byte, max(0, minSize-len(datagram)))...)
}

func seconds(d time.Duration) []byte {
	return binary.BigEndian.AppendUint32(nil, uint32(min(d/time.Second, 1<<32-1)))
}

// Ports of DHCP.
const (
	ServerPort = 67
	ClientPort = 68
)

// Destination is where a reply goes: to the relay, else to ciaddr, else to everybody. RFC 2131 §4.1 allows broadcast in place of unicast to a
// client without an address, and broadcast needs no raw socket.
func (m Message) Destination(t dhcpv4.MessageType) netip.AddrPort {
	switch {
	case m.Relay.IsValid():
		return netip.AddrPortFrom(m.Relay, ServerPort)
	case m.Current.IsValid() && t != dhcpv4.MessageTypeNak:
		return netip.AddrPortFrom(m.Current, ClientPort)
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(net.IPv4bcast.To4())), ClientPort)
}
