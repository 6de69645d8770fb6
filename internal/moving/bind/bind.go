// Package bind reads configurations and zone files of BIND (named.conf(5), version 9.18; RFC 1035 §5).
package bind

import (
	"errors"
	"io/fs"
	"net/netip"
	"path"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/cldmnky/oooi/internal/moving/braces"
	"github.com/cldmnky/oooi/internal/moving/draft"
)

// reader reads the files of one server: its configuration says of which zones the others are.
type reader struct {
	*draft.Site
	sources *draft.Sources
	// directory is the server's working directory, from which it takes paths.
	directory string
	zones     []zone
	// others are zones of views that the VLAN's clients do not get.
	others []zone
	// general are the resolvers of options, and all those of the zone of all names, root, which counts before them (BIND 9.18 manual, zone type forward).
	general, all []draft.Upstream
	root         *braces.Statement
	// apex is the zone whose records are read.
	apex string
}

// zone is a name, where it is said, and the path of its file. Another server's copy may be absent.
type zone struct {
	draft.Line
	name, file string
	copied     bool
}

// Read adds what files say.
func Read(site *draft.Site, files []draft.File) {
	if len(files) == 0 {
		return
	}
	site.Resolves = true
	r := &reader{Site: site, sources: draft.NewSources(files)}
	configures := map[string]bool{}
	r.configuration(slices.Concat(draft.Roots(r.sources, func(file draft.File) []braces.Statement {
		statements := braces.Parse(file, true)
		if configures[file.Name] = configuration(file, statements); !configures[file.Name] {
			return nil
		}
		return braces.Include(r.sources, statements, true, r.included)
	})...))
	r.chooseResolvers()
	for _, z := range slices.Concat(r.zones, r.others) {
		r.sources.Want(z.file)
	}
	for _, z := range r.zones {
		r.zoneFile(z)
	}
	for _, z := range r.others {
		_, _ = r.sources.Include(z.Line, z.file) // so that it is not read by itself
	}
	for _, entries := range draft.Roots(r.sources, func(file draft.File) []entry {
		if configures[file.Name] {
			return nil
		}
		return r.entries(file)
	}) {
		r.apex = ""
		r.records(entries, nowhere)
	}
}

// configuration says whether a file is one: a zone's has no braces but in comments, which begin with a semicolon there (RFC 1035 §5.1).
func configuration(file draft.File, statements []braces.Statement) bool {
	var text strings.Builder
	for line := range strings.Lines(file.Text) {
		uncommented, _ := plain(strings.TrimRight(line, "\r\n"))
		text.WriteString(uncommented + "\n")
	}
	for _, s := range braces.Parse(draft.File{Name: file.Name, Text: text.String()}, true) {
		if s.Opens || s.Is("include") {
			return true
		}
	}
	return len(statements) == 0
}

// included is the file, or pattern, of a statement that includes one. The server changes its working directory where it reads the option (named:
// lib/isccfg/namedconf.c, bin/named/server.c).
func (r *reader) included(s braces.Statement) (string, bool) {
	if len(s.Words) != 2 {
		return "", false
	}
	if s.Is("directory") {
		r.directory = s.Words[1].Text
	}
	return r.path(s.Words[1].Text), s.Is("include")
}

func (r *reader) path(name string) string {
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(r.directory, name)
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
	"allow-query":   ofClients,
	"match-clients": ofClients,
	"recursion":     "DNS forwards names that it does not know",
}

const ofClients = "DNS answers clients of the VLAN and of networkConfig.clientCIDRs"

// configuration reads what stands outside of views, and then in the VLAN's.
func (r *reader) configuration(statements []braces.Statement) {
	var views []braces.Statement
	m := matcher{acls: map[string][]braces.Statement{}}
	for _, s := range statements {
		switch {
		case s.Unread != nil:
			r.other(s)
		case s.Is("options"):
			for _, o := range s.Block {
				r.option(o)
			}
		case s.Is("zone") && len(s.Words) > 1:
			r.zone(s)
		case s.Is("view"):
			views = append(views, s)
		case s.Is("acl") && len(s.Words) > 1:
			m.acls[strings.ToLower(s.Words[1].Text)] = s.Block
			r.other(s)
		default:
			r.other(s)
		}
	}
	r.views(views, m)
}

func (r *reader) other(s braces.Statement) {
	if s.Unread != nil {
		r.NotRead(s.Line, s.Unread, "--bind")
		return
	}
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
		r.general = append(r.general, r.resolvers(s)...)
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
	case (s.Is("allow-query") || s.Is("match-clients")) && anyone(s.Block):
	default:
		r.other(s)
	}
}

// resolvers of a statement.
func (r *reader) resolvers(s braces.Statement) (all []draft.Upstream) {
	for _, f := range s.Block {
		a, err := netip.ParseAddr(f.Words[0].Text)
		if err != nil || len(f.Words) > 1 && !f.Is(f.Words[0].Text, "port", "53") {
			r.Leave(f.Line, "DNS asks resolvers by address, at port 53")
			continue
		}
		all = append(all, draft.Upstream{Line: f.Line, IP: a})
	}
	return all
}

// chooseResolvers takes those that the server asks.
func (r *reader) chooseResolvers() {
	if r.root == nil {
		r.Upstreams = append(r.Upstreams, r.general...)
		return
	}
	for _, u := range r.general {
		r.Leave(u.Line, "zone \".\" says who is asked for all names")
	}
	if r.Upstreams = append(r.Upstreams, r.all...); len(r.all) == 0 {
		r.Leave(r.root.Line, "it names no resolver: write those that DNS asks into networkConfig.dnsServers")
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
var local = map[string]bool{"localhost": true, "127.in-addr.arpa": true, "0.in-addr.arpa": true, "255.in-addr.arpa": true}

func (r *reader) zone(s braces.Statement) {
	name := strings.ToLower(strings.TrimSuffix(s.Words[1].Text, "."))
	var kind, file string
	var forwarders braces.Statement
	for _, inner := range s.Block {
		switch {
		case inner.Is("type") && len(inner.Words) > 1:
			kind = strings.ToLower(inner.Words[1].Text)
		case inner.Is("file") && len(inner.Words) > 1:
			file = r.path(inner.Words[1].Text)
		case inner.Is("allow-query") && anyone(inner.Block), inner.Is("allow-update") && len(inner.Block) == 1 && inner.Block[0].Is("none"), inner.Is("masters"), inner.Is("primaries"):
		case inner.Is("forwarders"):
			forwarders = inner
		default:
			r.other(inner)
		}
	}
	switch {
	case local[name]:
		r.Leave(s.Line, "DNS asks its resolvers for these names, which every machine knows by itself")
	case name == "" && (kind == "hint" || kind == "mirror"): // which servers to ask without forwarders
	case name == "" && kind == "forward":
		r.root = &s
		r.all = r.resolvers(forwarders)
	case file != "" && slices.Contains([]string{"master", "primary", "slave", "secondary"}, kind):
		r.zones = append(r.zones, zone{Line: s.Line, name: name, file: file, copied: kind == "slave" || kind == "secondary"})
	case kind == "slave" || kind == "secondary":
		r.Leave(s.Line, ofAnother)
	default:
		r.Leave(s.Line, "DNS has one list of resolvers for all names: networkConfig.dnsServers")
	}
}

// ofAnother is what to do about a zone that the server copies from another one.
const ofAnother = "it is another server's: give its zone file with --bind, or write that server into networkConfig.dnsServers"

// zoneFile has the records of a zone.
func (r *reader) zoneFile(z zone) {
	files, err := r.sources.Include(z.Line, z.file)
	var raw draft.NoText
	switch {
	case errors.As(err, &raw):
		r.Leave(z.Line, "%s is not in text: write it so with named-compilezone -f raw -F text, and give that", raw.Name)
	case z.copied && errors.Is(err, fs.ErrNotExist):
		r.Leave(z.Line, ofAnother)
		return
	case err != nil:
		r.NotRead(z.Line, err, "--bind")
	}
	r.Zones = append(r.Zones, draft.Name{Line: z.Line, Host: z.name})
	for _, file := range files {
		r.apex = dns.Fqdn(z.name)
		r.records(r.entries(file), r.apex)
	}
}
