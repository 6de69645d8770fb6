package server

import (
	"context"
	"errors"
	"net"
	"net/netip"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/miekg/dns"
	"golang.org/x/sync/errgroup"

	"github.com/cldmnky/oooi/internal/share"
	"github.com/cldmnky/oooi/internal/vlan"
)

// maxConnections bounds the TCP connections of one view: idle ones must not exhaust our file descriptors. One source needs few: it can send many
// queries on each (RFC 7766 §6.2.1).
const (
	maxConnections      = 512
	maxConnectionsOfOne = 16
)

// Listener is one view's sockets, bound to address and device.
type Listener struct {
	At     netip.AddrPort
	Device string
	tcp    net.Listener
	udp    net.PacketConn
}

// Listen opens the sockets of a view.
func Listen(ctx context.Context, at netip.AddrPort) (Listener, error) {
	device, err := vlan.InterfaceOf(at.Addr())
	if err != nil {
		return Listener{}, err
	}
	tcp, err := vlan.ListenTCP(ctx, at)
	if err != nil {
		return Listener{}, err
	}
	udp, err := vlan.ListenUDP(ctx, at)
	if err != nil {
		return Listener{}, errors.Join(err, tcp.Close())
	}
	return Listener{at, device, tcp, udp}, nil
}

// Close closes sockets that are not served.
func (l Listener) Close() error { return errors.Join(l.tcp.Close(), l.udp.Close()) }

// Serve answers as a view until the context ends.
func (l Listener) Serve(ctx context.Context, view View) error {
	config := &dnsserver.Config{Zone: ".", Plugin: []plugin.Plugin{func(plugin.Handler) plugin.Handler { return view.handler }}}
	config.AllowOpcode(dns.OpcodeUpdate) // so that our plugin answers REFUSED; CoreDNS would answer NOTIMP
	server, err := dnsserver.NewServer("dns://"+l.At.String(), []*dnsserver.Config{config})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return unlessDone(ctx, server.Serve(sharedListener{l.tcp, share.New[netip.Addr](maxConnections, maxConnectionsOfOne)}))
	})
	group.Go(func() error { return unlessDone(ctx, server.ServePacket(l.udp)) })
	group.Go(func() error {
		<-ctx.Done()
		_ = server.Stop() // fails only if a client is slow to leave
		_ = l.Close()     // if the server was stopped before it began
		return nil
	})
	return group.Wait()
}

// unlessDone drops the error of a socket that we closed ourselves.
func unlessDone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
