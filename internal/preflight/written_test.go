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

// edited is a good configuration with some texts replaced.
func edited(t *testing.T, pairs ...string) []byte {
	t.Helper()
	text := string(read(t, examples+"RejectedByHyperShift/passes.yaml"))
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("the example has no %q", pairs[i])
		}
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	return []byte(text)
}

// The API server accepts all of these, but none gives a working control plane.
func TestWhatHyperShiftRefusesIsSaid(t *testing.T) {
	networking := func(networks string) []string { return []string{ownDomain, ownDomain + "\n  networking: " + networks} }
	for name, c := range map[string]struct {
		pairs []string
		says  string
	}{
		"an API that is not published":       {[]string{apiByName, "{type: None}"}, "it cannot publish APIServer through None; use LoadBalancer, NodePort or Route"},
		"an API by a Route without a name":   {[]string{apiByName, "{type: Route}"}, "write route.hostname"},
		"OAuth by a load balancer":           {[]string{oauthByRoute, strings.Replace(oauthByRoute, "Route", "LoadBalancer", 1)}, "it cannot publish OAuthServer through LoadBalancer; use Route or NodePort"},
		"konnectivity that is not published": {[]string{agentByRoute, strings.Replace(agentByRoute, "Route", "None", 1)}, "it cannot publish Konnectivity through None"},
		"two services under one name":        {[]string{oauthByRoute, strings.Replace(oauthByRoute, "Route", "Route, route: {hostname: api.c1.example.com}", 1)}, "APIServer and OAuthServer are published under one name, api.c1.example.com"},
		"networks of two families":           {networking(`{clusterNetwork: [{cidr: 10.132.0.0/14}], machineNetwork: [{cidr: "fd00::/64"}, {cidr: 192.168.100.0/24}]}`), "first networks have different address families: clusterNetwork 10.132.0.0/14 and machineNetwork fd00::/64"},
		"of a family beside the default":     {networking(`{machineNetwork: [{cidr: "fd00:100::/64"}]}`), "clusterNetwork 10.132.0.0/14 and machineNetwork fd00:100::/64"},
		"an address of another family":       {networking("{apiServer: {advertiseAddress: 'fd00:100::1'}}"), "clusterNetwork 10.132.0.0/14 and apiServer.advertiseAddress fd00:100::1"},
		"machines among the default's pods":  {networking("{machineNetwork: [{cidr: 10.132.5.0/24}]}"), "clusterNetwork 10.132.0.0/14 and machineNetwork 10.132.5.0/24 overlap"},
		"services among pods":                {networking("{clusterNetwork: [{cidr: 10.0.0.0/14}], serviceNetwork: [{cidr: 10.1.0.0/16}]}"), "clusterNetwork 10.0.0.0/14 and serviceNetwork 10.1.0.0/16 overlap"},
		"OVN-Kubernetes' own":                {networking("{machineNetwork: [{cidr: 100.66.10.0/24}]}"), "machineNetwork 100.66.10.0/24 and operatorConfiguration.clusterNetworkOperator.ovnKubernetesConfig.ipv4.internalJoinSubnet 100.66.0.0/16 overlap"},
		"an address that is none":            {networking("{apiServer: {advertiseAddress: api.example.com}}"), "\"api.example.com\" is no address"},
		"the IPv6 API's address":             {networking(`{clusterNetwork: [{cidr: "fd01::/48"}], serviceNetwork: [{cidr: "fd02::/112"}], machineNetwork: [{cidr: "fd00::/64"}]}`), "machineNetwork fd00::/64 holds fd00::1"},
		"the workers' own API's address":     {networking("{machineNetwork: [{cidr: 172.20.0.0/24}]}"), "machineNetwork 172.20.0.0/24 holds 172.20.0.1"},
		"that address written":               {networking("{machineNetwork: [{cidr: 192.168.100.0/24}], apiServer: {advertiseAddress: 192.168.100.9}}"), "machineNetwork 192.168.100.0/24 holds 192.168.100.9"},
	} {
		t.Run(name, func(t *testing.T) {
			_, refused := found(t, edited(t, c.pairs...), "RejectedByHyperShift")
			NewWithT(t).Expect(refused).To(ConsistOf(HaveField("Reason", ContainSubstring(c.says))))
		})
	}
	for name, pairs := range map[string][]string{
		"families in one order":     networking(`{clusterNetwork: [{cidr: 10.132.0.0/14}, {cidr: "fd01::/48"}], machineNetwork: [{cidr: 192.168.100.0/24}, {cidr: "fd00::/64"}]}`),
		"a network of another kind": networking("{networkType: Calico, machineNetwork: [{cidr: 100.66.10.0/24}]}"),
		"join subnet moved":         {ownDomain, ownDomain + "\n  networking: {machineNetwork: [{cidr: 100.66.10.0/24}]}\n  operatorConfiguration: {clusterNetworkOperator: {ovnKubernetesConfig: {ipv4: {internalJoinSubnet: 100.99.0.0/16}}}}"},
		"OAuth of somebody else":    {ownDomain, ownDomain + "\n  configuration: {authentication: {type: OIDC}}", oauthByRoute, strings.Replace(oauthByRoute, "Route", "None", 1)},
		"a control plane there": {oauthByRoute, strings.Replace(oauthByRoute, "Route", "LoadBalancer", 1),
			"\n---\napiVersion: hypershift.openshift.io/v1beta1\nkind: NodePool", "\nstatus: {controlPlaneEndpoint: {host: api.c1.example.com, port: 6443}}\n---\napiVersion: hypershift.openshift.io/v1beta1\nkind: NodePool"},
	} {
		t.Run(name, func(t *testing.T) {
			_, refused := found(t, edited(t, pairs...), "RejectedByHyperShift")
			NewWithT(t).Expect(refused).To(BeEmpty())
		})
	}
}

// An address on the VLAN that workers dial is not assigned, even before it is published; nor is one that each worker has itself.
func TestAddressesThatOthersHaveAreNotGivenOut(t *testing.T) {
	g := NewWithT(t)
	free := reports(t, edited(t))[0].Serves
	g.Expect(at("dns", free)).To(Equal("192.168.100.2"))
	g.Expect(at("dns", reports(t, edited(t, apiByName, apiAtNode))[0].Serves)).NotTo(Equal("192.168.100.2"))

	advertised := reports(t, edited(t, "192.168.100.0/24", "172.20.0.0/24", "192.168.100.10", "172.20.0.10"))[0].Serves
	g.Expect([]string{at("dhcp", advertised), at("dns", advertised), at("proxy", advertised)}).NotTo(ContainElement("172.20.0.1"))
	g.Expect(advertised.Leases).NotTo(HavePrefix("172.20.0.1-"))
}

func TestOurOwnServicesAreNoResolvers(t *testing.T) {
	for address, what := range map[string]string{"192.168.100.1": "DHCP server, which answers no names", "192.168.100.3": "proxy, which answers no names"} {
		_, wrong := found(t, edited(t, "    ntpServers:", "    dnsServers: ["+address+"]\n    ntpServers:",
			"  networkConfig:", "  infraComponents: {dhcp: {serverIP: 192.168.100.1}, proxy: {serverIP: 192.168.100.3}}\n  networkConfig:"), "InvalidDNSServer")
		NewWithT(t).Expect(wrong).To(ConsistOf(HaveField("Reason", ContainSubstring(what))), address)
	}
}

func TestWhatIsOffHasNoAddressInTheOutlook(t *testing.T) {
	s := reports(t, edited(t, "  networkConfig:", "  infraComponents: {dhcp: {enabled: false}}\n  networkConfig:"))[0].Serves
	NewWithT(t).Expect(at("dhcp", s) + s.Leases).To(BeEmpty())
	NewWithT(t).Expect(at("proxy", s)).NotTo(BeEmpty())
}

// HyperShift's webhook turns baseDomainPassthrough on for such a HostedCluster, which is then refused.
func TestABaseDomainThatIsMissingIsWarnedOf(t *testing.T) {
	_, warned := found(t, edited(t, ownDomain, "dns: {}"), "BaseDomainPassthrough")
	NewWithT(t).Expect(warned).To(ConsistOf(And(severity("warning"), HaveField("Reason", ContainSubstring("has no dns.baseDomain")), HaveField("YAML", ""))))
	_, refused := found(t, edited(t, ownDomain, "dns: {}", "baseDomainPassthrough: false", "baseDomainPassthrough: true"), "BaseDomainPassthrough")
	NewWithT(t).Expect(refused).To(ConsistOf(And(severity("refused"), HaveField("YAML", ""))))
}

func TestMachinesOfACloudAreOnNoVLANHere(t *testing.T) {
	aws := edited(t, "{type: KubeVirt, kubevirt: {baseDomainPassthrough: false}}", "{type: AWS}")
	_, refused := found(t, aws, "ExternalInfra")
	NewWithT(t).Expect(refused).To(ConsistOf(HaveField("Reason", ContainSubstring("runs its machines on platform AWS, outside the VLANs of this cluster"))))

	alone := bytes.SplitN(aws, []byte("---\n"), 3)[2] // nothing requests an Infra
	NewWithT(t).Expect(reports(t, alone)).To(BeEmpty())
}

func TestAnEndpointOfOursHasNoNameThatTheControlPlaneWillHave(t *testing.T) {
	const extra = "  extraEndpoints: [{name: ignition, hostnames: [i.example.com], port: 5000, protocol: TLS, target: {service: x, port: 1}}]\n"
	_, refused := found(t, edited(t, "  networkConfig:", extra+"  networkConfig:"), "ExtraEndpointConflict")
	NewWithT(t).Expect(refused).To(HaveLen(1))
}

// An Infra that waits for a HostedCluster outside the files gets no promise.
func TestWhatCannotBeJudgedIsNotSaidToWork(t *testing.T) {
	var printed bytes.Buffer
	NewWithT(t).Expect(preflight.Table(&printed, reports(t, read(t, examples+"WaitingForControlPlane/fails.yaml")))).To(Succeed())
	NewWithT(t).Expect(printed.String()).To(HavePrefix("clusters/c1 cannot be judged yet\n"))
}

// A mistyped name must not pass where a pipeline asks.
func TestAHostedClusterThatTheFilesDoNotHaveIsRefused(t *testing.T) {
	typo := edited(t, "hostedClusterRef: {name: c1}", "hostedClusterRef: {name: c2}")
	_, refused := found(t, typo, "WaitingForControlPlane")
	NewWithT(t).Expect(refused).To(ConsistOf(And(severity("refused"), HaveField("Reason", "the files have no HostedCluster clusters/c2, only clusters/c1: correct the name, or give its file"))))
	NewWithT(t).Expect(reports(t, typo)[0].Works).To(BeFalse())
}

// A file with several clusters is judged as a whole, or the report says what is left out.
func TestAHostedClusterThatNothingAsksForIsTold(t *testing.T) {
	g := NewWithT(t)
	other := "\n---\napiVersion: hypershift.openshift.io/v1beta1\nkind: HostedCluster\nmetadata: {name: c2, namespace: clusters}\nspec: {platform: {type: KubeVirt, kubevirt: {}}}\n"
	g.Expect(reports(t, append(edited(t), other...))[0].NotJudged).To(ContainElement("HostedCluster clusters/c2, which requests no Infra; request one with: kubectl -n clusters annotate --overwrite hostedcluster c2 hostedcluster.densityops.com/infra=auto"))
	for name, quiet := range map[string]string{
		"of a cloud": strings.Replace(other, "type: KubeVirt, kubevirt: {}", "type: AWS", 1),
		"going":      strings.Replace(other, "name: c2,", "name: c2, deletionTimestamp: '2026-11-23T07:00:00Z',", 1),
	} {
		g.Expect(reports(t, append(edited(t), quiet...))[0].NotJudged).NotTo(ContainElement(ContainSubstring("c2")), name)
	}
}

// There is nothing to patch before an annotation has made the Infra.
func TestNoInfraIsChangedThatIsYetToBeMade(t *testing.T) {
	g := NewWithT(t)
	annotated := string(read(t, "../../examples/preflight/good/annotated.yaml"))
	_, of, found := strings.Cut(annotated, "\nkind: HostedCluster\n")
	g.Expect(found).To(BeTrue())
	of, _, _ = strings.Cut(of, "\n---\n")
	second := "\n---\napiVersion: hypershift.openshift.io/v1beta1\nkind: HostedCluster\n" + strings.NewReplacer("name: c1", "name: c2", "c1.", "c2.").Replace(of) +
		"\n---\napiVersion: hypershift.openshift.io/v1beta1\nkind: NodePool\nmetadata: {name: c2, namespace: clusters}\n" +
		"spec: {clusterName: c2, platform: {type: KubeVirt, kubevirt: {attachDefaultNetwork: false, additionalNetworks: [{name: default/vlan100}]}}}\n"
	var inUse []preflight.Finding
	for _, r := range reports(t, []byte(annotated+second)) {
		for _, f := range r.Findings {
			if f.Code == "VLANInUse" {
				inUse = append(inUse, f)
			}
		}
	}
	g.Expect(inUse).To(ConsistOf(HaveField("YAML", "")))
}

// HyperShift would put both control planes into namespace a-b-c: the older one has it, whatever the order of the files.
func TestOfTwoHostedClustersOneHasTheNamespace(t *testing.T) {
	cluster := func(namespace, name, made string) string {
		return "apiVersion: hypershift.openshift.io/v1beta1\nkind: HostedCluster\nmetadata: {name: " + name + ", namespace: " + namespace + made + "}\n---\n" +
			"apiVersion: hostedcluster.densityops.com/v1alpha1\nkind: Infra\nmetadata: {name: " + name + ", namespace: " + namespace + "}\n" +
			"spec: {hostedClusterRef: {name: " + name + "}, networkConfig: {cidr: 192.168.100.0/24, networkAttachmentDefinition: vlan}}\n---\n"
	}
	const there = `, creationTimestamp: "2026-11-02T00:00:00Z"`
	one, other := cluster("a", "b-c", ""), cluster("a-b", "c", there)
	for order, text := range map[string]string{"the new one first": one + other, "the new one last": other + one} {
		t.Run(order, func(t *testing.T) {
			for _, r := range reports(t, []byte(text)) {
				refused := ContainElement(HaveField("Code", "RefNotPermitted"))
				if r.Namespace == "a-b" {
					refused = Not(refused)
				}
				NewWithT(t).Expect(r.Findings).To(refused, r.Namespace)
			}
		})
	}
}

// at is a component's address; empty where there is none.
func at(component string, s *preflight.Serves) string {
	for _, a := range s.Addresses {
		if a.Component == component {
			return string(a.IP)
		}
	}
	return ""
}
