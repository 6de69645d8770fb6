package bind

import (
	"net/netip"
	"strings"

	"github.com/cldmnky/oooi/internal/moving/braces"
)

// outcome is what an address match list says of clients; several, if that differs among them or depends on what no file says.
type outcome int

const (
	admitted outcome = 1 << iota
	refused
	unmatched
	// divided says that a part of them is to be asked about at a time.
	divided
)

// matcher evaluates address match lists, of which the first element that matches counts (BIND 9.18 manual, address_match_list).
type matcher struct {
	acls map[string][]braces.Statement
	// said has the outcome of each for the network that is asked about.
	said map[string]outcome
	// unsure is what cannot be decided.
	unsure *braces.Statement
}

// clients says what a list does with those of a network.
func (m *matcher) clients(list []braces.Statement, network netip.Prefix) outcome {
	m.said = map[string]outcome{}
	said := m.match(list, network)
	if said&divided == 0 {
		return said
	}
	lower, upper := halves(network)
	return m.clients(list, lower) | m.clients(list, upper)
}

func halves(of netip.Prefix) (lower, upper netip.Prefix) {
	bit, octets := of.Bits(), of.Masked().Addr().AsSlice()
	octets[bit/8] |= 1 << (7 - bit%8)
	second, _ := netip.AddrFromSlice(octets)
	return netip.PrefixFrom(of.Masked().Addr(), bit+1), netip.PrefixFrom(second, bit+1)
}

func (m *matcher) match(list []braces.Statement, network netip.Prefix) (said outcome) {
	for _, s := range list {
		of := m.element(s, network)
		said |= of &^ unmatched
		if of&(unmatched|divided) != unmatched {
			return said
		}
	}
	return said | unmatched
}

// element says what one does. What a list refuses, another one in which it stands goes on about, negated or not (lib/dns/acl.c, dns_aclelement_match).
func (m *matcher) element(s braces.Statement, network netip.Prefix) outcome {
	matches, words := admitted, s.Words
	if text, negated := strings.CutPrefix(words[0].Text, "!"); negated && !words[0].Quoted {
		matches, words = refused, append([]braces.Word{{Text: text}}, words[1:]...)
		if text == "" {
			words = words[1:]
		}
	}
	var inner outcome
	switch {
	case s.Opens:
		inner = m.match(s.Block, network)
	case len(words) != 1:
		inner = m.undecided(s) // a key, or what GeoIP says
	case strings.EqualFold(words[0].Text, "none"): // !any
		return admitted ^ refused ^ matches
	default:
		inner = m.named(s, strings.ToLower(words[0].Text), network)
	}
	said := inner & divided
	if inner&admitted != 0 {
		said |= matches
	}
	if inner&(refused|unmatched) != 0 {
		said |= unmatched
	}
	return said
}

func (m *matcher) undecided(s braces.Statement) outcome {
	m.unsure = &s
	return admitted | unmatched
}

// named is what an address, a network or the name of a list means. The machine, which is on the VLAN, goes, and its own addresses with it.
func (m *matcher) named(s braces.Statement, text string, network netip.Prefix) outcome {
	switch at, is := prefix(text); {
	case text == "any", text == "localnets":
		return admitted
	case text == "localhost":
		return unmatched
	case is && at.Bits() <= network.Bits() && at.Contains(network.Addr()):
		return admitted
	case is && at.Overlaps(network):
		return divided
	case is:
		return unmatched
	}
	list, is := m.acls[text]
	if !is {
		return m.undecided(s)
	}
	switch said, is := m.said[text]; {
	case is && said == 0: // it has itself, which named refuses
		return m.undecided(s)
	case is:
		return said
	}
	m.said[text] = 0
	m.said[text] = m.match(list, network)
	return m.said[text]
}

// prefix is an address or a network, whose last octets may be left out (BIND 9.18 manual, netprefix).
func prefix(text string) (netip.Prefix, bool) {
	address, bits, is := strings.Cut(text, "/")
	if !is {
		at, err := netip.ParseAddr(address)
		return netip.PrefixFrom(at, at.BitLen()), err == nil
	}
	if !strings.Contains(address, ":") {
		address += strings.Repeat(".0", max(3-strings.Count(address, "."), 0))
	}
	at, err := netip.ParsePrefix(address + "/" + bits)
	return at, err == nil && at == at.Masked()
}
