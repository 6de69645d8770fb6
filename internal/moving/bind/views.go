package bind

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/cldmnky/oooi/internal/moving/braces"
)

// views reads the one that the VLAN's clients get, which is the only one if there is one, and lists the others.
func (r *reader) views(all []braces.Statement, m matcher) {
	all = slices.DeleteFunc(all, func(v braces.Statement) bool {
		if len(v.Words) < 3 || strings.EqualFold(v.Words[2].Text, "in") {
			return false
		}
		r.Leave(v.Line, "clients ask for names of class IN; all that stands in it is left, too")
		return true
	})
	at, why := 0, ""
	if len(all) > 1 {
		at, why = m.chosen(all, r.Network())
	}
	for i, v := range all {
		if i != at {
			r.Leave(v.Line, "%s; all that stands in this one is left", why)
			r.passOver(v)
		}
	}
	if at >= 0 && len(all) > 0 {
		r.view(all[at], all)
	}
}

// view reads one of all, whose options count before those of the server.
func (r *reader) view(v braces.Statement, all []braces.Statement) {
	if slices.ContainsFunc(v.Block, func(s braces.Statement) bool { return s.Is("forwarders") }) {
		r.general = nil
	}
	for _, s := range v.Block {
		if s.Unread == nil && s.Is("zone") && len(s.Words) > 1 {
			r.zone(inView(s, all))
		} else {
			r.option(s)
		}
	}
}

// inView is what another view says of a zone, if it is that one's (BIND 9.18 manual, in-view).
func inView(zone braces.Statement, all []braces.Statement) braces.Statement {
	for _, of := range zone.Block {
		for _, v := range all {
			if !of.Is("in-view") || len(of.Words) != 2 || len(v.Words) < 2 || v.Words[1].Text != of.Words[1].Text {
				continue
			}
			for _, s := range v.Block {
				if s.Is("zone") && len(s.Words) > 1 && strings.EqualFold(s.Words[1].Text, zone.Words[1].Text) {
					return s
				}
			}
		}
	}
	return zone
}

// passOver notes the zone files of a view that is not read.
func (r *reader) passOver(v braces.Statement) {
	for _, s := range v.Block {
		for _, inner := range s.Block {
			if s.Is("zone") && inner.Is("file") && len(inner.Words) > 1 {
				r.others = append(r.others, zone{Line: s.Line, file: r.path(inner.Words[1].Text)})
			}
		}
	}
}

const giveOne = "give a file with --bind that has only what stands in the view of the VLAN's clients, in place of this one"

// chosen is the view that clients of a network get, or -1, and why the others are not read. It is the first that has them (BIND 9.18 manual, view).
func (m *matcher) chosen(all []braces.Statement, network netip.Prefix) (at int, why string) {
	if !network.IsValid() {
		return -1, "no file says the network of the VLAN, by which its view is chosen: write networkConfig.cidr into an Infra, and give that with -f"
	}
	for i, v := range all {
		switch said := m.view(v.Block, network); {
		case said == admitted:
			return i, fmt.Sprintf("clients of %s get %s (%s)", network, v, v.Where())
		case said&admitted == 0:
		case m.unsure != nil:
			return -1, fmt.Sprintf("whether clients of %s get %s depends on %s (%s): %s", network, v, m.unsure, m.unsure.Where(), giveOne)
		default:
			return -1, fmt.Sprintf("some clients of %s get %s (%s), and some do not: %s", network, v, v.Where(), giveOne)
		}
	}
	return -1, fmt.Sprintf("no view is for clients of %s: %s", network, giveOne)
}

// view says whether one has the clients of a network.
func (m *matcher) view(block []braces.Statement, network netip.Prefix) outcome {
	said, more := admitted, (*braces.Statement)(nil)
	m.unsure = nil
	for _, s := range block {
		switch {
		case s.Unread != nil: // it may say whose the view is
			more = &s
		case s.Is("match-clients"):
			said = m.clients(s.Block, network)
		case s.Is("match-destinations") && len(s.Block) == 1 && s.Block[0].Is("any"):
		case s.Is("match-recursive-only", "no"), s.Is("match-recursive-only", "false"), s.Is("match-recursive-only", "0"):
		case s.Is("match-destinations"), s.Is("match-recursive-only"):
			more = &s
		}
	}
	if more != nil && said&admitted != 0 {
		said, m.unsure = said|unmatched, more
	}
	return said
}
