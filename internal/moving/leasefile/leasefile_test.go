package leasefile

import (
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
)

var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

func entry(line int, ip, mac, id, name string, ends time.Time, over string) Entry {
	return Entry{Line: line, IP: netip.MustParseAddr(ip), Client: lease.Client{MAC: mac}, ClientID: id, Hostname: name, Ends: ends, Over: over}
}

func TestALeaseFileOfDnsmasq(t *testing.T) {
	g := NewWithT(t)
	entries, problems := dnsmasq(`1795780800 52:54:00:00:00:01 192.168.77.10 Worker-1 01:52:54:00:00:00:01
0 52:54:00:00:00:02 192.168.77.11 * *
1795780800 52:54:00:00:00:03 192.168.77.300 * *
soon 52:54:00:00:00:03 192.168.77.13 * *
1795780800 192.168.77.14
1795780800 06-52:54:00:00:00:04 192.168.77.15 * *
duid 00:01:00:01
1795780800 1 fd00::1 * 00:01
`)
	g.Expect(entries).To(Equal([]Entry{
		entry(1, "192.168.77.10", "52:54:00:00:00:01", "01:52:54:00:00:00:01", "worker-1", noon, ""),
		entry(2, "192.168.77.11", "52:54:00:00:00:02", "", "", time.Time{}, ""),
	}))
	g.Expect(problems).To(Equal([]Problem{
		{3, `"192.168.77.300" is no address`},
		{4, `"soon" is no time in seconds since 1970`},
		{5, "a lease of dnsmasq has five words: time, hardware address, address, name, client identifier"},
		{6, "192.168.77.15 has neither an Ethernet address nor a client identifier"},
	}))
}

func TestALeaseFileOfISCDhcpd(t *testing.T) {
	g := NewWithT(t)
	entries, problems := dhcpd(`# comment with { and ;
authoring-byte-order little-endian;
server-duid "\000\001\";{";
failover peer "a" state { my state normal at 4 2026/11/26 12:00:00; }
lease 192.168.77.10 {
  starts 4 2026/11/26 12:00:00;
  ends 5 2026/11/27 12:00:00;
  binding state free;
}
lease 192.168.77.10 {
  ends 5 2026/11/27 12:00:00;
  binding state active;
  next binding state free;
  hardware ethernet 52:54:00:00:00:01;
  uid "\001RT\000\000\000\001";
  set vendor-class-identifier = "a;}";
  client-hostname "Worker-1.example.com";
  on expiry { set x = "}"; }
}
lease 192.168.77.11 { ends never; binding state active; hardware ethernet 52:54:00:00:00:02; }
lease 192.168.77.12 { ends epoch 1795780800; # Fri
  binding state abandoned; }
lease 192.168.77.13 { ends 5 2026/11/27 12:00:00; binding state active; uid 00:aa; }
lease 192.168.77.14 { binding state active; hardware ethernet 52:54:00:00:00:04; }
lease 192.168.77.15 { ends 5 2026/11/27 12:00:00; binding state active; hardware token-ring 1:2; }
ia-na "x" { iaaddr fd00::1 { binding state active; } }
lease 192.168.77.16 { ends 5 2026/11`)
	g.Expect(entries).To(Equal([]Entry{
		entry(10, "192.168.77.10", "52:54:00:00:00:01", "01:52:54:00:00:00:01", "worker-1", noon, ""),
		entry(20, "192.168.77.11", "52:54:00:00:00:02", "", "", time.Time{}, ""),
		entry(21, "192.168.77.12", "", "", "", noon, "abandoned"),
		{Line: 23, IP: netip.MustParseAddr("192.168.77.13"), Client: lease.Client{ID: "00:aa"}, ClientID: "00:aa", Ends: noon},
	}))
	g.Expect(problems).To(Equal([]Problem{
		{24, `the lease of 192.168.77.14: it has no statement "ends"`},
		{25, "192.168.77.15 has neither an Ethernet address nor a client identifier"},
		{27, "the file ends in the lease of 192.168.77.16"},
	}))
}

func TestALeaseFileOfKea(t *testing.T) {
	g := NewWithT(t)
	entries, problems := kea(`address,hwaddr,client_id,valid_lifetime,expire,subnet_id,fqdn_fwd,fqdn_rev,hostname,state,user_context,pool_id
192.168.77.10,52:54:00:00:00:09,,3600,1795777200,1,0,0,,0,,0
192.168.77.10,52:54:00:00:00:01,01:52:54:00:00:00:01,3600,1795780800,1,0,0,worker-1.example.com,0,{ "a": 1&#x2c "b": "c" },0
192.168.77.11,52:54:00:00:00:02,,4294967295,1795780800,1,0,0,,0,,0
192.168.77.12,,,86400,1795780800,1,0,0,,1,,0
192.168.77.13,52:54:00:00:00:03,,0,1795780800,1,0,0,,2,,0
192.168.77.14,,,3600,1795780800,1,0,0,,0,,0
192.168.77.15,52:54:00:00:00:04,,3600,soon,1,0,0,,0,,0
fd00::1,,,3600,1795780800,1,0,0,,0,,0
`)
	g.Expect(entries).To(Equal([]Entry{
		entry(3, "192.168.77.10", "52:54:00:00:00:01", "01:52:54:00:00:00:01", "worker-1", noon, ""),
		entry(4, "192.168.77.11", "52:54:00:00:00:02", "", "", time.Time{}, ""),
		entry(5, "192.168.77.12", "", "", "", noon, "declined"),
		entry(6, "192.168.77.13", "52:54:00:00:00:03", "", "", noon, "expired"),
	}))
	g.Expect(problems).To(Equal([]Problem{
		{7, "192.168.77.14 has neither an Ethernet address nor a client identifier"},
		{8, `"soon" in column expire is no time in seconds since 1970`},
		{9, "fd00::1 is IPv6: oooi leases IPv4 addresses only"},
	}))
	entries, problems = kea("address,hwaddr,expire,user_context,hostname\r\n\r\n192.168.77.16,52:54:00:00:00:06,1795780800,{ \"a\": \"b&#x2cc&#x\" },worker&#x2D6\r\na\"b,52:54:00:00:00:06,1795780800\n")
	g.Expect(entries).To(Equal([]Entry{entry(3, "192.168.77.16", "52:54:00:00:00:06", "", "worker-6", noon, "")}))
	g.Expect(problems).To(Equal([]Problem{{4, `"a\"b" is no address`}}))
	_, problems = kea("192.168.77.10,52:54:00:00:00:09\n")
	g.Expect(problems).To(Equal([]Problem{{1, "the first line must name Kea's columns, address, hwaddr and expire among them"}}))
}

func TestWhatOooiExports(t *testing.T) {
	g := NewWithT(t)
	entries, problems := ours(`{"ip":"192.168.77.10","mac":"52:54:00:00:00:01","hostname":"worker-1","vmRef":{"namespace":"a","name":"b","uid":"c"},"serverRef":{"name":"c1-dhcp"},"state":"Bound","durableUntilTime":"2026-11-27T12:00:00.000000Z","lastTransitionTime":"2026-11-27T11:00:00Z"}

{"ip":"192.168.77.11","mac":"52:54:00:00:00:02","serverRef":{"name":"c1-dhcp"},"state":"Released","durableUntilTime":"2026-11-27T12:00:00.000000Z"}
{"ip":"192.168.77.12","serverRef":{"name":"c1-dhcp"},"state":"Bound","durableUntilTime":"2026-11-27T12:00:00.000000Z"}
{"address":"192.168.77.12"}
`)
	g.Expect(entries).To(Equal([]Entry{
		{Line: 1, IP: netip.MustParseAddr("192.168.77.10"), Client: lease.Client{MAC: "52:54:00:00:00:01"}, Hostname: "worker-1", Since: noon.Add(-time.Hour), Ends: noon, VM: true},
		entry(3, "192.168.77.11", "52:54:00:00:00:02", "", "", noon, "Released"),
	}))
	g.Expect(problems).To(Equal([]Problem{
		{4, "192.168.77.12 has neither an Ethernet address nor a client identifier"},
		{5, "it is no line of `oooi leases export`: json: unknown field \"address\""},
	}))
}

// Whatever a file holds, reading it ends.
func FuzzLeaseFiles(f *testing.F) {
	f.Add("lease 192.168.77.10 { ends never; uid \"\\001\\\n}")
	f.Add("address,hwaddr,expire\na\"b,52:54:00:00:00:01,1\n192.168.77.10,52:54:00:00:00:01,1795780800,&#x2c&#x")
	f.Add("0 52:54:00:00:00:02 192.168.77.11 * *\nduid 00:01\n")
	f.Add(`{"ip":"192.168.77.10","mac":"52:54:00:00:00:01","state":"Bound"}`)
	f.Fuzz(func(_ *testing.T, content string) {
		for _, read := range Kinds {
			read(content)
		}
	})
}
