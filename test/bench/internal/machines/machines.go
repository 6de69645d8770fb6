// Package machines are DHCP clients that boot, or renew, on a network of namespaces, each with its own hardware address, behind one card.
package machines

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"golang.org/x/sys/unix"
)

// Clients are machines that ask for a lease, each with its own hardware address, behind one card.
type Clients struct {
	Socket int
	Server Host // of those that renew
	made   uint32
}

// Machine is one of them.
type Machine struct {
	Hardware           net.HardwareAddr
	Address            netip.Addr // that it renews; none while it boots
	Starts, Began, Ack time.Time
	Last               *dhcpv4.DHCPv4 // what it sent last
	sent               time.Time
}

// again is when a machine repeats what was not answered (BusyBox, networking/udhcp/dhcpc.c); enough is when a storm is over in any case.
const (
	again  = 3 * time.Second
	enough = time.Minute
)

// On a card, from a socket that sends and receives its frames (package segment).
func On(socket int) *Clients { return &Clients{Socket: socket} }

// Close the socket.
func (c *Clients) Close() { _ = unix.Close(c.Socket) }

// Hardware is the address of the nth machine that boots, beginning with 1.
func Hardware(n uint32) net.HardwareAddr { return binary.BigEndian.AppendUint32([]byte{2, 0x18}, n) }

// Boot starts machines, spread over a time, and returns how long after its DISCOVER each had its ACK; of those that have none, an error.
func (c *Clients) Boot(ctx context.Context, count int, within time.Duration) (took []time.Duration, err error) {
	all, start := map[string]*Machine{}, time.Now()
	var order []*Machine
	for i := range count {
		c.made++
		m := &Machine{Hardware: Hardware(c.made), Starts: start.Add(within * time.Duration(i) / time.Duration(count))}
		all[m.Hardware.String()], order = m, append(order, m)
	}
	for left := count; left > 0; {
		if ctx.Err() != nil || time.Since(start) > within+enough {
			return times(order), fmt.Errorf("%d of %d machines have no lease after %s: %w", left, count, time.Since(start), errors.Join(ctx.Err(), errors.New("see the server's log")))
		}
		for _, m := range order {
			if err := c.speak(m); err != nil {
				return nil, err
			}
		}
		heard, err := c.Hear(all)
		if err != nil {
			return nil, err
		}
		left -= heard
	}
	return times(order), nil
}

func times(all []*Machine) (took []time.Duration) {
	for _, m := range all {
		if !m.Ack.IsZero() {
			took = append(took, m.Ack.Sub(m.Began))
		}
	}
	return took
}

// speak sends a machine's DISCOVER when it starts, and what was not answered again.
func (c *Clients) speak(m *Machine) (err error) {
	now := time.Now()
	switch {
	case !m.Ack.IsZero() || now.Before(m.Starts):
		return nil
	case m.Last == nil:
		m.Began = now
		if m.Last, err = dhcpv4.NewDiscovery(m.Hardware); err != nil {
			return err
		}
	case now.Sub(m.sent) < again:
		return nil
	}
	return c.Send(m, now)
}

// Send what a machine says: to everyone, or, once it has an address, to the server.
func (c *Clients) Send(m *Machine, now time.Time) error {
	m.sent = now
	from, to := Stranger(m.Hardware), Everyone
	if m.Address.IsValid() {
		from, to = Host{m.Hardware, m.Address}, c.Server
	}
	_, err := unix.Write(c.Socket, Frame(from, to, m.Last.ToBytes()))
	return err
}

// Hear takes the frames that are there, for a moment, answers OFFERs, and counts the machines that are bound by ACKs.
func (c *Clients) Hear(all map[string]*Machine) (bound int, err error) {
	octets := make([]byte, 1<<16)
	for begun := time.Now(); time.Since(begun) < time.Millisecond; {
		n, from, err := unix.Recvfrom(c.Socket, octets, 0)
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
			return bound, nil
		}
		if err != nil {
			return bound, err
		}
		reply := ReplyIn(octets[:n], from)
		if reply == nil {
			continue
		}
		m := all[reply.ClientHWAddr.String()]
		if m == nil || !m.Ack.IsZero() || m.Last == nil || reply.TransactionID != m.Last.TransactionID {
			continue
		}
		switch reply.MessageType() {
		case dhcpv4.MessageTypeOffer:
			if m.Last, err = dhcpv4.NewRequestFromOffer(reply); err == nil {
				err = c.Send(m, time.Now())
			}
		case dhcpv4.MessageTypeAck:
			m.Ack = time.Now()
			bound++
		case dhcpv4.MessageTypeNak:
			err = fmt.Errorf("%s was refused: %s", m.Hardware, reply.Message())
		}
		if err != nil || bound == len(all) {
			return bound, err
		}
	}
	return bound, nil
}
