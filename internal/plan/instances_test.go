package plan_test

import (
	"net/netip"
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/ipam"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// becomes plans an Infra, and returns the plan and its children as they are read back.
func becomes(t *testing.T, in input.Input) (plan.InfraPlan, input.Children) {
	t.Helper()
	p := plan.Infra(in)
	NewWithT(t).Expect(p.Frozen).To(BeFalse(), "%v", p.Findings)
	all := input.Children{}
	for _, o := range readBack(t, p.Objects) {
		if c, is := component.Of(o); is {
			all[c.Name] = o.(component.Server)
		}
	}
	return p, all
}

// Second instances get the spare addresses: no existing address moves.
func TestASecondInstanceMovesNothing(t *testing.T) {
	g, in := NewWithT(t), changed(t, "{infraComponents: {dhcp: {replicas: 1}, dns: {replicas: 1}, proxy: {replicas: 1}}}")
	_, one := becomes(t, in)
	g.Expect(one.DNS().Spec.NetworkConfig.AdditionalServerIPs).To(BeEmpty())
	g.Expect(one.DHCP().Spec.NetworkConfig.AdditionalServerIPs).To(BeEmpty())
	g.Expect(one.Proxy().Spec.NetworkConfig.AdditionalServerIPs).To(BeEmpty())
	in.Children = one
	c := &in.Infra.Spec.InfraComponents
	c.DHCP.Replicas, c.DNS.Replicas, c.Proxy.Replicas = 0, 0, 0
	p, two := becomes(t, in)
	g.Expect(two.DHCP().Spec.NetworkConfig.AdditionalServerIPs).To(Equal([]v1alpha1.IPv4Address{"192.168.100.4"}))
	g.Expect(two.DNS().Spec.NetworkConfig.AdditionalServerIPs).To(Equal([]v1alpha1.IPAddress{"192.168.100.5"}))
	g.Expect(two.Proxy().Spec.NetworkConfig.AdditionalServerIPs).To(Equal([]v1alpha1.IPAddress{"192.168.100.6"}))
	g.Expect(p.Addresses).To(ContainElements(v1alpha1.AssignedAddress{Component: "dhcp", Instance: 1, IP: "192.168.100.4"}, v1alpha1.AssignedAddress{Component: "dns", Instance: 1, IP: "192.168.100.5"}, v1alpha1.AssignedAddress{Component: "proxy", Instance: 1, IP: "192.168.100.6"}))
	g.Expect(two.DHCP().Spec.NetworkConfig.DNSServers).To(Equal([]v1alpha1.IPv4Address{"192.168.100.2", "192.168.100.5"}), "both are in option 6")
	for name, at := range one.Addresses() {
		g.Expect(two.Addresses()).To(HaveKeyWithValue(name, at))
	}
	g.Expect(two.Pool()).To(Equal(one.Pool()))
	g.Expect(two.DNS().Spec.NetworkConfig.Attachment).To(Equal(one.DNS().Spec.NetworkConfig.Attachment), "its pod stays")
	g.Expect(two.DHCP().Spec.NetworkConfig.Attachment).To(Equal(one.DHCP().Spec.NetworkConfig.Attachment), "its pod stays")
	g.Expect(two.Proxy().Spec.NetworkConfig.Attachment).To(Equal(one.Proxy().Spec.NetworkConfig.Attachment), "its pod stays")
}

func TestTheSecondAddressIsNeitherLeasedNorGivenToOthers(t *testing.T) {
	const second = "192.168.100.77" // a written address inside the pool
	g, in := NewWithT(t), changed(t, "{infraComponents: {dns: {additionalServerIPs: [192.168.100.77]}, proxy: {}}}")
	_, children := becomes(t, in)
	g.Expect(children.Pool().Contains(netip.MustParseAddr(second))).To(BeTrue())
	for _, leased := range children.Leased() {
		g.Expect(leased.Contains(netip.MustParseAddr(second))).To(BeFalse())
	}
	in.Infra.Spec.InfraComponents.Proxy.ServerIP = second
	g.Expect(wrongs(plan.Infra(in))).To(ConsistOf(HavePrefix("AddressInUse: ")))
	in.Infra.Spec.InfraComponents.Proxy.ServerIP = ""
	in.Infra.Spec.NetworkConfig.DNSServers = []v1alpha1.IPAddress{second}
	g.Expect(wrongs(plan.Infra(in))).To(ConsistOf(HavePrefix("InvalidDNSServer: networkConfig.dnsServers has 192.168.100.77")))
}

// Machines keep leases outside a pool that became smaller, and a neighbour's reservations are for machines that only he knows of.
func TestTheSecondAddressIsNoMachines(t *testing.T) {
	second := func(in input.Input) v1alpha1.IPAddress {
		_, children := becomes(t, in)
		return children.DNS().Spec.NetworkConfig.AdditionalServerIPs[0]
	}
	g, in := NewWithT(t), changed(t, "{infraComponents: {dhcp: {replicas: 1, rangeStart: 192.168.100.100, rangeEnd: 192.168.100.199}, proxy: {replicas: 1}}}")
	g.Expect(second(in)).To(BeEquivalentTo("192.168.100.4"))
	g.Expect(plan.Infra(in).NewSeconds(in)).To(Equal([]netip.Addr{netip.MustParseAddr("192.168.100.4")}))
	has := in
	_, has.Children = becomes(t, in)
	g.Expect(plan.Infra(has).NewSeconds(has)).To(BeEmpty())
	in.Leased = []ipam.Range{ipam.Single(netip.MustParseAddr("192.168.100.4"))}
	g.Expect(second(in)).To(BeEquivalentTo("192.168.100.5"))
	n := granted(in, 20)
	n.Infra.Spec.InfraComponents.DHCP.Reservations = []v1alpha1.Reservation{{MAC: "02:00:00:00:00:05", IP: "192.168.100.5"}, {MAC: "02:00:00:00:00:06", IP: "192.168.100.150"}}
	n.Infra.Spec.InfraComponents.DHCP.ExcludeRanges = []v1alpha1.AddressRange{{Start: "192.168.100.6", End: "192.168.100.9"}}
	n.Infra.Spec.NetworkConfig.Gateway = "192.168.100.10"
	in.Neighbours = []input.Neighbour{n}
	g.Expect(second(in)).To(BeEquivalentTo("192.168.100.11"))
	_, children := becomes(t, in)
	g.Expect(children.DHCP().Spec.ExcludeRanges).To(BeEmpty(), "they take nothing from the pool")
}

// A pod on a lost node has its address until somebody fences the node, whether it is wanted or not.
func TestTheAddressOfAnInstanceThatIsToGoIsNotLeased(t *testing.T) {
	g, in := NewWithT(t), changed(t, "{infraComponents: {dhcp: {rangeStart: 192.168.100.1, rangeEnd: 192.168.100.254, serverIP: 192.168.100.2}, dns: {serverIP: 192.168.100.3, additionalServerIPs: [192.168.100.77]}, proxy: {serverIP: 192.168.100.5}}}")
	second := netip.MustParseAddr("192.168.100.77")
	leases := func() (does bool) {
		_, children := becomes(t, in)
		for _, leased := range children.Leased() {
			does = does || leased.Contains(second)
		}
		return does
	}
	_, in.Children = becomes(t, in)
	g.Expect(leases()).To(BeFalse())
	in.Infra.Spec.InfraComponents.DNS.Replicas, in.Infra.Spec.InfraComponents.DNS.AdditionalServerIPs = 1, nil
	in.Children.DNS().Status.Instances = []v1alpha1.Instance{{IP: "192.168.100.3"}, {IP: "192.168.100.77", Ready: true}}
	g.Expect(leases()).To(BeFalse())
	in.Children.DNS().Status.Instances = in.Children.DNS().Status.Instances[:1]
	g.Expect(leases()).To(BeTrue(), "its pod is gone")
}

// The address comes from the DNSServer, or else the annotation, or else the status.
func TestTheSecondAddressIsNotMoved(t *testing.T) {
	in := changed(t, "{}")
	p, children := becomes(t, in)
	children.DNS().Spec.NetworkConfig.AdditionalServerIPs = []v1alpha1.IPAddress{"192.168.100.99"}
	for name, remembered := range map[string]func(*input.Input){
		"its DNSServer": func(in *input.Input) { in.Children = children },
		"the annotation": func(in *input.Input) {
			in.Children = children
			moved := plan.Infra(*in)
			in.Children, in.Infra.Annotations = nil, map[string]string{names.AnnotationGiven: moved.Given}
		},
		"status": func(in *input.Input) {
			in.Infra.Status.Addresses = []v1alpha1.AssignedAddress{{Component: "dns", IP: "192.168.100.2"}, {Component: "dns", Instance: 1, IP: "192.168.100.99"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			now := in
			now.Infra = in.Infra.DeepCopy()
			remembered(&now)
			_, is := becomes(t, now)
			NewWithT(t).Expect(is.DNS().Spec.NetworkConfig.AdditionalServerIPs).To(Equal([]v1alpha1.IPAddress{"192.168.100.99"}))
		})
	}
	NewWithT(t).Expect(p.Given).To(ContainSubstring(`"dhcp-1":"192.168.100.4","dns":"192.168.100.2","dns-1":"192.168.100.5"`))
}

// In a full network one instance goes on serving, and a finding says what that costs.
func TestWithoutAFreeAddressOneInstanceServes(t *testing.T) {
	g, in := NewWithT(t), changed(t, "{infraComponents: {dhcp: {rangeStart: 192.168.100.4, rangeEnd: 192.168.100.254}}}")
	p, children := becomes(t, in)
	g.Expect(children.DHCP().Spec.NetworkConfig.AdditionalServerIPs).To(BeEmpty())
	g.Expect(children.DNS().Spec.NetworkConfig.AdditionalServerIPs).To(BeEmpty())
	g.Expect(children.DHCP().Spec.NetworkConfig.DNSServers).To(HaveLen(1))
	costs := func(condition, what string) any {
		return And(HaveField("Condition", condition), HaveField("Reason", "OneInstanceServes"), HaveField("Message", ContainSubstring("a node's failure stops "+what+"; free one address")))
	}
	g.Expect(p.Findings).To(ContainElements(costs(v1alpha1.ConditionDHCPReady, "DHCP"), costs(v1alpha1.ConditionDNSReady, "name resolution"), costs(v1alpha1.ConditionProxyReady, "the proxy")))

	c := &in.Infra.Spec.InfraComponents
	c.DHCP.Replicas, c.DNS.Replicas, c.Proxy.Replicas = 1, 1, 1
	p, _ = becomes(t, in)
	g.Expect(p.Findings).NotTo(ContainElement(HaveField("Reason", "OneInstanceServes")))
}

// Names have the second proxy once it has been ready and each DNS instance checks it, and keep it.
func TestNamesHaveASecondProxyOnceItServes(t *testing.T) {
	g, in := NewWithT(t), changed(t, "{}")
	_, in.Children = becomes(t, in)
	first, second := in.Children.Proxy().Spec.NetworkConfig.ServerIP, in.Children.Proxy().Spec.NetworkConfig.AdditionalServerIPs[0]
	expects := func(want ...v1alpha1.IPAddress) {
		t.Helper()
		_, children := becomes(t, in)
		var all []v1alpha1.IPAddress
		for _, e := range children.DNS().Spec.StaticEntries {
			if e.Hostname == children.DNS().Spec.StaticEntries[0].Hostname {
				all = append(all, e.IP)
			}
		}
		g.Expect(all).To(Equal(want))
	}
	g.Expect(in.Children.DNS().Spec.HealthChecks).To(Equal([]v1alpha1.DNSHealthCheck{{IP: first, Port: 443}, {IP: second, Port: 443}}), "by the lowest port with TLS")
	checks := []v1alpha1.Health{{IP: first, State: v1alpha1.HealthAnswers}, {IP: second, State: v1alpha1.HealthAnswers}}
	proxies := []v1alpha1.Instance{{IP: first, Ready: true}, {IP: second}}
	in.Children.Proxy().Status.Instances = proxies
	in.Children.DNS().Status.Instances = []v1alpha1.Instance{{IP: "192.168.100.2", Health: checks}, {IP: "192.168.100.5", Health: checks}}
	expects(first)
	proxies[1].Ready = true
	in.Children.DNS().Status.Instances[1].Health = nil
	expects(first) // the daemon is of an older release
	in.Children.DNS().Status.Instances[1].Health = checks
	expects(first, second)

	_, now := becomes(t, in)
	in.Children = now
	expects(first, second)
	stands := "envoy: Envoy does not answer"
	in.Children.Proxy().Status.Instances = []v1alpha1.Instance{{IP: first, Message: stands}, {IP: second, Ready: true}}
	expects(second)
	in.Children.Proxy().Status.Instances[1] = v1alpha1.Instance{IP: second, Message: stands}
	expects(first, second) // nothing empties an answer
	in.Infra.Spec.InfraComponents.Proxy.Replicas = 1
	expects(first)
}

// An entry that the Infra writes says nothing of the second proxy.
func TestAnEntryOfTheInfraMakesNoSecondProxyServe(t *testing.T) {
	g, in := NewWithT(t), changed(t, "{}")
	_, children := becomes(t, in)
	written := v1alpha1.DNSEntry{Hostname: "git.example.com", IP: children.Proxy().Spec.NetworkConfig.AdditionalServerIPs[0]}
	in.Infra.Spec.InfraComponents.DNS.StaticEntries = []v1alpha1.DNSEntry{written}
	for range 2 {
		_, in.Children = becomes(t, in)
		all := in.Children.DNS().Spec.StaticEntries
		g.Expect(all).To(ContainElement(written))
		g.Expect(slices.DeleteFunc(slices.Clone(all), func(e v1alpha1.DNSEntry) bool { return e.IP != written.IP })).To(HaveLen(1))
	}
}

// An appliance has the address of an entry: neither our pods nor machines get it, unless it is reserved, and our own stay.
func TestTheAddressOfAnEntryIsNobodyElses(t *testing.T) {
	g, in := NewWithT(t), changed(t, "{}")
	before := plan.Infra(in)
	first := before.Addresses[0].IP
	at := func(ip v1alpha1.IPAddress) []v1alpha1.DNSEntry {
		return []v1alpha1.DNSEntry{{Hostname: "git.example.com", IP: ip}, {Hostname: "vm.example.com", IP: "192.168.100.201"}, {Hostname: "nas.example.com", IP: "192.168.100.200"}, {Hostname: "far.example.com", IP: "198.51.100.7"}}
	}
	in.Infra.Spec.InfraComponents.DHCP.Reservations = []v1alpha1.Reservation{{IP: "192.168.100.201", MAC: "52:54:00:00:00:01"}}
	in.Infra.Spec.InfraComponents.DNS.StaticEntries = at(first)
	p, made := becomes(t, in)
	g.Expect(p.Addresses).NotTo(ContainElement(HaveField("IP", first)))
	g.Expect(made.DHCP().Spec.ExcludeRanges).To(Equal([]v1alpha1.AddressRange{{Start: "192.168.100.200", End: "192.168.100.200"}}))

	in.Children = made
	in.Infra.Spec.InfraComponents.DNS.StaticEntries = at(p.Addresses[0].IP)
	after, made := becomes(t, in)
	g.Expect(after.Addresses).To(Equal(p.Addresses))
	g.Expect(wrongs(after)).To(BeEmpty())
	g.Expect(made.DHCP().Spec.ExcludeRanges).To(Equal([]v1alpha1.AddressRange{{Start: "192.168.100.200", End: "192.168.100.200"}}))
}

// Without a proxy an endpoint's name has no record but the one that is written.
func TestWithoutAProxyAnEntryOfAnEndpointsNameIsAnswered(t *testing.T) {
	for _, proxied := range []bool{true, false} {
		g, in := NewWithT(t), changed(t, "{}")
		written := v1alpha1.DNSEntry{Hostname: v1alpha1.DNSNameOrWildcard(in.Endpoints().Names()[0]), IP: "198.51.100.9"}
		in.Infra.Spec.InfraComponents.Proxy.Enabled, in.Infra.Spec.InfraComponents.DNS.StaticEntries = &proxied, []v1alpha1.DNSEntry{written}
		p, made := becomes(t, in)
		g.Expect(slices.Contains(made.DNS().Spec.StaticEntries, written)).To(Equal(!proxied))
		g.Expect(slices.ContainsFunc(p.Findings, func(f finding.Finding) bool { return f.Reason == "StaticEntryIgnored" })).To(Equal(proxied))
	}
}

// A plain TCP port leads every connection to a backend.
func TestNoBackendIsConnectedToForAHealthCheck(t *testing.T) {
	in := load(t, "testdata/nodeport-with-ip/in.yaml").Inputs(settings())[0]
	_, children := becomes(t, in)
	NewWithT(t).Expect(children.DNS().Spec.HealthChecks).To(HaveEach(HaveField("Port", v1alpha1.Port(0))))
}
