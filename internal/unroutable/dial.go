package unroutable

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
)

// ErrUnroutable says why an address is not dialled.
var ErrUnroutable = errors.New("its name leads to this machine, its link or a metadata service")

// DialRoutable opens a connection, unless the name resolves to an unroutable address: a check of the name is not enough, because its owner
// decides what it resolves to.
func DialRoutable(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Control: func(_, resolved string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(resolved)
		if err != nil || Is(at.Addr()) {
			return ErrUnroutable
		}
		return nil
	}}
	return d.DialContext(ctx, network, address)
}
