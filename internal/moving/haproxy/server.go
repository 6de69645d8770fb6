package haproxy

import (
	"slices"
	"strconv"
	"strings"

	"github.com/cldmnky/oooi/internal/moving/draft"
)

// server is what a section passes connections on to. One whose port is relative is asked at the client's port and that many more (configuration manual
// §5.2, server <name> <address>[:[port]]).
type server struct {
	line
	host     string
	port     int
	relative bool
}

// targets are servers, for connections to a port of the proxy.
func (r *reader) targets(servers []server, port int) (all []draft.Target) {
	for _, s := range servers {
		at := s.port
		if s.relative {
			at += port
		}
		if at < 1 || at > 65535 {
			r.Leave(s.Line, "%s has no port %d, to which connections to port %d lead", s.words[2], at, port)
			continue
		}
		all = append(all, draft.Target{Line: s.Line, Host: s.host, Port: at})
	}
	return all
}

// servers of a section, whose other lines are reported once.
func (r *reader) servers(s *section) (all []server) {
	first := !s.used
	s.used = true
	var set []string
	if s.defaults != nil {
		set = s.defaults.given()
	}
	for _, l := range s.lines {
		if l.is("default-server") {
			set = change(set, l.words[1:])
		}
		if !l.is("server") {
			if first && s.kind() == "backend" {
				r.other(l)
			}
			continue
		}
		if to, is := r.server(l, set, first); is {
			all = append(all, to)
		}
	}
	return all
}

// unlike are options of a server that change what arrives there, or when (configuration manual §5.2).
var unlike = map[string]bool{
	"backup": true, "send-proxy": true, "send-proxy-v2": true, "send-proxy-v2-ssl": true, "send-proxy-v2-ssl-cn": true, "ssl": true, "disabled": true, "source": true,
	"socks4": true,
}

// change adds what options say to those that are set, unless one takes it back.
func change(set, options []string) []string {
	set = slices.Clone(set)
	for i, option := range options {
		of, taken := strings.CutPrefix(option, "no-")
		switch {
		case option == "weight":
			set = slices.DeleteFunc(set, func(o string) bool { return o == "weight 0" })
			if i+1 < len(options) && options[i+1] == "0" {
				set = append(set, "weight 0")
			}
		case option == "enabled":
			set = slices.DeleteFunc(set, func(o string) bool { return o == "disabled" })
		case taken:
			set = slices.DeleteFunc(set, func(o string) bool { return o == of })
		case unlike[option]:
			set = append(set, option)
		}
	}
	return set
}

// given are the options that default-server lines of a section and of its defaults give to servers behind them.
func (s *section) given() (set []string) {
	if s.defaults != nil {
		set = s.defaults.given()
	}
	for _, l := range s.lines {
		if l.is("default-server") {
			set = change(set, l.words[1:])
		}
	}
	return set
}

func (r *reader) server(l line, set []string, first bool) (s server, is bool) {
	tell := func(format string, args ...any) {
		if first {
			r.Leave(l.Line, format, args...)
		}
	}
	if len(l.words) < 3 {
		tell("it has no address")
		return s, false
	}
	options := l.words[3:]
	if set = change(set, options); len(set) > 0 {
		tell("%s: the proxy passes on connections as they are, to each target in turn", set[0])
		return s, false
	}
	for i, option := range options {
		switch {
		case i+1 == len(options):
		case option == "maxconn":
			tell("%s %s: the proxy passes on as many connections as come", option, options[i+1])
		case option == "weight" && options[i+1] != "1": // the default
			tell("%s %s: the proxy gives each target its turn", option, options[i+1])
		}
	}
	s = server{line: l}
	if s.host, s.port, s.relative, is = place(l.words[2]); !is {
		tell("%s is no address with a port, or without one for the client's", l.words[2])
	}
	return s, is
}

// place reads an address of a server, which is neither a socket nor of another family (configuration manual §11). Without a port, or with one that has a
// sign, it is relative to the client's.
func place(text string) (host string, port int, relative, is bool) {
	text = strings.TrimPrefix(strings.TrimPrefix(text, "ipv4@"), "ipv6@")
	if text == "" || strings.ContainsAny(text, "/@") {
		return "", 0, false, false
	}
	if strings.HasSuffix(text, "]") || !strings.Contains(text, ":") {
		return strings.Trim(text, "[]"), 0, true, true
	}
	host, number := cutPort(text)
	port, err := strconv.Atoi(number)
	relative = strings.HasPrefix(number, "+") || strings.HasPrefix(number, "-")
	return strings.Trim(host, "[]"), port, relative, err == nil && (relative || port > 0 && port <= 65535)
}
