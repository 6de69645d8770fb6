package cmd

import (
	"os"
	"testing"

	. "github.com/onsi/gomega"
)

func keaOptions(definitions, data string) string {
	return `{"Dhcp4": {"option-def": [` + definitions + `], "option-data": [` + data + `], "subnet4": [{"subnet": "10.0.0.0/24"}]}}`
}

// Kea encodes an option as it, or the file, defines it (Kea Administrator Reference Manual, "Custom DHCPv4 Options").
func TestKeasOptionsHaveTheirTypes(t *testing.T) {
	for _, c := range []struct{ definition, data, made string }{
		{"", `{"name": "path-mtu-aging-timeout", "data": "600"}`, "- code: 24\n        type: UInt32\n        value: \"600\"\n"},
		{"", `{"code": 24, "data": "600"}`, "- code: 24\n        type: UInt32\n        value: \"600\"\n"},
		{"", `{"name": "path-mtu-plateau-table", "data": "68, 296"}`, "- code: 25\n        type: Hex\n        value: \"00440128\"\n"},
		{"", `{"name": "capwap-ac-v4", "data": "10.0.0.7, 10.0.0.8"}`, "- code: 138\n        type: IPv4List\n        value: 10.0.0.7,10.0.0.8\n"},
		{`{"name": "site", "code": 222, "type": "uint16"}`, `{"name": "site", "data": "513"}`, "- code: 222\n        type: UInt16\n        value: \"513\"\n"},
		{`{"name": "site", "code": 222, "type": "uint32", "array": true}`, `{"code": 222, "data": "1,2"}`, "- code: 222\n        type: Hex\n        value: \"0000000100000002\"\n"},
		{`{"name": "site", "code": 222, "type": "ipv4-address"}`, `{"name": "site", "data": "10.0.0.7"}`, "- code: 222\n        type: IPv4List\n        value: 10.0.0.7\n"},
		{`{"name": "site", "code": 222, "type": "boolean"}`, `{"name": "site", "data": "true"}`, "- code: 222\n        type: Bool\n        value: \"true\"\n"},
		{`{"name": "site", "code": 222, "type": "string"}`, `{"name": "site", "data": "a\\, b"}`, "- code: 222\n        type: String\n        value: a, b\n"},
	} {
		g := NewWithT(t)
		infra, left := fromOne(t, "kea", keaOptions(c.definition, c.data))
		g.Expect(infra).To(ContainSubstring(c.made), left)
		g.Expect(left).NotTo(ContainSubstring("option-data"))
	}
	for _, c := range []struct{ definition, data string }{
		{"", `{"code": 222, "data": "text"}`}, // Kea refuses it
		{`{"name": "site", "code": 222, "type": "record", "record-types": "uint8, uint16"}`, `{"name": "site", "data": "1,2"}`},
		{`{"name": "site", "code": 222, "type": "uint8", "array": true}`, `{"name": "site", "data": "1,256"}`},
	} {
		g := NewWithT(t)
		infra, left := fromOne(t, "kea", keaOptions(c.definition, c.data))
		g.Expect(infra).NotTo(ContainSubstring("options:"))
		g.Expect(left).To(ContainSubstring("its value cannot be said in dhcp.options: write code 222 there with type Hex"))
	}
}

// Kea 2.2 takes all of these (src/lib/util/strutil.cc, decodeFormattedHexString).
func TestKeasHardwareAddressesAreWrittenInSeveralWays(t *testing.T) {
	for _, text := range []string{"1a1b1c1d0e1f", "0x1a1b1c1d0e1f", "1a:1b:1c:1d:e:1f", "1A 1B 1C 1D 0E 1F"} {
		g := NewWithT(t)
		infra, left := fromOne(t, "kea", `{"Dhcp4": {"subnet4": [{"subnet": "10.0.0.0/24", "reservations": [{"hw-address": "`+text+`", "ip-address": "10.0.0.9"}]}]}}`)
		g.Expect(infra).To(ContainSubstring("mac: 1a:1b:1c:1d:0e:1f\n"), text)
		g.Expect(left).NotTo(ContainSubstring(`"reservations"`))
	}
}

// An option of a subnet counts before its shared network's, and that before one for all (dhcpd.conf(5), Kea's manual: "Shared Networks").
func TestTheInnermostOptionCounts(t *testing.T) {
	for kind, text := range map[string]string{
		"isc-dhcpd": "option ntp-servers 10.0.0.1;\nshared-network n {\noption ntp-servers 10.0.0.2;\noption routers 10.0.0.12;\nsubnet 10.0.0.0 netmask 255.255.255.0 {\noption ntp-servers 10.0.0.3;\n} }\n",
		"kea": `{"Dhcp4": {
			"option-data": [{"name": "ntp-servers", "data": "10.0.0.1"}], "shared-networks": [{"name": "n", "option-data": [
			{"name": "ntp-servers", "data": "10.0.0.2"}, {"name": "routers", "data": "10.0.0.12"}],
			"subnet4": [{"subnet": "10.0.0.0/24", "option-data": [{"name": "ntp-servers", "data": "10.0.0.3"}]}]}]}}`,
	} {
		g := NewWithT(t)
		infra, left := fromOne(t, kind, text)
		g.Expect(infra).To(And(ContainSubstring("ntpServers:\n    - 10.0.0.3\n"), Not(ContainSubstring("- 10.0.0.1\n")), Not(ContainSubstring("- 10.0.0.2\n")), ContainSubstring("gateway: 10.0.0.12\n")))
		g.Expect(left).To(And(MatchRegexp(`FILE:.*ntp-servers 10.0.0.2;?: FILE:\d says it for this network`), MatchRegexp(`FILE:.*ntp-servers 10.0.0.1;?: FILE:\d says it for this network`)))
	}
}

// A netmask has its ones first; of another one no network follows.
func TestANetmaskHasItsOnesFirst(t *testing.T) {
	for kind, text := range map[string]string{
		"isc-dhcpd": "subnet 10.0.0.0 netmask 255.255.0.255 { range 10.0.0.5 10.0.0.9; }\n",
		"dnsmasq":   "dhcp-range=10.0.0.5,10.0.0.9,255.255.0.255\ndhcp-range=10.0.0.0,static,255.255.0.255\n",
	} {
		g := NewWithT(t)
		infra, left := fromOne(t, kind, text)
		g.Expect(infra).NotTo(Or(ContainSubstring("cidr: "), ContainSubstring("10.0.0.5")))
		g.Expect(left).To(ContainSubstring("255.255.0.255 is no netmask: its ones have to come first"), kind)
	}
	infra, left := fromOne(t, "isc-dhcpd", "subnet 10.0.0.5 netmask 255.255.255.255 { }\n")
	NewWithT(t).Expect(infra).To(ContainSubstring("cidr: 10.0.0.5/32\n"), left)
}

// dnsmasq sends addresses with a length as routes, with whatever code: 249 is what Windows asks for (dnsmasq 2.90, option.c, parse_dhcp_opt).
func TestDnsmasqsRoutesHaveAnyCode(t *testing.T) {
	g := NewWithT(t)
	infra, left := fromOne(t, "dnsmasq", "dhcp-range=10.0.0.5,10.0.0.9,255.255.255.0\ndhcp-option=249,192.168.1.0/24,10.0.0.1,0.0.0.0/0,10.0.0.2\n")
	g.Expect(infra).To(ContainSubstring("- code: 249\n        type: Hex\n        value: 18c0a8010a000001000a000002\n"))
	g.Expect(left).NotTo(ContainSubstring("249"))
}

// Before version 2.60 a tag was written without set: before it, and dnsmasq reads that still.
func TestDnsmasqsRangeHasATagOfOld(t *testing.T) {
	g := NewWithT(t)
	infra, left := fromOne(t, "dnsmasq", "dhcp-range=lan,10.0.0.5,10.0.0.9,255.255.255.0\n")
	g.Expect(infra).To(And(ContainSubstring("rangeStart: 10.0.0.5\n"), ContainSubstring("rangeEnd: 10.0.0.9\n")))
	g.Expect(left).NotTo(ContainSubstring("DHCPv6"))
	_, left = fromOne(t, "dnsmasq", "dhcp-range=lan,fd00::5,fd00::9\n")
	g.Expect(left).To(ContainSubstring("there is no DHCPv6"))
}

// Some editors write a byte order mark before the first statement, which counts nevertheless.
func TestAByteOrderMarkIsNoText(t *testing.T) {
	const mark = "\ufeff"
	for kind, c := range map[string]struct{ text, made string }{
		"isc-dhcpd": {subnetOf, "gateway: 10.0.0.1\n"},
		"dnsmasq":   {"dhcp-range=10.0.0.5,10.0.0.9,255.255.255.0\n", "rangeStart: 10.0.0.5\n"},
		"kea":       {`{"Dhcp4": {"subnet4": [{"subnet": "10.0.0.0/24"}]}}`, "cidr: 10.0.0.0/24\n"},
		"bind":      {"options { forwarders { 10.0.0.53; }; };\n", "- 10.0.0.53\n"},
		"hosts":     {"10.0.0.5 a.example.com\n", "hostname: a.example.com\n"},
		"haproxy":   {"listen l\n  mode tcp\n  bind :5000\n  server a 10.0.0.7:5000\n", "- 10.0.0.7:5000\n"},
	} {
		infra, left := fromOne(t, kind, mark+c.text)
		NewWithT(t).Expect(infra).To(ContainSubstring(c.made), kind+": "+left)
	}
	g := NewWithT(t)
	t.Chdir(t.TempDir())
	g.Expect(os.WriteFile("more", []byte(mark+"dhcp-range=10.0.0.5,10.0.0.9,255.255.255.0\n"), 0o600)).To(Succeed())
	g.Expect(os.WriteFile("all", []byte("conf-file=more\n"), 0o600)).To(Succeed())
	infra, _, _ := imported("", "--dnsmasq", "all")
	g.Expect(infra).To(ContainSubstring("rangeStart: 10.0.0.5\n"))
	infra, _, _ = imported(mark+subnetOf, "--isc-dhcpd", "-")
	g.Expect(infra).To(ContainSubstring("gateway: 10.0.0.1\n"))
}

// A program or an archive that is given for a configuration is named, and its octets stay off the terminal.
func TestWhatIsNoTextIsNotRepeated(t *testing.T) {
	g := NewWithT(t)
	t.Chdir(t.TempDir())
	g.Expect(os.WriteFile("binary", []byte("\x7fELF\x02\x01\x00\x00"), 0o600)).To(Succeed())
	for _, s := range servers {
		for _, name := range []string{"binary", "-"} {
			infra, left, err := imported("\x7fELF\x02\x01\x00\x00", "--"+s.flag, name)
			g.Expect(err).To(MatchError(HavePrefix(name + " is no text file: give the server's configuration, unpacked and in UTF-8")))
			g.Expect(ExitCode(err)).To(Equal(unusable))
			g.Expect(infra + left).To(BeEmpty())
		}
	}
	g.Expect(os.WriteFile("all", []byte("conf-file=binary\n"), 0o600)).To(Succeed())
	_, left, err := imported("", "--dnsmasq", "all")
	g.Expect(left).To(ContainSubstring("all:1: conf-file=binary: it is not read: binary is no text file"))
	g.Expect(err).To(MatchError(ContainSubstring("they are not read in full at all:1")))
}

// dhcpd 4.4 knows these escapes (common/conflex.c, read_string), and takes text in quotes where an option's type is string (dhcp-options(5)).
func TestISCsTextsHaveEscapes(t *testing.T) {
	for value, made := range map[string]string{
		`text; option site "http://wpad/\n"`:   "type: String\n        value: |\n          http://wpad/\n",
		`text; option site "\t\r\b"`:           "type: String\n        value: \"\\t\\r\\b\"\n",
		`text; option site "\x41\1012\q\"\\."`: "type: String\n        value: AA2q\"\\.\n",
		`text; option site "\477\x4g"`:         "type: String\n        value: 477x4g\n",
		`string; option site "a;b"`:            "type: String\n        value: a;b\n",
		`string; option site "\xff\1"`:         "type: Hex\n        value: ff31\n",
		`string; option site 1:2:ff`:           "type: Hex\n        value: 01:02:ff\n",
	} {
		infra, left := fromOne(t, "isc-dhcpd", subnetOf+"option site code 222 = "+value+";\n")
		NewWithT(t).Expect(infra).To(ContainSubstring("- code: 222\n        "+made), left)
		NewWithT(t).Expect(left).NotTo(ContainSubstring("option site"))
	}
	_, left := fromOne(t, "isc-dhcpd", subnetOf+"option site code 222 = text; option site \"a\\\n\";\nnonsense 1;\n")
	NewWithT(t).Expect(left).To(ContainSubstring("FILE:4: nonsense 1"))
}

// What a file defines counts before what dhcpd 4.4 knows by itself, of its codes and of its names (common/parse.c, parse_option_code_definition).
func TestISCsDefinitionsCountBeforeWhatIsKnown(t *testing.T) {
	for text, made := range map[string]string{
		"option site code 23 = unsigned integer 32; option site 64;":                     "- code: 23\n        type: UInt32\n        value: \"64\"\n",
		"option default-ip-ttl code 23 = unsigned integer 16; option default-ip-ttl 64;": "- code: 23\n        type: UInt16\n        value: \"64\"\n",
		"option arp-cache-timeout code 23 = integer 8; option arp-cache-timeout 64;":     "- code: 23\n        type: UInt8\n        value: \"64\"\n",
		"option site code 19 = text; option site \"on\";":                                "- code: 19\n        type: String\n        value: \"on\"\n",
		"option site code 23 = string; option site \"ab\";":                              "- code: 23\n        type: String\n        value: ab\n",
		"option site code 23 = array of integer 8; option site 1, 2;":                    "- code: 23\n        type: Hex\n        value: \"0102\"\n",
		"option site code 42 = ip-address; option site 10.0.0.4;":                        "ntpServers:\n    - 10.0.0.4\n",
		"option site code 121 = array of integer 8; option site 24,192,168,1,10,0,0,1;":  "routes:\n    - destination: 192.168.1.0/24\n      gateway: 10.0.0.1\n",
	} {
		infra, left := fromOne(t, "isc-dhcpd", subnetOf+text+"\n")
		NewWithT(t).Expect(infra).To(ContainSubstring(made), text+left)
		NewWithT(t).Expect(left).NotTo(ContainSubstring("option "))
	}
	infra, left := fromOne(t, "isc-dhcpd", subnetOf+"option site code 42 = unsigned integer 16;\noption site 513;\n")
	NewWithT(t).Expect(infra).NotTo(Or(ContainSubstring("ntpServers"), ContainSubstring("code: ")))
	NewWithT(t).Expect(left).To(ContainSubstring("option site 513;: the file gives it another type: write the field of the Infra that is made for option 42\n"))
}
