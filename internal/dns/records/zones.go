package records

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// zones is the tree of owned names as a map: every node by its full name, including empty non-terminals.
type zones struct {
	// apexes are the names where a zone begins: the cluster's domain, the parent of each wildcard, and each exact name, since the host of a
	// Route may be in a zone that is not ours.
	apexes map[string]bool
	nodes  map[string]*node
}

// node is the data of one name. The name of an empty node exists too (RFC 4592 §2.2.2).
type node struct {
	addrs []netip.Addr
	host  string // target of a PTR record
}

func newZones(domain string, records []Record, leases []Lease) zones {
	z := zones{apexes: map[string]bool{domain: true}, nodes: map[string]*node{domain: {}}}
	for _, r := range records {
		z.apexes[strings.TrimPrefix(r.Name, "*.")] = true
	}
	for _, r := range records {
		n := z.grow(r.Name)
		n.addrs = append(n.addrs, r.Addr)
	}
	for _, l := range leases {
		z.add(l, domain)
	}
	return z
}

// healthy is a node's addresses without those that are down, of a name that has others of the same family, and their TTL in seconds.
func (n *node) healthy(down map[netip.Addr]bool) (addrs []netip.Addr, ttl uint32) {
	if len(n.addrs) < 2 {
		return n.addrs, ownTTL
	}
	ttl = ownTTL
	for _, a := range n.addrs {
		lost, checked := down[a]
		if checked {
			ttl = checkedTTL
		}
		if !lost || !slices.ContainsFunc(n.addrs, func(other netip.Addr) bool { return other.Is4() == a.Is4() && !down[other] }) {
			addrs = append(addrs, a)
		}
	}
	return addrs, ttl
}

// grow finds or makes a node and the empty ones between it and its apex.
func (z *zones) grow(name string) *node {
	if z.nodes[name] == nil {
		z.nodes[name] = &node{}
		if up := parent(name); z.apexOf(up) != "" {
			z.grow(up)
		}
	}
	return z.nodes[name]
}

// find looks a name up by RFC 4592 §3.3.1: the name itself, else the wildcard of its closest encloser. The apex is empty if the name is not
// ours; the node is nil if the name is ours and does not exist.
func (z *zones) find(name string) (n *node, apex string) {
	apex = z.apexOf(name)
	if apex == "" {
		return nil, ""
	}
	if n = z.nodes[name]; n != nil {
		return n, apex
	}
	encloser := parent(name)
	for z.nodes[encloser] == nil {
		encloser = parent(encloser)
	}
	return z.nodes["*."+encloser], apex
}

// apexOf returns the longest apex that is a name or its ancestor, or nothing.
func (z *zones) apexOf(name string) string {
	for ; name != "."; name = parent(name) {
		if z.apexes[name] {
			return name
		}
	}
	return ""
}

// parent returns a name without its first label.
func parent(name string) string {
	next, end := dns.NextLabel(name, 0)
	if end {
		return "."
	}
	return name[next:]
}

func reverseName(addr netip.Addr) string {
	name, _ := dns.ReverseAddr(addr.String()) // fails only for an invalid address
	return name
}
