package dhcp

import (
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/pool"
	"github.com/cldmnky/oooi/internal/dhcp/wire"
)

const everyField = `
metadata: {name: c1-dhcp, namespace: clusters, labels: {hostedcluster.densityops.com/owner-uid: uid-1}}
spec:
  networkConfig:
    networkAttachmentDefinition: vlan100
    cidr: 192.168.100.0/24
    serverIP: 192.168.100.2
    gateway: 192.168.100.1
    dnsServers: [192.168.100.3]
    ntpServers: [192.168.100.4]
    mtu: 1400
    domain: c1.example.com
    searchDomains: [c1.example.com]
    routes: [{destination: 172.20.0.9/32, gateway: 192.168.100.5}]
  leaseConfig: {rangeStart: 192.168.100.10, rangeEnd: 192.168.100.20, leaseTime: 12h}
  excludeRanges: [{start: 192.168.100.12, end: 192.168.100.13}]
  reservations: [{ip: 192.168.100.200, mac: "52:54:00:00:00:01", hostname: worker-1}]
  unknownClients: Ignore
  options: [{code: 150, type: IPv4List, value: "192.168.100.7, 192.168.100.8"}, {code: 66, type: String, value: tftp}, {code: 23, type: UInt8, value: "64"}, {code: 200, type: UInt16, value: "513"}, {code: 201, type: UInt32, value: "1"}, {code: 19, type: Bool, value: "true"}, {code: 43, type: Hex, value: "01:0a:ff"}]
  relays: [192.168.100.9, 192.168.100.16/28]
  vmNamespace: clusters-c1
`

func server(t *testing.T, text string) *v1alpha1.DHCPServer {
	t.Helper()
	s := &v1alpha1.DHCPServer{}
	NewWithT(t).Expect(yaml.UnmarshalStrict([]byte(text), s)).To(Succeed())
	return s
}

func TestEveryFieldReachesThePool(t *testing.T) {
	got, err := ConfigOf(server(t, everyField), 0)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	want := pool.Config{
		Server: at(2), Instances: []netip.Addr{at(2)}, First: at(10), Last: at(20), LeaseTime: 12 * time.Hour, Owner: "uid-1",
		Never:        []pool.Range{{First: at(12), Last: at(13)}},
		Reservations: []pool.Reservation{{IP: at(200), Client: lease.Client{MAC: "52:54:00:00:00:01"}, Hostname: "worker-1"}},
		Relays:       []netip.Prefix{netip.MustParsePrefix("192.168.100.9/32"), netip.MustParsePrefix("192.168.100.16/28")},
		KnownOnly:    true, LooksUpVMs: true,
		Network: wire.Network{
			Subnet: netip.MustParsePrefix("192.168.100.0/24"), Router: at(1), DNS: []netip.Addr{at(3)}, NTP: []netip.Addr{at(4)}, MTU: 1400,
			Domain: "c1.example.com", Search: []string{"c1.example.com"}, Routes: []wire.Route{{To: netip.MustParsePrefix("172.20.0.9/32"), Via: at(5)}},
			Further: []wire.Option{
				{Code: 19, Data: []byte{1}}, {Code: 23, Data: []byte{64}}, {Code: 43, Data: []byte{1, 10, 255}}, {Code: 66, Data: []byte("tftp")},
				{Code: 150, Data: []byte{192, 168, 100, 7, 192, 168, 100, 8}}, {Code: 200, Data: []byte{2, 1}}, {Code: 201, Data: []byte{0, 0, 0, 1}},
			},
		},
	}
	same := cmp.Options{cmpopts.IgnoreUnexported(pool.Config{}), cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })}
	if diff := cmp.Diff(want, got, same); diff != "" {
		t.Error(diff)
	}
	NewWithT(t).Expect(got.Size()).To(Equal(10), "eleven less two excluded, and one reserved outside")
}

func TestWhatIsWrongIsNamed(t *testing.T) {
	for change, complaint := range map[string]string{
		"serverIP: 192.168.100.2 → serverIP: 10.0.0.2":                                            "networkConfig.serverIP must lie inside 192.168.100.0/24",
		"serverIP: 192.168.100.2 → serverIP: 192.168.100.255":                                     "networkConfig.serverIP must lie inside 192.168.100.0/24, and not be its first or last address",
		"serverIP: 192.168.100.2 → serverIP: 192.168.100.1":                                       "networkConfig.serverIP 192.168.100.1 is the gateway",
		"start: 192.168.100.12, end: 192.168.100.13 → start: 192.168.100.13, end: 192.168.100.12": "excludeRanges[0] end lies before start",
		"cidr: 192.168.100.0/24 → cidr: 0.0.0.0/0":                                                "networkConfig.cidr 0.0.0.0/0 cannot be served: give a network of unicast addresses, /8 or smaller, e.g. 192.168.100.0/24",
		"cidr: 192.168.100.0/24 → cidr: 192.0.0.0/7":                                              "networkConfig.cidr 192.0.0.0/7 cannot be served",
		"cidr: 192.168.100.0/24 → cidr: 169.254.7.0/24":                                           "networkConfig.cidr 169.254.7.0/24 cannot be served",
		"cidr: 192.168.100.0/24 → cidr: 240.0.0.0/24":                                             "networkConfig.cidr 240.0.0.0/24 cannot be served",
		"cidr: 192.168.100.0/24 → cidr: 192.168.100.7/24":                                         `networkConfig.cidr "192.168.100.7/24" must be a network with its host bits zero`,
		"rangeEnd: 192.168.100.20 → rangeEnd: 192.168.100.9":                                      "leaseConfig rangeEnd lies before rangeStart",
		"leaseTime: 12h → leaseTime: 1m":                                                          "leaseConfig.leaseTime must be between 2m and 8760h",
		"dnsServers: [192.168.100.3] → dnsServers: [nowhere]":                                     `networkConfig.dnsServers[0] "nowhere" must be an IPv4 address`,
		"ip: 192.168.100.200 → ip: 10.0.0.1":                                                      "reservations[0].ip must lie inside",
		`mac: "52:54:00:00:00:01" → clientID: "", mac: ""`:                                        "reservations[0] must have exactly one of mac and clientID",
		"code: 66 → code: 6":                                                                      "options[1].code 6 is the server's or the protocol's own, or is none; use the field that is made for it (3: gateway, 6: dnsServers",
		`type: UInt8, value: "64" → type: UInt8, value: "256"`:                                    "fits UInt8",
		`type: IPv4List, value: "192.168.100.7 → type: IPv4List, value: "many`:                    "must be IPv4 addresses separated by commas",
		"unknownClients: Ignore → unknownClients: ignore":                                         `unknownClients "ignore" must be Pool or Ignore`,
		"mtu: 1400 → mtu: 70000":                                                                  "networkConfig.mtu 70000 must be 576 to 65535",
		"gateway: 192.168.100.1\n → gateway: 10.0.0.1\n":                                          "networkConfig.gateway must lie inside 192.168.100.0/24",
		"domain: c1.example.com → domain: C1.example.com":                                         `networkConfig.domain "C1.example.com" must be a DNS name in lower case`,
		"searchDomains: [c1.example.com] → searchDomains: [" + strings.Repeat("x", 70) + "]":      "networkConfig.searchDomains[0]",
		`mac: "52:54:00:00:00:01" → mac: 5254.0000.0001`:                                          `reservations[0].mac "5254.0000.0001" must be a network card's address with colons or hyphens`,
		`mac: "52:54:00:00:00:01" → mac: "01:00:5e:00:00:01"`:                                     "reservations[0].mac",
		`mac: "52:54:00:00:00:01" → mac: "00:00:00:00:00:00"`:                                     "reservations[0].mac",
		`mac: "52:54:00:00:00:01" → clientID: "01-52-54-00-00-0a"`:                                `reservations[0].clientID "01-52-54-00-00-0a" must be octets in hex with colons`,
		"hostname: worker-1 → hostname: worker-1.example.com":                                     `reservations[0].hostname "worker-1.example.com" must be one label`,
		`type: Bool, value: "true" → type: Bool, value: "yes"`:                                    `options[5] (code 19): "yes" must be true or false`,
		`type: String, value: tftp → type: String, value: ""`:                                     `options[1].value (code 66): "" is empty as type String; give a value, or remove the option`,
		`type: Hex, value: "01:0a:ff" → type: Hex, value: "0g"`:                                   `options[6] (code 43): "0g" must be octets of two hex digits, e.g. 01:0a:ff`,
		"code: 66 → code: 150":                                                                    "options has code 150 twice",
		"destination: 172.20.0.9/32 → destination: fd00::/64":                                     "networkConfig.routes[0].destination must be IPv4",
		"gateway: 192.168.100.5}] → gateway: 10.0.0.5}]":                                          "networkConfig.routes[0].gateway must lie inside",
		"relays: [192.168.100.9 → relays: [192.168.100.9/24":                                      `relays[0] "192.168.100.9/24" must be an IPv4 address or a network with its host bits zero`,
		"relays: [192.168.100.9 → relays: [0.0.0.0/0":                                             `relays[0] "0.0.0.0/0" must be an IPv4 address or a network with its host bits zero, and not all of IPv4`,
		"relays: [192.168.100.9 → relays: ['fd00::9'":                                             `relays[0] "fd00::9" must be an IPv4 address`,
		"start: 192.168.100.12 → start: 192.168.99.12":                                            "excludeRanges[0] must lie inside 192.168.100.0/24",
		"ntpServers: [192.168.100.4] → ntpServers: [224.0.1.1]":                                   "networkConfig.ntpServers[0] 224.0.1.1 must be the address of a server",
	} {
		t.Run(complaint, func(t *testing.T) {
			_, err := ConfigOf(server(t, replaced(t, change)), 0)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(complaint)))
		})
	}
}

func TestNobodyToServeIsAnError(t *testing.T) {
	object := server(t, everyField)
	object.Spec.VMNamespace, object.Spec.Reservations = "", nil
	_, err := ConfigOf(object, 0)
	NewWithT(t).Expect(err).To(MatchError("unknownClients Ignore serves nobody without reservations or vmNamespace, e.g. vmNamespace: clusters-c1"))
}

func TestEachInstanceServesItsAddress(t *testing.T) {
	g, object := NewWithT(t), server(t, replaced(t, "serverIP: 192.168.100.2 → serverIP: 192.168.100.6"))
	object.Spec.NetworkConfig.AdditionalServerIPs = []v1alpha1.IPv4Address{"192.168.100.4"}
	for number, at := range []string{"192.168.100.6", "192.168.100.4"} {
		got, err := ConfigOf(object, number)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.Server).To(Equal(netip.MustParseAddr(at)))
	}

	for ip, complaint := range map[v1alpha1.IPv4Address]string{
		"192.168.101.4": "networkConfig.additionalServerIPs[0] must lie inside", "192.168.100.1": "networkConfig.additionalServerIPs[0] 192.168.100.1 is the gateway",
		"192.168.100.6": "networkConfig.additionalServerIPs[0] 192.168.100.6 is the first instance's", "fd00::4": `networkConfig.additionalServerIPs[0] "fd00::4" must be an IPv4 address`,
	} {
		object.Spec.NetworkConfig.AdditionalServerIPs[0] = ip
		_, err := ConfigOf(object, 0)
		g.Expect(err).To(MatchError(ContainSubstring(complaint)))
	}
	object.Spec.NetworkConfig.AdditionalServerIPs = nil
	_, err := ConfigOf(object, 1)
	g.Expect(err).To(MatchError(ContainSubstring("additionalServerIPs[0] is not set: this instance is to go")))
}

// A lease file has one server.
func TestAFileHasOneInstance(t *testing.T) {
	g, object := NewWithT(t), server(t, everyField)
	object.Spec.NetworkConfig.AdditionalServerIPs = []v1alpha1.IPv4Address{"192.168.100.6"}
	i := newInstance(Options{Log: slog.New(slog.DiscardHandler)}, nil)
	g.Expect(i.apply(t.Context(), object)).To(MatchError(ContainSubstring("additionalServerIPs needs a cluster")))
	g.Expect((&Options{Flags: daemon.Flags{ConfigFile: "c"}, LeaseFile: "l", Number: 1}).Check()).To(MatchError(ContainSubstring("--instance=1 needs a cluster")))
	g.Expect((&Options{Flags: daemon.Flags{Namespace: "n"}, Name: "d", Number: -1}).Check()).To(MatchError(ContainSubstring("numbered from 0")))
	g.Expect((&Options{Flags: daemon.Flags{Namespace: "n"}, Name: "d", Number: 1}).Check()).To(Succeed())
}

// Releases until 2026-11-25 served such a file.
func TestAClientOfAFileMayBeWrittenAsPeopleWriteIt(t *testing.T) {
	for written, want := range map[string]lease.Client{
		`mac: "52:54:00:00:0A:FF"`:         {MAC: "52:54:00:00:0a:ff"},
		`mac: 52-54-00-00-0A-FF`:           {MAC: "52:54:00:00:0a:ff"},
		`clientID: "FF:00:0A:00:03:00:01"`: {ID: "ff:00:0a:00:03:00:01"},
	} {
		got, err := ConfigOf(server(t, replaced(t, `mac: "52:54:00:00:00:01" → `+written)), 0)
		g := NewWithT(t)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got.Reservations).To(ConsistOf(HaveField("Client", want)))
	}
}

// replaced is everyField with one change, written as "old → new".
func replaced(t *testing.T, change string) string {
	t.Helper()
	old, now, _ := strings.Cut(change, " → ")
	NewWithT(t).Expect(strings.Count(everyField, old)).To(Equal(1), "%q must be there once", old)
	return strings.Replace(everyField, old, now, 1)
}
