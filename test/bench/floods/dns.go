package main

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	mdns "github.com/miekg/dns"

	"github.com/cldmnky/oooi/internal/names"
)

const (
	domain    = "c1.example.com"
	api       = "api." + domain
	slowNames = "slow.example.org."
	fastNames = "fast.example.org."
	dnsWithin = 20 * time.Millisecond
	dnsAt     = vip + ":53"
)

var dns = service{
	name: names.DNS,
	server: func() string {
		return `apiVersion: hostedcluster.densityops.com/v1alpha1
kind: DNSServer
metadata: {generateName: flooded-, namespace: ` + namespace + `}
spec:
  networkConfig: {networkAttachmentDefinition: vlan, serverIP: ` + vip + `, secondaryNetworkCIDR: ` + vlan + `}
  hostedClusterDomain: ` + domain + `
  staticEntries: [{hostname: ` + api + `, ip: 198.18.0.3}]
  cacheTTL: 1h
  upstreamDNS: [` + nodeIP + `]
`
	},
	attacks: []attack{{"512 TCP connections", holdsConnections}, {"1000 slow names a second", asksSlowNames}},
	begin:   usesDNS,
	peer: func() peer {
		return dnsmasq("listen-address=" + vip + "\nserver=" + nodeIP + "\nhost-record=" + api + ",198.18.0.3\ncache-size=10000\ndns-forward-max=1000\n")
	},
}

// usesDNS starts an upstream that does not answer slow names. Another guest asks for a name of ours, and for names that the upstream answers.
func usesDNS(ctx context.Context, p *pod) (usage, error) {
	var socket net.PacketConn
	if err := p.Enter(node, func() (err error) {
		socket, err = net.ListenPacket("udp", nodeIP+":53")
		return err
	}); err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = socket.Close() })
	upstream := &mdns.Server{PacketConn: socket, Handler: mdns.HandlerFunc(func(to mdns.ResponseWriter, r *mdns.Msg) {
		if !strings.HasSuffix(strings.ToLower(r.Question[0].Name), "."+slowNames) {
			_ = to.WriteMsg(answerTo(r)) // who does not get it asks again
		}
	})}
	go func() { _ = upstream.ActivateAndServe() }() // until its socket is closed
	var asked atomic.Int64
	return func(ctx context.Context, length time.Duration) ([]*waits, error) {
		return p.inTurn(ctx, length, 25*time.Millisecond,
			way{"a name of ours over UDP", dnsWithin, func() error { return asks("udp", api+".") }},
			way{"the same over TCP", dnsWithin, func() error { return asks("tcp", api+".") }},
			way{"a name that an upstream answers", dnsWithin, func() error { return asks("udp", fmt.Sprintf("n%d.%s", asked.Add(1), fastNames)) }})
	}, nil
}

func answerTo(r *mdns.Msg) *mdns.Msg {
	m := new(mdns.Msg).SetReply(r)
	m.Answer = []mdns.RR{&mdns.A{Hdr: mdns.RR_Header{Name: r.Question[0].Name, Rrtype: mdns.TypeA, Class: mdns.ClassINET, Ttl: 60}, A: net.IPv4(192, 0, 2, 1)}}
	return m
}

func asks(network, name string) error {
	c := mdns.Client{Net: network, Timeout: 5 * time.Second}
	answer, _, err := c.Exchange(new(mdns.Msg).SetQuestion(name, mdns.TypeA), dnsAt)
	if err == nil && len(answer.Answer) != 1 {
		err = fmt.Errorf("%s: %s", name, mdns.RcodeToString[answer.Rcode])
	}
	return err
}

// holdsConnections asks something on each, every second.
func holdsConnections(ctx context.Context) (string, error) {
	const connections, again = 512, time.Second
	return occupy(ctx, connections, again, dnsAt, func(conn net.Conn) {
		c := &mdns.Conn{Conn: conn}
		for pause(ctx, again) == nil {
			if err := c.WriteMsg(new(mdns.Msg).SetQuestion(api+".", mdns.TypeA)); err != nil {
				return
			}
			if _, err := c.ReadMsg(); err != nil {
				return
			}
		}
	}), nil
}

func asksSlowNames(ctx context.Context) (string, error) {
	conn, err := net.Dial("udp", dnsAt)
	if err != nil {
		return "", err
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	var answered atomic.Int64
	go func() {
		for octets := make([]byte, 1<<16); ; answered.Add(1) {
			if _, err := conn.Read(octets); err != nil {
				return
			}
		}
	}()
	asked := each(ctx, 1000, func(n int) {
		if octets, err := new(mdns.Msg).SetQuestion(fmt.Sprintf("n%d.%s", n, slowNames), mdns.TypeA).Pack(); err == nil {
			_, _ = conn.Write(octets) // a flood does not ask whether all arrives
		}
	})
	return fmt.Sprintf("%d queries, %d of them answered", asked, answered.Load()), nil
}
