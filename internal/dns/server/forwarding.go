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

// maxForwarded bounds the queries that wait for upstreams at one time: slow or looping ones must not exhaust memory. One source may have a
// tenth: with a resolver that answers in 100 ms these are still a thousand names a second.
const (
	maxForwarded      = 1000
	maxForwardedOfOne = 100
)

// forwarding resolves names that are not ours, with CoreDNS' cache before CoreDNS' forwarder. Each has its own pointer, so that the cache
// outlives a change of the upstreams.
type forwarding struct {
	cache     atomic.Pointer[cache.Cache]
	resolvers atomic.Pointer[forward.Forward]
	waiting   *share.Places[netip.Addr]
	heard     atomic.Int64 // when an upstream answered a query, in seconds since 1970; 0: never

	upstreams []netip.AddrPort
	ttl       time.Duration
}

func newForwarding() *forwarding {
	return &forwarding{waiting: share.New[netip.Addr](maxForwarded, maxForwardedOfOne)}
}

// use applies upstreams and a cache time; it leaves alone what did not change.
func (f *forwarding) use(upstreams []netip.AddrPort, ttl time.Duration) error {
	if ttl != f.ttl {
		fresh, err := newCache(ttl, plugin.HandlerFunc(f.resolve))
		if err != nil {
			return err
		}
		f.cache.Store(fresh)
		f.ttl = ttl
	}
	if len(upstreams) > 0 && !slices.Equal(upstreams, f.upstreams) { // without upstreams the view forwards nothing
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

// resolve asks the upstreams. If they fail a query while new ones replace them, it asks the new ones: no change of configuration costs a client
// an answer.
func (f *forwarding) resolve(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	source := sourceOf(w.RemoteAddr())
	if !f.waiting.Enter(source) {
		return dns.RcodeServerFailure, fmt.Errorf("%d queries of %s, or %d of all clients, already wait for the upstreams", maxForwardedOfOne, source, maxForwarded)
	}
	defer f.waiting.Leave(source)
	for {
		resolvers := f.resolvers.Load()
		rcode, err := resolvers.ServeDNS(ctx, w, r)
		if err == nil {
			f.heard.Store(time.Now().Unix())
			return rcode, nil
		}
		if resolvers == f.resolvers.Load() {
			return rcode, err
		}
	}
}

func (f *forwarding) close() { retire(f.resolvers.Load()) }

// retire ends the health checks of resolvers. Pending queries are still answered; the sockets are closed when nothing refers to them any more.
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
