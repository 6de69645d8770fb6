package bind

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/cldmnky/oooi/internal/moving/draft"
)

// nowhere is the origin of a file whose zone nobody says.
const nowhere = "zone.invalid."

// entry is a record or a directive, without comments, on one line.
type entry struct {
	draft.Line
	// indented entries have the owner of the one before.
	indented bool
	// included are those of the file that a directive includes; unread is why they are not there.
	included []entry
	unread   error
}

func (e entry) is(directive string) bool {
	return strings.EqualFold(strings.Fields(e.Text)[0], directive)
}

// entries are those of a zone file: one on a line, unless it has parentheses (RFC 1035 §5.1).
func (r *reader) entries(file draft.File) (all []entry) {
	number, depth := 0, 0
	for whole := range strings.Lines(file.Text) {
		number++
		text, deeper := plain(strings.TrimRight(whole, "\r\n"))
		if depth > 0 {
			all[len(all)-1].Text += " " + text
		} else if strings.TrimSpace(text) != "" {
			all = append(all, entry{Line: draft.Line{File: file.Name, Number: number, Text: text}, indented: text[0] == ' ' || text[0] == '\t'})
		}
		depth = max(depth+deeper, 0)
		if len(all) == 0 {
			depth = 0
		}
	}
	for i := range all {
		if words := strings.Fields(all[i].Text); all[i].is("$INCLUDE") && len(words) > 1 {
			var files []draft.File
			files, all[i].unread = r.sources.Include(all[i].Line, r.path(strings.Trim(words[1], `"`)))
			for _, file := range files {
				all[i].included = append(all[i].included, r.entries(file)...)
			}
		}
	}
	return all
}

// plain is a line without its comment and parentheses, and how many more of these it opens than it closes.
func plain(line string) (text string, deeper int) {
	var out strings.Builder
	quoted := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && i+1 < len(line):
			out.WriteString(line[i : i+2])
			i++
			continue
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == ';':
			return out.String(), deeper
		case c == '(':
			deeper++
			out.WriteByte(' ')
			continue
		case c == ')':
			deeper--
			out.WriteByte(' ')
			continue
		}
		out.WriteByte(line[i])
	}
	return out.String(), deeper
}

// records of a file, whose own origin and owner hold for what it includes, and again after it (RFC 1035 §5.1).
func (r *reader) records(entries []entry, origin string) {
	owner := ""
	for _, e := range entries {
		words := strings.Fields(e.Text)
		switch {
		case e.is("$ORIGIN") && len(words) > 1:
			origin = absolute(words[1], origin)
			continue
		case e.is("$TTL"):
			continue
		case e.is("$INCLUDE"):
			if e.unread != nil {
				r.NotRead(e.Line, e.unread, "--bind")
			}
			of := origin
			if len(words) > 2 {
				of = absolute(words[2], origin)
			}
			r.records(e.included, of)
			continue
		}
		text := e.Text
		if e.indented {
			text = owner + " " + text
		}
		parser := dns.NewZoneParser(strings.NewReader(text+"\n"), origin, e.File)
		parser.SetDefaultTTL(30)
		for record, more := parser.Next(); more; record, more = parser.Next() {
			owner = record.Header().Name
			r.record(e.Line, record)
		}
		if err := parser.Err(); err != nil {
			r.Leave(e.Line, "it is no record: %v", err)
			if !e.indented {
				owner = absolute(words[0], origin)
			}
		}
	}
}

func absolute(name, origin string) string {
	if dns.IsFqdn(name) {
		return name
	}
	return name + "." + origin
}

// record is an address, an alias, or a name of an address; the server's own records go with it.
func (r *reader) record(at draft.Line, record dns.RR) {
	host := strings.ToLower(strings.TrimSuffix(record.Header().Name, "."))
	unplaced := dns.IsSubDomain(nowhere, record.Header().Name)
	switch rr := record.(type) {
	case *dns.SOA:
		r.apex = record.Header().Name
		return
	case *dns.NS:
		if r.apex != "" && !strings.EqualFold(record.Header().Name, r.apex) { // a delegation (RFC 1034 §4.2.1)
			r.Leave(at, "what is below %s is another server's: DNS asks networkConfig.dnsServers for it, which must know that server", host)
		}
		return
	case *dns.A:
		if ip, ok := netip.AddrFromSlice(rr.A.To4()); ok && !unplaced {
			r.Names = append(r.Names, draft.Name{Line: at, Host: host, IP: ip})
			return
		}
	case *dns.AAAA:
		if ip, ok := netip.AddrFromSlice(rr.AAAA.To16()); ok && !unplaced {
			r.Names = append(r.Names, draft.Name{Line: at, Host: host, IP: ip})
			return
		}
	case *dns.CNAME:
		if !unplaced {
			r.Aliases = append(r.Aliases, draft.Alias{Line: at, Host: host, Of: strings.ToLower(strings.TrimSuffix(rr.Target, "."))})
			return
		}
	case *dns.PTR:
		if ip, ok := reversed(host); ok {
			r.Reverses = append(r.Reverses, draft.Name{Line: at, Host: strings.ToLower(strings.TrimSuffix(rr.Ptr, ".")), IP: ip})
			return
		}
	}
	if unplaced {
		r.Leave(at, "its name is not whole, and nothing says the zone: give named.conf too, with --bind, or write $ORIGIN into the file")
		return
	}
	r.Leave(at, "DNS has addresses of names only, no %s records", dns.TypeToString[record.Header().Rrtype])
}

// reversed is the address that a name below in-addr.arpa or ip6.arpa stands for (RFC 1035 §3.5, RFC 3596 §2.5).
func reversed(host string) (netip.Addr, bool) {
	digits, four := strings.CutSuffix(host, ".in-addr.arpa")
	nibbles, six := strings.CutSuffix(host, ".ip6.arpa")
	parts := strings.Split(digits, ".")
	if six {
		parts = strings.Split(nibbles, ".")
	}
	slices.Reverse(parts)
	text := strings.Join(parts, ".")
	if six {
		text = ""
		for quad := range slices.Chunk(parts, 4) {
			text += ":" + strings.Join(quad, "")
		}
		text = strings.TrimPrefix(text, ":")
	}
	ip, err := netip.ParseAddr(text)
	return ip, err == nil && (four && ip.Is4() || six && ip.Is6())
}
