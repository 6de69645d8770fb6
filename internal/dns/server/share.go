package server

import (
	"net"
	"net/netip"
	"sync"

	"github.com/cldmnky/oooi/internal/share"
)

// sharedListener closes connections above the limits at once.
type sharedListener struct {
	net.Listener
	places *share.Places[netip.Addr]
}

// Accept implements net.Listener.
func (l sharedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		source := sourceOf(c.RemoteAddr())
		if l.places.Enter(source) {
			return &sharedConn{Conn: c, leave: sync.OnceFunc(func() { l.places.Leave(source) })}, nil
		}
		_ = c.Close() // nobody needs its error
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

// sourceOf returns the address of a client; the zero address if it has none.
func sourceOf(a net.Addr) netip.Addr {
	at, _ := netip.ParseAddrPort(a.String())
	return at.Addr().Unmap().WithZone("")
}
