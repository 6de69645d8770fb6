// Package leasefile reads the lease files of dnsmasq, ISC dhcpd and Kea, and what `oooi leases export` writes.
package leasefile

import (
	"fmt"
	"iter"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
)

// Entry is what a file says last of one address.
type Entry struct {
	Line   int
	IP     netip.Addr
	Client lease.Client
	// ClientID is option 61 in hex with colons; empty if the file has none.
	ClientID string
	// Hostname is one label in lower case; empty if the file has none, or one that is no label.
	Hostname string
	// Since is when its client got the address; zero where the file does not say.
	Since time.Time
	// Ends is when the lease ends; zero: never.
	Ends time.Time
	// VM says that a virtual machine of oooi's has it, after Ends too.
	VM bool
	// Over says why nobody has the address any more; empty if its lease stands until Ends.
	Over string
}

// Problem is a line that could not be read.
type Problem struct {
	Line int
	Says string
}

// Kinds are the formats, by the name of who writes them.
var Kinds = map[string]func(content string) ([]Entry, []Problem){"dnsmasq": dnsmasq, "isc-dhcpd": dhcpd, "kea": kea, "oooi": ours}

// Names of the formats, sorted.
func Names() []string { return slices.Sorted(maps.Keys(Kinds)) }

// last keeps what a file says last of each address: all three formats may say more than one thing, and the last one counts.
type last struct {
	entries  map[netip.Addr]Entry
	problems []Problem
}

func (l *last) say(e Entry) {
	if l.entries == nil {
		l.entries = map[netip.Addr]Entry{}
	}
	l.entries[e.IP] = e
}

func (l *last) skip(line int, format string, args ...any) {
	l.problems = append(l.problems, Problem{line, fmt.Sprintf(format, args...)})
}

func (l *last) all() ([]Entry, []Problem) {
	return slices.SortedFunc(maps.Values(l.entries), func(a, b Entry) int { return a.IP.Compare(b.IP) }), l.problems
}

// ipv4 reads an address; false: it is none, or not one of IPv4, and the line was told.
func (l *last) ipv4(line int, text string) (netip.Addr, bool) {
	ip, err := netip.ParseAddr(text)
	switch {
	case err != nil:
		l.skip(line, "%q is no address", text)
	case !ip.Is4():
		l.skip(line, "%s is IPv6: oooi leases IPv4 addresses only", ip)
	}
	return ip, err == nil && ip.Is4()
}

// identify sets the key that oooi would know the client by: its hardware address, or else its client identifier. False: there is neither, though
// somebody has the address, and the line was told.
func (l *last) identify(e *Entry, mac string) bool {
	if hardware, err := net.ParseMAC(mac); err == nil {
		e.Client = lease.Client{MAC: lease.ClientOf(1, hardware, nil).MAC}
	}
	if e.Client.MAC == "" {
		e.Client = lease.Client{ID: e.ClientID}
	}
	if !e.Client.Known() && e.Over == "" {
		l.skip(e.Line, "%s has neither an Ethernet address nor a client identifier", e.IP)
		return false
	}
	return true
}

// lines numbers the lines of a file, from 1.
func lines(content string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		number := 0
		for text := range strings.Lines(content) {
			if number++; !yield(number, strings.TrimRight(text, "\r\n")) {
				return
			}
		}
	}
}

// octets reads octets in hex with colons, as clients' identifiers are written; empty if it is none.
func octets(text string) string {
	text = strings.ToLower(text)
	for _, pair := range strings.Split(text, ":") {
		if len(pair) != 2 || strings.Trim(pair, "0123456789abcdef") != "" {
			return ""
		}
	}
	return text
}

// label is the first label of a host name, if names of DNS may have it.
func label(name string) string {
	first, _, _ := strings.Cut(strings.ToLower(name), ".")
	if len(validation.IsDNS1123Label(first)) > 0 {
		return ""
	}
	return first
}
