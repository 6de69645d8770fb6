package cmd

import (
	"testing"

	. "github.com/onsi/gomega"
)

// The zone of all names counts before the options' forwarders (BIND 9.18 manual, zone type forward), wherever they stand.
func TestTheZoneOfAllNamesHasTheResolvers(t *testing.T) {
	const zone, options = "zone \".\" { type forward; forwarders { 10.9.9.9; }; };\n", "options { forwarders { 10.8.8.8; }; };\n"
	for _, text := range []string{zone + options, options + zone} {
		g := NewWithT(t)
		infra, left := fromOne(t, "bind", text)
		g.Expect(infra).To(And(ContainSubstring("10.9.9.9"), Not(ContainSubstring("10.8.8.8"))))
		g.Expect(left).To(ContainSubstring("10.8.8.8;: zone \".\" says who is asked for all names\n"))
	}
	infra, left := fromOne(t, "bind", options+"zone \".\" { type hint; file \"/usr/share/dns/root.hints\"; };\n")
	NewWithT(t).Expect(infra).To(ContainSubstring("10.8.8.8"))
	NewWithT(t).Expect(left).NotTo(ContainSubstring("zone ."))
	_, left = fromOne(t, "bind", "zone \".\" { type forward; forwarders { }; };\n")
	NewWithT(t).Expect(left).To(ContainSubstring("FILE:1: "))
}

// The only view is the VLAN's.
func TestTheOnlyViewIsTheVLANs(t *testing.T) {
	const options, zone = "options { forwarders { 10.8.8.8; }; };\n", `zone "." { type forward; forwarders { 10.9.9.9; }; };`
	g := NewWithT(t)
	infra, left := fromOne(t, "bind", options+"view \"tenant\" { match-clients { 192.168.77.0/24; };\n "+zone+"\n};\n")
	g.Expect(infra).To(And(ContainSubstring("10.9.9.9"), Not(ContainSubstring("10.8.8.8"))))
	g.Expect(left).To(And(ContainSubstring("FILE:2: match-clients { … }: DNS answers clients of the VLAN"), Not(ContainSubstring("view"))))
	infra, _ = fromOne(t, "bind", "view \"tenant\" { match-clients { any; }; forwarders { 10.9.9.9; }; };\n"+options)
	g.Expect(infra).To(And(ContainSubstring("10.9.9.9"), Not(ContainSubstring("10.8.8.8"))))
}

// A zone file stays one, whatever its comments have, and a delegation in it is told.
func TestAZoneFileIsReadAsOne(t *testing.T) {
	g := NewWithT(t)
	infra, left := fromOne(t, "bind", `$ORIGIN lab.example.com.
@ SOA ns hostmaster 1 1h 15m 1w 5m ; it is {old}; include the other one
@ NS ns
sub NS ns.sub
ns A 192.168.77.53
text TXT "a { brace }"
`)
	g.Expect(infra).To(ContainSubstring("hostname: ns.lab.example.com\n"))
	g.Expect(left).To(And(
		ContainSubstring("FILE:4: sub NS ns.sub: what is below sub.lab.example.com is another server's"), Not(ContainSubstring("FILE:3: ")),
		ContainSubstring("FILE:6: "), Not(ContainSubstring("an Infra has nothing like it"))))
}
