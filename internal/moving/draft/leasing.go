package draft

import (
	"cmp"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/plan/desired"
	"github.com/cldmnky/oooi/internal/valid"
)

// Lengths of an Infra's lists, as its schema bounds them.
const (
	mostReservations, mostExclusions, mostOptions, mostRelays = 512, 64, 64, 32
	mostSearchDomains, mostNTPServers, mostRoutes             = 16, 8, 32
	mostStaticEntries, mostEndpoints, mostTargets             = 256, 32, 16
)

// leases is what the DHCP server says: the subnet, its pool, options and reservations.
func (m *maker) leases() {
	chosen := m.subnets()
	m.pool(chosen)
	general, inner, relays := m.Options, []Option(nil), []Served(nil)
	for _, s := range chosen {
		relays = append(relays, s.Relays...)
		own := append(m.without(s.Shared, s.Options), s.Options...)
		general, inner = m.without(general, own), append(inner, own...)
	}
	if lease := m.lasts(chosen); lease != nil {
		m.leaseTime(*lease)
	}
	for _, r := range relays {
		relay := v1alpha1.IPv4AddressOrCIDR(r.At.String())
		dhcp := &m.infra.Spec.InfraComponents.DHCP
		one(m, r.Line, "dhcp.relays", &dhcp.Relays, mostRelays, relay, func(o v1alpha1.IPv4AddressOrCIDR) bool { return o == relay })
	}
	m.options(append(general, inner...))
	for _, r := range m.Reservations {
		m.reserve(r)
	}
}

// without has the options of what is around others that these do not say for themselves.
func (m *maker) without(around, inner []Option) (all []Option) {
	for _, o := range around {
		i := slices.IndexFunc(inner, func(other Option) bool { return other.Code == o.Code })
		if i < 0 {
			all = append(all, o)
			continue
		}
		m.Leave(o.Line, "%s says it for this network in another way", inner[i].Where())
	}
	return all
}

// subnets are those of the Infra's network; every other one is left. Without a network in the Infra it is the first with addresses to lease.
func (m *maker) subnets() (chosen []Subnet) {
	field := &m.infra.Spec.NetworkConfig.CIDR
	m.cidr, _ = netip.ParsePrefix(string(*field))
	if s := m.first(); s != nil && !m.cidr.IsValid() {
		m.cidr, *field, m.from["networkConfig.cidr"] = s.Prefix, v1alpha1.Subnet(s.Prefix.String()), s.Where()
	}
	for _, s := range m.Subnets {
		switch {
		case s.Prefix.IsValid() && s.Prefix.Overlaps(m.cidr), !s.Prefix.IsValid() && (!m.cidr.IsValid() || m.cidr.Contains(s.Within)):
			chosen = append(chosen, s)
		default:
			m.Leave(s.Line, "it is another network than %s, and an Infra has one: import it, with all that belongs to it, into an Infra of its own", m.cidr)
		}
	}
	return chosen
}

// pool is from the first address to the last, without what lies between the ranges.
func (m *maker) pool(chosen []Subnet) {
	all, left := m.ranges(chosen)
	m.unknown(chosen, all, left)
	if len(all) == 0 {
		return
	}
	dhcp := &m.infra.Spec.InfraComponents.DHCP
	slices.SortFunc(all, func(a, b Range) int { return a.First.Compare(b.First) })
	last := all[0]
	for _, r := range all[1:] {
		if free := last.Last.Next(); free.Less(r.First) {
			gap := v1alpha1.AddressRange{Start: desired.IPv4(free), End: desired.IPv4(r.First.Prev())}
			one(m, r.Line, "dhcp.excludeRanges", &dhcp.ExcludeRanges, mostExclusions, gap, func(o v1alpha1.AddressRange) bool { return o == gap })
		}
		if last.Last.Less(r.Last) {
			last = r
		}
	}
	once(m, all[0].Line, "dhcp.rangeStart", &dhcp.RangeStart, desired.IPv4(all[0].First))
	once(m, last.Line, "dhcp.rangeEnd", &dhcp.RangeEnd, desired.IPv4(last.Last))
}

// ranges are those that the pool has, and those that are left though somebody was served from them. Known clients get an address of those that
// are leased to anybody, if there are such.
func (m *maker) ranges(chosen []Subnet) (all, left []Range) {
	for _, s := range chosen {
		for _, r := range s.Ranges {
			switch {
			case r.Of == Some: // told where it is read
				left = append(left, r)
			case m.cidr.IsValid() && (!m.cidr.Contains(r.First) || !m.cidr.Contains(r.Last)) || r.Last.Less(r.First):
				m.Leave(r.Line, "the range is not inside %s", m.cidr)
				left = append(left, r)
			default:
				all = append(all, r)
			}
		}
	}
	open := slices.ContainsFunc(all, func(r Range) bool { return r.Of == Anybody })
	all = slices.DeleteFunc(all, func(r Range) bool {
		if open && r.Of == Known {
			m.Leave(r.Line, "the range is for known clients only: it is left, and they get an address of the others")
		}
		return open && r.Of == Known
	})
	return all, left
}

// unknown clients are not served where nothing is leased to them. That the files lease more than the Infra does is to be mended first.
func (m *maker) unknown(chosen []Subnet, all, left []Range) {
	dhcp := &m.infra.Spec.InfraComponents.DHCP
	given := dhcp.UnknownClients != "" || dhcp.RangeStart != ""
	known := slices.Clone(m.OnlyKnown)
	for _, s := range chosen {
		known = append(known, s.OnlyKnown...)
	}
	denied := len(known) > 0
	for _, r := range all {
		if r.Of == Known {
			known = append(known, r.Line)
		}
	}
	if len(all) == 0 && !denied && len(chosen) > 0 && dhcp.RangeStart == "" {
		known = append(known, chosen[0].Line) // nothing but reservations is given out
	}
	for _, at := range known {
		once(m, at, "dhcp.unknownClients", &dhcp.UnknownClients, v1alpha1.UnknownClientsIgnore)
	}
	if len(known) > 0 && len(left) > 0 && !denied && !given {
		m.miss(fmt.Sprintf("dhcp.unknownClients: Ignore is written, since the range of %s, which clients without a reservation may have had, is left: they would get no address. "+
			"If they shall, write dhcp.rangeStart and dhcp.rangeEnd into the Infra that is given with -f; if not, write unknownClients: Ignore there", left[0].Where()))
	}
}

// lasts is the lease time of the last subnet that leases addresses; one with reservations alone has the time of all clients.
func (m *maker) lasts(chosen []Subnet) *Lease {
	lease := m.Lease
	for _, leasing := range []bool{false, true} {
		for _, s := range chosen {
			if s.Lease == nil || s.leases() != leasing {
				continue
			}
			if lease != nil && lease.Time != s.Lease.Time {
				m.Leave(lease.Line, "%s says another lease time for this network", s.Lease.Where())
			}
			lease = s.Lease
		}
	}
	return lease
}

func (m *maker) leaseTime(l Lease) {
	within := min(max(l.Time, valid.ShortestLease), valid.LongestLease)
	if within != l.Time {
		m.Leave(l.Line, "the Infra has %s, since dhcp.leaseTime is between %s and %s", within, valid.ShortestLease, valid.LongestLease)
	}
	if within > time.Hour { // docs/reference/dhcp-rules.md
		m.Leave(l.Line, "clients that are neither virtual machines nor have a reservation get half the pool at most, for an hour at most: reserve the addresses of those that need more (dhcp.reservations)")
	}
	field, value := &m.infra.Spec.InfraComponents.DHCP.LeaseTime, &metav1.Duration{Duration: within.Truncate(time.Second)}
	if *field != nil && **field != *value {
		m.Leave(l.Line, "dhcp.leaseTime is %s already (the given Infra)", (*field).Duration)
		return
	}
	*field = value
}

// label that a reservation's host may have.
var label = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// unicast is the beginning of a network card's address.
var unicast = regexp.MustCompile(`^.[02468ace]`)

func (m *maker) reserve(r Reservation) {
	if !r.IP.IsValid() && r.Name != "" {
		var known bool
		if r.IP, known = m.address(r.Name); !known {
			m.Leave(r.Line, "no file says the address of %s: give the zone or hosts file that does, or write the reservation's address", r.Name)
			return
		}
	}
	switch {
	case !r.IP.IsValid():
		m.Leave(r.Line, "it has no address, and a reservation is one: write dhcp.reservations with an address if the client needs its own")
		return
	case r.MAC == "" && r.ClientID == "":
		m.Leave(r.Line, "it says neither the MAC address of the client nor its client identifier: write dhcp.reservations with one of them")
		return
	case m.cidr.IsValid() && !m.cidr.Contains(r.IP):
		m.Leave(r.Line, "%s is outside of %s", r.IP, m.cidr)
		return
	case r.MAC != "" && !unicast.MatchString(r.MAC) || r.MAC == "00:00:00:00:00:00":
		m.Leave(r.Line, "no network card can have the MAC address %s: its second digit must be even", r.MAC)
		return
	}
	dhcp := &m.infra.Spec.InfraComponents.DHCP
	made := v1alpha1.Reservation{IP: desired.IPv4(r.IP), MAC: v1alpha1.ClientMAC(r.MAC), ClientID: r.ClientID, Hostname: m.label(r)}
	for _, o := range dhcp.Reservations {
		switch {
		case o == made:
			return
		case o.IP == made.IP:
			m.Leave(r.Line, "%s is reserved already, for %s: a reservation is for one client", r.IP, cmp.Or(string(o.MAC), o.ClientID))
			return
		case o.MAC == made.MAC && o.ClientID == made.ClientID:
			m.Leave(r.Line, "the client has %s reserved already", o.IP)
			return
		}
	}
	one(m, r.Line, "dhcp.reservations", &dhcp.Reservations, mostReservations, made, func(v1alpha1.Reservation) bool { return false })
}

// label is the first one of a host's name: what follows it is the hosted cluster's domain.
func (m *maker) label(r Reservation) string {
	host, domain, _ := strings.Cut(strings.ToLower(strings.TrimSuffix(r.Host, ".")), ".")
	if domain != "" && domain != m.domain {
		m.Leave(r.Line, "DNS answers its name in the domain of the hosted cluster%s, not in %s", called(m.domain), domain)
	}
	if host != "" && !label.MatchString(host) {
		m.Leave(r.Line, "%s can be no host name: the reservation has none", r.Host)
		return ""
	}
	return host
}

func called(domain string) string {
	if domain == "" {
		return ""
	}
	return fmt.Sprintf(" (%s)", domain)
}
