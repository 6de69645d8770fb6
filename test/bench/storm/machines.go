package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"golang.org/x/sys/unix"
)

// clients are machines that ask for a lease, each with its own hardware address, behind one card.
type clients struct {
	socket int
	made   uint32
}

// machine is one of them.
type machine struct {
	hardware         net.HardwareAddr
	address          netip.Addr // that it renews; none while it boots
	starts           time.Time
	began, sent, ack time.Time
	last             *dhcpv4.DHCPv4 // what it sent last
}

// again is when a machine repeats what was not answered (BusyBox, networking/udhcp/dhcpc.c); enough is when a storm is over in any case.
const (
	again  = 3 * time.Second
	enough = time.Minute
)

func (s *segment) clients() (*clients, error) {
	socket, err := s.packets()
	return &clients{socket: socket}, err
}

func (c *clients) close() { _ = unix.Close(c.socket) }

// boot starts machines, spread over a time, and returns how long after its DISCOVER each had its ACK.
func (c *clients) boot(ctx context.Context, count int, within time.Duration) (took []time.Duration, err error) {
	all, start := map[string]*machine{}, time.Now()
	var order []*machine
	for i := range count {
		c.made++
		m := &machine{hardware: binary.BigEndian.AppendUint32([]byte{2, 0x18}, c.made), starts: start.Add(within * time.Duration(i) / time.Duration(count))}
		all[m.hardware.String()], order = m, append(order, m)
	}
	for left := count; left > 0; {
		if ctx.Err() != nil || time.Since(start) > enough {
			return nil, fmt.Errorf("%d of %d machines have no lease after %s: %w", left, count, time.Since(start), errors.Join(ctx.Err(), errors.New("see the server's log")))
		}
		for _, m := range order {
			if err := c.speak(m); err != nil {
				return nil, err
			}
		}
		bound, err := c.hear(all)
		if err != nil {
			return nil, err
		}
		left -= bound
	}
	for _, m := range order {
		took = append(took, m.ack.Sub(m.began))
	}
	return took, nil
}

// speak sends a machine's DISCOVER when it starts, and what was not answered again.
func (c *clients) speak(m *machine) (err error) {
	now := time.Now()
	switch {
	case !m.ack.IsZero() || now.Before(m.starts):
		return nil
	case m.last == nil:
		m.began = now
		if m.last, err = dhcpv4.NewDiscovery(m.hardware); err != nil {
			return err
		}
	case now.Sub(m.sent) < again:
		return nil
	}
	return c.send(m, now)
}

func (c *clients) send(m *machine, now time.Time) error {
	m.sent = now
	from, to := stranger(m.hardware), everyone
	if m.address.IsValid() {
		from, to = host{m.hardware, m.address}, host{serverCard, netip.MustParseAddr(serverIP)}
	}
	_, err := unix.Write(c.socket, frame(from, to, m.last.ToBytes()))
	return err
}

// hear takes the frames that are there, answers OFFERs, and counts the machines that are bound by ACKs.
func (c *clients) hear(all map[string]*machine) (bound int, err error) {
	octets := make([]byte, 1<<16)
	for {
		n, from, err := unix.Recvfrom(c.socket, octets, 0)
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
			return bound, nil
		}
		if err != nil {
			return bound, err
		}
		reply := replyIn(octets[:n], from)
		if reply == nil {
			continue
		}
		m := all[reply.ClientHWAddr.String()]
		if m == nil || !m.ack.IsZero() || m.last == nil || reply.TransactionID != m.last.TransactionID {
			continue
		}
		switch reply.MessageType() {
		case dhcpv4.MessageTypeOffer:
			if m.last, err = dhcpv4.NewRequestFromOffer(reply); err == nil {
				err = c.send(m, time.Now())
			}
		case dhcpv4.MessageTypeAck:
			m.ack = time.Now()
			bound++
		case dhcpv4.MessageTypeNak:
			err = fmt.Errorf("%s was refused: %s", m.hardware, reply.Message())
		}
		if err != nil || bound == len(all) {
			return bound, err
		}
	}
}

// headers are the octets of a frame before its message: Ethernet, IP and UDP.
const headers = 14 + 20 + 8

// replyIn is the message of a frame that the card received; nil if there is none.
func replyIn(octets []byte, from unix.Sockaddr) *dhcpv4.DHCPv4 {
	card, is := from.(*unix.SockaddrLinklayer)
	if !is || card.Pkttype == unix.PACKET_OUTGOING || len(octets) < headers || binary.BigEndian.Uint16(octets[12:]) != unix.ETH_P_IP ||
		octets[23] != unix.IPPROTO_UDP || binary.BigEndian.Uint16(octets[36:]) != dhcpv4.ClientPort {
		return nil
	}
	reply, err := dhcpv4.FromBytes(octets[headers:])
	if err != nil || reply.OpCode != dhcpv4.OpcodeBootReply {
		return nil
	}
	return reply
}

// host is one end of a frame.
type host struct {
	card net.HardwareAddr
	ip   netip.Addr
}

// A machine without an address broadcasts (RFC 2131 section 4.1).
var everyone = host{net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, netip.MustParseAddr("255.255.255.255")}

func stranger(card net.HardwareAddr) host { return host{card, netip.IPv4Unspecified()} }

func frame(from, to host, message []byte) []byte {
	f := append(slices.Clone(to.card), from.card...)
	f = binary.BigEndian.AppendUint16(f, unix.ETH_P_IP)
	ip := []byte{0x45, 0, 0, 0, 0, 0, 0, 0, 64, unix.IPPROTO_UDP, 0, 0}
	ip = append(append(ip, from.ip.AsSlice()...), to.ip.AsSlice()...)
	binary.BigEndian.PutUint16(ip[2:], uint16(20+8+len(message)))
	binary.BigEndian.PutUint16(ip[10:], checksum(ip))
	f = append(f, ip...)
	f = binary.BigEndian.AppendUint16(f, dhcpv4.ClientPort)
	f = binary.BigEndian.AppendUint16(f, dhcpv4.ServerPort)
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
