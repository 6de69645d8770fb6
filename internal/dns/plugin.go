// Package dns serves split-horizon DNS: CoreDNS with a plugin of our own that answers from an immutable snapshot of
// records. Which view answers is decided by the socket that a query arrived on, never by what the query says.
package dns

import (
	"context"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/request"
	"github.com/miekg/dns"

	"github.com/cldmnky/oooi/internal/dns/records"
)

// snapshots hands out the newest records. They change by one pointer, and never by a Restart of CoreDNS, which would empty
// its cache.
type snapshots = atomic.Pointer[records.Snapshot]

// answers is the CoreDNS plugin of one view. What the view does not decide goes to Next.
type answers struct {
	Next plugin.Handler
	name string
	view func() *records.View
}

func vlanView(newest *snapshots, next plugin.Handler) answers {
	return answers{Next: next, name: "vlan", view: func() *records.View { return newest.Load().VLAN }}
}

// podView has no Next: were it to forward, the management cluster's DNS that forwards to us would ask itself.
func podView(newest *snapshots) answers {
	return answers{name: "pods", view: func() *records.View { return newest.Load().Pods }}
}

// Name implements plugin.Handler.
func (answers) Name() string { return "oooi" }

// ServeDNS implements plugin.Handler.
func (a answers) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	start := time.Now()
	answer := a.view().Answer(questionOf(w, r))
	rcode, err := answer.Rcode, error(nil)
	if answer.Forward {
		rcode, err = plugin.NextOrFailure(a.Name(), a.Next, ctx, w, r)
	} else {
		err = w.WriteMsg(reply(w, r, answer))
	}
	queries.WithLabelValues(a.name, answer.Rule).Inc()
	seconds.WithLabelValues(a.name, answer.Rule).Observe(time.Since(start).Seconds())
	if !answer.Forward {
		return dns.RcodeSuccess, err // written: CoreDNS must not write its own
	}
	return rcode, err
}

func questionOf(w dns.ResponseWriter, r *dns.Msg) records.Question {
	source, _ := netip.ParseAddr((&request.Request{W: w}).IP()) // what does not parse lies in no client network
	asked := r.Question[0]                                      // the server refuses any other number
	return records.Question{Name: asked.Name, Type: asked.Qtype, Class: asked.Qclass, Opcode: r.Opcode, Source: source}
}

// reply writes an answer down. CoreDNS cuts it to what the client takes.
func reply(w dns.ResponseWriter, r *dns.Msg, answer records.Answer) *dns.Msg {
	m := new(dns.Msg).SetRcode(r, answer.Rcode)
	m.Authoritative = answer.Authoritative
	m.Answer, m.Ns = answer.Records, answer.Authority
	(&request.Request{W: w, Req: r}).SizeAndDo(m)
	return m
}
