package records_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/cldmnky/oooi/internal/dns/records"
)

var (
	proxy   = netip.MustParseAddr("192.168.100.4")
	apps    = netip.MustParseAddr("192.168.100.5")
	service = netip.MustParseAddr("172.30.0.9")
	worker  = netip.MustParseAddr("192.168.100.57")
	twin    = netip.MustParseAddr("192.168.100.58")
	guest   = netip.MustParseAddr("192.168.100.59")
)

// cluster is c1 with an ignition Route in a zone that is not ours.
var cluster = records.Intent{
	Domain:  "c1.example.com.",
	Network: netip.MustParsePrefix("192.168.100.0/24"),
	VLAN: []records.Record{
		{Name: "aaa.c1.example.com.", Addr: proxy},
		{Name: "api.c1.example.com.", Addr: proxy},
		{Name: "ignition-server-clusters-c1.apps.mgmt.example.net.", Addr: proxy},
		{Name: "*.apps.c1.example.com.", Addr: apps},
		{Name: "oauth.apps.c1.example.com.", Addr: proxy},
		{Name: "deep.down.apps.c1.example.com.", Addr: proxy},
		{Name: "api6.c1.example.com.", Addr: netip.MustParseAddr("fd00:100::4")},
		{Name: "two.c1.example.com.", Addr: proxy},
		{Name: "two.c1.example.com.", Addr: apps},
		{Name: "alias.example.com.", Addr: netip.MustParseAddr("192.168.100.60")},
		{Name: "*.wild.example.com.", Addr: netip.MustParseAddr("192.168.100.61")},
		{Name: "far.example.com.", Addr: netip.MustParseAddr("10.0.0.9")},
	},
	Pods: []records.Record{
		{Name: "api.c1.example.com.", Addr: service},
		{Name: "*.apps.c1.example.com.", Addr: service},
	},
	Leases: []records.Lease{
		{Host: "worker-1", Addr: worker},
		{Host: "worker-1", Addr: twin},
		{Host: "api", Addr: guest},
		{Host: "apps", Addr: guest},
		{Host: "worker-2", Addr: netip.MustParseAddr("192.168.100.60")},
	},
	Denied:    []string{"cluster.local.", "30.172.in-addr.arpa."},
	Clients:   []netip.Prefix{netip.MustParsePrefix("192.168.100.0/24"), netip.MustParsePrefix("10.20.0.0/16")},
	Upstreams: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.53:53")},
}

// a is an expected answer: its response code or "forward", then its data, then the apex of its SOA.
func a(rcode string, data ...string) []string { return append([]string{rcode}, data...) }

func soa(apex string) string { return "SOA " + apex }

func said(answer records.Answer) []string {
	if answer.Forward {
		return a("forward")
	}
	out := a(dns.RcodeToString[answer.Rcode])
	for _, rr := range append(answer.Records, answer.Authority...) {
		switch rr := rr.(type) {
		case *dns.A:
			out = append(out, rr.A.String())
		case *dns.AAAA:
			out = append(out, rr.AAAA.String())
		case *dns.PTR:
			out = append(out, rr.Ptr)
		case *dns.SOA:
			out = append(out, soa(rr.Hdr.Name))
		}
	}
	return out
}

func TestAnswersOfTheVLAN(t *testing.T) {
	view := records.Build(cluster).VLAN
	for question, want := range map[string][]string{
		// owned names
		"api.c1.example.com. A":                                a("NOERROR", "192.168.100.4"),
		"API.C1.Example.com. A":                                a("NOERROR", "192.168.100.4"),
		"ignition-server-clusters-c1.apps.mgmt.example.net. A": a("NOERROR", "192.168.100.4"),
		"api6.c1.example.com. AAAA":                            a("NOERROR", "fd00:100::4"),
		"two.c1.example.com. A":                                a("NOERROR", "192.168.100.4", "192.168.100.5"),
		// NODATA, each with the SOA of its apex, never forwarded
		"api.c1.example.com. AAAA":                               a("NOERROR", soa("api.c1.example.com.")),
		"api.c1.example.com. HTTPS":                              a("NOERROR", soa("api.c1.example.com.")),
		"api.c1.example.com. SVCB":                               a("NOERROR", soa("api.c1.example.com.")),
		"api.c1.example.com. ANY":                                a("NOERROR", soa("api.c1.example.com.")),
		"api.c1.example.com. DS":                                 a("NOERROR", soa("api.c1.example.com.")),
		"api.c1.example.com. SOA":                                a("NOERROR", soa("api.c1.example.com.")),
		"api6.c1.example.com. A":                                 a("NOERROR", soa("api6.c1.example.com.")),
		"console.apps.c1.example.com. AAAA":                      a("NOERROR", soa("apps.c1.example.com.")),
		"ignition-server-clusters-c1.apps.mgmt.example.net. TXT": a("NOERROR", soa("ignition-server-clusters-c1.apps.mgmt.example.net.")),
		// wildcards by RFC 4592
		"console.apps.c1.example.com. A":       a("NOERROR", "192.168.100.5"),
		"a.b.apps.c1.example.com. A":           a("NOERROR", "192.168.100.5"),
		"*.apps.c1.example.com. A":             a("NOERROR", "192.168.100.5"),
		"apps.c1.example.com. A":               a("NOERROR", soa("apps.c1.example.com.")),
		"oauth.apps.c1.example.com. A":         a("NOERROR", "192.168.100.4"),
		"below.oauth.apps.c1.example.com. A":   a("NXDOMAIN", soa("oauth.apps.c1.example.com.")),
		"down.apps.c1.example.com. A":          a("NOERROR", soa("apps.c1.example.com.")),
		"other.down.apps.c1.example.com. A":    a("NXDOMAIN", soa("apps.c1.example.com.")),
		"below.*.apps.c1.example.com. A":       a("NXDOMAIN", soa("apps.c1.example.com.")),
		`dotted\.label.apps.c1.example.com. A`: a("NOERROR", "192.168.100.5"),
		`api\.c1.example.com. A`:               a("forward"),
		"absent.c1.example.com. A":             a("NXDOMAIN", soa("c1.example.com.")),
		"c1.example.com. SOA":                  a("NOERROR", soa("c1.example.com.")),
		"c1.example.com. A":                    a("NOERROR", soa("c1.example.com.")),
		"below.api.c1.example.com. A":          a("NXDOMAIN", soa("api.c1.example.com.")),
		"api-int.c1.example.com. A":            a("NXDOMAIN", soa("c1.example.com.")),
		"apps.mgmt.example.net. A":             a("forward"),
		"neighbour.apps.mgmt.example.net. A":   a("forward"),
		// leases; a guest does not get a name that is taken
		"worker-1.c1.example.com. A":       a("NOERROR", "192.168.100.57"),
		"worker-1.c1.example.com. AAAA":    a("NOERROR", soa("c1.example.com.")),
		"57.100.168.192.in-addr.arpa. PTR": a("NOERROR", "worker-1.c1.example.com."),
		"57.100.168.192.in-addr.arpa. A":   a("NOERROR", soa("57.100.168.192.in-addr.arpa.")),
		"58.100.168.192.in-addr.arpa. PTR": a("forward"),
		"59.100.168.192.in-addr.arpa. PTR": a("forward"),
		// names in return: the API's of its address, the first of another, a lease's of its own, and none elsewhere
		"4.100.168.192.in-addr.arpa. PTR":  a("NOERROR", "api.c1.example.com."),
		"5.100.168.192.in-addr.arpa. PTR":  a("NOERROR", "two.c1.example.com."),
		"60.100.168.192.in-addr.arpa. PTR": a("NOERROR", "worker-2.c1.example.com."),
		"61.100.168.192.in-addr.arpa. PTR": a("forward"),
		"9.0.0.10.in-addr.arpa. PTR":       a("forward"),
		"alias.example.com. A":             a("NOERROR", "192.168.100.60"),
		// denied zones, everything else, and what is refused
		"cluster.local. A":                        a("NXDOMAIN", soa("cluster.local.")),
		"kubernetes.default.svc.cluster.local. A": a("NXDOMAIN", soa("cluster.local.")),
		"1.0.30.172.in-addr.arpa. PTR":            a("NXDOMAIN", soa("30.172.in-addr.arpa.")),
		"notcluster.local. A":                     a("forward"),
		"www.example.org. A":                      a("forward"),
		". NS":                                    a("forward"),
		"api.c1.example.com. AXFR":                a("REFUSED"),
		"www.example.org. IXFR":                   a("REFUSED"),
	} {
		t.Run(question, func(t *testing.T) { expect(t, view, ask(question), want) })
	}
}

func TestThePodNetworkIsToldTheServiceAndNothingElse(t *testing.T) {
	view := records.Build(cluster).Pods
	for question, want := range map[string][]string{
		"api.c1.example.com. A":                                a("NOERROR", "172.30.0.9"),
		"console.apps.c1.example.com. A":                       a("NOERROR", "172.30.0.9"),
		"absent.c1.example.com. A":                             a("NXDOMAIN", soa("c1.example.com.")),
		"worker-1.c1.example.com. A":                           a("NXDOMAIN", soa("c1.example.com.")),
		"ignition-server-clusters-c1.apps.mgmt.example.net. A": a("REFUSED"),
		"www.example.org. A":                                   a("REFUSED"),
		"kubernetes.default.svc.cluster.local. A":              a("REFUSED"),
		"57.100.168.192.in-addr.arpa. PTR":                     a("REFUSED"),
	} {
		t.Run(question, func(t *testing.T) {
			q := ask(question)
			q.Source = netip.MustParseAddr("10.128.7.7") // this view answers every source
			expect(t, view, q, want)
		})
	}
}

func TestOnlyClientsOfTheVLANAreAnswered(t *testing.T) {
	view := records.Build(cluster).VLAN
	for source, answered := range map[string]bool{
		"192.168.100.200": true, "::ffff:192.168.100.200": true, "10.20.3.4": true,
		"192.168.101.1": false, "10.128.0.1": false, "fd00::1": false,
	} {
		t.Run(source, func(t *testing.T) {
			for _, question := range []string{"api.c1.example.com. A", "www.example.org. A", "cluster.local. A"} {
				q := ask(question)
				q.Source = netip.MustParseAddr(source)
				for q.OPTs = range 3 {
					if got := view.Answer(q).Rule != "source"; got != answered {
						t.Errorf("%s, %d OPT records: answered is %v, want %v", question, q.OPTs, got, answered)
					}
				}
			}
		})
	}
}

func TestOnlyInternetQueriesAreAnswered(t *testing.T) {
	view := records.Build(cluster).VLAN
	for name, change := range map[string]func(*records.Question){
		"UPDATE":       func(q *records.Question) { q.Opcode = dns.OpcodeUpdate },
		"NOTIFY":       func(q *records.Question) { q.Opcode = dns.OpcodeNotify },
		"version.bind": func(q *records.Question) { q.Name, q.Type, q.Class = "version.bind.", dns.TypeTXT, dns.ClassCHAOS },
	} {
		t.Run(name, func(t *testing.T) {
			q := ask("api.c1.example.com. A")
			change(&q)
			expect(t, view, q, a("REFUSED"))
		})
	}
}

func TestTheCaseOfAQuestionReturns(t *testing.T) {
	answer := records.Build(cluster).VLAN.Answer(ask("aPi.C1.example.com. A"))
	if got := answer.Records[0].Header().Name; got != "aPi.C1.example.com." {
		t.Errorf("the answer is about %s", got)
	}
}

func TestWithoutUpstreamsForeignNamesAreRefused(t *testing.T) {
	isolated := cluster
	isolated.Upstreams = nil
	expect(t, records.Build(isolated).VLAN, ask("www.example.org. A"), a("REFUSED"))
}

func expect(t *testing.T, view *records.View, q records.Question, want []string) {
	t.Helper()
	if diff := cmp.Diff(want, said(view.Answer(q))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// ask makes a question of a client on the VLAN from "name type".
func ask(question string) records.Question {
	name, qtype, _ := strings.Cut(question, " ")
	return records.Question{Name: name, Type: dns.StringToType[qtype], Class: dns.ClassINET, Source: netip.MustParseAddr("192.168.100.200")}
}

// No query of an owned zone is forwarded, and every answer can be packed.
func FuzzAnswer(f *testing.F) {
	for _, name := range []string{"api.c1.example.com.", "*.apps.c1.example.com.", `\000\..c1.example.com.`, "."} {
		packed := make([]byte, 256)
		n, _ := dns.PackDomainName(name, packed, 0, nil, false)
		f.Add(packed[:n], dns.TypeA, uint16(dns.ClassINET))
	}
	view := records.Build(cluster).VLAN
	f.Fuzz(func(t *testing.T, wire []byte, qtype, class uint16) {
		name, _, err := dns.UnpackDomainName(wire, 0)
		if err != nil {
			return
		}
		q := records.Question{Name: name, Type: qtype, Class: class, Source: worker}
		answer := view.Answer(q)
		if answer.Forward && dns.IsSubDomain(cluster.Domain, name) {
			t.Fatalf("%q lies in %s and is forwarded", name, cluster.Domain)
		}
		m := dns.Msg{Answer: answer.Records, Ns: answer.Authority}
		if _, err := m.Pack(); err != nil {
			t.Fatalf("the answer for %q cannot be packed: %v", name, err)
		}
	})
}

func BenchmarkOwnedName(b *testing.B) {
	view, q := records.Build(cluster).VLAN, ask("console.apps.c1.example.com. A")
	b.ReportAllocs()
	for b.Loop() {
		view.Answer(q)
	}
}

// An address that is down is left out where a name has another of its family; nothing empties an answer. Neighbouring clients get another one
// first, and the answer of a name whose health is checked is soon asked for again.
func TestOfSeveralAddressesThoseThatAreDownAreLeftOut(t *testing.T) {
	six, four := netip.MustParseAddr("fd00:100::5"), netip.MustParseAddr("192.168.100.6")
	for name, c := range map[string]struct {
		down []netip.Addr
		from string
		name string
		want []string
		ttl  uint32
	}{
		"all are up":                   {nil, "192.168.100.200", "two A", a("NOERROR", "192.168.100.4", "192.168.100.5"), 5},
		"all are up, for the next":     {nil, "192.168.100.201", "two A", a("NOERROR", "192.168.100.5", "192.168.100.4"), 5},
		"the first is down":            {[]netip.Addr{proxy}, "192.168.100.200", "two A", a("NOERROR", "192.168.100.5"), 5},
		"the second is down":           {[]netip.Addr{apps}, "192.168.100.201", "two A", a("NOERROR", "192.168.100.4"), 5},
		"both are down":                {[]netip.Addr{proxy, apps}, "192.168.100.200", "two A", a("NOERROR", "192.168.100.4", "192.168.100.5"), 5},
		"it is the only one":           {[]netip.Addr{proxy}, "192.168.100.200", "one A", a("NOERROR", "192.168.100.4"), 30},
		"the others are of IPv6":       {[]netip.Addr{proxy}, "192.168.100.200", "mixed A", a("NOERROR", "192.168.100.4"), 5},
		"one that nobody checks is up": {[]netip.Addr{proxy}, "192.168.100.200", "half A", a("NOERROR", "192.168.100.6"), 5},
		"nobody checks":                {nil, "192.168.100.200", "unchecked A", a("NOERROR", "192.168.100.6"), 30},
	} {
		t.Run(name, func(t *testing.T) {
			in := records.Intent{Domain: "c1.example.com.", Clients: cluster.Clients}
			down := map[netip.Addr]bool{proxy: false, apps: false, six: false}
			for host, all := range map[string][]netip.Addr{"two": {proxy, apps}, "one": {proxy}, "mixed": {proxy, six}, "half": {proxy, four}, "unchecked": {four}} {
				for _, at := range all {
					in.VLAN = append(in.VLAN, records.Record{Name: host + ".c1.example.com.", Addr: at})
				}
			}
			for _, at := range c.down {
				down[at] = true
			}
			q := ask(strings.Replace(c.name, " ", ".c1.example.com. ", 1))
			q.Source, q.Down = netip.MustParseAddr(c.from), down
			view := records.Build(in).VLAN
			expect(t, view, q, c.want)
			if got := view.Answer(q).Records[0].Header().Ttl; got != c.ttl {
				t.Errorf("the TTL is %d, want %d", got, c.ttl)
			}
		})
	}
}

func TestAWildcardOfTheClustersDomainTakesNoWorkersName(t *testing.T) {
	in := cluster
	in.VLAN = append([]records.Record{{Name: "*.c1.example.com.", Addr: apps}, {Name: "*.example.com.", Addr: apps}}, cluster.VLAN...)
	expect(t, records.Build(in).VLAN, ask("worker-1.c1.example.com. A"), a("NOERROR", worker.String()))
}
