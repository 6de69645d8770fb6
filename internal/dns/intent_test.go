package dns

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/dns/records"
	"github.com/cldmnky/oooi/internal/valid"
)

func TestAnObjectBecomesAnIntent(t *testing.T) {
	g := NewWithT(t)
	server := object("192.168.100.4")
	server.Spec.StaticEntries = append(server.Spec.StaticEntries, v1alpha1.DNSEntry{Hostname: "*.apps.c1.example.com", IP: "fd00::5"})
	server.Spec.NetworkConfig.ClientCIDRs = []v1alpha1.CIDR{"10.20.0.0/16"}
	server.Spec.UpstreamDNS = []v1alpha1.IPAddress{"192.0.2.53"}
	server.Spec.DeniedZones = []v1alpha1.DNSName{"cluster.local"}
	early := lease("worker-1", "192.168.100.57", time.Unix(1000, 0))
	late := lease("worker-1", "192.168.100.58", time.Unix(2000, 0))
	declined := lease("worker-2", "192.168.100.59", time.Unix(2000, 0))
	declined.Spec.State = v1alpha1.LeaseDeclined
	unnamed := lease("", "192.168.100.60", time.Unix(2000, 0))

	got, err := IntentOf(server, []*v1alpha1.DHCPLease{early, declined, late, unnamed})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got).To(Equal(records.Intent{
		Domain:  "c1.example.com.",
		Network: netip.MustParsePrefix("127.0.0.0/8"),
		VLAN: []records.Record{
			{Name: "api.c1.example.com.", Addr: netip.MustParseAddr("192.168.100.4")},
			{Name: "*.apps.c1.example.com.", Addr: netip.MustParseAddr("fd00::5")},
		},
		Pods:      []records.Record{{Name: "api.c1.example.com.", Addr: netip.MustParseAddr("172.30.0.9")}},
		Leases:    []records.Lease{{Host: "worker-1", Addr: netip.MustParseAddr("192.168.100.58")}, {Host: "worker-1", Addr: netip.MustParseAddr("192.168.100.57")}},
		Denied:    []string{"cluster.local."},
		Clients:   []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.20.0.0/16")},
		Upstreams: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.53:53")},
		CacheTTL:  time.Hour,
	}))
}

// No schema checks a file: each field becomes a value of its type, or an error that names the field. No text can begin a directive of CoreDNS.
func TestAWrongFieldIsNamed(t *testing.T) {
	hostile := "c1.example.com {\n forward . 192.0.2.66\n}"
	for field, change := range map[string]func(*v1alpha1.DNSServerSpec){
		"spec.hostedClusterDomain":                  func(s *v1alpha1.DNSServerSpec) { s.HostedClusterDomain = v1alpha1.DNSName(hostile) },
		"spec.staticEntries[0].hostname":            func(s *v1alpha1.DNSServerSpec) { s.StaticEntries[0].Hostname = v1alpha1.DNSNameOrWildcard(hostile) },
		"spec.staticEntries[0].ip":                  func(s *v1alpha1.DNSServerSpec) { s.StaticEntries[0].IP = "192.0.2.1\nreload" },
		"spec.internalEntries[0].hostname":          func(s *v1alpha1.DNSServerSpec) { s.InternalEntries[0].Hostname = "a.*.example.com" },
		"spec.networkConfig.secondaryNetworkCIDR":   func(s *v1alpha1.DNSServerSpec) { s.NetworkConfig.SecondaryNetworkCIDR = "everything" },
		"spec.networkConfig.clientCIDRs[0]: \"10":   func(s *v1alpha1.DNSServerSpec) { s.NetworkConfig.ClientCIDRs = []v1alpha1.CIDR{"10.0.0.0"} },
		"spec.deniedZones[0]":                       func(s *v1alpha1.DNSServerSpec) { s.DeniedZones = []v1alpha1.DNSName{"."} },
		"spec.upstreamDNS[0]: \"dns.example.com\"":  func(s *v1alpha1.DNSServerSpec) { s.UpstreamDNS = []v1alpha1.IPAddress{"dns.example.com"} },
		"spec.upstreamDNS[1]: 127.0.0.1 is this":    func(s *v1alpha1.DNSServerSpec) { s.UpstreamDNS = []v1alpha1.IPAddress{"192.0.2.53", "127.0.0.1"} },
		"spec.cacheTTL: 1ms must be between 1s and": func(s *v1alpha1.DNSServerSpec) { s.CacheTTL.Duration = time.Millisecond },
		"spec.cacheTTL: 169h0m0s must be":           func(s *v1alpha1.DNSServerSpec) { s.CacheTTL.Duration = 169 * time.Hour },
		"spec.networkConfig.clientCIDRs[0]: \"10.20.0.1/16\" is not a network with its host bits zero": func(s *v1alpha1.DNSServerSpec) {
			s.NetworkConfig.ClientCIDRs = []v1alpha1.CIDR{"10.20.0.1/16"}
		},
		"spec.networkConfig.secondaryNetworkCIDR: 126.0.0.0/7 must be /8 or longer": func(s *v1alpha1.DNSServerSpec) { s.NetworkConfig.SecondaryNetworkCIDR = "126.0.0.0/7" },
		"spec.networkConfig.serverIP: 128.0.0.1 must lie inside":                    func(s *v1alpha1.DNSServerSpec) { s.NetworkConfig.ServerIP = "128.0.0.1" },
		"spec.networkConfig.additionalServerIPs[0]: 128.0.0.1 must lie inside": func(s *v1alpha1.DNSServerSpec) {
			s.NetworkConfig.AdditionalServerIPs = []v1alpha1.IPAddress{"128.0.0.1"}
		},
		"spec.networkConfig.additionalServerIPs[0]: 127.0.0.1 is the first instance's": func(s *v1alpha1.DNSServerSpec) {
			s.NetworkConfig.AdditionalServerIPs = []v1alpha1.IPAddress{"127.0.0.1"}
		},
		"spec.networkConfig.additionalServerIPs: 2 are listed; list at most 1": func(s *v1alpha1.DNSServerSpec) {
			s.NetworkConfig.AdditionalServerIPs = []v1alpha1.IPAddress{"127.0.0.2", "127.0.0.3"}
		},
		"spec.networkConfig.clientCIDRs: 33 are listed": func(s *v1alpha1.DNSServerSpec) {
			s.NetworkConfig.ClientCIDRs = slices.Repeat([]v1alpha1.CIDR{"10.0.0.0/8"}, 33)
		},
		"spec.staticEntries[0].ip: \"FD00::5\" is not an IP address in canonical form": func(s *v1alpha1.DNSServerSpec) { s.StaticEntries[0].IP = "FD00::5" },
		"spec.internalEntries[1]: {api.c1.example.com 172.30.0.9} is internalEntries[0] already": func(s *v1alpha1.DNSServerSpec) {
			s.InternalEntries = slices.Repeat(s.InternalEntries, 2)
		},
		"spec.staticEntries: 513 are listed": func(s *v1alpha1.DNSServerSpec) {
			for n := range valid.MostStaticEntries {
				s.StaticEntries = append(s.StaticEntries, v1alpha1.DNSEntry{Hostname: v1alpha1.DNSNameOrWildcard(fmt.Sprintf("a%d", n)), IP: "127.0.0.4"})
			}
		},
		"spec.deniedZones[1]: cluster.local is deniedZones[0] already": func(s *v1alpha1.DNSServerSpec) {
			s.DeniedZones = []v1alpha1.DNSName{"cluster.local", "cluster.local"}
		},
		"spec.upstreamDNS: 9 are listed": func(s *v1alpha1.DNSServerSpec) {
			s.UpstreamDNS = slices.Repeat([]v1alpha1.IPAddress{"192.0.2.53"}, 9)
		},
		"spec.upstreamDNS[0]: 224.0.0.1 must be the address of a server": func(s *v1alpha1.DNSServerSpec) { s.UpstreamDNS = []v1alpha1.IPAddress{"224.0.0.1"} },
		"spec.healthChecks[1]: 127.0.0.4 is healthChecks[0] already": func(s *v1alpha1.DNSServerSpec) {
			s.HealthChecks = []v1alpha1.DNSHealthCheck{{IP: "127.0.0.4"}, {IP: "127.0.0.4", Port: 443}}
		},
		"spec.healthChecks: 5 are listed": func(s *v1alpha1.DNSServerSpec) {
			for n := range 5 {
				s.HealthChecks = append(s.HealthChecks, v1alpha1.DNSHealthCheck{IP: v1alpha1.IPAddress(fmt.Sprintf("127.0.0.%d", 4+n))})
			}
		},
		"spec.upstreamDNS[0]: \"fe80::1%eth0\" is ": func(s *v1alpha1.DNSServerSpec) { s.UpstreamDNS = []v1alpha1.IPAddress{"fe80::1%eth0"} },
	} {
		t.Run(field, func(t *testing.T) {
			server := object("192.168.100.4")
			change(&server.Spec)
			_, err := IntentOf(server, nil)
			NewWithT(t).Expect(err).To(MatchError(HavePrefix(field)))
			NewWithT(t).Expect(strings.Count(err.Error(), "spec.")).To(Equal(1), "only this field is wrong")
		})
	}
}

// FuzzObject reads any YAML as a DNSServer: what is accepted must be servable.
func FuzzObject(f *testing.F) {
	seed, _ := yaml.Marshal(object("192.168.100.4"))
	f.Add(seed)
	f.Fuzz(func(t *testing.T, content []byte) {
		server := &v1alpha1.DNSServer{}
		if yaml.Unmarshal(content, server) != nil {
			return
		}
		in, err := IntentOf(server, nil)
		if err != nil {
			return
		}
		view := records.Build(in).VLAN
		for _, r := range in.VLAN {
			if view.Answer(records.Question{Name: r.Name, Type: 1, Class: 1, Source: in.Clients[0].Addr()}).Forward {
				t.Fatalf("the owned name %s is forwarded", r.Name)
			}
		}
	})
}
