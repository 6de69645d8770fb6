package dns

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	mdns "github.com/miekg/dns"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/valid"
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
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	answer, err := exchange(ctx, "udp", at.Addr(), at, mdns.Question{Name: domain, Qtype: mdns.TypeSOA, Qclass: mdns.ClassINET})
	if err == nil {
		err = authoritative(answer)
	}
	if err != nil {
		return fmt.Errorf("asking %s for %s: %w", at, domain, err)
	}
	return nil
}

func exchange(ctx context.Context, network string, from netip.Addr, at netip.AddrPort, q mdns.Question) (*mdns.Msg, error) {
	source := netip.AddrPortFrom(from, 0)
	dialer := net.Dialer{LocalAddr: net.UDPAddrFromAddrPort(source)}
	if network == "tcp" {
		dialer.LocalAddr = net.TCPAddrFromAddrPort(source)
	}
	c := mdns.Client{Net: network, Dialer: &dialer}
	if deadline, has := ctx.Deadline(); has {
		c.Timeout = time.Until(deadline) // the client's own default is shorter
	}
	answer, _, err := c.ExchangeContext(ctx, new(mdns.Msg).SetQuestion(q.Name, q.Qtype), at.String())
	return answer, err
}

func authoritative(answer *mdns.Msg) error {
	if answer.Rcode != mdns.RcodeSuccess || !answer.Authoritative {
		return fmt.Errorf("%s without authority", mdns.RcodeToString[answer.Rcode])
	}
	return nil
}

// probes ask each instance at its address on the VLAN, this one included, over UDP and TCP, for the first name of the VLAN that is not a
// wildcard: in an Infra one of the control plane's. Each answer is judged by what this instance serves.
func (d *Daemon) probes() (all []daemon.Probe) {
	d.mu.Lock()
	object := d.object
	d.mu.Unlock()
	if object == nil {
		return nil
	}
	question, addresses := asked(object)
	if len(addresses) == 0 {
		return nil
	}
	from, _ := valid.Address(string(object.Spec.NetworkConfig.ServerIPs()[d.Instance])) // served, so understood
	for _, ip := range object.Spec.NetworkConfig.ServerIPs() {
		at, _ := valid.Address(string(ip))
		for _, network := range []string{"udp", "tcp"} {
			all = append(all, daemon.Probe{Protocol: "dns-" + network, At: at, Ask: func(ctx context.Context) error {
				answer, err := exchange(ctx, network, from, netip.AddrPortFrom(at, d.port), question)
				if err != nil {
					return err
				}
				return agrees(answer, addresses)
			}})
		}
	}
	return all
}

// asked is a question about a served object, and the addresses that it may be answered with: all of the name's, since the instances need not
// agree at each moment on which of them are healthy. None: there is nothing to ask for.
func asked(object *v1alpha1.DNSServer) (q mdns.Question, addresses []string) {
	i := slices.IndexFunc(object.Spec.StaticEntries, func(e v1alpha1.DNSEntry) bool { return !strings.HasPrefix(string(e.Hostname), "*.") })
	intent, err := IntentOf(object, nil)
	if i < 0 || err != nil {
		return q, nil
	}
	first := intent.VLAN[i]
	q = mdns.Question{Name: first.Name, Qtype: mdns.TypeA, Qclass: mdns.ClassINET}
	if first.Addr.Is6() {
		q.Qtype = mdns.TypeAAAA
	}
	for _, r := range intent.VLAN {
		if r.Name == first.Name && r.Addr.Is6() == first.Addr.Is6() {
			addresses = append(addresses, r.Addr.String())
		}
	}
	return q, addresses
}

// agrees says what is wrong with an answer whose addresses have to be among these.
func agrees(answer *mdns.Msg, addresses []string) error {
	if err := authoritative(answer); err != nil {
		return err
	}
	said := addressesOf(answer.Answer)
	if len(said) == 0 || slices.ContainsFunc(said, func(one string) bool { return !slices.Contains(addresses, one) }) {
		return fmt.Errorf("it says %v, and this instance %v", said, addresses)
	}
	return nil
}

func addressesOf(all []mdns.RR) (addresses []string) {
	for _, one := range all {
		switch is := one.(type) {
		case *mdns.A:
			addresses = append(addresses, is.A.String())
		case *mdns.AAAA:
			addresses = append(addresses, is.AAAA.String())
		}
	}
	return addresses
}
