package cmd

import (
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
