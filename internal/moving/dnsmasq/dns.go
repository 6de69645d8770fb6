package dnsmasq

import (
	"net/netip"
	"strings"

	"github.com/cldmnky/oooi/internal/moving/draft"
)

// server is a resolver of all names. One of a few domains only has no place.
func (r *reader) server(at draft.Line, values []string) {
	text := strings.Join(values, ",")
	if strings.HasPrefix(text, "/") {
		r.Leave(at, "DNS has one list of resolvers for all names: networkConfig.dnsServers")
		return
	}
	text, _, _ = strings.Cut(text, "@")
	host, port, ported := strings.Cut(text, "#")
	a, err := netip.ParseAddr(host)
	switch {
	case err != nil:
		r.Leave(at, "%q is no address: write the resolver's into networkConfig.dnsServers", text)
	case ported && port != "53":
		r.Leave(at, "DNS asks resolvers at port 53: let %s serve there, too", host)
	default:
		r.Upstreams = append(r.Upstreams, draft.Upstream{Line: at, IP: a})
	}
}

// address answers a domain and all names below it.
func (r *reader) address(at draft.Line, values []string) {
	text := strings.Join(values, ",")
	parts := strings.Split(strings.TrimPrefix(text, "/"), "/")
	a, err := netip.ParseAddr(parts[len(parts)-1])
	if err != nil || len(parts) < 2 {
		r.Leave(at, "it has no address, and DNS answers no domain with nothing")
		return
	}
	for _, domain := range parts[:len(parts)-1] {
		domain = strings.ToLower(strings.Trim(domain, "."))
		if domain == "" || domain == "#" {
			r.Leave(at, "DNS answers no names of all domains with one address")
			continue
		}
		r.Names = append(r.Names, draft.Name{Line: at, Host: domain, IP: a}, draft.Name{Line: at, Host: "*." + strings.TrimPrefix(domain, "*."), IP: a})
	}
}

// hostRecord has names, then addresses, then perhaps how long they may be kept.
func (r *reader) hostRecord(at draft.Line, values []string) {
	var names []string
	for _, v := range values {
		a, err := netip.ParseAddr(v)
		_, isTime := lease(v)
		switch {
		case err == nil:
			for _, name := range names {
				r.HostRecord(at, name, a)
			}
		case isTime:
			r.Leave(at, "%s: DNS lets its names be kept for 30 seconds", v)
		default:
			names = append(names, v)
		}
	}
}

// cname has aliases, then the name that they stand for, then perhaps how long they may be kept.
func (r *reader) cname(at draft.Line, values []string) {
	if len(values) < 2 {
		r.Leave(at, "it names no alias, or nothing that one stands for")
		return
	}
	if _, isTime := lease(values[len(values)-1]); len(values) > 2 && isTime {
		values = values[:len(values)-1]
	}
	of := strings.ToLower(strings.TrimSuffix(values[len(values)-1], "."))
	for _, alias := range values[:len(values)-1] {
		r.Aliases = append(r.Aliases, draft.Alias{Line: at, Host: strings.ToLower(strings.TrimSuffix(alias, ".")), Of: of})
	}
}

// listen is where dnsmasq serves names and leases.
func (r *reader) listen(at draft.Line, values []string) {
	for _, v := range values {
		a, err := netip.ParseAddr(v)
		if err != nil {
			r.Leave(at, "%q is no address", v)
			continue
		}
		if !a.IsLoopback() {
			r.Served = append(r.Served, draft.Served{Line: at, By: draft.Naming, At: a}, draft.Served{Line: at, By: draft.Leasing, At: a})
		}
	}
}

func (r *reader) port(at draft.Line, values []string) {
	switch text := strings.Join(values, ","); text {
	case "53":
	case "0":
		r.Resolves = false
	default:
		r.Leave(at, "DNS serves at port 53, where clients ask")
	}
}
