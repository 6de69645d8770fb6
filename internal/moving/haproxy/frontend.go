package haproxy

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/cldmnky/oooi/internal/moving/draft"
)

// rule leads connections for some server names, or for all, to a backend.
type rule struct {
	line
	backend string
	hosts   []string
}

// front is what a frontend says.
type front struct {
	ports    []int
	byName   map[string][]string // the server names of each acl
	rules    []rule
	fallback *rule
}

func (r *reader) frontend(s *section) {
	if s.off {
		r.Leave(s.Line, "it is disabled; all that stands in it is left, too")
		return
	}
	if s.http {
		r.Leave(s.Line, "it takes connections apart (mode http), and the proxy passes them on whole: by server name (TLS) or port; all that stands in it is left, too")
		return
	}
	f := front{byName: map[string][]string{}}
	own := false
	for _, l := range s.lines {
		switch {
		case l.is("bind") && len(l.words) > 1:
			f.ports = append(f.ports, r.bind(l)...)
			slices.Sort(f.ports)
			f.ports = slices.Compact(f.ports) // of several addresses
		case l.is("acl") && len(l.words) > 2:
			r.acl(&f, l)
		case l.is("use_backend") && len(l.words) > 2:
			r.useBackend(&f, l)
		case l.is("default_backend") && len(l.words) > 1:
			f.fallback = &rule{line: l, backend: l.words[1]}
		case l.is("server"):
			own = true
		default:
			r.other(l)
		}
	}
	if own {
		f.fallback = &rule{line: s.line, backend: s.name()}
	}
	r.forwards(s, f)
}

// bind are the ports of a line that lead into the proxy.
func (r *reader) bind(l line) (ports []int) {
	for i, option := range l.words[2:] {
		if option == "ssl" || option == "accept-proxy" {
			r.Leave(l.Line, "%s: the proxy does not terminate TLS, and passes on what it gets", strings.Join(l.words[2+i:], " "))
			return nil
		}
	}
	for address := range strings.SplitSeq(l.words[1], ",") {
		host, text := cutPort(address)
		port, err := strconv.Atoi(text)
		if err != nil || text[0] == '+' || port < 1 || port > 65535 {
			r.Leave(l.Line, "%s has no single port", address)
			continue
		}
		if a, err := netip.ParseAddr(strings.Trim(strings.TrimPrefix(strings.TrimPrefix(host, "ipv4@"), "ipv6@"), "[]")); err == nil && !a.IsUnspecified() {
			if a.IsLoopback() {
				r.Leave(l.Line, "%s is of the machine itself: the proxy listens on the VLAN", address)
				continue
			}
			r.Served = append(r.Served, draft.Served{Line: l.Line, By: draft.Forwarding, At: a})
		}
		ports = append(ports, port)
	}
	return ports
}

// cutPort splits an address at its last colon.
func cutPort(text string) (host, port string) {
	i := strings.LastIndex(text, ":")
	if i < 0 {
		return text, ""
	}
	return text[:i], text[i+1:]
}

// serverNames reads what is asked of the server name (SNI): for whole names, or for all below a domain.
func serverNames(words []string) (hosts []string, is bool) {
	if len(words) < 2 || words[0] != "req.ssl_sni" && words[0] != "req_ssl_sni" && words[0] != "ssl_fc_sni" {
		return nil, false
	}
	below := false
	for i := 1; i < len(words); i++ {
		switch w := words[i]; {
		case w == "-i" || w == "--":
		case w == "-m" && i+1 < len(words) && (words[i+1] == "end" || words[i+1] == "str"):
			below = words[i+1] == "end"
			i++
		case strings.HasPrefix(w, "-"):
			return nil, false
		case below:
			if !strings.HasPrefix(w, ".") {
				return nil, false
			}
			hosts = append(hosts, "*"+w)
		default:
			hosts = append(hosts, w)
		}
	}
	return hosts, len(hosts) > 0
}

func (r *reader) acl(f *front, l line) {
	hosts, is := serverNames(l.words[2:])
	if !is {
		r.Leave(l.Line, "the proxy chooses by whole server names, and by all below a domain (-m end .example.com), alone")
		return
	}
	f.byName[l.words[1]] = append(f.byName[l.words[1]], hosts...)
}

// useBackend has a condition of acls, or one in braces, or several of which one has to be met.
func (r *reader) useBackend(f *front, l line) {
	made := rule{line: l, backend: l.words[1]}
	var condition []string
	take := func() bool {
		hosts := []string(nil)
		is := false
		switch {
		case len(condition) > 2 && condition[0] == "{" && condition[len(condition)-1] == "}":
			hosts, is = serverNames(condition[1 : len(condition)-1])
		case len(condition) == 1:
			hosts, is = f.byName[condition[0]]
		}
		made.hosts, condition = append(made.hosts, hosts...), nil
		return is
	}
	known := l.words[2] == "if"
	for _, w := range l.words[3:] {
		if w == "||" || w == "or" {
			known = take() && known
			continue
		}
		condition = append(condition, w)
	}
	if known = take() && known; !known {
		r.Leave(l.Line, "the proxy chooses by server names alone (req.ssl_sni)")
		return
	}
	f.rules = append(f.rules, made)
}

func (r *reader) forwards(s *section, f front) {
	if len(f.ports) == 0 {
		r.Leave(s.Line, "it has no port that the proxy could listen on; all that stands in it is left, too")
		return
	}
	rules := f.rules
	switch {
	case f.fallback != nil && len(rules) > 0:
		r.Leave(f.fallback.Line, "the proxy refuses connections for other server names, where it chooses by these")
	case f.fallback != nil:
		rules = append(rules, *f.fallback)
	case len(rules) == 0:
		r.Leave(s.Line, "it leads to no backend")
	}
	for _, each := range rules {
		to := r.backend(each.backend)
		if to == nil {
			r.Leave(each.Line, "no file has the backend %s", each.backend)
			continue
		}
		if to.off {
			r.Leave(each.Line, "the backend %s is disabled", each.backend)
			continue
		}
		servers := r.servers(to)
		for _, port := range f.ports {
			at := each.Line
			if len(each.hosts) == 0 {
				at = s.Line
			}
			r.Forwards = append(r.Forwards, draft.Forward{Line: at, Name: each.backend, Port: port, Hosts: each.hosts, Targets: r.targets(servers, port)})
		}
	}
}

func (r *reader) backend(name string) *section {
	for _, s := range r.sections {
		if s.name() == name && (s.kind() == "backend" || s.kind() == "listen") {
			return s
		}
	}
	return nil
}
