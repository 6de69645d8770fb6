package server

import (
	"net"
	"net/netip"
	"sync"

	"github.com/cldmnky/oooi/internal/share"
)

// sharedListener closes at once what finds no place. Who is connected from our own address asks whether we are ready: that no guest
// can prevent.
type sharedListener struct {
	net.Listener
	places *share.Places[netip.Addr]
	own    netip.Addr
}

// Accept implements net.Listener.
func (l sharedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		source := sourceOf(c.RemoteAddr())
		if source == l.own {
			return c, nil
		}
		if l.places.Enter(source) {
			return &sharedConn{Conn: c, leave: sync.OnceFunc(func() { l.places.Leave(source) })}, nil
		}
		_ = c.Close() // nobody waits for it
	}
}

type sharedConn struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (c *sharedConn) Close() error {
	c.leave()
	return c.Conn.Close()
}

// sourceOf a connection or datagram; the zero address where it has none.
func sourceOf(a net.Addr) netip.Addr {
	at, _ := netip.ParseAddrPort(a.String())
	return at.Addr().Unmap().WithZone("")
}
