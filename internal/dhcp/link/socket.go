// Package link is the VLAN as the server sees it: one socket on one device, and a probe for who answers at an address.
package link

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"

	"github.com/cldmnky/oooi/internal/dhcp/wire"
	"github.com/cldmnky/oooi/internal/vlan"
)

// Socket receives DHCP on one device: bound to 0.0.0.0:67, since clients without an address broadcast, and to the device.
// It does not share its port: two servers that split a device's packets by SO_REUSEPORT would each miss half of them.
type Socket struct {
	conn   *net.UDPConn
	device string
	index  int
	mtu    int

	data, control []byte // of the packet that was received last

	mu        sync.Mutex
	source    netip.Addr
	asked     map[netip.Addr]time.Time // probes that are undecided
	questions []time.Time              // when those were asked that may still be in the kernel's table of neighbours
}

// Packet is a datagram and when the kernel received it. Its data is overwritten by the next one.
type Packet struct {
	Data     []byte
	From     netip.AddrPort
	Received time.Time
}

// Listen opens the server's socket on the device that carries its address.
func Listen(ctx context.Context, server netip.Addr) (*Socket, error) {
	return listen(ctx, server, wire.ServerPort)
}

// Overhear opens a socket on the clients' port of that device. The port may be shared: a DHCP client on the same device still gets what is sent
// to its own address.
func Overhear(ctx context.Context, server netip.Addr) (*Socket, error) {
	return listen(ctx, server, wire.ClientPort, sharePort)
}

// Ask opens a connection from a client's port of our address to a server. Of what comes to that port, only this server's answers are its own:
// the rest is overheard as before.
func Ask(ctx context.Context, from, server netip.Addr) (net.Conn, error) {
	device, err := vlan.InterfaceOf(from)
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{
		LocalAddr: net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, wire.ClientPort)),
		Control: func(_, _ string, raw syscall.RawConn) error {
			return errors.Join(vlan.BindToDevice(raw, device), sharePort(raw))
		},
	}
	return dialer.DialContext(ctx, "udp4", netip.AddrPortFrom(server, wire.ServerPort).String())
}

func sharePort(raw syscall.RawConn) error {
	var set error
	err := raw.Control(func(fd uintptr) { set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) })
	return errors.Join(err, set)
}

func listen(ctx context.Context, server netip.Addr, port uint16, options ...func(syscall.RawConn) error) (*Socket, error) {
	name, err := vlan.InterfaceOf(server)
	if err != nil {
		return nil, err
	}
	device, err := net.InterfaceByName(name)
	if err != nil {
		return nil, fmt.Errorf("finding device %s: %w", name, err)
	}
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		err := errors.Join(vlan.BindToDevice(raw, name), receiveMetadata(raw))
		for _, set := range options {
			err = errors.Join(err, set(raw))
		}
		return err
	}}
	conn, err := config.ListenPacket(ctx, "udp4", netip.AddrPortFrom(netip.IPv4Unspecified(), port).String())
	if err != nil {
		return nil, fmt.Errorf("listening for DHCP on %s: %w", name, vlan.Taken(err, "udp", port))
	}
	return &Socket{
		conn: conn.(*net.UDPConn), device: name, index: device.Index, source: server, mtu: device.MTU, asked: map[netip.Addr]time.Time{},
		data: make([]byte, maxDatagram), control: make([]byte, 128),
	}, nil
}

// receiveMetadata asks the kernel when each packet arrived: one that waited while we were paused is too old (dhcp-rules.md#lease-10).
func receiveMetadata(raw syscall.RawConn) error {
	var set error
	err := raw.Control(func(fd uintptr) {
		set = errors.Join(
			unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
			unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBuffer))
	})
	return errors.Join(err, set)
}

// receiveBuffer holds a burst of about a thousand clients that start at once.
const receiveBuffer = 1 << 20

// MTU is the device's.
func (s *Socket) MTU() int { return s.mtu }

// Device is the name of the device.
func (s *Socket) Device() string { return s.device }

// Address is the server's.
func (s *Socket) Address() netip.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.source
}

// Serves says whether the socket can serve an address: one that its device carries. A second socket on that device would be refused.
func (s *Socket) Serves(server netip.Addr) bool {
	name, err := vlan.InterfaceOf(server)
	if err != nil {
		return false
	}
	device, err := net.InterfaceByName(name)
	return err == nil && device.Index == s.index
}

// Move gives the server another address on the device.
func (s *Socket) Move(server netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.source = server
}

// Close ends Receive.
func (s *Socket) Close() error { return s.conn.Close() }

// maxDatagram is more than any client sends, even with option 57 and jumbo frames.
const maxDatagram = 9216

// Receive waits for the next packet, for one goroutine. A buffer for each would be six times what else a packet takes, and every collection of
// that garbage walks through all leases (test/bench/run full).
func (s *Socket) Receive() (Packet, error) {
	n, m, flags, from, err := s.conn.ReadMsgUDPAddrPort(s.data, s.control)
	if err != nil {
		return Packet{}, fmt.Errorf("receiving: %w", err)
	}
	if flags&unix.MSG_TRUNC != 0 {
		n = 0 // a truncated datagram would parse as another one; an empty one is dropped
	}
	return Packet{Data: s.data[:n:n], From: from, Received: arrival(s.control[:m])}, nil
}

// arrival is the kernel's timestamp; zero, hence too old, where there is none.
func arrival(control []byte) time.Time {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return time.Time{}
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SCM_TIMESTAMPNS && len(m.Data) >= 16 {
			return time.Unix(int64(binary.NativeEndian.Uint64(m.Data)), int64(binary.NativeEndian.Uint64(m.Data[8:])))
		}
	}
	return time.Time{}
}

// Send sends from the server's address on the device, whatever the routing table prefers: without an explicit source, policy routes by source
// (the `sbr` plugin) do not apply to a reply to a relay.
func (s *Socket) Send(data []byte, to netip.AddrPort) error { return s.sendBy(s.conn, data, to) }

func (s *Socket) sendBy(conn *net.UDPConn, data []byte, to netip.AddrPort) error {
	source := ipv4.ControlMessage{IfIndex: s.index, Src: s.Address().AsSlice()} // IP_PKTINFO
	_, _, err := conn.WriteMsgUDPAddrPort(data, source.Marshal(), to)
	if err != nil {
		return fmt.Errorf("sending to %s: %w", to, err)
	}
	return nil
}
