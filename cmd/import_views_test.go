package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// viewsCase has lists of addresses of two views, and which of them clients of 192.168.77.0/24 get: one, two, none, some of them the first, or it depends.
type viewsCase struct {
	acls, one, two, get string
}

var viewsCases = []viewsCase{
	{"", "192.168.77.0/24;", "any;", "one"},
	{"", "192.168/16;", "any;", "one"},
	{"", "any;", "192.168.77.0/24;", "one"},
	{"", "{ any; };", "any;", "one"},
	{"", "10/8;", "any;", "two"},
	{"", "10.0.0.0/8;", "172.16.0.0/12; 192.168.78.0/24;", "none"},
	{"", "fd00::/8; ::/0;", "any;", "two"},
	{"", "!192.168.77.0/24; any;", "any;", "two"},
	{"", "10.0.0.0/8; !any; 192.168.77.0/24;", "any;", "two"},
	{"", "none;", "any;", "two"},
	{"", "!none;", "any;", "one"},
	{"", "localnets;", "any;", "one"},
	{"", "! localnets; any;", "any;", "two"},
	{"", "localhost;", "any;", "two"},
	{"", "!localhost; 192.168.77.0/24;", "any;", "one"},
	{`acl "vlan" { 192.168.77.0/24; };`, "VLAN;", "any;", "one"},
	{`acl vlan { 192.168.77.0/24; };`, `!"vlan"; any;`, "any;", "two"},
	{"acl a { b; }; acl b { !192.168.77.0/24; any; };", "a; 10.0.0.0/8;", "any;", "two"},
	{"acl a { b; }; acl b { 192.168.0.0/16; };", "!{ 192.168.77.0/25; }; a;", "any;", "some"},
	{"", "{ !192.168.77.0/24; any; }; 192.168.0.0/16;", "any;", "one"},
	{"", "!{ !192.168.77.0/24; any; }; any;", "any;", "one"},
	{"", "!{ none; }; any;", "any;", "one"},
	{"", "! { 192.168.77.0/24; }; any;", "any;", "two"},
	{"", "192.168.77.0/25; { 192.168.77.128/25; };", "any;", "one"},
	{"", "192.168.77.0/25;", "any;", "some"},
	{"", "!192.168.77.200; any;", "any;", "some"},
	{"", "key k; 192.168.77.0/24;", "any;", "one"},
	{"", "key k;", "any;", "depends on key k (named.conf:4)"},
	{"", "10.0.0.0/8; !key k; any;", "any;", "depends on !key k (named.conf:4)"},
	{"acl a { b; }; acl b { key k; };", "a;", "any;", "depends on key k (named.conf:3)"},
	{"", "any; }; match-destinations { 192.168.77.3;", "any;", "depends on match-destinations (named.conf:4)"},
	{"", "any; }; match-destinations { any;", "any;", "one"},
	{"", "10/8; }; match-recursive-only yes; match-destinations { 192.168.77.9;", "any;", "two"},
}

// files are the server's: a name has an address of its own in each view.
func (c viewsCase) files() map[string]string {
	const view = "view %s { match-clients { %s }; zone \"example.com\" { type primary; file \"%[1]s.zone\"; }; };\n"
	const zone = "$TTL 60\n@ SOA ns hostmaster 1 1h 15m 1w 5m\n@ NS ns\nns A 192.168.77.3\nwhich.example.com. A 192.168.77.10%d\n"
	return map[string]string{
		"named.conf": "options { directory \".\"; pid-file none; session-keyfile none; listen-on { 192.168.77.3; }; listen-on-v6 { none; }; recursion no; dnssec-validation no; };\n" +
			"controls { }; key k { algorithm hmac-sha256; secret \"c2VjcmV0\"; };\n" + c.acls + "\n" + fmt.Sprintf(view, "one", c.one) + fmt.Sprintf(view, "two", c.two),
		"one.zone": fmt.Sprintf(zone, 1), "two.zone": fmt.Sprintf(zone, 2),
	}
}

// writeAll writes files into a new directory, which is the working directory from then on.
func writeAll(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		NewWithT(t).Expect(os.MkdirAll(filepath.Dir(name), 0o700)).To(Succeed())
		NewWithT(t).Expect(os.WriteFile(name, []byte(text), 0o600)).To(Succeed())
	}
}

const infraOfVLAN = "apiVersion: hostedcluster.densityops.com/v1alpha1\nkind: Infra\nmetadata: {name: c1, namespace: clusters}\nspec:\n" +
	"  networkConfig: {cidr: 192.168.77.0/24, networkAttachmentDefinition: vlan100}\n"

// Of several views the first counts that has the VLAN's clients (BIND 9.18 manual, view), of address match lists the first element that matches. That named
// does so is shown in a network namespace.
func TestTheViewOfTheVLANsClientsIsImported(t *testing.T) {
	for _, c := range viewsCases {
		t.Run(c.acls+c.one, func(t *testing.T) {
			g := NewWithT(t)
			writeAll(t, c.files())
			infra, left, _ := imported(infraOfVLAN, "-f", "-", "--bind", "named.conf", "--bind", "one.zone", "--bind", "two.zone")
			for view, at := range map[string]string{"one": "192.168.77.101", "two": "192.168.77.102"} {
				g.Expect(strings.Contains(infra, at)).To(Equal(view == c.get), left)
				line := map[string]int{"one": 4, "two": 5}[view]
				g.Expect(strings.Contains(left, fmt.Sprintf("named.conf:%d: view %s { … }: ", line, view))).To(Equal(view != c.get), left)
			}
			says := map[string]string{
				"one":  "clients of 192.168.77.0/24 get view one (named.conf:4); all that stands in this one is left\n",
				"two":  "clients of 192.168.77.0/24 get view two (named.conf:5); all that stands in this one is left\n",
				"some": "some clients of 192.168.77.0/24 get view one (named.conf:4), and some do not: give a file with --bind",
				"none": "no view is for clients of 192.168.77.0/24: give a file with --bind",
			}[c.get]
			if says == "" {
				says = "whether clients of 192.168.77.0/24 get view one " + c.get + ": give a file with --bind"
			}
			g.Expect(left).To(ContainSubstring(says))
		})
	}
}

// What named would refuse decides nothing, and holds nobody up.
func TestAListThatNamedRefusesDecidesNothing(t *testing.T) {
	var deep strings.Builder
	for i := range 60 {
		fmt.Fprintf(&deep, "acl a%d { a%d; a%d; }; ", i, i+1, i+1)
	}
	for list, acls := range map[string]string{"absent;": "", "a;": "acl a { b; }; acl b { a; };", "192.168.77.1/24;": "", "!; any;": "", "a0;": deep.String()} {
		writeAll(t, viewsCase{acls, list, "any;", ""}.files())
		said := make(chan []string, 1)
		go func() {
			infra, left, _ := imported(infraOfVLAN, "-f", "-", "--bind", "named.conf")
			said <- []string{infra, left}
		}()
		NewWithT(t).Eventually(said, 10*time.Second).Should(Receive(HaveExactElements(
			Not(ContainSubstring("which.example.com")), ContainSubstring("whether clients of 192.168.77.0/24 get view one depends on "))), list)
	}
}

// The network is that of another file, or nobody's.
func TestAViewIsChosenByTheNetworkOfAnotherFile(t *testing.T) {
	g := NewWithT(t)
	writeAll(t, viewsCase{"", "192.168.77.0/24;", "any;", ""}.files())
	for flag, text := range map[string]string{
		"isc-dhcpd": "subnet 192.168.77.0 netmask 255.255.255.0 { range 192.168.77.10 192.168.77.20; }\n",
		"kea":       `{"Dhcp4": {"subnet4": [{"subnet": "192.168.77.0/24"}]}}`,
		"dnsmasq":   "dhcp-range=192.168.77.10,192.168.77.20,255.255.255.0\nport=0\n",
	} {
		infra, left, _ := imported(text, "--"+flag, "-", "--bind", "named.conf")
		g.Expect(infra).To(ContainSubstring("192.168.77.101"), left)
	}
	infra, left, _ := imported("", "--bind", "named.conf")
	g.Expect(infra).NotTo(ContainSubstring("which.example.com"))
	g.Expect(left).To(ContainSubstring("named.conf:4: view one { … }: no file says the network of the VLAN, by which its view is chosen: write networkConfig.cidr into an Infra"))
}

// A file that is missing may say whose a view is.
func TestAViewOfWhichAFileIsMissingIsForNobody(t *testing.T) {
	g := NewWithT(t)
	writeAll(t, map[string]string{
		"named.conf": "view out { include \"out.conf\"; };\nview in { match-clients { any; }; zone \"example.com\" { type primary; file \"a\"; }; };\n",
		"a":          "which.example.com. A 192.168.77.101\n",
	})
	infra, left, _ := imported(infraOfVLAN, "-f", "-", "--bind", "named.conf")
	g.Expect(infra).NotTo(ContainSubstring("which.example.com"))
	g.Expect(left).To(ContainSubstring("whether clients of 192.168.77.0/24 get view out depends on include"))
}

// A zone may be another view's (in-view), and a view of another class.
func TestAViewHasZonesOfAnother(t *testing.T) {
	g := NewWithT(t)
	writeAll(t, map[string]string{
		"named.conf": "view chaos ch { match-clients { any; }; zone \"bind\" ch { type primary; file \"a\"; }; };\nview one { match-clients { 10/8; }; zone \"example.com\" { type primary; file \"a\"; }; };\n" +
			"view two IN { zone \"example.com\" { in-view one; }; forwarders { 192.168.77.9; }; };\n",
		"a": "which.example.com. A 192.168.77.101\n",
	})
	infra, left, _ := imported(infraOfVLAN, "-f", "-", "--bind", "named.conf")
	g.Expect(infra).To(And(ContainSubstring("192.168.77.101"), ContainSubstring("- 192.168.77.9\n")), left)
	g.Expect(left).To(And(ContainSubstring("named.conf:1: view chaos ch { … }: clients ask for names of class IN"), ContainSubstring("named.conf:2: view one { … }: clients of"), Not(ContainSubstring("in-view"))))
}
