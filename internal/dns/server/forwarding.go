package server

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/cache"
	"github.com/coredns/coredns/plugin/forward"
	"github.com/coredns/coredns/plugin/pkg/proxy"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/miekg/dns"

	"github.com/cldmnky/oooi/internal/share"
)

// maxForwarded bounds the queries that wait for upstreams at one time: slow or looping ones must not eat our memory. One source has a
// tenth: a resolver that answers in 100 ms still gives it a thousand names a second.
const (
	maxForwarded      = 1000
	maxForwardedOfOne = 100
)

// forwarding resolves what is not ours: CoreDNS' cache before CoreDNS' forwarder, each behind a pointer, so that the cache
// outlives a change of the upstreams.
type forwarding struct {
	cache     atomic.Pointer[cache.Cache]
	resolvers atomic.Pointer[forward.Forward]
	waiting   *share.Places[netip.Addr]

	upstreams []netip.AddrPort
	ttl       time.Duration
}

func newForwarding() *forwarding {
	return &forwarding{waiting: share.New[netip.Addr](maxForwarded, maxForwardedOfOne)}
}

// use takes upstreams and a cache time into service; what did not change is left alone.
func (f *forwarding) use(upstreams []netip.AddrPort, ttl time.Duration) error {
	if ttl != f.ttl {
		fresh, err := newCache(ttl, plugin.HandlerFunc(f.resolve))
		if err != nil {
			return err
		}
		f.cache.Store(fresh)
		f.ttl = ttl
	}
	if len(upstreams) > 0 && !slices.Equal(upstreams, f.upstreams) { // without any, the view asks us nothing
		retire(f.resolvers.Swap(newResolvers(upstreams)))
		f.upstreams = slices.Clone(upstreams)
	}
	return nil
}

// Name implements plugin.Handler.
func (f *forwarding) Name() string { return "forwarding" }

// ServeDNS implements plugin.Handler.
func (f *forwarding) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	return f.cache.Load().ServeDNS(ctx, w, r)
}

// resolve asks the upstreams. A query that the old ones failed while new ones took their place is asked again there: no
// change of configuration costs a client an answer.
func (f *forwarding) resolve(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	source := sourceOf(w.RemoteAddr())
	if !f.waiting.Enter(source) {
		return dns.RcodeServerFailure, fmt.Errorf("%d queries of %s, or %d of all clients, already wait for the upstreams", maxForwardedOfOne, source, maxForwarded)
	}
	defer f.waiting.Leave(source)
	for {
		resolvers := f.resolvers.Load()
		rcode, err := resolvers.ServeDNS(ctx, w, r)
		if err == nil || resolvers == f.resolvers.Load() {
			return rcode, err
		}
	}
}

// close ends the health checks.
func (f *forwarding) close() { retire(f.resolvers.Load()) }

// retire ends the health checks of resolvers; queries that still wait for them are answered, and their sockets are closed
// when nothing refers to them any more.
func retire(old *forward.Forward) {
	if old != nil {
		_ = old.OnShutdown() // always nil
	}
}

// newResolvers makes a forwarder that checks the health of its upstreams.
func newResolvers(upstreams []netip.AddrPort) *forward.Forward {
	f := forward.New()
	for _, upstream := range upstreams {
		f.SetProxy(proxy.NewProxy("forward", upstream.String(), transport.DNS))
	}
	return f
}
