package plan_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	configv1 "github.com/openshift/api/config/v1"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/api/util/ipnet"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// good is a valid Infra, with a change to its input.
func good(t *testing.T, change func(*input.Input)) input.Input {
	t.Helper()
	in := load(t, "../../examples/preflight/good/isolated.yaml").Inputs(settings())[0]
	change(&in)
	return in
}

func told(in input.Input, code string) []finding.Finding {
	return slices.DeleteFunc(plan.Infra(in).Findings, func(f finding.Finding) bool { return f.Reason != code })
}

func TestTheVLANMayNotOverlapTheManagementClustersNetworks(t *testing.T) {
	for network, clash := range map[string]bool{"192.168.0.0/16": true, "192.168.100.128/25": true, "192.168.101.0/24": false, "fd00::/8": false} {
		in := good(t, func(in *input.Input) { in.Settings.ServiceCIDRs = []netip.Prefix{netip.MustParsePrefix(network)} })
		in.Infra.Spec.NetworkConfig.Gateway = "192.168.100.7"
		g, found := NewWithT(t), told(in, "CIDROverlapsNetwork")
		g.Expect(len(found) > 0).To(Equal(clash), network)
		if clash {
			values := found[0].Changes[0].Values
			vlan, gateway := netip.MustParsePrefix(values["spec.networkConfig.cidr"].(string)), netip.MustParseAddr(values["spec.networkConfig.gateway"].(string))
			g.Expect(vlan.Bits()).To(Equal(24))
			g.Expect(vlan.Overlaps(netip.MustParsePrefix(network))).To(BeFalse())
			g.Expect(vlan.Contains(gateway) && gateway.As4()[3] == 7).To(BeTrue(), "the gateway keeps its number: %s", gateway)
		}
	}
}

// Users apply the printed changes as they are: afterwards the two networks must not overlap, and other entries must be kept.
func TestTheHostedClustersNetworksAreMovedApart(t *testing.T) {
	in := good(t, func(in *input.Input) {
		around, beside := ipnet.MustParseCIDR("192.168.0.0/16"), ipnet.MustParseCIDR("fd01::/48")
		in.HostedCluster.Spec.Networking = hyperv1.ClusterNetworking{
			ClusterNetwork: []hyperv1.ClusterNetworkEntry{{CIDR: *around, HostPrefix: 24}, {CIDR: *beside}},
			ServiceNetwork: []hyperv1.ServiceNetworkEntry{{CIDR: *around}},
		}
	})
	g, found := NewWithT(t), told(in, "CIDROverlapsNetwork")
	g.Expect(found).To(HaveLen(2))
	pods, services := entries(found[0], "spec.networking.clusterNetwork"), entries(found[1], "spec.networking.serviceNetwork")
	g.Expect(pods[0]).To(HaveKeyWithValue("hostPrefix", int32(24)))
	g.Expect(pods[1:]).To(Equal([]any{map[string]any{"cidr": "fd01::/48"}}))
	first, second := cidrOf(pods[0]), cidrOf(services[0])
	g.Expect(first.Overlaps(second)).To(BeFalse(), "pods %s, services %s", first, second)
	g.Expect([]int{first.Bits(), second.Bits()}).To(Equal([]int{16, 16}))
}

func entries(f finding.Finding, field string) []any { return f.Changes[0].Values[field].([]any) }

func cidrOf(entry any) netip.Prefix {
	return netip.MustParsePrefix(entry.(map[string]any)["cidr"].(string))
}

// A NodePool may name another NetworkAttachmentDefinition of the VLAN, but not another tenant's without a reference grant.
func TestAForeignDefinitionOfTheVLANIsTakenWithPermission(t *testing.T) {
	for namespace, c := range map[string]struct {
		grants string
		taken  bool
	}{"clusters": {taken: true}, "default": {taken: true}, "clusters-c1": {taken: true}, "tenant": {}, "lender": {grants: "clusters", taken: true}} {
		in := good(t, func(in *input.Input) {
			other := nad.NetworkAttachmentDefinition{Spec: in.NAD.Spec}
			other.Namespace, other.Name, other.Annotations = namespace, "other", map[string]string{names.AnnotationAllowedNamespaces: c.grants}
			in.Attachable = append(in.Attachable, other)
			in.NodePools[0].Spec.Platform.Kubevirt.AdditionalNetworks = []hyperv1.KubevirtNetwork{{Name: namespace + "/other"}}
		})
		NewWithT(t).Expect(len(told(in, "NodePoolNotOnVLAN")) == 0).To(Equal(c.taken), namespace)
	}
}

func TestADomainThatIsNotKnownIsNotShown(t *testing.T) {
	for base, domain := range map[string]string{"example.com": "c1.example.com", "": "", "Not_a_name": ""} {
		in := good(t, func(in *input.Input) {
			in.HostedCluster.Spec.DNS.BaseDomain, in.HostedCluster.Spec.Services, in.HostedCluster.Spec.KubeAPIServerDNSName = base, nil, ""
		})
		o, ok := plan.OutlookOf(in)
		NewWithT(t).Expect(ok).To(BeTrue())
		NewWithT(t).Expect(o.Domain).To(Equal(domain), base)
	}
}

// Workers may use another NetworkAttachmentDefinition of the VLAN than the Infra, and that one may be wrong.
func TestTheDefinitionThatWorkersAreOnIsJudgedToo(t *testing.T) {
	for config, wrong := range map[string]bool{
		`{"name":"p","type":"ovn-k8s-cni-overlay","topology":"localnet","vlanID":100,"mtu":1500,"netAttachDefName":"default/other"}`:  false,
		`{"name":"p","type":"ovn-k8s-cni-overlay","topology":"localnet","vlanID":100,"mtu":1500,"netAttachDefName":"default/copied"}`: true,
	} {
		in := good(t, func(in *input.Input) {
			in.NAD.Spec.Config = strings.Replace(config, "/other", "/"+in.NAD.Name, 1)
			in.NAD.Spec.Config = strings.Replace(in.NAD.Spec.Config, "/copied", "/"+in.NAD.Name, 1)
			other := nad.NetworkAttachmentDefinition{Spec: nad.Spec{Config: config}}
			other.Namespace, other.Name = "default", "other"
			other.OwnerReferences = []metav1.OwnerReference{{APIVersion: "operator.openshift.io/v1", Kind: "Network", Name: "cluster", Controller: new(true)}}
			in.Attachable = append(in.Attachable, other)
			in.NodePools[0].Spec.Platform.Kubevirt.AdditionalNetworks = []hyperv1.KubevirtNetwork{{Name: "default/other"}}
		})
		found := told(in, "NADUnsupported")
		NewWithT(t).Expect(found).To(HaveLen(map[bool]int{true: 1}[wrong]), config)
		for _, f := range found {
			NewWithT(t).Expect(f.Severity.Blocks()).To(BeFalse(), "our pods are on another definition")
			NewWithT(t).Expect(f.Message).To(ContainSubstring(`write "default/other"`))
			NewWithT(t).Expect(f.Of).To(Equal(finding.Object{APIVersion: "operator.openshift.io/v1", Kind: "Network", Name: "cluster"}), "what renders it")
		}
	}
}

// Ignition uses HTTPS, so only httpsProxy counts. Hosts in noProxy, and those that HyperShift adds to it, are dialled directly.
func TestIgnitionIsNotSentThroughAProxyUnsaid(t *testing.T) {
	const proxy = "http://proxy.corp.example.com:3128"
	for name, c := range map[string]struct {
		proxy configv1.ProxySpec
		warns bool
	}{
		"all of it":            {configv1.ProxySpec{HTTPProxy: proxy, HTTPSProxy: proxy}, true},
		"https alone":          {configv1.ProxySpec{HTTPSProxy: proxy}, true},
		"http alone":           {configv1.ProxySpec{HTTPProxy: proxy}, false},
		"none":                 {configv1.ProxySpec{NoProxy: "example.org"}, false},
		"the name is excepted": {configv1.ProxySpec{HTTPSProxy: proxy, NoProxy: "a.example.org,ignition.c1.example.com"}, false},
		"its domain is":        {configv1.ProxySpec{HTTPSProxy: proxy, NoProxy: ".c1.example.com"}, false},
		"another is":           {configv1.ProxySpec{HTTPSProxy: proxy, NoProxy: "192.168.100.0/24,.c2.example.com"}, true},
		"all names are":        {configv1.ProxySpec{HTTPSProxy: proxy, NoProxy: "*"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			found := told(good(t, func(in *input.Input) {
				in.HostedCluster.Spec.Configuration = &hyperv1.ClusterConfiguration{Proxy: &c.proxy}
				in.HostedCluster.Status.IgnitionEndpoint = "ignition.c1.example.com"
			}), "IgnitionThroughProxy")
			NewWithT(t).Expect(len(found) > 0).To(Equal(c.warns))
		})
	}
	address := good(t, func(in *input.Input) {
		in.HostedCluster.Spec.Configuration = &hyperv1.ClusterConfiguration{Proxy: &configv1.ProxySpec{HTTPSProxy: proxy}}
		in.HostedCluster.Spec.Networking.MachineNetwork = []hyperv1.MachineNetworkEntry{{CIDR: *ipnet.MustParseCIDR("192.168.100.0/24")}}
		in.HostedCluster.Status.IgnitionEndpoint = "192.168.100.9:31000"
	})
	NewWithT(t).Expect(told(address, "IgnitionThroughProxy")).To(BeEmpty(), "HyperShift excepts machineNetwork")
}

// What a controller renders has to be changed in the source object.
func TestAPrivateMacvlanOfOpenShiftsNetworkOperatorIsMendedThere(t *testing.T) {
	in := good(t, func(in *input.Input) {
		in.NAD.Spec.Config = `{"type":"macvlan","master":"eth1.100","mode":"private"}`
		in.NAD.OwnerReferences = []metav1.OwnerReference{{APIVersion: "operator.openshift.io/v1", Kind: "Network", Name: "cluster", Controller: new(true)}}
	})
	NewWithT(t).Expect(told(in, "SameNodeUnreachable")).To(ConsistOf(And(
		HaveField("Of.Kind", "Network"), HaveField("Field", "spec.additionalNetworks"), HaveField("Message", HaveSuffix("which accepts any configuration as rawCNIConfig if its type is Raw")))))
}

// Private macvlans work if workers and our pods are on different nodes; each definition gets one warning.
func TestAPrivateMacvlanIsTakenWithANote(t *testing.T) {
	const private, plain = `{"type":"macvlan","master":"eth1.100","mode":"private"}`, `{"type":"macvlan","master":"eth1.100","mode":"bridge"}`
	for name, c := range map[string]struct {
		ours, workers string
		about         []string
	}{
		"the Infra's, and workers are on it":      {private, "", []string{"default/vlan100"}},
		"the workers' only":                       {plain, private, []string{"default/other"}},
		"the Infra's, and workers are on another": {private, plain, []string{"default/vlan100"}},
		"neither": {plain, plain, nil},
	} {
		t.Run(name, func(t *testing.T) {
			in := good(t, func(in *input.Input) {
				in.NAD.Spec.Config = c.ours
				if c.workers != "" {
					other := nad.NetworkAttachmentDefinition{Spec: nad.Spec{Config: c.workers}}
					other.Namespace, other.Name = "default", "other"
					in.Attachable = append(in.Attachable, other)
					in.NodePools[0].Spec.Platform.Kubevirt.AdditionalNetworks = []hyperv1.KubevirtNetwork{{Name: "default/other"}}
				}
			})
			g, found := NewWithT(t), told(in, "SameNodeUnreachable")
			g.Expect(found).To(HaveLen(len(c.about)))
			for i, f := range found {
				g.Expect(f.Severity).To(Equal(finding.Warning))
				g.Expect(f.Message).To(HavePrefix("NetworkAttachmentDefinition " + c.about[i] + " "))
			}
			g.Expect(told(in, "NADUnsupported")).To(BeEmpty())
		})
	}
}

// OpenShift's Multus allows machines, which run in the control-plane namespace, the networks of few namespaces; KubeVirt allows no dot in a
// name; macvlan delivers no frames for a MAC address behind a bridge.
func TestANetworkThatNoMachineStartsOnIsSaid(t *testing.T) {
	named := func(name string) func(*input.Input) {
		return func(in *input.Input) {
			at := strings.Split(name, "/")
			in.OpenShift, in.NAD.Namespace, in.NAD.Name = true, at[0], at[1]
			in.Attachable = []nad.NetworkAttachmentDefinition{*in.NAD}
			in.Infra.Spec.NetworkConfig.NetworkAttachmentNamespace, in.Infra.Spec.NetworkConfig.NetworkAttachmentDefinition = v1alpha1.ObjectName(at[0]), v1alpha1.ObjectName(at[1])
			in.NodePools[0].Spec.Platform.Kubevirt.AdditionalNetworks = []hyperv1.KubevirtNetwork{{Name: name}}
		}
	}
	elsewhere := func(in *input.Input) { named("clusters/vlan100")(in); in.OpenShift = false }
	for name, c := range map[string]struct {
		change func(*input.Input)
		code   string
		says   string
	}{
		"of the Infra's namespace":        {named("clusters/vlan100"), "WorkerNADIsolated", "NodePool clusters/c1-workers names clusters/vlan100, but its machines run in namespace clusters-c1: OpenShift's Multus lets a pod use only networks of its own namespace and of default, openshift-multus"},
		"of default":                      {named("default/vlan100"), "WorkerNADIsolated", ""},
		"of the machines' own":            {named("clusters-c1/vlan100"), "WorkerNADIsolated", ""},
		"where Multus is not OpenShift's": {elsewhere, "WorkerNADIsolated", ""},
		"of files, which do not tell":     {func(in *input.Input) { elsewhere(in); in.Settings.IsolatesNetworks = true }, "WorkerNADIsolated", "clusters/vlan100"},
		"a second network": {func(in *input.Input) {
			pool := in.NodePools[0].Spec.Platform.Kubevirt
			pool.AdditionalNetworks = append(pool.AdditionalNetworks, hyperv1.KubevirtNetwork{Name: "storage/fast"})
			in.OpenShift = true
		}, "WorkerNADIsolated", "names storage/fast"},
		"a dot":     {named("default/vlan.100"), "WorkerNADNameInvalid", "recreate the NetworkAttachmentDefinition as vlan-100"},
		"no dot":    {named("default/vlan-100"), "WorkerNADNameInvalid", ""},
		"a macvlan": {func(in *input.Input) { in.NAD.Spec.Config = `{"type":"macvlan","master":"eth1.100"}` }, "WorkerNADIsMacvlan", "default/vlan100 is macvlan"},
		"a macvlan of other machines": {func(in *input.Input) {
			in.NAD.Spec.Config = `{"type":"macvlan","master":"eth1.100"}`
			in.HostedCluster.Spec.Platform, in.NodePools = hyperv1.PlatformSpec{Type: hyperv1.AgentPlatform}, nil
		}, "WorkerNADIsMacvlan", ""},
	} {
		t.Run(name, func(t *testing.T) {
			found := told(good(t, c.change), c.code)
			if c.says == "" {
				NewWithT(t).Expect(found).To(BeEmpty())
				return
			}
			NewWithT(t).Expect(found).To(ConsistOf(HaveField("Message", ContainSubstring(c.says))))
		})
	}
}

func TestANodePoolIsOfNoConcernWhenAnotherIsOnTheVLAN(t *testing.T) {
	in := good(t, func(in *input.Input) {
		elsewhere := *in.NodePools[0].DeepCopy()
		elsewhere.Name, elsewhere.Spec.Platform.Kubevirt.AdditionalNetworks = "elsewhere", nil
		elsewhere.Spec.Platform.Kubevirt.AttachDefaultNetwork = nil
		elsewhere.Spec.Platform.Kubevirt.AdditionalNetworks = []hyperv1.KubevirtNetwork{{Name: "storage/fast.1"}}
		in.OpenShift = true
		in.NodePools = append(in.NodePools, elsewhere)
	})
	g := NewWithT(t)
	g.Expect(told(in, "NodePoolNotOnVLAN")).To(BeEmpty())
	g.Expect(told(in, "DefaultNetworkAttached")).To(BeEmpty())
	g.Expect(told(in, "WorkerNADIsolated")).To(BeEmpty())
	g.Expect(told(in, "WorkerNADNameInvalid")).To(BeEmpty())
	in.NodePools = in.NodePools[1:]
	g.Expect(told(in, "NodePoolNotOnVLAN")).To(ConsistOf(HaveField("Changes", HaveLen(1))))
	in.NAD.Namespace, in.Infra.Spec.NetworkConfig.NetworkAttachmentNamespace = "clusters", "clusters"
	g.Expect(told(in, "NodePoolNotOnVLAN")).To(ConsistOf(And(HaveField("Changes", BeEmpty()), HaveField("Message", ContainSubstring("in namespace clusters-c1 or default")))))
}

// Users apply the printed changes as they are: the networks that the machines have must be kept.
func TestANodePoolsNetworksAreKept(t *testing.T) {
	in := good(t, func(in *input.Input) {
		in.NodePools[0].Spec.Platform.Kubevirt.AdditionalNetworks = []hyperv1.KubevirtNetwork{{Name: "clusters/storage"}, {Name: "backup"}}
	})
	g, found := NewWithT(t), told(in, "NodePoolNotOnVLAN")
	g.Expect(found).To(HaveLen(1))
	g.Expect(entries(found[0], "spec.platform.kubevirt.additionalNetworks")).To(Equal([]any{
		map[string]any{"name": "default/vlan100"}, map[string]any{"name": "clusters/storage"}, map[string]any{"name": "backup"},
	}))
}

func TestTheMTUMustFitTheWorkersNetwork(t *testing.T) {
	for name, c := range map[string]struct {
		config string
		mtu    int32
		want   []finding.Severity
	}{
		"nothing is said":                   {`{"type":"bridge","bridge":"br100","vlan":100}`, 0, nil},
		"a bridge has the kernel's":         {`{"type":"bridge","bridge":"br100","vlan":100}`, 9000, []finding.Severity{finding.Failing}},
		"the network has less":              {`{"type":"bridge","bridge":"br100","vlan":100,"mtu":1400}`, 1500, []finding.Severity{finding.Failing}},
		"the network has more":              {`{"type":"bridge","bridge":"br100","vlan":100,"mtu":9000}`, 1500, []finding.Severity{finding.Warning}},
		"both agree":                        {`{"type":"bridge","bridge":"br100","vlan":100,"mtu":9000}`, 9000, nil},
		"a macvlan has that of its master":  {`{"type":"macvlan","master":"eth1.100"}`, 9000, nil},
		"the network's own is handed out":   {`{"type":"bridge","bridge":"br100","vlan":100,"mtu":9000}`, 0, nil},
		"OVN-Kubernetes has the cluster's":  {`{"type":"ovn-k8s-cni-overlay","topology":"localnet","name":"p","vlanID":100,"netAttachDefName":"default/vlan100"}`, 9000, nil},
		"OVN-Kubernetes has one of its own": {`{"type":"ovn-k8s-cni-overlay","topology":"localnet","name":"p","vlanID":100,"netAttachDefName":"default/vlan100","mtu":1400}`, 9000, []finding.Severity{finding.Failing}},
	} {
		in := good(t, func(in *input.Input) { in.NAD.Spec.Config, in.Infra.Spec.NetworkConfig.MTU = c.config, c.mtu })
		var outcomes []finding.Severity
		for _, f := range told(in, "MTUMismatch") {
			outcomes = append(outcomes, f.Severity)
		}
		NewWithT(t).Expect(outcomes).To(Equal(c.want), name)
	}
}
