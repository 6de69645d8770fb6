package plan_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/plan"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// The Infra is on 192.168.100.0/24, and its API is captured at 203.0.113.10. Each change is YAML that is merged into its spec.
func TestAnInfraThatCannotWorkIsFrozenAndTheFieldNamed(t *testing.T) {
	for change, says := range map[string]string{
		"networkConfig: {cidr: ''}":                 "InvalidCIDR: networkConfig.cidr is not set; write the VLAN's network, e.g. 192.168.100.0/24",
		"networkConfig: {cidr: vlan100}":            `InvalidCIDR: networkConfig.cidr "vlan100" is not a network; write the VLAN's network, e.g. 192.168.100.0/24`,
		"networkConfig: {cidr: 192.168.100.1/24}":   "InvalidCIDR: networkConfig.cidr 192.168.100.1/24 has host bits; its network is 192.168.100.0/24",
		"networkConfig: {cidr: 0.0.0.0/0}":          "InvalidCIDR: networkConfig.cidr 0.0.0.0/0 cannot be a VLAN's network; write the VLAN's network, e.g. 192.168.100.0/24",
		"networkConfig: {cidr: 64.0.0.0/7}":         "InvalidCIDR: networkConfig.cidr 64.0.0.0/7 cannot be a VLAN's network; write the VLAN's network, e.g. 192.168.100.0/24",
		"networkConfig: {cidr: 127.0.0.0/8}":        "InvalidCIDR: networkConfig.cidr 127.0.0.0/8 cannot be a VLAN's network; write the VLAN's network, e.g. 192.168.100.0/24",
		"networkConfig: {cidr: 240.0.0.0/8}":        "InvalidCIDR: networkConfig.cidr 240.0.0.0/8 cannot be a VLAN's network; write the VLAN's network, e.g. 192.168.100.0/24",
		"networkConfig: {cidr: 'fd00:100::/64'}":    "InvalidCIDR: networkConfig.cidr fd00:100::/64 is IPv6, which our DHCP server does not support; set infraComponents.dhcp.enabled: false",
		"networkConfig: {gateway: 192.168.100.255}": "InvalidGateway: networkConfig.gateway 192.168.100.255 is not a host address in 192.168.100.0/24; set one of 192.168.100.1–192.168.100.254, or omit the gateway on an isolated VLAN",
		"networkConfig: {gateway: 192.168.100.0}":   "InvalidGateway: networkConfig.gateway 192.168.100.0 is not a host address in 192.168.100.0/24; set one of 192.168.100.1–192.168.100.254, or omit the gateway on an isolated VLAN",
		"networkConfig: {dnsServers: [10.0.0.53, 192.168.100.3]}\ninfraComponents: {dns: {serverIP: 192.168.100.3}}":                                                                                  "InvalidDNSServer: networkConfig.dnsServers has 192.168.100.3, which is this Infra's own DNS server: it would ask itself; list the resolvers for all other names, e.g. 10.0.0.53, or omit dnsServers to use the node's",
		"networkConfig: {routes: [{destination: 203.0.113.10/32, gateway: 192.168.100.77}]}":                                                                                                          "InvalidRoute: networkConfig.routes has 203.0.113.10/32, which leads to the proxy at 192.168.100.3; remove it",
		"networkConfig: {gateway: 192.168.100.1}\ninfraComponents: {dhcp: {reservations: [{ip: 192.168.100.1, mac: '02:00:00:00:00:01'}]}}":                                                           "InvalidReservation: dhcp.reservations has 192.168.100.1, which is networkConfig.gateway; reserve another address",
		"infraComponents: {dhcp: {reservations: [{ip: 192.168.100.999, mac: '02:00:00:00:00:01'}]}}":                                                                                                  "InvalidReservation: dhcp.reservations has 192.168.100.999, which is not a host address in 192.168.100.0/24; reserve one of 192.168.100.1–192.168.100.254",
		"infraComponents: {dhcp: {reservations: [{ip: 192.168.100.255, mac: '02:00:00:00:00:01'}]}}":                                                                                                  "InvalidReservation: dhcp.reservations has 192.168.100.255, which is not a host address in 192.168.100.0/24; reserve one of 192.168.100.1–192.168.100.254",
		"infraComponents: {dhcp: {reservations: [{ip: 192.168.100.8, mac: '02:00:00:00:0a:01'}, {ip: 192.168.100.9, mac: '02:00:00:00:0A:01'}]}}":                                                     "InvalidReservation: dhcp.reservations has 02:00:00:00:0a:01 twice, for 192.168.100.8 and 192.168.100.9; a client gets one address: remove one of them",
		"infraComponents: {dhcp: {serverIP: 192.168.100.8, reservations: [{ip: 192.168.100.8, mac: '02:00:00:00:00:01'}]}}":                                                                           "AddressInUse: dhcp.serverIP 192.168.100.8 is already used by a reservation; 192.168.100.1 is free, or omit the field",
		"infraComponents: {dns: {serverIP: 192.168.100.200}}":                                                                                                                                         "AddressInUse: dns.serverIP 192.168.100.200 is already used by endpoint oauth; 192.168.100.1 is free, or omit the field",
		"networkConfig: {cidr: 10.20.0.0/24}\nextraEndpoints: [{name: registry, port: 5000, protocol: TCP, target: {addresses: ['10.20.0.7:443']}}]\ninfraComponents: {proxy: {serverIP: 10.20.0.7}}": "AddressInUse: proxy.serverIP 10.20.0.7 is already used by the target of endpoint registry; 10.20.0.1 is free, or omit the field",
	} {
		t.Run(change, func(t *testing.T) {
			g := NewWithT(t)
			p := plan.Infra(changed(t, change))
			g.Expect(p.Frozen).To(BeTrue())
			g.Expect(p.Objects).To(BeEmpty())
			g.Expect(wrongs(p)).To(Equal([]string{says}))
		})
	}
}

func TestWhatAnInfraMayHaveIsNotRefused(t *testing.T) {
	for _, change := range []string{
		"{}",
		"infraComponents: {proxy: {serverIP: 192.168.100.200}}", // an address that workers dial
		"networkConfig: {dnsServers: [192.168.100.3]}\ninfraComponents: {dns: {enabled: false, serverIP: 192.168.100.3}}",
		"infraComponents: {dhcp: {reservations: [{ip: 192.168.100.8, clientID: '01:02'}, {ip: 192.168.100.9, clientID: '01:03'}]}}",
		"networkConfig: {routes: [{destination: 203.0.113.0/24, gateway: 192.168.100.77}]}",
	} {
		t.Run(change, func(t *testing.T) {
			g := NewWithT(t)
			p := plan.Infra(changed(t, change))
			g.Expect(wrongs(p)).To(BeEmpty())
			g.Expect(p.Frozen).To(BeFalse())
		})
	}
}

func TestADomainThatNoNameCanHaveIsRefused(t *testing.T) {
	g := NewWithT(t)
	in := changed(t, "{}")
	in.HostedCluster.Spec.DNS.BaseDomain = ""
	const tried = "InvalidDomain: the base domain of HostedCluster clusters/c1 is not known; these were tried in order: infraComponents.dns.baseDomain of the Infra, and " +
		"spec.dns.baseDomain, spec.configuration.ingress.appsDomain and the hostnames in spec.services of the HostedCluster; set it with: "
	g.Expect(wrongs(plan.Infra(in))).To(Equal([]string{tried + `kubectl -n clusters patch infra c1 --type merge -p '{"spec":{"infraComponents":{"dns":{"baseDomain":"example.com"}}}}'`}))
	in.Infra.OwnerReferences = []metav1.OwnerReference{{Kind: "HostedCluster", Name: "c1", UID: in.HostedCluster.UID, Controller: ptr.To(true)}}
	g.Expect(wrongs(plan.Infra(in))).To(Equal([]string{tried + "kubectl -n clusters annotate --overwrite hostedcluster c1 hostedcluster.densityops.com/base-domain=example.com"}))
	in.Infra.Spec.InfraComponents.DNS.BaseDomain = "example.com"
	g.Expect(wrongs(plan.Infra(in))).To(BeEmpty())
	in.HostedCluster.Spec.DNS.BaseDomainPrefix = ptr.To("Prod_1")
	g.Expect(wrongs(plan.Infra(in))).To(Equal([]string{
		`InvalidDomain: the hosted cluster's domain is "Prod_1.example.com", which is not a DNS name in lower case; set infraComponents.dns.clusterName and dns.baseDomain, e.g. c1 and example.com`}))
}

// A neighbour's captured addresses are known only from its status.
func TestANeighboursCapturedAddressIsNeitherGivenNorLeased(t *testing.T) {
	g := NewWithT(t)
	in := load(t, "testdata/two-infras-on-one-vlan/in.yaml").Inputs(settings())[1]
	g.Expect(in.Neighbours).To(HaveLen(1))
	in.Infra.Spec.InfraComponents.DHCP.Enabled = ptr.To(false)
	before := plan.Infra(in)
	published := string(before.Addresses[0].IP)
	in.Neighbours[0].Infra.Status.Endpoints = []v1alpha1.EndpointStatus{{Name: "api", Hostnames: []string{"api.c9.example.com", published}}}
	for _, a := range plan.Infra(in).Addresses {
		g.Expect(string(a.IP)).NotTo(Equal(published))
	}
}

func changed(t *testing.T, change string) input.Input {
	t.Helper()
	in := load(t, "testdata/captured-and-left-alone/in.yaml").Inputs(settings())[0]
	in.Infra.Spec.InfraComponents.DHCP.Enabled = nil
	if err := yaml.UnmarshalStrict([]byte(change), &in.Infra.Spec); err != nil {
		t.Fatal(err)
	}
	return in
}

func wrongs(p plan.InfraPlan) []string {
	var all []string
	for _, f := range p.Findings {
		if f.Severity == finding.Refused {
			all = append(all, f.Reason+": "+f.Message)
		}
	}
	return all
}
