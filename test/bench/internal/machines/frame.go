package machines

import (
	"encoding/binary"
	"net"
	"net/netip"
	"slices"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"golang.org/x/sys/unix"
)

// Headers are the octets of a frame before its message: Ethernet, IP and UDP.
const Headers = 14 + 20 + 8

// ReplyIn is the message of a frame that the card received; nil if there is none.
func ReplyIn(octets []byte, from unix.Sockaddr) *dhcpv4.DHCPv4 {
	card, is := from.(*unix.SockaddrLinklayer)
	if !is || card.Pkttype == unix.PACKET_OUTGOING || len(octets) < Headers || binary.BigEndian.Uint16(octets[12:]) != unix.ETH_P_IP ||
		octets[23] != unix.IPPROTO_UDP || binary.BigEndian.Uint16(octets[36:]) != dhcpv4.ClientPort {
		return nil
	}
	reply, err := dhcpv4.FromBytes(octets[Headers:])
	if err != nil || reply.OpCode != dhcpv4.OpcodeBootReply {
		return nil
	}
	return reply
}

// Host is one end of a frame.
type Host struct {
	Card net.HardwareAddr
	IP   netip.Addr
}

// Everyone hears a broadcast.
var Everyone = Host{net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, netip.MustParseAddr("255.255.255.255")}

// Stranger is a machine without an address, which broadcasts (RFC 2131 section 4.1).
func Stranger(card net.HardwareAddr) Host { return Host{card, netip.IPv4Unspecified()} }

// Frame of a client's message, or of a server's reply, as the message says.
func Frame(from, to Host, message []byte) []byte {
	f := append(slices.Clone(to.Card), from.Card...)
	f = binary.BigEndian.AppendUint16(f, unix.ETH_P_IP)
	ip := []byte{0x45, 0, 0, 0, 0, 0, 0, 0, 64, unix.IPPROTO_UDP, 0, 0}
	ip = append(append(ip, from.IP.AsSlice()...), to.IP.AsSlice()...)
	binary.BigEndian.PutUint16(ip[2:], uint16(20+8+len(message)))
	binary.BigEndian.PutUint16(ip[10:], checksum(ip))
	f = append(f, ip...)
	source, destination := dhcpv4.ClientPort, dhcpv4.ServerPort
	if dhcpv4.OpcodeType(message[0]) == dhcpv4.OpcodeBootReply {
		source, destination = destination, source
	}
	f = binary.BigEndian.AppendUint16(f, uint16(source))
	f = binary.BigEndian.AppendUint16(f, uint16(destination))
	f = binary.BigEndian.AppendUint16(f, uint16(8+len(message)))
	return append(append(f, 0, 0), message...) // UDP's checksum may be absent (RFC 768)
}

func checksum(header []byte) uint16 {
	var sum uint32
	for i := 0; i < len(header); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(header[i:]))
	}
	return ^uint16(sum + sum>>16)
}
