package leasefile

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
)

// dhcpd reads ISC dhcpd's dhcpd.leases (dhcpd.leases(5)): declarations "lease ADDRESS { statement; … }", of which the last one for an address
// counts. Of all else, a whole block or statement is passed over.
func dhcpd(content string) ([]Entry, []Problem) {
	s := &scanner{text: content, line: 1}
	var found last
	for {
		line, words, end := s.statement()
		switch {
		case end == 0 && len(words) > 0:
			found.skip(line, "the file ends in a statement: %s", strings.Join(words, " "))
			return found.all()
		case end == 0:
			return found.all()
		case end == '{' && len(words) == 2 && words[0] == "lease":
			found.dhcpdLease(line, words[1], s)
		case end == '{':
			s.skipBlock()
		}
	}
}

func (l *last) dhcpdLease(line int, address string, s *scanner) {
	e := Entry{Line: line}
	ip, known := l.ipv4(line, address)
	e.IP = ip
	mac, state, ends := "", "", ""
	for {
		_, words, end := s.statement()
		if end == 0 {
			l.skip(line, "the file ends in the lease of %s", address)
			return
		}
		if end == '}' {
			break
		}
		if end == '{' { // "on expiry { … }"
			s.skipBlock()
			continue
		}
		switch said := strings.Join(words, " "); {
		case strings.HasPrefix(said, "hardware ethernet "):
			mac = words[2]
		case strings.HasPrefix(said, "binding state "):
			state = words[2]
		case strings.HasPrefix(said, "client-hostname ") && len(words) == 2:
			e.Hostname = label(words[1])
		case strings.HasPrefix(said, "uid ") && len(words) == 2:
			e.ClientID = uid(words[1])
		case strings.HasPrefix(said, "ends "):
			ends = strings.TrimPrefix(said, "ends ")
		}
	}
	if known {
		l.dhcpdEntry(e, mac, state, ends)
	}
}

func (l *last) dhcpdEntry(e Entry, mac, state, ends string) {
	if state != "active" {
		e.Over = state
	}
	var identified bool
	if e.Client, identified = client(mac, e.ClientID); !identified && e.Over == "" {
		l.skip(e.Line, "%s has neither an Ethernet address nor a client identifier", e.IP)
		return
	}
	var err error
	if e.Ends, err = dhcpdTime(ends); err != nil && e.Over == "" {
		l.skip(e.Line, "the lease of %s: %v", e.IP, err)
		return
	}
	l.say(e)
}

// dhcpdTime reads "never", "epoch SECONDS", or day of the week, date and time in UTC.
func dhcpdTime(text string) (time.Time, error) {
	if text == "never" {
		return time.Time{}, nil
	}
	if seconds, is := strings.CutPrefix(text, "epoch "); is {
		at, err := strconv.ParseInt(seconds, 10, 64)
		return time.Unix(at, 0).UTC(), err
	}
	if len(text) < 2 {
		return time.Time{}, fmt.Errorf("it has no statement \"ends\"")
	}
	return time.Parse("2006/01/02 15:04:05", text[2:])
}

// uid is a client identifier as it was written: as octets in hex, or as a string.
func uid(word string) string {
	if hex := octets(word); hex != "" && strings.Contains(word, ":") {
		return hex
	}
	return lease.Hex([]byte(word))
}

// scanner reads statements. A word is a string in quotes, whose octets may be escaped, or all up to white space, ";", "{", "}" or "#".
type scanner struct {
	text string
	line int
}

// statement are the words up to ";", "{" or "}", which is end; 0 is the end of the file. line is that of the first word.
func (s *scanner) statement() (line int, words []string, end byte) {
	for {
		s.space()
		if s.text == "" {
			return line, words, 0
		}
		if line == 0 {
			line = s.line
		}
		switch c := s.text[0]; c {
		case ';', '{', '}':
			s.text = s.text[1:]
			return line, words, c
		case '"':
			words = append(words, s.quoted())
		default:
			n := strings.IndexAny(s.text, " \t\r\n;{}\"#")
			if n < 0 {
				n = len(s.text)
			}
			words = append(words, s.text[:n])
			s.text = s.text[n:]
		}
	}
}

// space passes over white space and comments.
func (s *scanner) space() {
	for s.text != "" {
		switch s.text[0] {
		case '\n':
			s.line++
		case ' ', '\t', '\r':
		case '#':
			if n := strings.IndexByte(s.text, '\n'); n >= 0 {
				s.text = s.text[n:]
			} else {
				s.text = ""
			}
			continue
		default:
			return
		}
		s.text = s.text[1:]
	}
}

// quoted reads a string; \ooo is an octet in octal, and any other escaped character is itself.
func (s *scanner) quoted() string {
	var out []byte
	for s.text = s.text[1:]; s.text != ""; s.text = s.text[1:] {
		c := s.text[0]
		switch {
		case c == '"':
			s.text = s.text[1:]
			return string(out)
		case c == '\n':
			s.line++
		case c == '\\' && len(s.text) >= 4:
			if octet, err := strconv.ParseUint(s.text[1:4], 8, 8); err == nil {
				out, s.text = append(out, byte(octet)), s.text[3:]
				continue
			}
			s.text, c = s.text[1:], s.text[1]
		}
		out = append(out, c)
	}
	return string(out)
}

// skipBlock passes over what follows "{", up to its "}".
func (s *scanner) skipBlock() {
	for depth := 1; depth > 0; {
		switch _, _, end := s.statement(); end {
		case '{':
			depth++
		case '}':
			depth--
		case 0:
			return
		}
	}
}
