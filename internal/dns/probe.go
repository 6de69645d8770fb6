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

// probe queries a view's sockets, over UDP and TCP, for the domain that the view owns, and reports the result.
func probe(ctx context.Context, at netip.AddrPort, domain func() string, say func(error)) {
	tick := time.NewTicker(probeInterval)
	defer tick.Stop()
	for {
		err := ask(ctx, "udp", at, domain())
		if err == nil {
			err = ask(ctx, "tcp", at, domain())
		}
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
func ask(ctx context.Context, network string, at netip.AddrPort, domain string) error {
	dialer := net.Dialer{Timeout: probeTimeout, LocalAddr: net.UDPAddrFromAddrPort(netip.AddrPortFrom(at.Addr(), 0))}
	if network == "tcp" {
		dialer.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(at.Addr(), 0))
	}
	c := mdns.Client{Net: network, Dialer: &dialer, Timeout: probeTimeout}
	answer, _, err := c.ExchangeContext(ctx, new(mdns.Msg).SetQuestion(domain, mdns.TypeSOA), at.String())
	if err != nil {
		return fmt.Errorf("asking %s over %s for %s: %w", at, network, domain, err)
	}
	if answer.Rcode != mdns.RcodeSuccess || !answer.Authoritative {
		return fmt.Errorf("asking %s over %s for %s: %s without authority", at, network, domain, mdns.RcodeToString[answer.Rcode])
	}
	return nil
}
