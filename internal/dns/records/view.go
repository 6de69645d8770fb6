package records

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// View answers the queries of one network.
type View struct {
	zones    zones
	denied   []string
	clients  []netip.Prefix
	forwards bool
}

// Question is the part of a DNS message that decides its answer.
type Question struct {
	// Name as the client wrote it: the answer repeats its case.
	Name        string
	Type, Class uint16
	Opcode      int
	Source      netip.Addr
	// OPTs is the number of OPT records.
	OPTs int
	// Down has the addresses whose health is checked: true for those that are not healthy now.
	Down map[netip.Addr]bool

	name string // in lower case
}

// Answer is a view's answer. Forward means to ask the upstreams instead.
type Answer struct {
	// Rule is the name of the rule that decided.
	Rule          string
	Rcode         int
	Authoritative bool
	Records       []dns.RR
	// Authority is the SOA of a negative answer (RFC 2308).
	Authority []dns.RR
	Forward   bool
}

// HasAddress says whether an answer has an address of a name of ours.
func (a Answer) HasAddress() bool {
	return slices.ContainsFunc(a.Records, func(r dns.RR) bool { return r.Header().Rrtype == dns.TypeA || r.Header().Rrtype == dns.TypeAAAA })
}

// rule decides an answer, or leaves it to the next rule.
type rule struct {
	name   string
	decide func(*View, Question) (Answer, bool)
}

// The first rule that decides wins.
var rules = []rule{
	{"source", refuseStrangers},
	{"operation", refuseAllButQueries},
	{"edns", rejectTwoOPTs},
	{"class", refuseAllButInternet},
	{"transfer", refuseTransfers},
	{"owned", answerOwned},
	{"denied", denyZones},
	{"forwarded", forward},
	{"foreign", refuse},
}

// Answer answers a question.
func (v *View) Answer(q Question) Answer {
	q.name = strings.ToLower(q.Name)
	for _, r := range rules {
		if answer, decided := r.decide(v, q); decided {
			answer.Rule = r.name
			return answer
		}
	}
	return refused
}

var refused = Answer{Rcode: dns.RcodeRefused}

// refuseStrangers keeps us from being an open resolver for every client with a route to the VLAN.
func refuseStrangers(v *View, q Question) (Answer, bool) {
	source := q.Source.Unmap().WithZone("")
	return refused, !slices.ContainsFunc(v.clients, func(p netip.Prefix) bool { return p.Contains(source) })
}

// refuseAllButQueries refuses UPDATE and NOTIFY: our records come from the API alone.
func refuseAllButQueries(_ *View, q Question) (Answer, bool) {
	return refused, q.Opcode != dns.OpcodeQuery
}

// rejectTwoOPTs keeps to RFC 6891 §6.1.1. Where the last has another version than 0, CoreDNS has answered BADVERS before.
func rejectTwoOPTs(_ *View, q Question) (Answer, bool) {
	return Answer{Rcode: dns.RcodeFormatError}, q.OPTs > 1
}

// refuseAllButInternet also refuses class CHAOS, the class of version.bind and hostname.bind.
func refuseAllButInternet(_ *View, q Question) (Answer, bool) {
	return refused, q.Class != dns.ClassINET
}

func refuseTransfers(_ *View, q Question) (Answer, bool) {
	return refused, q.Type == dns.TypeAXFR || q.Type == dns.TypeIXFR
}

// answerOwned answers authoritatively for every name in a zone of ours, existing or not; none is forwarded.
func answerOwned(v *View, q Question) (Answer, bool) {
	n, apex := v.zones.find(q.name)
	if apex == "" {
		return Answer{}, false
	}
	answer := Answer{Authoritative: true}
	if n == nil {
		answer.Rcode = dns.RcodeNameError
	} else {
		answer.Records = n.records(q, apex)
	}
	if len(answer.Records) == 0 {
		answer.Authority = []dns.RR{soa(apex)}
	}
	return answer, true
}

// denyZones answers NXDOMAIN for the management cluster's own names: the VLAN must not learn them.
func denyZones(v *View, q Question) (Answer, bool) {
	for _, zone := range v.denied {
		if dns.IsSubDomain(zone, q.name) {
			return Answer{Rcode: dns.RcodeNameError, Authoritative: true, Authority: []dns.RR{soa(zone)}}, true
		}
	}
	return Answer{}, false
}

func forward(v *View, _ Question) (Answer, bool) { return Answer{Forward: true}, v.forwards }

func refuse(*View, Question) (Answer, bool) { return refused, true }

// ownTTL is the TTL in seconds of our answers, positive and negative: clients soon learn of an address that moves. checkedTTL is that of names
// with addresses whose health is checked: whoever caches one that is lost has it for as long.
const (
	ownTTL     = 30
	checkedTTL = 5
)

// records returns a node's records that answer a question. ANY gets none: it would only amplify (RFC 8482).
func (n *node) records(q Question, apex string) []dns.RR {
	addrs, ttl := n.healthy(q.Down)
	head := dns.RR_Header{Name: q.Name, Rrtype: q.Type, Class: dns.ClassINET, Ttl: ttl}
	switch {
	case q.Type == dns.TypeSOA && q.name == apex:
		return []dns.RR{soa(q.Name)}
	case q.Type == dns.TypePTR && n.host != "":
		return []dns.RR{&dns.PTR{Hdr: head, Ptr: n.host}}
	}
	var answer []dns.RR
	for _, addr := range addrs {
		switch {
		case q.Type == dns.TypeA && addr.Is4():
			answer = append(answer, &dns.A{Hdr: head, A: addr.AsSlice()})
		case q.Type == dns.TypeAAAA && addr.Is6():
			answer = append(answer, &dns.AAAA{Hdr: head, AAAA: addr.AsSlice()})
		}
	}
	return turned(answer, q.Source)
}

// turned begins with another record for the next source. A client that resolves a name once, as a worker's HAProxy does, takes the first
// (haproxy, init-addr libc): neighbouring addresses are spread over all.
func turned(records []dns.RR, source netip.Addr) []dns.RR {
	octets := source.AsSlice()
	if len(records) < 2 || len(octets) == 0 {
		return records
	}
	first := int(octets[len(octets)-1]) % len(records)
	return slices.Concat(records[first:], records[:first])
}

// soa is the SOA record of a zone of ours. No zone is transferred, so the serial is constant, and MNAME and RNAME are placeholders, short enough
// to fit beside any zone name.
func soa(zone string) dns.RR {
	return &dns.SOA{
		Hdr: dns.RR_Header{Name: zone, Rrtype: dns.TypeSOA, Class: dns.ClassINET, Ttl: ownTTL},
		Ns:  "localhost.", Mbox: "nobody.invalid.",
		Serial: 1, Refresh: 3600, Retry: 600, Expire: 86400, Minttl: ownTTL,
	}
}
