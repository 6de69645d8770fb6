package server

import (
	"context"
	"net/netip"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/request"
	"github.com/miekg/dns"

	"github.com/cldmnky/oooi/internal/dns/records"
)

// answers is the CoreDNS plugin of one view. Next gets the queries that the view forwards.
type answers struct {
	Next plugin.Handler
	name string
	view func() *records.View
	down func() map[netip.Addr]bool // what records.Question has
	told func(source netip.Addr, name string)
}

// Name implements plugin.Handler.
func (answers) Name() string { return "oooi" }

// ServeDNS implements plugin.Handler.
func (a answers) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	start := time.Now()
	asked := questionOf(w, r)
	asked.Down = a.down()
	answer := a.view().Answer(asked)
	rcode, err := answer.Rcode, error(nil)
	if answer.Forward {
		rcode, err = plugin.NextOrFailure(a.Name(), a.Next, ctx, w, r)
	} else {
		err = w.WriteMsg(reply(w, r, answer))
	}
	if answer.HasAddress() {
		a.told(asked.Source, asked.Name)
	}
	queries.WithLabelValues(a.name, answer.Rule).Inc()
	seconds.WithLabelValues(a.name, answer.Rule).Observe(time.Since(start).Seconds())
	if !answer.Forward {
		return dns.RcodeSuccess, err // already written: CoreDNS must not write another
	}
	return rcode, err
}

func questionOf(w dns.ResponseWriter, r *dns.Msg) records.Question {
	source, _ := netip.ParseAddr((&request.Request{W: w}).IP()) // an address that does not parse is in no client network
	asked := r.Question[0]                                      // the server refuses a message without exactly one question
	return records.Question{Name: asked.Name, Type: asked.Qtype, Class: asked.Qclass, Opcode: r.Opcode, Source: source, OPTs: optsOf(r)}
}

func optsOf(r *dns.Msg) (n int) {
	for _, extra := range r.Extra {
		if extra.Header().Rrtype == dns.TypeOPT {
			n++
		}
	}
	return n
}

// reply makes the message of an answer. CoreDNS truncates it to the client's limit.
func reply(w dns.ResponseWriter, r *dns.Msg, answer records.Answer) *dns.Msg {
	m := new(dns.Msg).SetRcode(r, answer.Rcode)
	m.Authoritative = answer.Authoritative
	m.Answer, m.Ns = answer.Records, answer.Authority
	(&request.Request{W: w, Req: r}).SizeAndDo(m)
	return m
}
