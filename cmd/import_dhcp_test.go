package cmd

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// dhcpd.conf(5), "Pool Permit Lists": the usual form of failover, whose limit is for BOOTP alone.
func TestAPoolThatIsLimitedForBOOTPIsForAll(t *testing.T) {
	g := NewWithT(t)
	infra, left := fromOne(t, "isc-dhcpd", `subnet 192.168.10.0 netmask 255.255.255.0 {
  pool { failover peer "dhcp"; deny dynamic bootp clients; range 192.168.10.100 192.168.10.200; }
}
`)
	g.Expect(infra).To(And(ContainSubstring("rangeStart: 192.168.10.100\n"), ContainSubstring("rangeEnd: 192.168.10.200\n"), Not(ContainSubstring("unknownClients"))))
	g.Expect(left).To(And(ContainSubstring(`FILE:2: failover peer "dhcp";: two instances`), Not(ContainSubstring("some clients"))))
}

// dhcpd.conf(5), "Address pools": its own example, but for the addresses that an Infra cannot have.
func TestUnknownClientsKeepTheirPool(t *testing.T) {
	g := NewWithT(t)
	infra, left := fromOne(t, "isc-dhcpd", `subnet 10.0.0.0 netmask 255.255.255.0 {
  option routers 10.0.0.254;

  # Unknown clients get this pool.
  pool {
    option domain-name-servers bogus.example.com;
    max-lease-time 300;
    range 10.0.0.200 10.0.0.253;
    allow unknown-clients;
  }

  # Known clients get this pool.
  pool {
    option domain-name-servers ns1.example.com, ns2.example.com;
    max-lease-time 28800;
    range 10.0.0.5 10.0.0.199;
    deny unknown-clients;
  }
}
`)
	g.Expect(infra).To(And(ContainSubstring("rangeStart: 10.0.0.200\n"), ContainSubstring("rangeEnd: 10.0.0.253\n"), Not(ContainSubstring("unknownClients"))))
	g.Expect(left).To(And(
		ContainSubstring("FILE:16: range 10.0.0.5 10.0.0.199;: the range is for known clients only: it is left, and they get an address of the others"),
		ContainSubstring("FILE:5: pool { … }: it is for clients without a host declaration")))

	infra, _ = fromOne(t, "isc-dhcpd", "subnet 10.0.0.0 netmask 255.255.255.0 { pool { range 10.0.0.5 10.0.0.9; allow known-clients; } pool { range 10.0.0.20 10.0.0.29; deny known-clients; } }")
	g.Expect(infra).To(And(ContainSubstring("rangeStart: 10.0.0.20\n"), ContainSubstring("rangeEnd: 10.0.0.29\n"), Not(ContainSubstring("unknownClients"))))
	infra, _ = fromOne(t, "isc-dhcpd", "subnet 10.0.0.0 netmask 255.255.255.0 { pool { range 10.0.0.5 10.0.0.9; allow known-clients; } }")
	g.Expect(infra).To(And(ContainSubstring("rangeStart: 10.0.0.5\n"), ContainSubstring("unknownClients: Ignore\n")))
}

// An Infra that would serve nobody but reservations is not applied as it is, where the files serve others.
func TestAnInfraThatServesFewerIsChangedFirst(t *testing.T) {
	for _, limit := range []string{`allow members of "phones"`, `deny members of "phones"`, "allow dynamic bootp clients", "allow known-clients; deny known-clients"} {
		g := NewWithT(t)
		text := "subnet 192.168.10.0 netmask 255.255.255.0 {\n  pool {\n    " + limit + ";\n    range 192.168.10.100 192.168.10.200;\n  }\n}\n"
		infra, said, err := imported(text, "-f", "testdata/moving/infra.yaml", "--isc-dhcpd", "-")
		g.Expect(ExitCode(err)).To(Equal(1))
		g.Expect(err).To(MatchError(ContainSubstring("dhcp.unknownClients: Ignore is written, since the range of -:4, which clients without a reservation may have had, is left")), limit)
		g.Expect(infra).To(ContainSubstring("unknownClients: Ignore\n"))
		g.Expect(said).To(ContainSubstring("-:2: pool { … }: it is for some clients only"))
	}
}

// Who denies unknown clients serves no fewer, whatever pools are left.
func TestUnknownClientsAreDenied(t *testing.T) {
	infra, _, err := imported("deny unknown-clients;\nsubnet 192.168.10.0 netmask 255.255.255.0 {\n  pool { allow members of \"a\"; range 192.168.10.100 192.168.10.200; }\n}\n",
		"-f", "testdata/moving/infra.yaml", "--isc-dhcpd", "-")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(infra).To(ContainSubstring("unknownClients: Ignore\n"))
}

// Kea serves the clients of a class from a pool, and all from one without; KNOWN and UNKNOWN are classes of its own.
func TestKeasPoolsAreOfClasses(t *testing.T) {
	for pools, says := range map[string]struct {
		infra, left, not string
		fails            bool
	}{
		`{"pool": "10.0.0.5-10.0.0.9", "client-class": "KNOWN"}, {"pool": "10.0.0.20-10.0.0.29"}`:                 {infra: "rangeStart: 10.0.0.20\n", left: "the range is for known clients only: it is left", not: "unknownClients"},
		`{"pool": "10.0.0.5-10.0.0.9", "client-classes": ["KNOWN"]}`:                                              {infra: "unknownClients: Ignore\n", not: "some clients"},
		`{"pool": "10.0.0.5-10.0.0.9", "client-class": "UNKNOWN"}`:                                                {infra: "rangeStart: 10.0.0.5\n", left: "it is for clients without a reservation", not: "unknownClients"},
		`{"pool": "10.0.0.5-10.0.0.9", "client-classes": ["phones", "ALL"]}`:                                      {infra: "rangeStart: 10.0.0.5\n", not: "some clients"},
		`{"pool": "10.0.0.5-10.0.0.9", "client-class": "phones"}, {"pool": "10.0.0.20 - 10.0.0.29"}`:              {infra: "rangeEnd: 10.0.0.29\n", left: "FILE:1: \"pool\": 10.0.0.5-10.0.0.9: it is for some clients only", not: "unknownClients"},
		`{"pool": "10.0.0.5-10.0.0.9", "client-class": "phones"}`:                                                 {infra: "unknownClients: Ignore\n", left: "some clients only", fails: true},
		`{"pool": "10.0.0.5-10.0.0.9", "client-class": "KNOWN"}, {"pool": "10.0.0.20/30", "client-class": "fax"}`: {infra: "rangeEnd: 10.0.0.9\n", left: "some clients only", fails: true},
	} {
		g := NewWithT(t)
		infra, left, err := imported(`{"Dhcp4": {"subnet4": [{"subnet": "10.0.0.0/24", "pools": [`+pools+`]}]}}`, "-f", "testdata/moving/infra.yaml", "--kea", "-")
		g.Expect(infra).To(ContainSubstring(says.infra), pools)
		g.Expect(left).To(ContainSubstring(strings.ReplaceAll(says.left, "FILE", "-")), pools)
		if says.not != "" {
			g.Expect(infra+left).NotTo(ContainSubstring(says.not), pools)
		}
		if !says.fails {
			g.Expect(err).NotTo(HaveOccurred(), pools)
			continue
		}
		g.Expect(err).To(MatchError(ContainSubstring("dhcp.unknownClients: Ignore is written, since the range of -:1, which clients")), pools)
		g.Expect(ExitCode(err)).To(Equal(1))
	}
	_, _, err := imported(`{"Dhcp4": {"shared-networks": [{"client-class": "phones", "subnet4": [{"subnet": "10.0.0.0/24", "pools": [{"pool": "10.0.0.5-10.0.0.9"}]}]}]}}`,
		"-f", "testdata/moving/infra.yaml", "--kea", "-")
	NewWithT(t).Expect(ExitCode(err)).To(Equal(1))
}

// dnsmasq serves clients without a reservation from its other ranges, for their time; those of a tag from the tag's (dnsmasq(8), --dhcp-range).
func TestAStaticRangeIsBesideOthers(t *testing.T) {
	g := NewWithT(t)
	const static, dynamic, tagged = "dhcp-range=10.0.0.0,static,255.255.255.0\n", "dhcp-range=10.0.0.50,10.0.0.150,255.255.255.0,12h\n", "dhcp-range=tag:red,10.0.0.200,10.0.0.210,255.255.255.0\n"
	for _, text := range []string{static + dynamic, dynamic + static} {
		infra, left := fromOne(t, "dnsmasq", text)
		g.Expect(infra).To(And(ContainSubstring("rangeStart: 10.0.0.50\n"), ContainSubstring("leaseTime: 12h0m0s\n"), Not(ContainSubstring("unknownClients"))))
		g.Expect(left).To(ContainSubstring("dhcp-range=10.0.0.0,static,255.255.255.0: FILE:"))
	}
	infra, _ := fromOne(t, "dnsmasq", static)
	g.Expect(infra).To(ContainSubstring("unknownClients: Ignore\n"))
	_, left, err := imported(static+tagged, "-f", "testdata/moving/infra.yaml", "--dnsmasq", "-")
	g.Expect(left).To(ContainSubstring("-:2: dhcp-range=tag:red,10.0.0.200,10.0.0.210,255.255.255.0: it is for some clients only"))
	g.Expect(ExitCode(err)).To(Equal(1))
	g.Expect(err).To(MatchError(ContainSubstring("since the range of -:2, which clients without a reservation may have had, is left")))
}
