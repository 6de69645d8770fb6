package preflight_test

import (
	"bytes"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/preflight"
)

const (
	apiByName    = "{type: LoadBalancer, loadBalancer: {hostname: api.c1.example.com}}"
	apiAtNode    = "{type: NodePort, nodePort: {address: 192.168.100.2}}"
	oauthByRoute = "- service: OAuthServer\n    servicePublishingStrategy: {type: Route}"
	agentByRoute = "- service: Konnectivity\n    servicePublishingStrategy: {type: Route}"
	ownDomain    = "dns: {baseDomain: example.com}"
)

// otherwise is a good configuration with some of its texts written otherwise.
func otherwise(t *testing.T, pairs ...string) []byte {
	t.Helper()
	text := string(read(t, examples+"HyperShiftRefuses/passes.yaml"))
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("the example has no %q", pairs[i])
		}
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	return []byte(text)
}

// The API server takes all of these; no control plane comes of them.
func TestWhatHyperShiftRefusesIsSaid(t *testing.T) {
	networking := func(networks string) []string { return []string{ownDomain, ownDomain + "\n  networking: " + networks} }
	for name, c := range map[string]struct {
		pairs []string
		says  string
	}{
		"an API that is not published":       {[]string{apiByName, "{type: None}"}, "it does not publish APIServer by None; publish it by LoadBalancer, NodePort or Route"},
		"an API by a Route without a name":   {[]string{apiByName, "{type: Route}"}, "write route.hostname"},
		"OAuth by a load balancer":           {[]string{oauthByRoute, strings.Replace(oauthByRoute, "Route", "LoadBalancer", 1)}, "it does not publish OAuthServer by LoadBalancer; publish it by Route or NodePort"},
		"konnectivity that is not published": {[]string{agentByRoute, strings.Replace(agentByRoute, "Route", "None", 1)}, "it does not publish Konnectivity by None"},
		"two services under one name":        {[]string{oauthByRoute, strings.Replace(oauthByRoute, "Route", "Route, route: {hostname: api.c1.example.com}", 1)}, "APIServer and OAuthServer are published under one name, api.c1.example.com"},
		"networks of two families":           {networking(`{clusterNetwork: [{cidr: 10.132.0.0/14}], machineNetwork: [{cidr: "fd00::/64"}, {cidr: 192.168.100.0/24}]}`), "first networks are of two families: clusterNetwork 10.132.0.0/14 and machineNetwork fd00::/64"},
		"the workers' own API's address":     {networking("{machineNetwork: [{cidr: 172.20.0.0/24}]}"), "machineNetwork 172.20.0.0/24 holds 172.20.0.1"},
		"that address written":               {networking("{machineNetwork: [{cidr: 192.168.100.0/24}], apiServer: {advertiseAddress: 192.168.100.9}}"), "machineNetwork 192.168.100.0/24 holds 192.168.100.9"},
	} {
		t.Run(name, func(t *testing.T) {
			_, refused := found(t, otherwise(t, c.pairs...), "HyperShiftRefuses")
			NewWithT(t).Expect(refused).To(ConsistOf(HaveField("Reason", ContainSubstring(c.says))))
		})
	}
	for name, pairs := range map[string][]string{
		"families in one order":  networking(`{clusterNetwork: [{cidr: 10.132.0.0/14}, {cidr: "fd01::/48"}], machineNetwork: [{cidr: 192.168.100.0/24}, {cidr: "fd00::/64"}]}`),
		"OAuth of somebody else": {ownDomain, ownDomain + "\n  configuration: {authentication: {type: OIDC}}", oauthByRoute, strings.Replace(oauthByRoute, "Route", "None", 1)},
		"a control plane there": {oauthByRoute, strings.Replace(oauthByRoute, "Route", "LoadBalancer", 1),
			"\n---\napiVersion: hypershift.openshift.io/v1beta1\nkind: NodePool", "\nstatus: {controlPlaneEndpoint: {host: api.c1.example.com, port: 6443}}\n---\napiVersion: hypershift.openshift.io/v1beta1\nkind: NodePool"},
	} {
		t.Run(name, func(t *testing.T) {
			_, refused := found(t, otherwise(t, pairs...), "HyperShiftRefuses")
			NewWithT(t).Expect(refused).To(BeEmpty())
		})
	}
}

// What workers dial on the VLAN itself is not given out, though nothing is published yet; nor is what each of them has itself.
func TestAddressesThatOthersHaveAreNotGivenOut(t *testing.T) {
	g := NewWithT(t)
	free := reports(t, otherwise(t))[0].Serves
	g.Expect(free.DNS).To(Equal("192.168.100.2"))
	g.Expect(reports(t, otherwise(t, apiByName, apiAtNode))[0].Serves.DNS).NotTo(Equal("192.168.100.2"))

	advertised := reports(t, otherwise(t, "192.168.100.0/24", "172.20.0.0/24", "192.168.100.10", "172.20.0.10"))[0].Serves
	g.Expect([]string{advertised.DHCP, advertised.DNS, advertised.Proxy}).NotTo(ContainElement("172.20.0.1"))
	g.Expect(advertised.Leases).NotTo(HavePrefix("172.20.0.1-"))
}

func TestOurOwnServicesAreNoResolvers(t *testing.T) {
	for address, what := range map[string]string{"192.168.100.1": "DHCP server, which answers no names", "192.168.100.3": "proxy, which answers no names"} {
		_, wrong := found(t, otherwise(t, "    ntpServers:", "    dnsServers: ["+address+"]\n    ntpServers:",
			"  networkConfig:", "  infraComponents: {dhcp: {serverIP: 192.168.100.1}, proxy: {serverIP: 192.168.100.3}}\n  networkConfig:"), "InvalidDNSServer")
		NewWithT(t).Expect(wrong).To(ConsistOf(HaveField("Reason", ContainSubstring(what))), address)
	}
}

func TestWhatIsOffHasNoAddressInTheOutlook(t *testing.T) {
	s := reports(t, otherwise(t, "  networkConfig:", "  infraComponents: {dhcp: {enabled: false}}\n  networkConfig:"))[0].Serves
	NewWithT(t).Expect(s.DHCP + s.Leases).To(BeEmpty())
	NewWithT(t).Expect(s.Proxy).NotTo(BeEmpty())
}

// HyperShift's webhook turns it on for such a HostedCluster, and then it is refused.
func TestABaseDomainThatIsMissingIsWarnedOf(t *testing.T) {
	_, warned := found(t, otherwise(t, ownDomain, "dns: {}"), "BaseDomainPassthrough")
	NewWithT(t).Expect(warned).To(ConsistOf(And(HaveField("Severity", BeEquivalentTo("warning")), HaveField("Reason", ContainSubstring("has no dns.baseDomain")), HaveField("YAML", ""))))
	_, refused := found(t, otherwise(t, ownDomain, "dns: {}", "baseDomainPassthrough: false", "baseDomainPassthrough: true"), "BaseDomainPassthrough")
	NewWithT(t).Expect(refused).To(ConsistOf(And(HaveField("Severity", BeEquivalentTo("refused")), HaveField("YAML", ""))))
}

func TestMachinesOfACloudAreOnNoVLANHere(t *testing.T) {
	aws := otherwise(t, "{type: KubeVirt, kubevirt: {baseDomainPassthrough: false}}", "{type: AWS}")
	_, refused := found(t, aws, "ExternalInfra")
	NewWithT(t).Expect(refused).To(ConsistOf(HaveField("Reason", ContainSubstring("AWS's, which are on no VLAN of this cluster"))))

	alone := bytes.SplitN(aws, []byte("---\n"), 3)[2] // nobody asks
	NewWithT(t).Expect(reports(t, alone)).To(BeEmpty())
}

func TestAnEndpointOfOursHasNoNameThatTheControlPlaneWillHave(t *testing.T) {
	const extra = "  extraEndpoints: [{name: ignition, hostnames: [i.example.com], port: 5000, protocol: TLS, target: {service: x, port: 1}}]\n"
	_, refused := found(t, otherwise(t, "  networkConfig:", extra+"  networkConfig:"), "ExtraEndpointConflict")
	NewWithT(t).Expect(refused).To(HaveLen(1))
}

// What waits for a HostedCluster that the files do not hold is no promise.
func TestWhatCannotBeJudgedIsNotSaidToWork(t *testing.T) {
	var printed bytes.Buffer
	NewWithT(t).Expect(preflight.Table(&printed, reports(t, otherwise(t, "hostedClusterRef: {name: c1}", "hostedClusterRef: {name: c2}")))).To(Succeed())
	NewWithT(t).Expect(printed.String()).To(HavePrefix("clusters/c1 cannot be judged yet\n"))
}
