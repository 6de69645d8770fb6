package ipam

import (
	"net/netip"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	"pgregory.net/rapid"

	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/finding"
)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func span(first, last string) Range { return Range{addr(first), addr(last)} }

func all() map[component.Name]bool {
	return map[component.Name]bool{component.DHCP: true, component.DNS: true, component.Proxy: true}
}

func TestInfrastructureIsLowAndThePoolFollows(t *testing.T) {
	for name, c := range map[string]struct {
		request Request
		dhcp    string
		dns     string
		proxy   string
		pool    Range
	}{
		"a /24 with its gateway low": {
			request: Request{CIDR: netip.MustParsePrefix("192.168.100.0/24"), Gateway: addr("192.168.100.1"), Enabled: all()},
			dhcp:    "192.168.100.2", dns: "192.168.100.3", proxy: "192.168.100.4", pool: span("192.168.100.8", "192.168.100.254"),
		},
		"an isolated /23": {
			request: Request{CIDR: netip.MustParsePrefix("10.0.2.0/23"), Enabled: all()},
			dhcp:    "10.0.2.1", dns: "10.0.2.2", proxy: "10.0.2.3", pool: span("10.0.2.7", "10.0.3.254"),
		},
		"a /29 does without spares": {
			request: Request{CIDR: netip.MustParsePrefix("10.0.0.8/29"), Gateway: addr("10.0.0.9"), Enabled: all()},
			dhcp:    "10.0.0.10", dns: "10.0.0.11", proxy: "10.0.0.12", pool: span("10.0.0.14", "10.0.0.14"),
		},
		"the seed's addresses": {
			request: Request{
				CIDR: netip.MustParsePrefix("192.168.100.0/24"), Gateway: addr("192.168.100.1"), Enabled: all(),
				Written:     map[component.Name]netip.Addr{component.DHCP: addr("192.168.100.2"), component.DNS: addr("192.168.100.3"), component.Proxy: addr("192.168.100.10")},
				WrittenPool: span("192.168.100.100", "192.168.100.200"),
			},
			dhcp: "192.168.100.2", dns: "192.168.100.3", proxy: "192.168.100.10", pool: span("192.168.100.100", "192.168.100.200"),
		},
		"what others have is stepped over": {
			request: Request{
				CIDR: netip.MustParsePrefix("192.168.100.0/24"), Enabled: all(),
				Taken: []Taken{{Range: span("192.168.100.1", "192.168.100.9"), By: "another Infra"}, {Range: span("192.168.100.11", "192.168.100.11")}},
			},
			dhcp: "192.168.100.10", dns: "192.168.100.12", proxy: "192.168.100.13", pool: span("192.168.100.17", "192.168.100.254"),
		},
		"what was given before stays": {
			request: Request{
				CIDR: netip.MustParsePrefix("192.168.100.0/24"), Enabled: all(),
				Given:     map[component.Name]netip.Addr{component.DNS: addr("192.168.100.9")},
				GivenPool: span("192.168.100.1", "192.168.100.3"),
			},
			dhcp: "192.168.100.4", dns: "192.168.100.9", proxy: "192.168.100.5", pool: span("192.168.100.1", "192.168.100.254"),
		},
		"a /24 that was widened": {
			request: Request{
				CIDR: netip.MustParsePrefix("192.168.100.0/23"), Enabled: all(),
				Given:     map[component.Name]netip.Addr{component.DHCP: addr("192.168.100.2"), component.DNS: addr("192.168.100.3"), component.Proxy: addr("192.168.100.4")},
				GivenPool: span("192.168.100.7", "192.168.100.254"),
			},
			dhcp: "192.168.100.2", dns: "192.168.100.3", proxy: "192.168.100.4", pool: span("192.168.100.7", "192.168.101.254"),
		},
		"a written range stays in a network that was widened": {
			request: Request{
				CIDR: netip.MustParsePrefix("192.168.100.0/23"), Enabled: all(),
				WrittenPool: span("192.168.100.7", "192.168.100.99"), GivenPool: span("192.168.100.7", "192.168.100.99"),
			},
			dhcp: "192.168.100.1", dns: "192.168.100.2", proxy: "192.168.100.3", pool: span("192.168.100.7", "192.168.100.99"),
		},
		"a server that comes with the widening": {
			request: Request{
				CIDR: netip.MustParsePrefix("192.168.100.0/29"), Enabled: map[component.Name]bool{component.DHCP: true, component.DNS: true},
				Given: map[component.Name]netip.Addr{component.DHCP: addr("192.168.100.1")}, GivenPool: span("192.168.100.2", "192.168.100.2"),
			},
			dhcp: "192.168.100.1", dns: "192.168.100.3", pool: span("192.168.100.2", "192.168.100.6"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got := Assign(c.request)
			g.Expect(got.Findings).To(BeEmpty())
			want := map[component.Name]netip.Addr{component.DHCP: addr(c.dhcp), component.DNS: addr(c.dns)}
			if c.proxy != "" {
				want[component.Proxy] = addr(c.proxy)
			}
			g.Expect(got.Addresses).To(Equal(want))
			g.Expect(got.Pool).To(Equal(c.pool))
		})
	}
}

// Beside addresses that somebody chose, a second instance, which nobody chose, does not take the lowest: that is often a router's.
func TestWhereASecondInstanceGoes(t *testing.T) {
	chosen := map[component.Name]netip.Addr{component.DHCP: addr("192.168.100.10"), component.DNS: addr("192.168.100.11"), component.Proxy: addr("192.168.100.12")}
	for name, c := range map[string]struct {
		change func(*Request)
		second string
		pool   Range
	}{
		"the lowest that is free":        {func(*Request) {}, "192.168.100.4", span("192.168.100.7", "192.168.100.254")},
		"after a first that was written": {func(r *Request) { r.Written = chosen }, "192.168.100.13", span("192.168.100.100", "192.168.100.199")},
		"after a first that was given":   {func(r *Request) { r.Given = chosen }, "192.168.100.13", span("192.168.100.100", "192.168.100.199")},
		"before it, if there is no other": {func(r *Request) {
			r.Written, r.Taken = chosen, []Taken{{Range: span("192.168.100.13", "192.168.100.99")}, {Range: span("192.168.100.200", "192.168.100.254")}}
		}, "192.168.100.1", span("192.168.100.100", "192.168.100.199")},
		"where it was": {func(r *Request) {
			r.Written, r.Given = chosen, map[component.Name]netip.Addr{component.DNS.Second(): addr("192.168.100.20")}
		}, "192.168.100.20", span("192.168.100.100", "192.168.100.199")},
		"nowhere": {func(r *Request) { r.Written, r.WrittenPool = chosen, span("192.168.100.1", "192.168.100.254") }, "", span("192.168.100.1", "192.168.100.254")},
		"after a first at the end, and the pool stays before it": {
			func(r *Request) { r.Written = map[component.Name]netip.Addr{component.DNS: addr("192.168.100.250")} }, "192.168.100.251", span("192.168.100.5", "192.168.100.254"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, r := NewWithT(t), Request{CIDR: netip.MustParsePrefix("192.168.100.0/24"), Enabled: all()}
			r.Enabled[component.DNS.Second()] = true
			if c.change(&r); len(r.Written)+len(r.Given) >= len(chosen) && !r.WrittenPool.First.IsValid() {
				r.WrittenPool = span("192.168.100.100", "192.168.100.199")
			}
			got := Assign(r)
			g.Expect(got.Findings).To(BeEmpty())
			want, _ := netip.ParseAddr(c.second)
			g.Expect(got.Addresses[component.DNS.Second()]).To(Equal(want))
			g.Expect(got.Pool).To(Equal(c.pool))
		})
	}
}

func TestIPv6NeedsNoPool(t *testing.T) {
	g := NewWithT(t)
	got := Assign(Request{CIDR: netip.MustParsePrefix("fd00:100::/64"), Gateway: addr("fd00:100::1"), Enabled: map[component.Name]bool{component.DNS: true, component.Proxy: true}})
	g.Expect(got.Findings).To(BeEmpty())
	g.Expect(got.Addresses[component.DNS]).To(Equal(addr("fd00:100::2")))
	g.Expect(got.Addresses[component.Proxy]).To(Equal(addr("fd00:100::3")))
	g.Expect(got.Pool.IsValid()).To(BeFalse())
	g.Expect(got.Size()).To(BeZero())
}

func TestMistakesAreNamedWithAWayOut(t *testing.T) {
	vlan := func(change func(*Request)) Request {
		r := Request{CIDR: netip.MustParsePrefix("192.168.100.0/24"), Gateway: addr("192.168.100.1"), Enabled: all()}
		change(&r)
		return r
	}
	for name, c := range map[string]struct {
		request         Request
		reason, message string
	}{
		"the pool leaves the network": {
			request: vlan(func(r *Request) { r.WrittenPool = span("192.168.100.100", "192.168.101.20") }),
			reason:  "RangeOutsideCIDR", message: "dhcp.rangeEnd 192.168.101.20 lies outside 192.168.100.0/24; use an address from 192.168.100.1 to 192.168.100.254",
		},
		"the pool is upside down": {
			request: vlan(func(r *Request) { r.WrittenPool = span("192.168.100.100", "192.168.100.20") }),
			reason:  "RangeReversed", message: "dhcp.rangeEnd 192.168.100.20 lies before rangeStart 192.168.100.100; swap them",
		},
		"the pool has one end": {
			request: vlan(func(r *Request) { r.WrittenPool.First = addr("192.168.100.100") }),
			reason:  "RangeOutsideCIDR", message: "only one of dhcp.rangeStart and rangeEnd is set; set both, or neither",
		},
		"a server on the gateway": {
			request: vlan(func(r *Request) { r.Written = map[component.Name]netip.Addr{component.DNS: addr("192.168.100.1")} }),
			reason:  "AddressInUse", message: "dns.serverIP 192.168.100.1 is networkConfig.gateway; 192.168.100.2 is free, or omit the field",
		},
		"two servers on one address": {
			request: vlan(func(r *Request) {
				r.Written = map[component.Name]netip.Addr{component.DNS: addr("192.168.100.5"), component.Proxy: addr("192.168.100.5")}
			}),
			reason: "AddressInUse", message: "proxy.serverIP 192.168.100.5 is also the address of dns; 192.168.100.2 is free, or omit the field",
		},
		"a server on the broadcast address": {
			request: vlan(func(r *Request) { r.Written = map[component.Name]netip.Addr{component.DHCP: addr("192.168.100.255")} }),
			reason:  "AddressInUse", message: "dhcp.serverIP 192.168.100.255 is not usable in 192.168.100.0/24, which has 192.168.100.1–192.168.100.254; 192.168.100.2 is free, or omit the field",
		},
		"a gateway moves onto a given address": {
			request: vlan(func(r *Request) { r.Given = map[component.Name]netip.Addr{component.DNS: addr("192.168.100.1")} }),
			reason:  "AddressInUse", message: "the address of dns 192.168.100.1 is networkConfig.gateway; set dns.serverIP to a free address, e.g. 192.168.100.2, or move what uses it",
		},
		"a proxy on the address of the second DNS instance": {
			request: vlan(func(r *Request) {
				r.Enabled[component.DNS.Second()], r.Given = true, map[component.Name]netip.Addr{component.DNS.Second(): addr("192.168.100.5")}
				r.Written = map[component.Name]netip.Addr{component.Proxy: addr("192.168.100.5")}
			}),
			reason: "AddressInUse", message: "the address of the second dns instance 192.168.100.5 is also the address of proxy; set dns.additionalServerIPs to a free address, e.g. 192.168.100.2, or move what uses it",
		},
		"a network too small": {
			request: Request{CIDR: netip.MustParsePrefix("192.168.100.0/30"), Enabled: all()},
			reason:  "NoFreeAddress", message: "networkConfig.cidr 192.168.100.0/30 has no free address for proxy; widen it, or shrink the range from dhcp.rangeStart to rangeEnd or dhcp.excludeRanges",
		},
		"another Infra's pool fills the network": {
			request: vlan(func(r *Request) {
				r.Enabled = map[component.Name]bool{component.Proxy: true}
				r.Taken = []Taken{{Range: span("192.168.100.2", "192.168.100.254"), Neighbour: true}}
			}),
			reason: "NoFreeAddress", message: "networkConfig.cidr 192.168.100.0/24 has no free address for proxy; another Infra on this VLAN leases or uses the rest; widen this one beyond it, or shrink the range from dhcp.rangeStart to rangeEnd of the other",
		},
		"everything is excluded": {
			request: vlan(func(r *Request) { r.Taken = []Taken{{Range: span("192.168.100.5", "192.168.100.254")}} }),
			reason:  "PoolEmpty", message: "no address of networkConfig.cidr 192.168.100.0/24 is left for DHCP to lease; widen it, set dhcp.rangeStart and rangeEnd, or exclude fewer addresses (dhcp.excludeRanges)",
		},
		"all of the written pool is excluded": {
			request: vlan(func(r *Request) {
				r.WrittenPool, r.Taken = span("192.168.100.50", "192.168.100.60"), []Taken{{Range: span("192.168.100.40", "192.168.100.99")}}
			}),
			reason: "PoolEmpty", message: "the range from dhcp.rangeStart to rangeEnd (192.168.100.50–192.168.100.60) has no address left to lease; extend it, or exclude fewer addresses (dhcp.excludeRanges)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, found := NewWithT(t), Assign(c.request).Findings
			g.Expect(found).To(HaveLen(1))
			g.Expect(found[0].Field).To(HavePrefix("spec."))
			found[0].Field, found[0].Changes = "", nil // examples/preflight shows that the changes mend it
			g.Expect(found[0]).To(Equal(finding.Finding{Condition: "Accepted", Reason: c.reason, Message: c.message, Severity: finding.Refused}))
		})
	}
}

func TestAComponentSwitchedOffKeepsItsPlace(t *testing.T) {
	g := NewWithT(t)
	before := Assign(Request{CIDR: netip.MustParsePrefix("192.168.100.0/24"), Enabled: all()})
	off := Assign(Request{
		CIDR: netip.MustParsePrefix("192.168.100.0/24"), Enabled: map[component.Name]bool{component.DHCP: true, component.DNS: true},
		Given: map[component.Name]netip.Addr{component.DHCP: before.Addresses[component.DHCP], component.DNS: before.Addresses[component.DNS]}, GivenPool: before.Pool,
	})
	g.Expect(off.Addresses).To(Equal(before.Addresses))
}

func TestReservedAddressesStayInThePoolAndExcludedOnesDoNot(t *testing.T) {
	g := NewWithT(t)
	got := Assign(Request{
		CIDR: netip.MustParsePrefix("192.168.100.0/24"), Enabled: all(), WrittenPool: span("192.168.100.50", "192.168.100.99"),
		Written: map[component.Name]netip.Addr{component.Proxy: addr("192.168.100.60")},
		Taken:   []Taken{{Range: span("192.168.100.55", "192.168.100.55"), By: "a reservation", Reserved: true}, {Range: span("192.168.100.90", "192.168.100.120")}},
	})
	g.Expect(got.Findings).To(BeEmpty())
	g.Expect(got.Excluded).To(Equal([]Range{span("192.168.100.60", "192.168.100.60"), span("192.168.100.90", "192.168.100.99")}))
	g.Expect(got.Size()).To(BeEquivalentTo(50 - 1 - 10))
}

// drawn is any request that a valid Infra can lead to.
func drawn(t *rapid.T) Request {
	bits := rapid.IntRange(16, 30).Draw(t, "bits")
	base := netip.AddrFrom4([4]byte{10, byte(rapid.IntRange(0, 255).Draw(t, "second")), 0, 0})
	if rapid.Bool().Draw(t, "v6") {
		bits, base = rapid.IntRange(64, 126).Draw(t, "bits6"), addr("fd00:100::")
	}
	r := Request{CIDR: netip.PrefixFrom(base, bits).Masked(), Enabled: map[component.Name]bool{}}
	for _, c := range component.Names() {
		r.Enabled[c] = rapid.Bool().Draw(t, string(c))
	}
	for _, c := range component.Seconds() {
		r.Enabled[c] = rapid.Bool().Draw(t, string(c))
	}
	usable := Usable(r.CIDR)
	within := func(label string) netip.Addr {
		at := usable.First
		for range rapid.IntRange(0, 40).Draw(t, label) {
			if next := at.Next(); usable.Contains(next) {
				at = next
			}
		}
		return at
	}
	if rapid.Bool().Draw(t, "gateway") {
		r.Gateway = within("gateway at")
	}
	for range rapid.IntRange(0, 4).Draw(t, "taken") {
		first, last := within("first"), within("last")
		if last.Less(first) {
			first, last = last, first
		}
		r.Taken = append(r.Taken, Taken{Range: Range{first, last}, By: rapid.SampledFrom([]string{"", "another Infra"}).Draw(t, "by")})
	}
	return r
}

func TestNoAddressIsGivenTwiceOrTakenFromOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawn(t)
		got, usable, seen := Assign(r), Usable(r.CIDR), map[netip.Addr]bool{r.Gateway: true}
		given := got.Spare
		for _, c := range component.Names() {
			if at := got.Addresses[c]; at.IsValid() {
				given = append(given, at)
			} else if r.Enabled[c] && len(got.Findings) == 0 {
				t.Fatalf("%s has no address and nothing says why", c)
			}
		}
		for _, c := range component.Seconds() {
			if at, has := got.Addresses[c]; has {
				given = append(given, at)
			}
		}
		for _, at := range given {
			if seen[at] || !usable.Contains(at) {
				t.Fatalf("%s is given twice, or is not usable in %s", at, r.CIDR)
			}
			seen[at] = true
			for _, taken := range r.Taken {
				if taken.Contains(at) {
					t.Fatalf("%s is already used by others (%s)", at, taken)
				}
			}
			if got.Pool.Contains(at) && !excluded(got, at) {
				t.Fatalf("%s is infrastructure and in the pool", at)
			}
		}
	})
}

func excluded(a Assignment, at netip.Addr) bool {
	for _, r := range a.Excluded {
		if r.Contains(at) {
			return true
		}
	}
	return false
}

func TestAddressesStayWhateverComesLater(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawn(t)
		before := Assign(r)
		r.Given, r.GivenPool = before.Addresses, before.Pool
		r.Taken = nil
		if r.CIDR.Bits() > 17 {
			r.CIDR = netip.PrefixFrom(r.CIDR.Addr(), r.CIDR.Bits()-1).Masked()
		}
		after := Assign(r)
		for c, at := range before.Addresses {
			if after.Addresses[c] != at {
				t.Fatalf("%s moved from %s to %s", c, at, after.Addresses[c])
			}
		}
		grown := Range{before.Pool.First, Usable(r.CIDR).Last}
		if before.Pool.IsValid() && after.Pool != grown {
			t.Fatalf("the pool %s became %s, not %s", before.Pool, after.Pool, grown)
		}
	})
}

func TestMergeKeepsExactlyTheAddresses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ranges []Range
		in := map[byte]bool{}
		for range rapid.IntRange(0, 6).Draw(t, "n") {
			first, length := rapid.ByteRange(0, 200).Draw(t, "first"), rapid.ByteRange(0, 55).Draw(t, "length")
			ranges = append(ranges, Range{netip.AddrFrom4([4]byte{10, 0, 0, first}), netip.AddrFrom4([4]byte{10, 0, 0, first + length})})
			for i := first; ; i++ {
				in[i] = true
				if i == first+length {
					break
				}
			}
		}
		merged := Merge(ranges)
		left := Without(span("10.0.0.0", "10.0.0.255"), ranges)
		for i := range 256 {
			a := netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})
			times := 0
			for _, r := range merged {
				if r.Contains(a) {
					times++
				}
			}
			if (times == 1) != in[byte(i)] || times > 1 {
				t.Fatalf("%s is in %d of %v", a, times, merged)
			}
			if in[byte(i)] == slices.ContainsFunc(left, func(r Range) bool { return r.Contains(a) }) {
				t.Fatalf("%s is both in %v and in what is left without it, %v, or in neither", a, merged, left)
			}
		}
	})
}

func TestAFreeNetworkIsFreeAndPrivate(t *testing.T) {
	for name, c := range map[string]struct {
		bits  int
		taken []string
		want  string // empty: there is none
	}{
		"the first":                   {24, []string{"10.0.0.0/8"}, "192.168.0.0/24"},
		"past one in the way":         {24, []string{"192.168.0.0/25"}, "192.168.1.0/24"},
		"past a wider one":            {24, []string{"192.168.0.0/17"}, "192.168.128.0/24"},
		"past a whole block":          {24, []string{"192.168.0.0/16"}, "172.16.0.0/24"},
		"wider than the small blocks": {10, []string{"10.0.0.0/16"}, "10.64.0.0/10"},
		"of IPv6":                     {64, []string{"fd00::/64", "10.0.0.0/8"}, "fd00:0:0:1::/64"},
		"too wide":                    {4, []string{"10.0.0.0/8"}, ""},
		"everything is taken":         {24, []string{"0.0.0.0/0"}, ""},
	} {
		var taken []netip.Prefix
		for _, text := range c.taken {
			taken = append(taken, netip.MustParsePrefix(text))
		}
		free, ok := FreeNetwork(c.bits, taken...)
		g := NewWithT(t)
		g.Expect(ok).To(Equal(c.want != ""), name)
		if ok {
			g.Expect(free.String()).To(Equal(c.want), name)
		}
	}
}

func TestFindingsThatAreFollowedTogetherDoNotMeet(t *testing.T) {
	t.Run("three servers on one address are offered two", func(t *testing.T) {
		g, five := NewWithT(t), addr("192.168.100.5")
		found := Assign(Request{CIDR: netip.MustParsePrefix("192.168.100.0/24"), Enabled: all(), Written: map[component.Name]netip.Addr{component.DHCP: five, component.DNS: five, component.Proxy: five}}).Findings
		g.Expect(found).To(HaveLen(2))
		g.Expect(found[0].Message).To(ContainSubstring("192.168.100.1 is free"))
		g.Expect(found[1].Message).To(ContainSubstring("192.168.100.2 is free"))
	})
	t.Run("a pool outside is not swapped as well", func(t *testing.T) {
		found := Assign(Request{CIDR: netip.MustParsePrefix("192.168.100.0/24"), Enabled: all(), WrittenPool: span("192.168.101.30", "192.168.101.20")}).Findings
		for _, f := range found {
			NewWithT(t).Expect(f.Reason).NotTo(Equal("RangeReversed"))
		}
	})
}

func TestASetIsWhatMergeMakes(t *testing.T) {
	at := func(last byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, last}) }
	rapid.Check(t, func(t *rapid.T) {
		var ranges []Range
		var set Set
		for range rapid.IntRange(0, 12).Draw(t, "n") {
			first, length := rapid.ByteRange(0, 200).Draw(t, "first"), rapid.ByteRange(0, 20).Draw(t, "length")
			ranges = append(ranges, Range{at(first), at(first + length)})
			set.Add(ranges[len(ranges)-1])
		}
		if merged := Merge(ranges); !slices.Equal(set, merged) {
			t.Fatalf("%v became %v; merged they are %v", ranges, set, merged)
		}
		from := rapid.Byte().Draw(t, "from")
		past := set.past(at(from))
		for a := at(from); a != past; a = a.Next() {
			if !slices.ContainsFunc(ranges, func(r Range) bool { return r.Contains(a) }) {
				t.Fatalf("past %s in %v is %s, but %s is free", at(from), set, past, a)
			}
		}
		if slices.ContainsFunc(ranges, func(r Range) bool { return r.Contains(past) }) {
			t.Fatalf("past %s in %v is %s, which is not free", at(from), set, past)
		}
	})
}
