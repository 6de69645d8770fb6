package dns

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	mdns "github.com/miekg/dns"
)

const (
	probeInterval = time.Second
	probeTimeout  = 2 * time.Second
)

// probe queries a view over UDP for the domain that the view owns, and reports the result.
//
// Readiness decides whether the pod network's Service leads here, and whether the other instance may be updated. It must not depend on what guests
// of the VLAN do, and they share its TCP connections. A TCP socket that fails ends the daemon.
func probe(ctx context.Context, at netip.AddrPort, domain func() string, say func(error)) {
	tick := time.NewTicker(probeInterval)
	defer tick.Stop()
	for {
		err := ask(ctx, at, domain())
		if ctx.Err() != nil {
			return
		}
		say(err)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// ask queries from the view's own address, a source that the view must answer.
func ask(ctx context.Context, at netip.AddrPort, domain string) error {
	dialer := net.Dialer{Timeout: probeTimeout, LocalAddr: net.UDPAddrFromAddrPort(netip.AddrPortFrom(at.Addr(), 0))}
	c := mdns.Client{Net: "udp", Dialer: &dialer, Timeout: probeTimeout}
	answer, _, err := c.ExchangeContext(ctx, new(mdns.Msg).SetQuestion(domain, mdns.TypeSOA), at.String())
	if err != nil {
		return fmt.Errorf("asking %s for %s: %w", at, domain, err)
	}
	if answer.Rcode != mdns.RcodeSuccess || !answer.Authoritative {
		return fmt.Errorf("asking %s for %s: %s without authority", at, domain, mdns.RcodeToString[answer.Rcode])
	}
	return nil
}
