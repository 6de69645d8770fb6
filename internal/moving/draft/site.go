// Package draft makes an Infra of what the configurations of other servers say, and lists what an Infra has no place for.
package draft

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Line is a statement of a file.
type Line struct {
	File string
	// Number of the line on which the statement begins, from 1.
	Number int
	// Text of the statement.
	Text string
}

// longest text of a statement that is repeated in a report; in full it stands in the file.
const longest = 100

// String is where the statement stands, and what it says.
func (l Line) String() string {
	text := strings.Join(strings.Fields(l.Text), " ")
	if len(text) > longest {
		text = text[:longest] + "…"
	}
	return fmt.Sprintf("%s: %s", l.Where(), text)
}

// Where is FILE:LINE.
func (l Line) Where() string { return fmt.Sprintf("%s:%d", l.File, l.Number) }

// File is a configuration, or a part of one.
type File struct {
	Name, Text string
	// Tree has what it may include without being asked for; nil of standard input.
	Tree *Tree
	// Within is its path in the tree.
	Within string
	// by includes it, and depth others do.
	by    *File
	depth int
}

// Left is a statement, or a part of one, that the Infra does not have.
type Left struct {
	Line
	// Why, and what to do about it.
	Why string
}

// String is FILE:LINE: STATEMENT: WHY.
func (l Left) String() string { return l.Line.String() + ": " + l.Why }

// Site is what the files of a network's servers say.
type Site struct {
	// VLAN is the network of the given Infra; zero if that does not say it.
	VLAN         netip.Prefix
	Subnets      []Subnet
	Options      []Option // for the clients of all subnets
	Lease        *Lease
	Reservations []Reservation
	OnlyKnown    []Line // clients without a reservation are not served
	// Served are the addresses at which the servers listened.
	Served    []Served
	Names     []Name
	Aliases   []Alias
	Reverses  []Name
	Zones     []Name // whose every name a server knew
	Upstreams []Upstream
	Forwards  []Forward
	// Resolves says that one of the files configures a DNS server.
	Resolves bool
	// ReadsHosts is of a DNS server that answers the names of a hosts file; HasHosts says that one is among the files.
	ReadsHosts *Line
	HasHosts   bool
	Left       []Left
	Unread     []Line // those of Left that are not read
	begun      map[string]bool
}

// Subnet is a network with the addresses that are leased in it.
type Subnet struct {
	Line
	Prefix  netip.Prefix // zero if the file does not say it
	Within  netip.Addr   // an address of it
	Ranges  []Range
	Options []Option
	Shared  []Option // of the shared network that it is in
	Lease   *Lease
	Relays  []Served
	// OnlyKnown clients are served here.
	OnlyKnown []Line
}

// leases says whether it has addresses that an Infra may lease, too.
func (s Subnet) leases() bool {
	return slices.ContainsFunc(s.Ranges, func(r Range) bool { return r.Of != Some })
}

// Network is the VLAN's: the given Infra's, or the first subnet's.
func (s *Site) Network() netip.Prefix {
	if first := s.first(); first != nil && !s.VLAN.IsValid() {
		return first.Prefix
	}
	return s.VLAN
}

// first is the first subnet with addresses to lease, or else the first one; nil if no file says its network.
func (s *Site) first() *Subnet {
	for _, leasing := range []bool{true, false} {
		for i, subnet := range s.Subnets {
			if subnet.Prefix.IsValid() && (!leasing || subnet.leases()) {
				return &s.Subnets[i]
			}
		}
	}
	return nil
}

// Padded is hex with two digits an octet, in lower case; servers take one.
func Padded(octets string) string {
	parts := strings.Split(strings.ToLower(octets), ":")
	for i, p := range parts {
		if len(p) == 1 {
			parts[i] = "0" + p
		}
	}
	return strings.Join(parts, ":")
}

// Range of addresses, including both ends.
type Range struct {
	Line
	First, Last netip.Addr
	Of          Clients
}

// Clients are those to whom a range is leased.
type Clients int

// Known clients have a reservation; who some are, an Infra cannot say.
const (
	Anybody Clients = iota
	Known
	Some
)

// Lease is how long an address is leased.
type Lease struct {
	Line
	Time time.Duration
}

// Option of DHCP. Form is the encoding of its value, as v1alpha1.DHCPOption has it; for a code of the registry it is not asked for.
type Option struct {
	Line
	Code   int
	Form   string
	Values []string
	Raw    bool // the form is as Form says, whatever the code
}

// Reservation is an address for one client, by its address, or by a name that has it.
type Reservation struct {
	Line
	MAC, ClientID, Host string
	IP                  netip.Addr
	Name                string
}

// Service is one of the three that an Infra has.
type Service int

// What listened at an address.
const (
	Leasing Service = iota
	Naming
	Forwarding
)

// Served is an address of a server.
type Served struct {
	Line
	By Service
	At netip.Addr
}

// Name is an address of a name, which has no dot at its end and may begin with "*.".
type Name struct {
	Line
	Host string
	IP   netip.Addr
}

// Alias is another name of a host.
type Alias struct {
	Line
	Host, Of string
}

// Upstream is a resolver of all names that are not known.
type Upstream struct {
	Line
	IP netip.Addr
}

// Forward passes on what arrives at a port, of connections for these server names if there are any.
type Forward struct {
	Line
	Name    string
	Port    int
	Hosts   []string
	Targets []Target
}

// Target is an address, or a name that has one, and a port.
type Target struct {
	Line
	Host string
	Port int
}

// Begins says of a file that is about to be read whether it is for the first time, under whatever name. Standard input always is.
func (s *Site) Begins(file File) bool {
	at := file.path()
	if at == "" || s.begun[at] {
		return at == ""
	}
	if s.begun == nil {
		s.begun = map[string]bool{}
	}
	s.begun[at] = true
	return true
}

// Leave lists what the Infra does not have.
func (s *Site) Leave(at Line, format string, args ...any) {
	s.Left = append(s.Left, Left{at, fmt.Sprintf(format, args...)})
}

// HostRecord adds a name, and gives its address its first one in return, as dnsmasq does for host-records, and then for hosts files.
func (s *Site) HostRecord(at Line, name string, ip netip.Addr) {
	n := Name{Line: at, Host: strings.ToLower(strings.TrimSuffix(name, ".")), IP: ip}
	s.Names = append(s.Names, n)
	if !slices.ContainsFunc(s.Reverses, func(r Name) bool { return r.IP == n.IP }) {
		s.Reverses = append(s.Reverses, n)
	}
}

// Address sets what a file says as an address: one, or a name that has one.
func (r *Reservation) Address(text string) {
	if ip, err := netip.ParseAddr(text); err == nil {
		r.IP = ip
		return
	}
	r.Name = text
}

// LastsElse sets the lease time of subnets of which nothing says it, as their server does.
func (s *Site) LastsElse(d time.Duration) {
	for i := range s.Subnets {
		if made := &s.Subnets[i]; made.Lease == nil && s.Lease == nil {
			made.Lease = &Lease{Line: made.Line, Time: d}
		}
	}
}
