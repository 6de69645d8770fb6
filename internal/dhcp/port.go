package dhcp

import (
	"context"
	"net/netip"

	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/dhcp/link"
)

// portFor returns the socket for a server address, or nil if that address is served already. The current socket is kept for another address of
// its device: it is bound to 0.0.0.0:67 there, and a second one would be refused (EADDRINUSE).
func (i *instance) portFor(ctx context.Context, server netip.Addr) (*link.Socket, error) {
	if served := i.server.config.Load(); served != nil && served.Server == server {
		return nil, nil
	}
	i.mu.Lock()
	port := i.port
	i.mu.Unlock()
	if port != nil && port.Serves(server) {
		return port, nil
	}
	return link.Listen(ctx, server)
}

// start answers on a new socket in place of the old one, or from a new address on the old one.
func (i *instance) start(ctx context.Context, port *link.Socket) {
	if port == nil {
		return
	}
	server := i.server.config.Load().Server
	i.Log.Info("serving", "device", port.Device(), "server", server)
	if i.serves(port) {
		port.Move(server)
		return
	}
	guarded, stop := context.WithCancel(ctx)
	i.mu.Lock()
	i.closePort()
	i.port, i.closePort = port, func() { stop(); _ = port.Close() }
	i.mu.Unlock()
	go func() {
		if err := i.server.Serve(ctx, port); i.serves(port) {
			i.failed <- err
		}
	}()
	go i.server.ProbeAhead(guarded, port)
	go i.overhear(guarded, port.Address())
	go func() { _ = daemon.GuardForwarding(guarded, port.Device(), daemon.Tuned(), i.ready, i.Log) }()
}

// overhear listens for foreign DHCP servers. If it cannot, it logs a warning, and the service goes on.
func (i *instance) overhear(ctx context.Context, server netip.Addr) {
	port, err := link.Overhear(ctx, server)
	if err != nil {
		i.Log.Warn("other DHCP servers would not be noticed", "error", err)
		return
	}
	defer context.AfterFunc(ctx, func() { _ = port.Close() })()
	_ = i.server.Overhear(port) // ends with its socket
}

func (i *instance) serves(port *link.Socket) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.port == port
}

// serve ends the daemon when its socket fails, and closes the socket when the daemon ends.
func (i *instance) serve(ctx context.Context) error {
	select {
	case err := <-i.failed:
		if ctx.Err() == nil {
			return err
		}
	case <-ctx.Done():
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closePort()
	return nil
}
