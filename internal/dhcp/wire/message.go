// Package wire is DHCP on the wire: a message in, options and reply bytes out. It is pure; the codec of the fixed header is
// insomniacslk/dhcp, the rules are RFC 2131, 2132, 3046, 3396, 3397, 3442, 4361 and 6842 as
// docs/reference/dhcp-rules.md#on-the-wire lists them.
package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/iana"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
)

// Kind is what a client asks, told apart as in RFC 2131 §4.3.2 and table 4.
type Kind string

// The kinds of message that a server hears.
const (
	Discover   Kind = "discover"
	Selecting  Kind = "selecting"
	InitReboot Kind = "init-reboot"
	Renewing   Kind = "renewing" // REBINDING too: they differ only in how the packet was sent
	Release    Kind = "release"
	Decline    Kind = "decline"
	Inform     Kind = "inform"
	// Probe is an INFORM of an instance: of another, or our own.
	Probe Kind = "probe"
)

// Message is one client's message, parsed once.
type Message struct {
	Kind   Kind
	Client lease.Client
	// Wanted is the address that the message is about: option 50, or ciaddr. Invalid when none is named.
	Wanted netip.Addr
	// Current is ciaddr: the address that the client says it can be reached at.
	Current netip.Addr
	// ServerID is option 54.
	ServerID netip.Addr
	// Relay is giaddr.
	Relay netip.Addr
	// ClientID is option 61 as sent; nil when absent.
	ClientID []byte

	header *dhcpv4.DHCPv4
}

// Offsets of the fields sname and file, which option 52 lends to options (RFC 2131 figure 1), and the bits of that option.
const (
	snameStart, fileStart, fileEnd = 44, 108, 236
	overloadFile, overloadSname    = 1, 2
)

// Parse reads one datagram. An error means that no reply is due.
func Parse(datagram []byte) (Message, error) {
	header, err := dhcpv4.FromBytes(datagram)
	if err != nil {
		return Message{}, fmt.Errorf("not a DHCP message: %w", err)
	}
	if header.OpCode != dhcpv4.OpcodeBootRequest {
		return Message{}, errors.New("not a request: op is not 1")
	}
	if hlen := datagram[2]; hlen > dhcpv4.MaxHWAddrLen {
		return Message{}, fmt.Errorf("hlen %d is more than chaddr holds", hlen)
	}
	if err := unfold(header, datagram); err != nil {
		return Message{}, err
	}
	return understand(header)
}

// ServerOf is the server that sent a reply; ok is false for anything else.
func ServerOf(datagram []byte) (netip.Addr, bool) {
	reply, err := dhcpv4.FromBytes(datagram)
	if err != nil || reply.OpCode != dhcpv4.OpcodeBootReply {
		return netip.Addr{}, false
	}
	id, err := addrOption(reply, dhcpv4.OptionServerIdentifier)
	return id, err == nil && id.IsValid()
}

// unfold adds the options that overload the fields file and sname, in that order (RFC 3396 §5).
func unfold(header *dhcpv4.DHCPv4, datagram []byte) error {
	overload := header.Options.Get(dhcpv4.OptionOptionOverload)
	if len(overload) != 1 {
		return nil
	}
	for _, field := range []struct {
		bit    byte
		octets []byte
	}{{overloadFile, datagram[fileStart:fileEnd]}, {overloadSname, datagram[snameStart:fileStart]}} {
		if overload[0]&field.bit == 0 {
			continue
		}
		if err := header.Options.FromBytes(field.octets); err != nil {
			return fmt.Errorf("options in an overloaded field: %w", err)
		}
	}
	return nil
}

// maxClientID is what one option holds: every reply returns the client-id, and must have room for it.
const maxClientID = 255

// groupBit, in the first octet of an Ethernet address, marks a group address such as broadcast (IEEE 802-2014 §8.2.2).
const groupBit = 1

func understand(header *dhcpv4.DHCPv4) (Message, error) {
	m := Message{header: header, ClientID: header.Options.Get(dhcpv4.OptionClientIdentifier)}
	if len(m.ClientID) > maxClientID {
		return m, fmt.Errorf("client-id of %d octets", len(m.ClientID))
	}
	m.Client = lease.ClientOf(byte(header.HWType), header.ClientHWAddr, m.ClientID)
	if !m.Client.Known() {
		return m, errors.New("neither hardware address nor client-id")
	}
	if h := header.ClientHWAddr; header.HWType == iana.HWTypeEthernet && len(h) > 0 && (h[0]&groupBit != 0 || slices.Max(h) == 0) {
		return m, fmt.Errorf("the hardware address %v is no card's own", h)
	}
	m.Current, m.Relay = addr(header.ClientIPAddr), addr(header.GatewayIPAddr)
	requested, err := addrOption(header, dhcpv4.OptionRequestedIPAddress)
	if err != nil {
		return m, err
	}
	if m.ServerID, err = addrOption(header, dhcpv4.OptionServerIdentifier); err != nil {
		return m, err
	}
	m.Kind, m.Wanted, err = kindOf(header.MessageType(), requested, m)
	return m, err
}

// kindOf tells the states of a REQUEST apart as RFC 2131 table 4 does. A client that fills in ciaddr renews, whatever else it sends: some add
// option 50 or 54.
func kindOf(t dhcpv4.MessageType, requested netip.Addr, m Message) (Kind, netip.Addr, error) {
	switch t {
	case dhcpv4.MessageTypeDiscover:
		return Discover, requested, nil
	case dhcpv4.MessageTypeRelease:
		return Release, m.Current, nil
	case dhcpv4.MessageTypeDecline:
		return Decline, requested, nil
	case dhcpv4.MessageTypeInform:
		return Inform, m.Current, nil
	case dhcpv4.MessageTypeRequest:
		switch {
		case m.Current.IsValid():
			return Renewing, m.Current, nil
		case m.ServerID.IsValid() && requested.IsValid():
			return Selecting, requested, nil
		case requested.IsValid():
			return InitReboot, requested, nil
		}
		return "", netip.Addr{}, errors.New("a REQUEST that names no address")
	}
	return "", netip.Addr{}, fmt.Errorf("message type %v is not for a server", t)
}

func addr(octets []byte) netip.Addr {
	a, ok := netip.AddrFromSlice(octets)
	if a = a.Unmap(); !ok || a.IsUnspecified() {
		return netip.Addr{}
	}
	return a
}

func addrOption(header *dhcpv4.DHCPv4, code dhcpv4.OptionCode) (netip.Addr, error) {
	if !header.Options.Has(code) { // Get also returns nil for an option that is there with no octets
		return netip.Addr{}, nil
	}
	octets := header.Options.Get(code)
	if len(octets) != 4 {
		return netip.Addr{}, fmt.Errorf("option %d has %d octets, not 4", code.Code(), len(octets))
	}
	return addr(octets), nil
}

// asksFor says whether the client wants an option: one that it lists in option 55, or any if it lists none.
func (m Message) asksFor(code byte) bool {
	list := m.header.Options.Get(dhcpv4.OptionParameterRequestList)
	return len(list) == 0 || bytes.IndexByte(list, code) >= 0
}

// maxSize is the largest datagram that the client takes, IP and UDP headers included (RFC 2132 §9.10).
func (m Message) maxSize() int {
	octets := m.header.Options.Get(dhcpv4.OptionMaximumDHCPMessageSize)
	if len(octets) != 2 {
		return dhcpv4.MaxMessageSize
	}
	return max(int(binary.BigEndian.Uint16(octets)), dhcpv4.MaxMessageSize)
}
