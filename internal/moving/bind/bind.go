// Package bind reads configurations and zone files of BIND (named.conf(5), version 9.18; RFC 1035 §5).
package bind

import (
	"net/netip"
	"path"
	"strings"

	"github.com/cldmnky/oooi/internal/moving/braces"
	"github.com/cldmnky/oooi/internal/moving/draft"
)

// reader reads the files of one server: its configuration says of which zones the others are.
type reader struct {
	*draft.Site
	// zones are those with a file, by the last part of its path.
	zones map[string]zone
}

// zone is a name and where it is said. Read says that its file is given.
type zone struct {
	draft.Line
	name string
	read bool
}

// Read adds what files say.
func Read(site *draft.Site, files []draft.File) {
	if len(files) == 0 {
		return
	}
	site.Resolves = true
	r := &reader{Site: site, zones: map[string]zone{}}
	var records []draft.File
	for _, file := range files {
		if statements := braces.Parse(file, true); configures(statements) {
			r.configuration(statements)
			continue
		}
		records = append(records, file)
	}
	for _, file := range records {
		r.records(file)
	}
	for _, z := range r.zones {
		if !z.read {
			r.Leave(z.Line, "give the zone's file too, with --bind")
		}
	}
}

// configures says whether a file is a configuration: a zone's has no braces.
func configures(statements []braces.Statement) bool {
	for _, s := range statements {
		if s.Opens || s.Is("include") {
			return true
		}
	}
	return len(statements) == 0
}

// withoutEffect are about the process, its files and its log, none of which remain, or say what an Infra does anyway.
var withoutEffect = map[string]bool{
	"logging": true, "controls": true, "statistics-channels": true, "directory": true, "dump-file": true, "statistics-file": true, "memstatistics-file": true,
	"secroots-file": true, "recursing-file": true, "pid-file": true, "session-keyfile": true, "managed-keys-directory": true, "geoip-directory": true, "key-directory": true,
	"listen-on-v6": true, "recursion yes": true, "allow-recursion": true, "forward": true, "version": true, "hostname": true, "server-id": true, "max-cache-size": true,
	"auth-nxdomain": true, "bindkeys-file": true, "notify": true, "also-notify": true, "allow-transfer": true, "minimal-responses": true, "empty-zones-enable": true,
	"tcp-clients": true, "querylog": true,
}

var says = map[string]string{
	"include":     "give that file too, with --bind",
	"view":        "DNS has one view of the VLAN, and one of the pod network, which it makes itself; all that stands in it is left, too",
	"allow-query": "DNS answers clients of the VLAN and of networkConfig.clientCIDRs",
	"recursion":   "DNS forwards names that it does not know",
}

func (r *reader) configuration(statements []braces.Statement) {
	for _, s := range statements {
		switch {
		case s.Is("options"):
			for _, o := range s.Block {
				r.option(o)
			}
		case s.Is("zone") && len(s.Words) > 1:
			r.zone(s)
		default:
			r.other(s)
		}
	}
}

func (r *reader) other(s braces.Statement) {
	first := strings.ToLower(s.Words[0].Text)
	both := first
	if len(s.Words) > 1 {
		both += " " + strings.ToLower(s.Words[1].Text)
	}
	if withoutEffect[first] || withoutEffect[both] {
		return
	}
	why := says[first]
	if why == "" {
		why = "an Infra has nothing like it"
		if s.Opens {
			why += "; all that stands in it is left, too"
		}
	}
	r.Leave(s.Line, "%s", why)
}

func (r *reader) option(s braces.Statement) {
	switch {
	case s.Is("forwarders"):
		for _, f := range s.Block {
			a, err := netip.ParseAddr(f.Words[0].Text)
			if err != nil || len(f.Words) > 1 && !f.Is(f.Words[0].Text, "port", "53") {
				r.Leave(f.Line, "DNS asks resolvers by address, at port 53")
				continue
			}
			r.Upstreams = append(r.Upstreams, draft.Upstream{Line: f.Line, IP: a})
		}
	case s.Is("listen-on"):
		if s.Is("listen-on", "port") && len(s.Words) > 2 && s.Words[2].Text != "53" {
			r.Leave(s.Line, "DNS serves at port 53, where clients ask")
		}
		for _, at := range s.Block {
			if a, err := netip.ParseAddr(at.Words[0].Text); err == nil && !a.IsLoopback() {
				r.Served = append(r.Served, draft.Served{Line: at.Line, By: draft.Naming, At: a})
			} else if err != nil && at.Words[0].Text != "any" && at.Words[0].Text != "localhost" && at.Words[0].Text != "none" {
				r.Leave(at.Line, "DNS serves at dns.serverIP: write the address of the server there, if clients shall keep it")
			}
		}
	case s.Is("allow-query") && anyone(s.Block):
	default:
		r.other(s)
	}
}

// anyone says whether those are admitted that DNS answers, too.
func anyone(block []braces.Statement) bool {
	for _, s := range block {
		if !s.Is("any") && !s.Is("localnets") && !s.Is("localhost") {
			return false
		}
	}
	return true
}

// local are the zones that Debian and others configure of the machine itself.
var local = map[string]bool{"": true, "localhost": true, "127.in-addr.arpa": true, "0.in-addr.arpa": true, "255.in-addr.arpa": true}

func (r *reader) zone(s braces.Statement) {
	name := strings.ToLower(strings.TrimSuffix(s.Words[1].Text, "."))
	var kind, file string
	for _, inner := range s.Block {
		switch {
		case inner.Is("type") && len(inner.Words) > 1:
			kind = strings.ToLower(inner.Words[1].Text)
		case inner.Is("file") && len(inner.Words) > 1:
			file = path.Base(inner.Words[1].Text)
		case inner.Is("allow-query") && anyone(inner.Block), inner.Is("allow-update") && len(inner.Block) == 1 && inner.Block[0].Is("none"), inner.Is("masters"), inner.Is("primaries"), inner.Is("forwarders"):
		default:
			r.other(inner)
		}
	}
	switch {
	case local[name]:
	case kind == "master" || kind == "primary":
		r.zones[file] = zone{Line: s.Line, name: name}
		r.Zones = append(r.Zones, draft.Name{Line: s.Line, Host: name})
	case kind == "slave" || kind == "secondary":
		r.Leave(s.Line, "it is another server's: give its zone file with --bind, or write that server into networkConfig.dnsServers")
	default:
		r.Leave(s.Line, "DNS has one list of resolvers for all names: networkConfig.dnsServers")
	}
}
