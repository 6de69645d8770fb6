package dns

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/dns/records"
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

	got, err := intentOf(server, []*v1alpha1.DHCPLease{early, declined, late, unnamed})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got).To(Equal(records.Intent{
		Domain: "c1.example.com.",
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
		"spec.networkConfig.clientCIDRs[0]":         func(s *v1alpha1.DNSServerSpec) { s.NetworkConfig.ClientCIDRs = []v1alpha1.CIDR{"10.0.0.0"} },
		"spec.deniedZones[0]":                       func(s *v1alpha1.DNSServerSpec) { s.DeniedZones = []v1alpha1.DNSName{"."} },
		"spec.upstreamDNS[0]: \"dns.example.com\"":  func(s *v1alpha1.DNSServerSpec) { s.UpstreamDNS = []v1alpha1.IPAddress{"dns.example.com"} },
		"spec.upstreamDNS[1]: 127.0.0.1 is this":    func(s *v1alpha1.DNSServerSpec) { s.UpstreamDNS = []v1alpha1.IPAddress{"192.0.2.53", "127.0.0.1"} },
		"spec.cacheTTL: 1ms is less than a second":  func(s *v1alpha1.DNSServerSpec) { s.CacheTTL.Duration = time.Millisecond },
		"spec.upstreamDNS[0]: \"fe80::1%eth0\" is ": func(s *v1alpha1.DNSServerSpec) { s.UpstreamDNS = []v1alpha1.IPAddress{"fe80::1%eth0"} },
	} {
		t.Run(field, func(t *testing.T) {
			server := object("192.168.100.4")
			change(&server.Spec)
			_, err := intentOf(server, nil)
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
		in, err := intentOf(server, nil)
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
