// Package server serves split-horizon DNS: CoreDNS with a plugin of our own that answers from an immutable snapshot of
// records. Which view answers is decided by the socket that a query arrived on, never by what the query says.
package server

import (
	"sync/atomic"

	"github.com/coredns/coredns/plugin"

	"github.com/cldmnky/oooi/internal/dns/records"
)

// Server answers from the newest records. They change by one pointer, and never by a Restart of CoreDNS, which would empty
// its cache.
type Server struct {
	newest     atomic.Pointer[records.Snapshot]
	forwarding *forwarding
}

// New makes a server that has yet to be told what to say.
func New() *Server { return &Server{forwarding: newForwarding()} }

// Say makes an intent the answer to the next query. On an error everything stays as it was.
func (s *Server) Say(in records.Intent) error {
	if err := s.forwarding.use(in.Upstreams, in.CacheTTL); err != nil {
		return err
	}
	s.newest.Store(records.Build(in))
	return nil
}

// Close ends the health checks of the upstreams.
func (s *Server) Close() { s.forwarding.close() }

// View is what one network is answered with.
type View struct {
	Name    string
	handler plugin.Handler
}

// VLAN is the view of the workers.
func (s *Server) VLAN() View {
	return View{"vlan", answers{Next: s.forwarding, name: "vlan", view: func() *records.View { return s.newest.Load().VLAN }}}
}

// Pods is the view of the pod network. It has no Next: were it to forward, the management cluster's DNS that forwards to us
// would ask itself.
func (s *Server) Pods() View {
	return View{"pods", answers{name: "pods", view: func() *records.View { return s.newest.Load().Pods }}}
}
