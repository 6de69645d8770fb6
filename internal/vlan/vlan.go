// Package vlan binds sockets to an address and to its device. An address alone is not enough: by Linux's weak host model, a client on the
// VLAN that routes to the pod's own address through the VIP gets an answer there (dns-proxy-rules.md#sockets).
package vlan

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// InterfaceOf names the device that has an address. It does not wait for one, because the CNI configures addresses before any container
// runs.
func InterfaceOf(addr netip.Addr) (string, error) {
	devices, err := net.Interfaces()
	if err != nil {
		return "", fmt.Errorf("listing network devices: %w", err)
	}
	for _, device := range devices {
		if carries(device, addr.Unmap()) {
			return device.Name, nil
		}
	}
	return "", fmt.Errorf("no network device carries %s; add it to one, or, in a pod, check the network attachment", addr)
}

func carries(device net.Interface, addr netip.Addr) bool {
	addrs, _ := device.Addrs() // a device that vanished meanwhile has none
	for _, a := range addrs {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && prefix.Addr().Unmap() == addr {
			return true
		}
	}
	return false
}

// ListenTCP listens on an address, on its device only.
func ListenTCP(ctx context.Context, at netip.AddrPort) (net.Listener, error) {
	config, err := boundTo(at)
	if err != nil {
		return nil, err
	}
	listener, err := config.Listen(ctx, "tcp", at.String())
	return listener, Taken(err, "tcp", at.Port())
}

// ListenUDP receives on an address, on its device only.
func ListenUDP(ctx context.Context, at netip.AddrPort) (*net.UDPConn, error) {
	config, err := boundTo(at)
	if err != nil {
		return nil, err
	}
	conn, err := config.ListenPacket(ctx, "udp", at.String())
	if err != nil {
		return nil, Taken(err, "udp", at.Port())
	}
	return conn.(*net.UDPConn), nil
}

// Taken adds to the error of a socket, tcp or udp, how to find out who has its port, if that is why.
func Taken(err error, network string, port uint16) error {
	if !errors.Is(err, unix.EADDRINUSE) {
		return err
	}
	return fmt.Errorf("%w: `ss -l%snp 'sport = :%d'`, run as root, names the process that has the port; stop it, or keep it off this network device", err, network[:1], port)
}

func boundTo(at netip.AddrPort) (net.ListenConfig, error) {
	if !at.IsValid() || at.Addr().IsUnspecified() {
		return net.ListenConfig{}, fmt.Errorf("listening on %s: give one address and a port; a wildcard would answer on every network", at)
	}
	device, err := InterfaceOf(at.Addr())
	if err != nil {
		return net.ListenConfig{}, fmt.Errorf("listening on %s: %w", at, err)
	}
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error { return BindToDevice(c, device) }}
	config.SetMultipathTCP(false) // nothing needs it, and with plain TCP the device is bound in one place
	return config, nil
}

// BindToDevice restricts a socket to one device. It needs no capability on a socket that is not bound yet (Linux 5.7).
func BindToDevice(socket syscall.RawConn, device string) error {
	var bindErr error
	err := socket.Control(func(fd uintptr) { bindErr = unix.BindToDevice(int(fd), device) })
	if err = errors.Join(err, bindErr); err != nil {
		return fmt.Errorf("binding a socket to device %s: %w", device, err)
	}
	return nil
}

// Forwarding says whether the kernel routes packets that arrive on a device to other networks.
func Forwarding(device string) (bool, error) {
	value, err := os.ReadFile("/proc/sys/net/ipv4/conf/" + device + "/forwarding")
	if err != nil {
		return false, fmt.Errorf("reading whether %s forwards: %w", device, err)
	}
	return strings.TrimSpace(string(value)) != "0", nil
}
