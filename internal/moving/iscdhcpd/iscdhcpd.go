// Package iscdhcpd reads configurations of ISC dhcpd (dhcpd.conf(5) and dhcp-options(5), version 4.4).
package iscdhcpd

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cldmnky/oooi/internal/moving/braces"
	"github.com/cldmnky/oooi/internal/moving/draft"
)

// Read adds what files say.
func Read(site *draft.Site, files []draft.File) {
	r := &reader{Site: site, defined: map[string]definition{}, readers: readers()}
	sources := draft.NewSources(files)
	for _, statements := range draft.Roots(sources, func(file draft.File) []braces.Statement {
		return braces.Include(sources, braces.Parse(file, false), false, included)
	}) {
		r.all(scope{options: &site.Options, lease: &site.Lease}, statements)
	}
	site.LastsElse(12 * time.Hour) // default-lease-time, if it is not written
}

// included is the file of a statement that includes one (dhcpd: server/confpars.c, read_conf_file).
func included(s braces.Statement) (string, bool) {
	if !s.Is("include") || len(s.Words) != 2 {
		return "", false
	}
	return s.Words[1].Text, true
}

type reader struct {
	*draft.Site
	defined map[string]definition
	readers map[string]func(*reader, scope, braces.Statement)
}

// scope is whom a statement is about.
type scope struct {
	options *[]draft.Option // nil: some clients only
	lease   **draft.Lease
	subnet  *draft.Subnet
	// of are the clients to whom its ranges are leased.
	of draft.Clients
	// declared says that the name of a host declaration is the host's.
	declared bool
}

// ofSome is why what is for some clients is left.
const ofSome = "it is for some clients only, and an Infra serves all alike"

// withoutEffect are about the process and its files, none of which remain, or say what an Infra does anyway.
var withoutEffect = map[string]bool{
	"log-facility": true, "lease-file-name": true, "pid-file-name": true, "omapi-port": true, "omapi-key": true, "db-time-format": true, "delayed-ack": true,
	"not authoritative": true, "allow booting": true, "allow unknown-clients": true, "ddns-update-style none": true, "ddns-updates off": true,
	"deny client-updates": true, "ignore client-updates": true, "deny bootp": true, "ignore bootp": true, "update-static-leases off": true,
}

// says is what to do about what is left, where there is more to say than that there is nothing like it.
var says = map[string]string{
	"authoritative":     "DHCP refuses an address of another network, and is silent about one that it does not know",
	"max-lease-time":    "a lease lasts for dhcp.leaseTime, whatever a client asks for",
	"min-lease-time":    "a lease lasts for dhcp.leaseTime, whatever a client asks for",
	"next-server":       "clients are told the name of the boot server (option 66), and no address in the header (siaddr)",
	"class":             ofSome,
	"subclass":          ofSome,
	"if":                ofSome,
	"match":             ofSome,
	"failover":          "two instances of an Infra share their leases by themselves: dhcp.replicas",
	"subnet6":           "there is no DHCPv6",
	"allow":             "an Infra serves every client, or, with dhcp.unknownClients: Ignore, those that have a reservation, and the hosted cluster's VMs",
	"deny":              "an Infra serves every client, or, with dhcp.unknownClients: Ignore, those that have a reservation, and the hosted cluster's VMs",
	"ignore":            "an Infra serves every client, or, with dhcp.unknownClients: Ignore, those that have a reservation, and the hosted cluster's VMs",
	"ddns-update-style": "DNS answers the names of leases by itself",
}

// readers are the statements that an Infra has a place for.
func readers() map[string]func(*reader, scope, braces.Statement) {
	return map[string]func(*reader, scope, braces.Statement){
		"subnet": (*reader).subnet, "shared-network": (*reader).sharedNetwork, "pool": (*reader).pool, "group": (*reader).group, "host": (*reader).host,
		"range": (*reader).addresses, "option": (*reader).option, "default-lease-time": (*reader).leaseTime,
		"filename": sends(67), "server-name": sends(66), "server-identifier": sends(54),
		"use-host-decl-names": func(*reader, scope, braces.Statement) {}, // all looks for it first
		"local-address":       (*reader).localAddress,
	}
}

func (r *reader) all(in scope, statements []braces.Statement) {
	for _, s := range statements {
		if s.Is("use-host-decl-names") {
			in.declared = s.Is("use-host-decl-names", "on") || s.Is("use-host-decl-names", "true")
		}
	}
	for _, s := range statements {
		r.one(in, s)
	}
}

func (r *reader) one(in scope, s braces.Statement) {
	first := strings.ToLower(s.Words[0].Text)
	both := first
	if len(s.Words) > 1 {
		both += " " + strings.ToLower(s.Words[1].Text)
	}
	switch read := r.readers[first]; {
	case s.Unread != nil:
		r.NotRead(s.Line, s.Unread, "--isc-dhcpd")
	case read != nil:
		read(r, in, s)
	case withoutEffect[first] || withoutEffect[both]:
	case both == "deny unknown-clients" || both == "ignore unknown-clients":
		r.onlyKnown(in, s.Line)
	default:
		why := says[first]
		if why == "" {
			why = "an Infra has nothing like it"
		}
		if s.Opens {
			why += "; all that stands in it is left, too"
		}
		r.Leave(s.Line, "%s", why)
	}
}

func (r *reader) onlyKnown(in scope, at draft.Line) {
	if in.subnet == nil {
		r.OnlyKnown = append(r.OnlyKnown, at)
		return
	}
	in.subnet.OnlyKnown = append(in.subnet.OnlyKnown, at)
}

func (r *reader) subnet(in scope, s braces.Statement) {
	if len(s.Words) < 4 || !s.Is("subnet", s.Words[1].Text, "netmask") {
		r.Leave(s.Line, "it is not subnet ADDRESS netmask MASK")
		return
	}
	address, err := netip.ParseAddr(s.Words[1].Text)
	mask := net.ParseIP(s.Words[3].Text).To4()
	if err != nil || !address.Is4() || mask == nil {
		r.Leave(s.Line, "its address or netmask cannot be read; all that stands in it is left, too")
		return
	}
	bits, whole := net.IPMask(mask).Size()
	if whole == 0 {
		r.Leave(s.Line, "%s is no netmask: its ones have to come first; all that stands in it is left, too", s.Words[3].Text)
		return
	}
	made := draft.Subnet{Line: s.Line, Prefix: netip.PrefixFrom(address, bits).Masked()}
	r.all(scope{options: &made.Options, lease: &made.Lease, subnet: &made, declared: in.declared}, s.Block)
	r.Subnets = append(r.Subnets, made)
}

// sharedNetwork has subnets on one wire; what it says is for each of them.
func (r *reader) sharedNetwork(in scope, s braces.Statement) {
	var common draft.Subnet
	before := len(r.Subnets)
	r.all(scope{options: &common.Options, lease: &common.Lease, subnet: &common, declared: in.declared}, s.Block)
	for i := range r.Subnets[before:] {
		made := &r.Subnets[before+i]
		made.Shared, made.OnlyKnown = common.Options, append(made.OnlyKnown, common.OnlyKnown...)
		if made.Lease == nil {
			made.Lease = common.Lease
		}
		for _, each := range common.Ranges { // of a pool beside the subnets
			if made.Prefix.Contains(each.First) {
				made.Ranges = append(made.Ranges, each)
			}
		}
	}
}

// pool: who may use it cannot be said, except that all may, or all known clients.
func (r *reader) pool(in scope, s braces.Statement) {
	in = scope{lease: new(*draft.Lease), subnet: in.subnet, declared: in.declared}
	var inside []braces.Statement
	var limits []braces.Statement
	for _, inner := range s.Block {
		if inner.Is("allow") || inner.Is("deny") || inner.Is("ignore") {
			limits = append(limits, inner)
			continue
		}
		inside = append(inside, inner)
	}
	switch known, unknown := served(limits); {
	case !known && !unknown:
		in.of = draft.Some
		r.Leave(s.Line, "%s; its ranges are left, too", ofSome)
		inside = slices.DeleteFunc(inside, func(inner braces.Statement) bool { return !inner.Is("range") })
	case !unknown:
		in.of = draft.Known
	case !known:
		r.Leave(s.Line, "it is for clients without a host declaration; those with one get its addresses, too")
	}
	r.all(in, inside)
}

// served says which clients get addresses of a pool with these limits: those that an allow admits, if there is one, and no deny excludes. Neither
// are, if it is for others (dhcpd.conf(5), Pool Permit Lists). Clients of BOOTP get none of an Infra.
func served(limits []braces.Statement) (known, unknown bool) {
	var allowed, denied []string
	for _, s := range limits {
		who := strings.ToLower(strings.ReplaceAll(strings.Join(s.Values(1), ""), " ", "-"))
		switch {
		case s.Is("allow"):
			allowed = append(allowed, who)
		case who == "dynamic-bootp-clients":
		case who == "known-clients" || who == "unknown-clients":
			denied = append(denied, who)
		default:
			return false, false
		}
	}
	admits := func(who string) bool {
		return (len(allowed) == 0 || slices.Contains(allowed, who) || slices.Contains(allowed, "all-clients")) && !slices.Contains(denied, who)
	}
	return admits("known-clients"), admits("unknown-clients")
}

func (r *reader) group(in scope, s braces.Statement) {
	r.all(scope{lease: new(*draft.Lease), subnet: in.subnet, declared: in.declared}, s.Block)
}

func (r *reader) addresses(in scope, s braces.Statement) {
	words := s.Words[1:]
	if len(words) > 0 && words[0].Text == "dynamic-bootp" {
		r.Leave(s.Line, "BOOTP clients get no address; DHCP leases the range")
		words = words[1:]
	}
	if len(words) == 1 {
		words = append(words, words[0])
	}
	if in.subnet == nil || len(words) != 2 {
		r.Leave(s.Line, "it is no range of a subnet")
		return
	}
	first, err := netip.ParseAddr(words[0].Text)
	last, otherErr := netip.ParseAddr(words[1].Text)
	if err != nil || otherErr != nil {
		r.Leave(s.Line, "its addresses cannot be read")
		return
	}
	in.subnet.Ranges = append(in.subnet.Ranges, draft.Range{Line: s.Line, First: first, Last: last, Of: in.of})
}

func (r *reader) leaseTime(in scope, s braces.Statement) {
	if in.options == nil {
		r.Leave(s.Line, "all leases last for dhcp.leaseTime")
		return
	}
	seconds, err := strconv.ParseUint(strings.Join(s.Values(1), ""), 10, 32)
	if err != nil {
		r.Leave(s.Line, "it is no number of seconds")
		return
	}
	*in.lease = &draft.Lease{Line: s.Line, Time: time.Duration(seconds) * time.Second}
}

func (r *reader) localAddress(_ scope, s braces.Statement) {
	if a, err := netip.ParseAddr(strings.Join(s.Values(1), "")); err == nil {
		r.Served = append(r.Served, draft.Served{Line: s.Line, By: draft.Leasing, At: a})
		return
	}
	r.Leave(s.Line, "it is no address")
}
