// Package server serves split-horizon DNS: CoreDNS with a plugin of our own that answers from an immutable snapshot of records. The socket that
// a query arrives on selects the view; the query itself never does.
package server

import (
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin"

	"github.com/cldmnky/oooi/internal/dns/records"
)

// Server answers from the newest records. A change swaps one pointer; a Restart of CoreDNS would empty its cache.
type Server struct {
	// Told is called with each address that it tells a worker of a name of ours: it must not block.
	Told func(source netip.Addr, name string)

	newest     atomic.Pointer[records.Snapshot]
	down       atomic.Pointer[map[netip.Addr]bool]
	forwarding *forwarding
}

// New makes a server that has no records before the first Say.
func New() *Server {
	s := &Server{Told: func(netip.Addr, string) {}, forwarding: newForwarding()}
	s.LeaveOut(nil)
	return s
}

// Say answers from an intent, beginning with the next query. After an error the old answers stay.
func (s *Server) Say(in records.Intent) error {
	if err := s.forwarding.use(in.Upstreams, in.CacheTTL); err != nil {
		return err
	}
	s.newest.Store(records.Build(in))
	return nil
}

// LeaveOut has the addresses whose health is checked: names leave those out that are down (true), beginning with the next query. It does not wait
// for a Say, which takes long where leases are many.
func (s *Server) LeaveOut(down map[netip.Addr]bool) { s.down.Store(&down) }

// Heard is when an upstream answered a client's query; 1970 if none has.
func (s *Server) Heard() time.Time { return time.Unix(s.forwarding.heard.Load(), 0) }

// Close ends the health checks of the upstreams.
func (s *Server) Close() { s.forwarding.close() }

// View answers the queries of one network.
type View struct {
	Name    string
	handler plugin.Handler
}

// VLAN is the view of the workers.
func (s *Server) VLAN() View {
	return View{"vlan", answers{
		Next: s.forwarding, name: "vlan", told: s.Told, view: func() *records.View { return s.newest.Load().VLAN },
		down: func() map[netip.Addr]bool { return *s.down.Load() },
	}}
}

// Pods is the view of the pod network. It has no Next: the management cluster's DNS forwards to us, so a forwarded query would loop.
func (s *Server) Pods() View {
	return View{"pods", answers{
		name: "pods", told: func(netip.Addr, string) {}, view: func() *records.View { return s.newest.Load().Pods },
		down: func() map[netip.Addr]bool { return nil },
	}}
}
