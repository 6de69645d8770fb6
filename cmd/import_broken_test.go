package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// broken is a file that its server refuses.
type broken struct {
	kind, text string
	says       string   // of where, and what to do
	made, not  []string // of the Infra
}

const subnetOf = "subnet 10.0.0.0 netmask 255.255.255.0 { option routers 10.0.0.1; }\n"

var brokenFiles = map[string]broken{
	"dhcpd ends within a word": {
		"isc-dhcpd", subnetOf + "host a { hardware ethernet 52:54:00:00:00:01; fixed-address 10.0.0.5; }\noption ntp-servers 10.0.0.1",
		"FILE:3: option ntp-servers 10.0.0.1: nothing of it is taken, since the file ends before the ; of the statement on line 3: write what is missing",
		[]string{"gateway: 10.0.0.1\n", "ip: 10.0.0.5\n"}, []string{"ntpServers"},
	},
	"dhcpd ends within blocks": {
		"isc-dhcpd", subnetOf + "group {\n  host a { fixed-address 10.0.0.5; hardware ethernet 52:54:00:00:00:01; }\n  host b {\n    fixed-address 10.0.0.6;\n",
		"FILE:2: group { … }: nothing of it is taken, since the file ends before the } of the statement on line 4: write what is missing",
		[]string{"gateway: 10.0.0.1\n"}, []string{"10.0.0.5"},
	},
	"dhcpd ends within quotes": {
		"isc-dhcpd", subnetOf + "option domain-name \"example.com;\ninclude \"x\";\n", "FILE:2: option domain-name \"example.com;", []string{"gateway: 10.0.0.1\n"}, []string{"searchDomains"},
	},
	"dhcpd has a brace too many": {
		"isc-dhcpd", subnetOf + "}\noption ntp-servers 10.0.0.1;\n", "FILE:2: }: no { is before it, and its server refuses that: mend it", []string{"gateway: 10.0.0.1\n", "- 10.0.0.1\n"}, nil,
	},
	"named ends within a block": {
		"bind", "options {\n  forwarders { 10.0.0.53; };\n", "FILE:1: options { … }: nothing of it is taken, since the file ends before the } of the statement on line 1", nil, []string{"10.0.0.53"},
	},
	"named ends within a comment": {
		"bind", "options { forwarders { 10.0.0.53; }; };\n/* zone \"a\" { type primary; };\n", "FILE:2: /* zone \"a\"", []string{"10.0.0.53"}, nil,
	},
	"Kea lacks a comma": {
		"kea", "{ \"Dhcp4\": {\n  \"subnet4\": [ { \"subnet\": \"10.0.0.0/24\" } ], // one, two\n  \"valid-lifetime\": 600\n\n  \"option-data\": [ ]\n} }\n",
		"FILE:5: \"option-data\": [ ]: nothing is read from here on, since Kea refuses it, too: invalid character", []string{"cidr: 10.0.0.0/24\n", "leaseTime: 10m0s\n"}, nil,
	},
	"Kea has a word that is none": {
		"kea", "{ \"Dhcp4\": {\n  \"subnet4\": [ { \"subnet\": \"10.0.0.0/24\",\n \"authoritative\":\n   yes } ] } }\n", "FILE:4: yes } ] } }: nothing is read from here on", []string{"cidr: 10.0.0.0/24\n"}, nil,
	},
	"Kea has a text on two lines": {
		"kea", "{ \"Dhcp4\": {\n  \"subnet4\": [ { \"subnet\": \"10.0.0.0/24\" } ],\n\"allocator\": \"random,\n \"x\": 1\n} }\n", "FILE:3: \"random,: nothing is read from here on", []string{"cidr: 10.0.0.0/24\n"}, nil,
	},
	"Kea has brackets too few": {
		"kea", "{ \"Dhcp4\": {\n  \"subnet4\": [ { \"subnet\": \"10.0.0.0/24\" }\n", "FILE:3: the end of the file: nothing is read from here on, since Kea refuses it, too: a bracket or quote is not closed: mend it", []string{"cidr: 10.0.0.0/24\n"}, nil,
	},
	"Kea has brackets too many": {
		"kea", "{ \"Dhcp4\": {\n  \"subnet4\": [ { \"subnet\": \"10.0.0.0/24\" } ] } }\n}\n", "FILE:3: }: nothing is read from here on, since Kea refuses it, too: it stands behind the end", []string{"cidr: 10.0.0.0/24\n"}, nil,
	},
}

// A file that its server refuses is imported as far as it is understood, and the Infra is not to be applied before the file is mended.
func TestAFileThatItsServerRefusesIsMendedFirst(t *testing.T) {
	for name, c := range brokenFiles {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			file := filepath.Join(t.TempDir(), "file")
			g.Expect(os.WriteFile(file, []byte(c.text), 0o600)).To(Succeed())
			infra, left, err := imported("", "-f", "testdata/moving/infra.yaml", "--"+c.kind, file)
			left = strings.ReplaceAll(left, file, "FILE")
			g.Expect(left).To(ContainSubstring(c.says))
			g.Expect(ExitCode(err)).To(Equal(1))
			where := strings.Join(strings.SplitN(c.says, ":", 3)[:2], ":")
			g.Expect(err).To(MatchError(ContainSubstring("the files: they are not read in full at %s: do what is written above of that", strings.ReplaceAll(where, "FILE", file))))
			for _, made := range c.made {
				g.Expect(infra).To(ContainSubstring(made))
			}
			for _, not := range c.not {
				g.Expect(infra).NotTo(ContainSubstring(not))
			}
		})
	}
}

// Kea takes numbers that JSON does not have.
func TestNumbersAsKeaTakesThem(t *testing.T) {
	g := NewWithT(t)
	infra, left, err := imported("{ \"Dhcp4\": { \"valid-lifetime\":00600, \"t1-percent\": +00.5, \"t2-percent\": .8e-00, \"ddns-ttl-percent\":-00.5,\n"+
		"  \"subnet4\": [ { \"subnet\": \"10.0.0.0/24\", \"reservations\": [ { \"hw-address\": \"52:54:00:00:00:01\", \"ip-address\": \"10.0.0.5\" } ] } ] } }\n",
		"-f", "testdata/moving/infra.yaml", "--kea", "-")
	g.Expect(err).NotTo(HaveOccurred(), left)
	g.Expect(infra).To(And(ContainSubstring("leaseTime: 10m0s\n"), ContainSubstring("ip: 10.0.0.5\n")))
}

// Kea 2.2 refuses a plus, a point or an exponent where it expects an integer, and takes zeros before one, and any number where it expects another one.
func TestAnIntegerThatKeaRefusesIsTold(t *testing.T) {
	for _, number := range []string{"+600", "+00600", "600.0", "6e2"} {
		g := NewWithT(t)
		infra, left, err := imported("{ \"Dhcp4\": { \"t1-percent\": "+number+", \"user-context\": { \"id\": "+number+" },\n\"valid-lifetime\": "+number+",\n"+
			"\"option-def\": [ { \"name\": \"site\", \"code\": "+number+", \"type\": \"string\" } ], \"option-data\": [ { \"code\":+222, \"csv-format\": false, \"data\": \"00\" } ],\n\"subnet4\": [ { \"subnet\": \"10.0.0.0/24\" } ] } }\n",
			"-f", "testdata/moving/infra.yaml", "--kea", "-")
		g.Expect(err).To(MatchError(ContainSubstring("they are not read in full at -:2, -:3")))
		g.Expect(infra).To(And(Not(ContainSubstring("leaseTime: 10m0s")), Not(ContainSubstring("options:"))))
		g.Expect(left).To(MatchRegexp(`-:2: "valid-lifetime": \S+: it is left, since Kea refuses it, too: write the integer without a plus, point or exponent\n`), number)
		g.Expect(left).To(And(ContainSubstring("-:3: \"code\": "), Not(ContainSubstring("a space of their own"))))
	}
}

// What is included and cannot be read is told, and is wanted before the Infra is applied.
func TestWhatIsIncludedIsWanted(t *testing.T) {
	for kind, text := range map[string]string{
		"isc-dhcpd": subnetOf + "include \"/absent/absent.conf\";\n",
		"dnsmasq":   "dhcp-range=10.0.0.5,10.0.0.9,255.255.255.0\nconf-file=/absent/absent.conf\n",
		"kea":       "{ \"Dhcp4\": { \"subnet4\": [ { \"subnet\": \"10.0.0.0/24\" } ],\n <?include \"/absent/absent.json\"?> } }\n",
		"bind":      "options { };\ninclude \"/absent/absent.conf\";\n",
	} {
		g := NewWithT(t)
		file := filepath.Join(t.TempDir(), "file")
		g.Expect(os.WriteFile(file, []byte(text), 0o600)).To(Succeed())
		_, left, err := imported("", "-f", "testdata/moving/infra.yaml", "--"+kind, file)
		g.Expect(left).To(And(ContainSubstring("file:2: "), ContainSubstring("give that file too, with --"+kind)), kind)
		g.Expect(ExitCode(err)).To(Equal(1))
		g.Expect(err).To(MatchError(ContainSubstring("not read in full at %s:2", file)), kind)
	}
	g := NewWithT(t)
	_, left, err := imported(subnetOf+"host a {\n  include \"/absent/a.conf\";\n}\ninclude \"/absent/b.conf\";\n", "-f", "testdata/moving/infra.yaml", "--isc-dhcpd", "-")
	g.Expect(left).To(ContainSubstring("-:3: include \"/absent/a.conf\";: give that file too"))
	g.Expect(err).To(MatchError(ContainSubstring("not read in full at -:3, -:5: do")))
}
