//go:build netns

package cmd

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sample is an example that a peer's Debian package installs. Most of its statements are comments, which all are taken out.
type sample struct {
	flag, file string
	// comment is before a statement that is a comment.
	comment *regexp.Regexp
	// statement is a line that can be left out.
	statement *regexp.Regexp
	// silent are the statements that have no effect, and of which nothing has to be said.
	silent []string
}

var (
	anyLine = regexp.MustCompile(`^[^#\s]`)
	inside  = regexp.MustCompile(`^\s+[^#\s]`)
	ended   = regexp.MustCompile(`^[^#}]*;`)
	scalar  = regexp.MustCompile(`^\s*"[^"]+": *("[^"]*"|[^"\[{]+)$`)
)

var samples = []sample{
	{"dnsmasq", "/usr/share/doc/dnsmasq-base/examples/dnsmasq.conf.example", regexp.MustCompile(`^#([a-z][a-z0-9-]*(=.*)?)$`), anyLine, []string{
		"bind-interfaces", "cache-size", "dhcp-leasefile", "except-interface", "group", "interface", "listen-address", "log-dhcp", "log-queries", "no-dhcp-interface",
		"no-negcache", "no-poll", "user",
	}},
	{"isc-dhcpd", "/usr/share/doc/isc-dhcp-server/examples/dhcpd.conf.example", regexp.MustCompile(`^#(\S.*[;{}]|  .*|})$`), ended, []string{"ddns-update-style", "log-facility"}},
	{"kea", "/etc/kea/kea-dhcp4.conf", nil, scalar, []string{
		"flush-reclaimed-timer-wait-time", "hold-reclaimed-time", "lfc-interval", "max-reclaim-leases", "max-reclaim-time", "reclaim-timer-wait-time",
		"socket-name", "unwarned-reclaim-cycles", "debuglevel",
	}},
	{"bind", "/etc/bind/named.conf.options", regexp.MustCompile(`^\t// (.*;|\s.*;|forwarders \{)$`), ended, []string{"directory", "listen-on-v6"}},
	{"haproxy", "/etc/haproxy/haproxy.cfg", nil, inside, []string{
		"ca-base", "chroot", "crt-base", "daemon", "errorfile", "group", "log", "option", "ssl-default-bind-ciphers", "ssl-default-bind-ciphersuites",
		"ssl-default-bind-options", "stats", "user", "mode",
	}},
}

// Nothing of an example is lost in silence: without a statement, another Infra is printed or something else is said; or it stands in a block
// of which it is said that all of it is left; or it is one of those that are known to mean nothing here.
func TestEveryStatementOfASampleIsCarriedOrTold(t *testing.T) {
	for _, s := range samples {
		t.Run(s.flag, func(t *testing.T) {
			text, err := os.ReadFile(s.file)
			if err != nil {
				t.Fatalf("%v: install the package (make test does)", err)
			}
			lines := strings.Split(string(text), "\n")
			for i, line := range lines {
				if s.comment != nil {
					lines[i] = s.comment.ReplaceAllString(line, "$1")
				}
			}
			whole := importsText(s.flag, lines)
			silent, read := map[string]bool{}, 0
			for i, line := range lines {
				if !s.statement.MatchString(line) || strings.HasPrefix(strings.TrimSpace(line), "//") {
					continue
				}
				read++
				without := importsText(s.flag, slices.Concat(lines[:i], []string{""}, lines[i+1:]))
				if without == whole && !within(lines, i, whole) && !s.counts(line) {
					word := regexp.MustCompile(`[\w-]+`).FindString(line)
					silent[word] = true
					if !slices.Contains(s.silent, word) {
						t.Errorf("%s:%d: nothing is made or said of %q", s.file, i+1, line)
					}
				}
			}
			t.Logf("%d statements", read)
			if diff := cmp.Diff(s.silent, slices.DeleteFunc(slices.Clone(s.silent), func(w string) bool { return !silent[w] })); diff != "" {
				t.Errorf("these are not silent, or not in the example: take them out of the list\n%s", diff)
			}
		})
	}
}

// oneSubnet is a beginning for statements that say what another one says in the example.
const oneSubnet = "dhcp-range=192.168.0.50,192.168.0.150,255.255.255.0,12h"

// counts says whether a line of dnsmasq's, each of which is whole, says something alone or beside a range.
func (s sample) counts(line string) bool {
	return s.flag == "dnsmasq" && (importsText(s.flag, []string{line}) != importsText(s.flag, nil) ||
		importsText(s.flag, []string{oneSubnet, line}) != importsText(s.flag, []string{oneSubnet}))
}

// importsText is all that import prints of a text.
func importsText(flag string, lines []string) string {
	infra, said, err := imported(strings.Join(lines, "\n"), "--"+flag, "-")
	return fmt.Sprint(infra, said, err)
}

// within says whether a statement stands, by its indentation, in one that is left.
func within(lines []string, at int, said string) bool {
	indent := func(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }
	depth := indent(lines[at])
	for i := at - 1; i >= 0 && depth > 0; i-- {
		if strings.TrimSpace(lines[i]) == "" || indent(lines[i]) >= depth {
			continue
		}
		depth = indent(lines[i])
		if strings.Contains(said, fmt.Sprintf("-:%d: ", i+1)) {
			return true
		}
	}
	return false
}
