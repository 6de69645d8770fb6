package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"golang.org/x/sys/unix"

	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/test/bench/internal/machines"
	"github.com/cldmnky/oooi/test/bench/internal/segment"
)

// pace is how many messages a second a hostile DHCP client sends of its own accord; it answers all OFFERs and ACKs that it wants to besides.
const pace = 5000

// hardware address of the nth client that a hostile guest says it is.
func hardware(n int) net.HardwareAddr {
	return binary.BigEndian.AppendUint32([]byte{2, 0x66}, uint32(n))
}

// message to a server; a flood that makes a malformed one ends.
func message(of net.HardwareAddr, kind dhcpv4.MessageType, with ...dhcpv4.Modifier) *dhcpv4.DHCPv4 {
	m, err := dhcpv4.New(append([]dhcpv4.Modifier{dhcpv4.WithHwAddr(of), dhcpv4.WithMessageType(kind), dhcpv4.WithBroadcast(true)}, with...)...)
	if err != nil {
		panic(err) // there are no random numbers for its transaction
	}
	return m
}

func discover(n int) *dhcpv4.DHCPv4 { return message(hardware(n), dhcpv4.MessageTypeDiscover) }

func about(ip net.IP) dhcpv4.Modifier { return dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(ip)) }

func server(ip net.IP) dhcpv4.Modifier { return dhcpv4.WithOption(dhcpv4.OptServerIdentifier(ip)) }

// requests what it was offered; nil for another answer.
func requests(answer *dhcpv4.DHCPv4) *dhcpv4.DHCPv4 {
	if answer.MessageType() != dhcpv4.MessageTypeOffer {
		return nil
	}
	return message(answer.ClientHWAddr, dhcpv4.MessageTypeRequest, about(answer.YourIPAddr), server(answer.ServerIdentifier()))
}

// flooding sends what next says, and what answers say to the server's answers, if anything.
func flooding(ctx context.Context, next func(n int) *dhcpv4.DHCPv4, answers func(*dhcpv4.DHCPv4) *dhcpv4.DHCPv4) (did string, err error) {
	socket, err := segment.Packets(names.VLANInterface)
	if err != nil {
		return "", err
	}
	var offered, bound, answered atomic.Int64
	send := func(m *dhcpv4.DHCPv4) {
		_, _ = unix.Write(socket, machines.Frame(machines.Stranger(m.ClientHWAddr), machines.Everyone, m.ToBytes())) // a flood does not ask whether all arrives
	}
	go func() {
		for octets := make([]byte, 1<<16); ctx.Err() == nil; {
			n, from, err := unix.Recvfrom(socket, octets, 0)
			if err != nil {
				continue // nothing came for a moment
			}
			reply := machines.ReplyIn(octets[:n], from)
			if reply == nil || reply.ClientHWAddr[1] != hardware(0)[1] {
				continue
			}
			switch reply.MessageType() {
			case dhcpv4.MessageTypeOffer:
				offered.Add(1)
			case dhcpv4.MessageTypeAck:
				bound.Add(1)
			}
			if m := answers(reply); m != nil {
				answered.Add(1)
				send(m)
			}
		}
	}()
	sent := each(ctx, pace, func(n int) {
		if m := next(n); m != nil {
			send(m)
		}
	})
	return fmt.Sprintf("%d messages, and %d to %d OFFERs and %d ACKs", sent, answered.Load(), offered.Load(), bound.Load()), nil
}

// starves takes all addresses.
func starves(ctx context.Context) (string, error) { return flooding(ctx, discover, requests) }

// declines each address that it got, as a new client each time.
func declines(ctx context.Context) (string, error) {
	return flooding(ctx, discover, func(answer *dhcpv4.DHCPv4) *dhcpv4.DHCPv4 {
		if answer.MessageType() == dhcpv4.MessageTypeAck {
			return message(answer.ClientHWAddr, dhcpv4.MessageTypeDecline, about(answer.YourIPAddr), server(answer.ServerIdentifier()))
		}
		return requests(answer)
	})
}

// releases each address that it got, as a few clients that come again.
func releases(ctx context.Context) (string, error) {
	const clients = 64
	return flooding(ctx, func(n int) *dhcpv4.DHCPv4 { return discover(n % clients) }, func(answer *dhcpv4.DHCPv4) *dhcpv4.DHCPv4 {
		if answer.MessageType() == dhcpv4.MessageTypeAck {
			return message(answer.ClientHWAddr, dhcpv4.MessageTypeRelease, dhcpv4.WithClientIP(answer.YourIPAddr), server(answer.ServerIdentifier()))
		}
		return requests(answer)
	})
}

// spoofs servers, by clients that choose them, and by their OFFERs.
func spoofs(ctx context.Context) (string, error) {
	return flooding(ctx, func(n int) *dhcpv4.DHCPv4 {
		another := server(net.IPv4(198, 18, byte(n>>8), byte(n)))
		if n%2 == 0 {
			return message(hardware(n), dhcpv4.MessageTypeRequest, about(net.IPv4(198, 18, 200, byte(n))), another)
		}
		m := message(hardware(n), dhcpv4.MessageTypeOffer, another)
		m.OpCode = dhcpv4.OpcodeBootReply
		return m
	}, func(*dhcpv4.DHCPv4) *dhcpv4.DHCPv4 { return nil })
}

// repeats all that a client with a lease can say.
func repeats(ctx context.Context) (string, error) {
	var bound atomic.Pointer[dhcpv4.DHCPv4]
	return flooding(ctx, func(n int) *dhcpv4.DHCPv4 {
		ack := bound.Load()
		if ack == nil || n%3 == 0 {
			return discover(0)
		}
		if n%3 == 1 {
			return message(hardware(0), dhcpv4.MessageTypeRequest, about(ack.YourIPAddr))
		}
		return message(hardware(0), dhcpv4.MessageTypeInform, dhcpv4.WithClientIP(ack.YourIPAddr))
	}, func(answer *dhcpv4.DHCPv4) *dhcpv4.DHCPv4 {
		if answer.MessageType() == dhcpv4.MessageTypeAck && !answer.YourIPAddr.IsUnspecified() {
			bound.Store(answer)
		}
		if bound.Load() == nil {
			return requests(answer)
		}
		return nil
	})
}
