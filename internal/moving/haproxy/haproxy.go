// Package haproxy reads configurations of HAProxy (its configuration manual, version 2.6).
package haproxy

import (
	"strings"

	"github.com/cldmnky/oooi/internal/moving/draft"
)

// line is a keyword with its arguments.
type line struct {
	draft.Line
	words []string
}

func (l line) is(words ...string) bool {
	if len(l.words) < len(words) {
		return false
	}
	for i, w := range words {
		if l.words[i] != w {
			return false
		}
	}
	return true
}

// section begins with its kind, and the name that others call it by.
type section struct {
	line
	lines []line
	// defaults that it has; nil without any.
	defaults *section
	// http says that it takes connections apart, and off that nothing goes through it (configuration manual §4.2, mode and disabled).
	http, off bool
	// used says that the proxy passes something on to it.
	used bool
}

func (s section) kind() string { return s.words[0] }

func (s section) name() string {
	if len(s.words) > 1 {
		return s.words[1]
	}
	return ""
}

// from is the name of the defaults that a section has, if it says so (configuration manual §4).
func (s section) from() (name string, says bool) {
	for i := 1; i+1 < len(s.words); i++ {
		if s.words[i] == "from" {
			return s.words[i+1], true
		}
	}
	return "", false
}

// kinds of sections (configuration manual §2.1).
var kinds = map[string]bool{
	"global": true, "defaults": true, "frontend": true, "backend": true, "listen": true, "peers": true, "resolvers": true, "userlist": true, "cache": true,
	"mailers": true, "program": true, "http-errors": true, "ring": true, "log-forward": true, "fcgi-app": true,
}

// reader reads the files of one server.
type reader struct {
	*draft.Site
	sections []*section
}

// Read adds what files say.
func Read(site *draft.Site, files []draft.File) {
	r := &reader{Site: site}
	for _, file := range files {
		r.split(file)
	}
	for _, s := range r.sections {
		switch s.kind() {
		case "global", "defaults":
			for _, l := range s.lines {
				r.other(l)
			}
		case "frontend", "listen":
			r.frontend(s)
		case "backend":
		default:
			r.Leave(s.Line, "an Infra has nothing like it; all that stands in it is left, too")
		}
	}
	for _, s := range r.sections {
		if s.kind() == "backend" && !s.used {
			r.Leave(s.Line, "nothing that the Infra passes on leads here; all that stands in it is left, too")
		}
	}
}

// split finds the sections. One whose mode is not said has that of the defaults that it names after from, else of the defaults before it (configuration
// manual §4). No branch of a conditional block (§2.4) is read: it depends on the process.
func (r *reader) split(file draft.File) {
	number := 0
	var last *section
	depth := 0
	named := map[string]*section{}
	for whole := range strings.Lines(file.Text) {
		number++
		words := split(whole)
		if len(words) == 0 {
			continue
		}
		l := line{draft.Line{File: file.Name, Number: number, Text: strings.Join(words, " ")}, words}
		switch {
		case words[0] == ".if":
			if depth++; depth == 1 {
				r.Leave(l.Line, "whether this holds is decided where HAProxy starts; all up to its .endif is left, too: give the file as it is with one of the branches alone")
			}
			continue
		case words[0] == ".endif":
			depth = max(depth-1, 0)
			continue
		case depth > 0 || strings.HasPrefix(words[0], "."): // others print a message
			continue
		case kinds[words[0]]:
			s := &section{line: l, defaults: last}
			if from, is := s.from(); is || s.kind() == "defaults" {
				s.defaults = named[from]
			}
			if s.defaults != nil {
				s.http, s.off = s.defaults.http, s.defaults.off
			}
			if r.sections = append(r.sections, s); s.kind() == "defaults" {
				last, named[s.name()] = s, s
			}
			continue
		case len(r.sections) == 0:
			r.Leave(l.Line, "it stands in no section")
			continue
		}
		r.sections[len(r.sections)-1].add(l)
	}
}

func (s *section) add(l line) {
	switch {
	case l.is("mode") && len(l.words) > 1:
		s.http = l.words[1] == "http"
	case l.is("disabled"), l.is("enabled"):
		s.off = l.is("disabled")
	}
	s.lines = append(s.lines, l)
}

// split are the words of a line: between blanks that are neither quoted nor escaped, and before a comment (configuration manual §2.2).
func split(text string) (words []string) {
	var word strings.Builder
	quote, begun := byte(0), false
	end := func() {
		if begun {
			words = append(words, word.String())
		}
		word.Reset()
		begun = false
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && quote != '\'' && i+1 < len(text):
			i++
			word.WriteByte(text[i])
			begun = true
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, begun = c, true
		case quote == 0 && c == '#':
			end()
			return words
		case quote == 0 && (c == ' ' || c == '\t' || c == '\n' || c == '\r'):
			end()
		default:
			word.WriteByte(c)
			begun = true
		}
	}
	end()
	return words
}

// withoutEffect are about the process and its log, of HTTP that is not read, or say what the proxy does anyway.
var withoutEffect = map[string]bool{
	"log": true, "chroot": true, "user": true, "group": true, "uid": true, "gid": true, "daemon": true, "maxconn": true, "pidfile": true, "stats": true, "nbthread": true,
	"nbproc": true, "cpu-map": true, "ulimit-n": true, "master-worker": true, "ca-base": true, "crt-base": true, "ssl-default-bind-ciphers": true,
	"ssl-default-bind-ciphersuites": true, "ssl-default-bind-options": true, "ssl-default-server-ciphers": true, "ssl-default-server-options": true,
	"ssl-dh-param-file": true, "mode": true, "balance roundrobin": true, "option httplog": true, "option tcplog": true, "option dontlognull": true,
	"option http-server-close": true, "option forwardfor": true, "option redispatch": true, "option httpclose": true, "option http-keep-alive": true, "retries": true,
	"errorfile": true, "timeout http-request": true, "timeout http-keep-alive": true, "timeout queue": true, "timeout check": true, "option tcpka": true,
	"tcp-request inspect-delay": true, "description": true, "disabled": true, "enabled": true, "option dontlog-normal": true, "option log-health-checks": true,
}

// says is what to do about others, where there is more to say than that there is nothing like it.
var says = map[string]string{
	"timeout":        "the proxy has times of its own, and closes a connection when one of its sides does",
	"balance":        "the proxy gives each target its turn",
	"option":         "the proxy checks its targets by connecting to them",
	"http-check":     "the proxy checks its targets by connecting to them",
	"tcp-check":      "the proxy checks its targets by connecting to them",
	"default-server": "the proxy checks its targets by connecting to them, and passes on connections as they are",
}

func (r *reader) other(l line) {
	both := l.words[0]
	if len(l.words) > 1 {
		both += " " + l.words[1]
	}
	// the proxy reads a ClientHello before it passes a connection on
	hello := l.is("tcp-request", "content", "accept", "if", "{", "req_ssl_hello_type", "1", "}") || l.is("tcp-request", "content", "accept", "if", "{", "req.ssl_hello_type", "1", "}")
	if hello || withoutEffect[l.words[0]] || withoutEffect[both] || strings.HasPrefix(both, "tune.") {
		return
	}
	why := says[l.words[0]]
	if why == "" {
		why = "an Infra has nothing like it"
	}
	r.Leave(l.Line, "%s", why)
}
