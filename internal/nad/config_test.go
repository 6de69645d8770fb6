package nad

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/ipam"
)

func parsed(t testing.TB, text string) Config {
	t.Helper()
	c, err := Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return c
}

func TestNetworksOnOneSegmentHaveOneName(t *testing.T) {
	same := [][]string{
		{`{"type":"bridge","bridge":"br1","vlan":100}`, `{"plugins":[{"type":"cnv-bridge","bridge":"br1","vlan":100},{"type":"tuning"}]}`},
		{`{"type":"bridge"}`, `{"type":"bridge","bridge":"cni0","vlan":0}`},
		{`{"type":"macvlan","master":"eth1.100"}`},
		{`{"type":"ovn-k8s-cni-overlay","topology":"localnet","name":"physnet","vlanID":100}`, `{"type":"ovn-k8s-cni-overlay","topology":"localnet","name":"other","physicalNetworkName":"physnet","vlanID":100,"subnets":"10.0.0.0/8"}`},
		{`{"type":"bridge","bridge":"br1","vlan":101}`},
		{`{"type":"ovn-k8s-cni-overlay","topology":"localnet","name":"physnet","vlanID":101}`},
	}
	g, seen := NewWithT(t), map[string]int{}
	for i, group := range same {
		for _, text := range group {
			name := parsed(t, text).Layer2()
			g.Expect(name).NotTo(BeEmpty(), text)
			if other, ok := seen[name]; ok {
				g.Expect(other).To(Equal(i), "%s is taken for another segment: %s", text, name)
			}
			seen[name] = i
		}
	}
	g.Expect(seen).To(HaveLen(len(same)))
	g.Expect(parsed(t, `{"type":"ipvlan","master":"eth1"}`).Layer2()).To(BeEmpty())
	g.Expect(parsed(t, `{"type":"ovn-k8s-cni-overlay","topology":"layer2","name":"x"}`).Layer2()).To(BeEmpty())
}

func TestWhatANetworkGivesToOthersIsRead(t *testing.T) {
	span := func(first, last string) ipam.Range {
		return ipam.Range{First: netip.MustParseAddr(first), Last: netip.MustParseAddr(last)}
	}
	for name, c := range map[string]struct {
		ipam    string
		assigns bool
		want    []ipam.Range
	}{
		"none":                     {ipam: `null`},
		"empty":                    {ipam: `{}`},
		"static without addresses": {ipam: `{"type":"static"}`, assigns: true},
		"static":                   {ipam: `{"type":"static","addresses":[{"address":"10.0.0.5/24"}]}`, assigns: true, want: []ipam.Range{span("10.0.0.5", "10.0.0.5")}},
		"dhcp":                     {ipam: `{"type":"dhcp"}`, assigns: true},
		"host-local":               {ipam: `{"type":"host-local","subnet":"10.0.0.0/24","rangeStart":"10.0.0.10","rangeEnd":"10.0.0.20"}`, assigns: true, want: []ipam.Range{span("10.0.0.10", "10.0.0.20")}},
		"host-local's ranges":      {ipam: `{"type":"host-local","ranges":[[{"subnet":"10.0.0.0/24","rangeStart":"10.0.0.10"}],[{"subnet":"10.0.1.0/24","rangeEnd":"10.0.1.9"}]]}`, assigns: true, want: []ipam.Range{span("10.0.0.10", "10.0.0.254"), span("10.0.1.1", "10.0.1.9")}},
		"a whole subnet":           {ipam: `{"type":"host-local","subnet":"10.0.0.0/24"}`, assigns: true},
		"whereabouts":              {ipam: `{"type":"whereabouts","range":"10.0.0.0/24","range_start":"10.0.0.10","range_end":"10.0.0.20"}`, assigns: true, want: []ipam.Range{span("10.0.0.10", "10.0.0.20")}},
		"whereabouts in one word":  {ipam: `{"type":"whereabouts","range":"10.0.0.10-10.0.0.20/24"}`, assigns: true, want: []ipam.Range{span("10.0.0.10", "10.0.0.20")}},
		"a range that is reversed": {ipam: `{"type":"whereabouts","range":"10.0.0.0/24","range_start":"10.0.0.20","range_end":"10.0.0.10"}`, assigns: true},
	} {
		t.Run(name, func(t *testing.T) {
			g, config := NewWithT(t), parsed(t, `{"type":"bridge","ipam":`+c.ipam+`}`)
			g.Expect(config.AssignsAddresses()).To(Equal(c.assigns))
			g.Expect(config.Addresses()).To(Equal(c.want))
		})
	}
}

func TestADerivedNetworkKeepsWhatWeDoNotKnowAndMakesNoGateway(t *testing.T) {
	g := NewWithT(t)
	source := parsed(t, `{"cniVersion":"0.2.0","name":"vlan","type":"bridge","bridge":"br1","hairpinMode":true,"unknown":9007199254740993,"isGateway":true,"isDefaultGateway":true,"ipMasq":true,"forceAddress":true,"ipam":{"type":"dhcp"},"capabilities":{"ips":true}}`)
	before := source.String()
	derived := source.WithStatic(Static{Name: "c1-dns", Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.2/24")}, PreventForwarding: true})
	g.Expect(derived.String()).To(MatchJSON(`{"cniVersion":"0.3.1","name":"c1-dns","plugins":[
		{"type":"bridge","bridge":"br1","hairpinMode":true,"unknown":9007199254740993,"capabilities":{"mac":true},"ipam":{"type":"static","addresses":[{"address":"10.0.0.2/24"}]}},
		{"type":"tuning","sysctl":{"net.ipv4.conf.IFNAME.forwarding":"0"}}]}`))
	g.Expect(derived.String()).To(ContainSubstring("9007199254740993"), "a number is not rounded")
	g.Expect(source.String()).To(Equal(before), "the source is not changed")
	g.Expect(source.PreventsForwarding()).To(BeFalse())
	g.Expect(parsed(t, derived.String()).PreventsForwarding()).To(BeTrue())
}

// The derived network keeps a key of the workers' network or leaves it out; it never changes one.
func TestWhatAPodWithAnAddressMustNotHaveIsLeftOut(t *testing.T) {
	g := NewWithT(t)
	for key, kept := range map[string]bool{
		"disableContainerInterface": false, "portIsolation": false, "isGateway": false, "isDefaultGateway": false, "forceAddress": false, "ipMasq": false, "ipMasqBackend": false,
		"macspoofchk": true, "preserveDefaultVlan": true, "vlan": true, "vlanTrunk": true, "hairpinMode": true, "promiscMode": true, "enabledad": true, "mtu": true,
	} {
		source := parsed(t, `{"type":"cnv-bridge","bridge":"br1"}`)
		source.plugins[0][key] = "written"
		g.Expect(strings.Contains(source.WithStatic(Static{Name: "c1-dns"}).String(), `"`+key+`"`)).To(Equal(kept), key)
	}
}

func TestAMacvlanThatOnePodTakesIsUnfit(t *testing.T) {
	for text, want := range map[string]string{
		`{"type":"macvlan","master":"eth1"}`:                                         "",
		`{"type":"macvlan","master":"eth1","mode":"bridge","linkInContainer":false}`: "",
		`{"type":"macvlan","master":"eth1","mode":"vepa"}`:                           "",
		`{"type":"macvlan","master":"eth1","mode":"private"}`:                        "",
		`{"type":"macvlan","master":"eth1","mode":"passthru"}`:                       `"mode": "passthru"`,
		`{"type":"macvlan","master":"eth1","mode":"bridge","linkInContainer":true}`:  `"linkInContainer": true`,
		`{"type":"bridge","bridge":"br1","mode":"passthru","linkInContainer":true}`:  "",
	} {
		unfit := parsed(t, text).Unfit("a", "b")
		NewWithT(t).Expect(unfit).To(ContainSubstring(want), text)
		NewWithT(t).Expect(unfit == "").To(Equal(want == ""), text)
		NewWithT(t).Expect(parsed(t, text).KeepsApart() != "").To(Equal(strings.Contains(text, "private") || strings.Contains(text, "vepa")), text)
	}
}

func TestAVLANThatThereIsNotIsUnfit(t *testing.T) {
	for id, fits := range map[string]bool{"-1": false, "0": true, "1": true, "4094": true, "4095": false, "5000": false} {
		for _, text := range []string{
			`{"type":"bridge","bridge":"br1","vlan":NUMBER}`, `{"type":"cnv-bridge","bridge":"br1","vlan":NUMBER}`,
			`{"name":"p","type":"ovn-k8s-cni-overlay","topology":"localnet","netAttachDefName":"a/b","vlanID":NUMBER}`,
		} {
			text = strings.Replace(text, "NUMBER", id, 1)
			NewWithT(t).Expect(parsed(t, text).Unfit("a", "b") == "").To(Equal(fits), text)
		}
	}
}

func TestTheAllowlistDecidesOverTuning(t *testing.T) {
	for list, want := range map[string]bool{
		"":                                       false,
		"^net.ipv4.conf.IFNAME.accept_ra$":       false,
		"^net.ipv4.conf.IFNAME.forwarding$":      true,
		"# x\n\n  " + AllowlistLine() + "  \n":   true,
		"net.ipv4.conf.IFNAME..*":                true,
		"^net.ipv6.conf.IFNAME.forwarding$":      false,
		"(\n^net.ipv4.conf.IFNAME.forwarding$\n": true, // a line that is not a regular expression is skipped
	} {
		NewWithT(t).Expect(AllowsTuning(list)).To(Equal(want), "%q", list)
	}
}

func TestABrokenConfigurationIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		``:                                   "spec.config is empty; write",
		" \n":                                "spec.config is empty; write",
		`{"type":"bridge",}`:                 "spec.config is not a JSON object",
		`{"type":"bridge"}}`:                 `spec.config has text after its JSON object: "}"; remove it`,
		`{"type":"bridge"} {"type":"sbr"}`:   "has text after its JSON object",
		`{"type":"bridge","ipam":""}`:        "spec.config: ipam is not an object",
		`{"type":"bridge","ipam":[]}`:        "spec.config: ipam is not an object",
		`[]`:                                 "spec.config is not a JSON object",
		`{}`:                                 "spec.config has no plugin: write its type",
		`{"plugins":[]}`:                     "spec.config: plugins is empty",
		`{"plugins":{}}`:                     "spec.config: plugins is empty",
		`{"plugins":["bridge"]}`:             "plugins is not a list of objects",
		`{"type":"bridge","vlan":"hundred"}`: "spec.config: vlan is text, and takes a whole number; write it without quotes",
	} {
		_, err := Parse(text)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(want)), text)
	}
}

// FuzzParse: anybody who may edit a referenced NetworkAttachmentDefinition writes this text.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"cniVersion":"0.3.1","name":"vlan100","type":"bridge","bridge":"br100","vlan":100,"ipam":{}}`,
		`{"name":"x","plugins":[{"type":"cnv-bridge","ipam":{"type":"whereabouts","range":"10.0.0.1-10.0.0.9/24"}},{"type":"tuning","sysctl":{"net.ipv4.conf.IFNAME.forwarding":"0"}},{"type":"sbr"}]}`,
		`{"name":"x","type":"ovn-k8s-cni-overlay","topology":"localnet","subnets":"10.0.0.0/8","netAttachDefName":"a/b"}`,
		`{"type":"macvlan","master":"eth1","ipam":{"type":"host-local","ranges":[[{"subnet":"::/0","rangeStart":"::"}]]}}`,
		`{"plugins":[null]}`, `{"type":"bridge","plugins":null}`, `{"type":"bridge"}{`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse(text)
		if err != nil {
			return
		}
		_, _, _, _ = c.Unfit("a", "b"), c.Layer2(), c.AssignsAddresses(), c.PreventsForwarding()
		for _, r := range c.Addresses() {
			if !r.IsValid() {
				t.Fatalf("%q has the range %v", text, r)
			}
		}
		s := Static{Name: "x", Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.2/24")}, PreventForwarding: true}
		for _, derived := range []Config{c, c.WithStatic(s), c.CopyForOVN("n", "a", "b")} {
			again, err := Parse(derived.String())
			if err != nil || again.String() != derived.String() {
				t.Fatalf("%q became %s, which reads as %s: %v", text, derived, again, err)
			}
			if !json.Valid([]byte(derived.String())) {
				t.Fatalf("%q became %s", text, derived)
			}
		}
	})
}
