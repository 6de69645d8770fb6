package local

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
)

// ErrHere is why an address is not dialled.
var ErrHere = errors.New("its name leads to this machine, its link or a metadata service")

// Dial opens a connection, unless what a name resolves to is here: the name itself has been judged, and whoever owns it answers.
func Dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Control: func(_, resolved string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(resolved)
		if err != nil || Is(at.Addr()) {
			return ErrHere
		}
		return nil
	}}
	return d.DialContext(ctx, network, address)
}
