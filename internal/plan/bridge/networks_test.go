package bridge_test

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

// ready is what a plan says of condition Ready: field and message.
func ready(in bridge.Input) (all []string) {
	for _, f := range bridge.Of(in).Findings {
		if f.Condition == dpuv1.ConditionReady {
			all = append(all, f.Severity.Told()+" "+f.Reason+" "+f.Field+": "+f.Message)
		}
	}
	return all
}

// routed sets networks, each unless it is empty.
func routed(in *bridge.Input, pods, services, machines v1alpha1.CIDR) {
	in.Bridge.Spec.Networking = &dpuv1.ClusterNetworking{}
	if pods != "" {
		in.Bridge.Spec.Networking.ClusterNetwork = []dpuv1.ClusterNetworkEntry{{CIDR: pods}}
	}
	if services != "" {
		in.Bridge.Spec.Networking.ServiceNetwork = []dpuv1.NetworkEntry{{CIDR: services}}
	}
	if machines != "" {
		in.Bridge.Spec.Networking.MachineNetwork = []dpuv1.NetworkEntry{{CIDR: machines}}
	}
}

func TestNetworksThatOverlapAreRefusedWithTheirField(t *testing.T) {
	for name, c := range map[string]struct {
		is    func(*bridge.Input)
		field string
		with  string
	}{
		"pods and the default of Services":        {func(in *bridge.Input) { routed(in, "172.16.0.0/12", "", "") }, "serviceNetwork", "clusterNetwork 172.16.0.0/12"},
		"Services and the default of pods":        {func(in *bridge.Input) { routed(in, "", "10.135.0.0/16", "") }, "clusterNetwork", "serviceNetwork 10.135.0.0/16"},
		"machines and pods":                       {func(in *bridge.Input) { routed(in, "10.200.0.0/16", "", "10.200.1.0/24") }, "machineNetwork", "clusterNetwork 10.200.0.0/16"},
		"machines and Services, in IPv6":          {func(in *bridge.Input) { routed(in, "", "fd00::/108", "fd00::/64") }, "machineNetwork", "serviceNetwork fd00::/108"},
		"pods and a network of the cluster":       {func(in *bridge.Input) { routed(in, "10.128.0.0/12", "", "") }, "clusterNetwork", "10.128.0.0/14, a network of the management cluster"},
		"the default of Services and the cluster": {func(in *bridge.Input) { in.Networks = append(in.Networks, netip.MustParsePrefix("172.31.5.0/24")) }, "serviceNetwork", "172.31.5.0/24, a network"},
	} {
		t.Run(name, func(t *testing.T) {
			in := load(t, "testdata/loadbalancer/in.yaml")
			in.Networks = []netip.Prefix{netip.MustParsePrefix("10.128.0.0/14")}
			NewWithT(t).Expect(ready(in)).To(BeEmpty(), "as the defaults are")
			c.is(&in)
			NewWithT(t).Expect(ready(in)).To(ConsistOf(And(
				HavePrefix("refused NetworksOverlap spec.networking."+c.field+": "), ContainSubstring(" overlaps "+c.with))))
			in.HostedCluster = &hyperv1.HostedCluster{}
			in.HostedCluster.Labels = ours(in.Bridge)
			NewWithT(t).Expect(ready(in)).NotTo(ContainElement(ContainSubstring("NetworksOverlap")), "nothing can change what exists")
		})
	}
}

func TestDPUsMayBeInANetworkOfTheManagementCluster(t *testing.T) {
	in := load(t, "testdata/loadbalancer/in.yaml")
	routed(&in, "", "", "192.0.2.0/24")
	in.Networks = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/25")}
	NewWithT(t).Expect(ready(in)).To(BeEmpty())
}

func TestABridgeSaysWhereItsHostedClusterDiffers(t *testing.T) {
	const others = "refused HostedClusterDiffers spec."
	for name, c := range map[string]struct {
		is   func(*bridge.Input)
		want string
	}{
		"nothing is set": {func(in *bridge.Input) { in.Bridge.Spec.Networking = nil }, ""},
		"the same": {func(in *bridge.Input) {
			in.Bridge.Spec.FlannelEnabled = new(true)
			routed(in, "10.200.0.0/16", "10.201.0.0/16", "10.0.0.0/24")
		}, ""},
		"without flannel": {func(in *bridge.Input) { in.Bridge.Spec.FlannelEnabled = new(false) }, others + "flannelEnabled: flannelEnabled is false, but HostedCluster dpf/b1 was created with true"},
		"with flannel": {func(in *bridge.Input) {
			in.Bridge.Spec.FlannelEnabled = new(true)
			in.HostedCluster.Spec.Networking.AllocateNodeCIDRs = nil
		}, others + "flannelEnabled: flannelEnabled is true, but HostedCluster dpf/b1 was created with false"},
		"other pods": {func(in *bridge.Input) { routed(in, "10.202.0.0/16", "", "") }, others + "networking.clusterNetwork: networking.clusterNetwork is 10.202.0.0/16, but HostedCluster dpf/b1 was created with 10.200.0.0/16 with hostPrefix 24"},
		"other shares": {func(in *bridge.Input) {
			routed(in, "10.200.0.0/16", "", "")
			in.Bridge.Spec.Networking.ClusterNetwork[0].HostPrefix = 25
		}, others + "networking.clusterNetwork: networking.clusterNetwork is 10.200.0.0/16 with hostPrefix 25, but"},
		"other Services": {func(in *bridge.Input) { routed(in, "", "10.202.0.0/16", "") }, others + "networking.serviceNetwork: "},
		"other machines": {func(in *bridge.Input) { routed(in, "", "", "10.202.0.0/16") }, others + "networking.machineNetwork: "},
		"machines, not any": {func(in *bridge.Input) {
			routed(in, "", "", "10.0.0.0/24")
			in.HostedCluster.Spec.Networking.MachineNetwork = nil
		}, others + "networking.machineNetwork: networking.machineNetwork is 10.0.0.0/24, but HostedCluster dpf/b1 was created with none, which HyperShift never changes"},
	} {
		t.Run(name, func(t *testing.T) {
			g, in := NewWithT(t), load(t, "testdata/kept/in.yaml")
			c.is(&in)
			if c.want == "" {
				g.Expect(ready(in)).To(BeEmpty())
			} else {
				g.Expect(ready(in)).To(ConsistOf(HavePrefix(c.want)))
			}
			g.Expect(bridge.Of(in).Frozen).To(BeFalse(), "all else is applied")
		})
	}
}

func TestANewHostedClusterHasWhatTheBridgeSaysOfFlannel(t *testing.T) {
	for enabled, want := range map[*bool]*hyperv1.AllocateNodeCIDRsMode{nil: new(hyperv1.AllocateNodeCIDRsEnabled), new(true): new(hyperv1.AllocateNodeCIDRsEnabled), new(false): nil} {
		in := load(t, "testdata/loadbalancer/in.yaml")
		in.Bridge.Spec.FlannelEnabled = enabled
		NewWithT(t).Expect(bridge.Of(in).Objects).To(ContainElement(HaveField("Spec", HaveField("Networking.AllocateNodeCIDRs", Equal(want)))))
	}
}

func TestAHostedClusterKeepsItsNodesUnlessTheBridgeNamesOthers(t *testing.T) {
	for _, said := range []map[string]dpuv1.NodeLabelValue{nil, {"disk": "fast"}} {
		in, want := load(t, "testdata/kept/in.yaml"), map[string]string{"disk": "slow"}
		if in.Bridge.Spec.NodeSelector = said; said != nil {
			want = map[string]string{"disk": "fast"}
		}
		NewWithT(t).Expect(bridge.Of(in).Objects).To(ContainElement(HaveField("Spec", HaveField("NodeSelector", want))))
	}
}

// Both names mean the same, and a finding names the one that was written.
func TestAVirtualIPHasTwoNames(t *testing.T) {
	for _, of := range []string{"metalLBVirtualIP", "virtualIP"} {
		g, in := NewWithT(t), load(t, "testdata/loadbalancer/in.yaml")
		g.Expect(in.Settings.Announces(bridge.VirtualIP(in.Bridge))).To(BeTrue())
		pool := bridge.Of(in).Objects
		if of == "virtualIP" {
			in.Bridge.Spec.ExposeThroughLoadBalancer, in.Bridge.Spec.VirtualIP, in.Bridge.Spec.MetalLBVirtualIP = false, in.Bridge.Spec.MetalLBVirtualIP, ""
		}
		g.Expect(bridge.Of(in).Objects).To(Equal(pool))
		g.Expect(bridge.APIAddresses(in.Bridge, &hyperv1.HostedCluster{})).To(ConsistOf(bridge.VirtualIP(in.Bridge)))
		in.Settings.VirtualIPs = nil
		g.Expect(bridge.Of(in).Findings).To(ContainElement(SatisfyAll(
			HaveField("Severity", finding.Refused), HaveField("Field", "spec."+of), HaveField("Message", HavePrefix(of+" 2001:db8::10 lies outside")))))
	}
}
