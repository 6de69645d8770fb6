// Package dnsmasq reads configurations of dnsmasq (dnsmasq(8), version 2.90).
package dnsmasq

import (
	"net/netip"
	"strings"

	"github.com/cldmnky/oooi/internal/moving/draft"
	"github.com/cldmnky/oooi/internal/moving/hosts"
)

// reader reads one file.
type reader struct {
	*draft.Site
	// first range of IPv4, and whether an option says who the router is, which dnsmasq itself is if none does.
	first   *draft.Line
	routed  bool
	noHosts bool
	alone   *draft.Line // no-resolv
	hosts   []draft.File
}

// Read adds what files say, which are those of one server.
func Read(site *draft.Site, files []draft.File) {
	if len(files) == 0 {
		return
	}
	r := &reader{Site: site}
	site.Resolves = true
	upstreams := len(site.Upstreams)
	sources := draft.NewSources(files)
	for _, statements := range draft.Roots(sources, func(file draft.File) []statement { return read(sources, file, "") }) {
		for _, each := range statements {
			r.directive(each)
		}
	}
	for _, file := range r.hosts { // whose names come after host-records (dnsmasq: cache.c, cache_reload)
		hosts.Included(site, file)
	}
	if r.first != nil && !r.routed {
		r.Leave(*r.first, "dnsmasq is the router of its clients, unless dhcp-option=3 is written: write networkConfig.gateway, if the VLAN has a router")
	}
	if r.alone != nil && len(site.Upstreams) == upstreams {
		r.Leave(*r.alone, "dnsmasq asks no other resolver, and DNS asks those of the nodes, if networkConfig.dnsServers is empty")
	}
	if !r.noHosts && site.Resolves {
		site.ReadsHosts = &draft.Line{File: files[0].Name, Number: 1, Text: "no-hosts is not written"}
	}
}

// uncommented is a line without its comment, which begins a word and is not quoted (dnsmasq: option.c, read_file).
func uncommented(line string) string {
	quoted, before := false, byte(' ')
	for i := range len(line) {
		switch c := line[i]; {
		case c == '"':
			quoted = !quoted
		case c == '#' && !quoted && (before == ' ' || before == '\t'):
			return line[:i]
		}
		before = line[i]
	}
	return line
}

// directives are those that an Infra has a place for.
var directives = map[string]func(*reader, draft.Line, []string){
	"dhcp-range":        (*reader).dhcpRange,
	"dhcp-host":         (*reader).dhcpHost,
	"dhcp-option":       (*reader).dhcpOption,
	"dhcp-option-force": (*reader).dhcpOption,
	"dhcp-boot":         (*reader).dhcpBoot,
	"dhcp-ignore":       (*reader).dhcpIgnore,
	"domain":            (*reader).domainName,
	"server":            (*reader).server,
	"address":           (*reader).address,
	"host-record":       (*reader).hostRecord,
	"cname":             (*reader).cname,
	"listen-address":    (*reader).listen,
	"port":              (*reader).port,
	"no-hosts":          func(r *reader, _ draft.Line, _ []string) { r.noHosts = true },
	"no-resolv":         func(r *reader, at draft.Line, _ []string) { r.alone = &at },
}

// withoutEffect are about the machine, its files and its log, none of which remain; or say what an Infra does anyway.
var withoutEffect = map[string]bool{
	"interface": true, "except-interface": true, "no-dhcp-interface": true, "bind-interfaces": true, "bind-dynamic": true, "user": true, "group": true,
	"pid-file": true, "log-queries": true, "log-dhcp": true, "log-facility": true, "log-async": true, "quiet-dhcp": true, "keep-in-foreground": true,
	"cache-size": true, "no-negcache": true, "no-poll": true, "dhcp-leasefile": true, "enable-dbus": true, "clear-on-reload": true, "local-service": true,
}

// says is what to do about others, where there is more to say than that there is nothing like it.
var says = map[string]string{
	"addn-hosts":         "give that file too, with --hosts, if it is not given",
	"hostsdir":           "give the files of that directory too, each with --hosts, if they are not given",
	"read-ethers":        "write the clients of /etc/ethers as dhcp-host=… into a file, and give it with --dnsmasq",
	"resolv-file":        "write the resolvers of that file into networkConfig.dnsServers",
	"expand-hosts":       "give hosts files, with --hosts, in which names have their domain",
	"local":              "DNS forwards every name that it does not know, except those in the hosted cluster's domain",
	"bogus-priv":         "DNS forwards reverse lookups of private addresses that it does not know",
	"domain-needed":      "DNS forwards names without a dot, too",
	"dhcp-authoritative": "DHCP refuses an address of another network, and is silent about one that it does not know",
	"dhcp-lease-max":     "DHCP leases as many addresses as the pool has: make it smaller, if this was meant",
	"enable-tftp":        "an Infra has no TFTP server",
	"dhcp-relay":         "an Infra is a DHCP server; it serves the relays in dhcp.relays",
	"rev-server":         "DNS has one list of resolvers for all names: networkConfig.dnsServers",
}

func (r *reader) directive(s statement) {
	if read, is := directives[s.keyword]; is {
		read(r, s.Line, fields(s.value))
		return
	}
	if s.hosts != nil {
		r.hosts = append(r.hosts, *s.hosts)
		return
	}
	if s.unread != nil {
		r.NotRead(s.Line, s.unread, "--dnsmasq")
		return
	}
	if withoutEffect[s.keyword] {
		return
	}
	why := says[s.keyword]
	if why == "" {
		why = "an Infra has nothing like it"
	}
	r.Leave(s.Line, "%s", why)
}

// fields are the values between commas outside of quotes, without the quotes. A backslash in quotes takes the next character as it is, or as
// in C (dnsmasq: option.c, read_file).
func fields(value string) []string {
	if value == "" {
		return nil
	}
	var all []string
	var field strings.Builder
	quoted := false
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted && i+1 < len(value):
			i++
			field.WriteString(strings.NewReplacer("n", "\n", "t", "\t", "r", "\r", "b", "\b", "e", "\x1b").Replace(value[i : i+1]))
		case c == ',' && !quoted:
			all = append(all, field.String())
			field.Reset()
		default:
			field.WriteByte(c)
		}
	}
	all = append(all, field.String())
	for i, text := range all {
		if trimmed := strings.Trim(text, " "); trimmed != "" {
			all[i] = trimmed
		}
	}
	return all
}

// cut splits a file that several clients share by tags: those that the first fields name, and the rest.
func cut(values []string, prefixes ...string) (tags, rest []string) {
	for i, v := range values {
		is := false
		for _, p := range prefixes {
			is = is || strings.HasPrefix(v, p)
		}
		if !is {
			return values[:i], values[i:]
		}
	}
	return values, nil
}

// ipv4 is an address of IPv4.
func ipv4(text string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(text)
	return a, err == nil && a.Is4()
}
