package server

import (
	"net"
	"net/netip"
	"sync"
)

// share is a number of places of which one source takes a part at most: what one guest does with its own, others do not notice.
type share struct {
	all, one int

	mu    sync.Mutex
	taken int
	of    map[netip.Addr]int
}

func newShare(all, one int) *share { return &share{all: all, one: one, of: map[netip.Addr]int{}} }

// enter takes a place, if there is one for the source.
func (s *share) enter(source netip.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken >= s.all || s.of[source] >= s.one {
		return false
	}
	s.taken++
	s.of[source]++
	return true
}

func (s *share) leave(source netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	if s.of[source]--; s.of[source] == 0 {
		delete(s.of, source)
	}
}

// sharedListener closes at once what finds no place. Who is connected from our own address asks whether we are ready: that no guest
// can prevent.
type sharedListener struct {
	net.Listener
	places *share
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
		if l.places.enter(source) {
			return &sharedConn{Conn: c, leave: sync.OnceFunc(func() { l.places.leave(source) })}, nil
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
