package plan_test

import (
	"net/netip"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"

	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/provision"
	"github.com/cldmnky/oooi/internal/testkit/golden"
)

func TestAHostedClusterAsksFor(t *testing.T) {
	golden.Cases(t, "testdata/provision", []string{"in.yaml"}, func(t *testing.T, dir string) map[string]string {
		all := load(t, filepath.Join(dir, "in.yaml")).Provisionings(settings())
		NewWithT(t).Expect(all).To(HaveLen(1))
		before := golden.YAML(t, all)
		p := provision.Of(all[0])
		NewWithT(t).Expect(golden.YAML(t, all)).To(Equal(before), "planning changed its input")
		said := struct {
			Release  bool     `json:"release"`
			Findings []string `json:"findings,omitempty"`
		}{Release: p.Release}
		for _, f := range p.Findings {
			said.Findings = append(said.Findings, f.Severity.String()+" "+f.Condition+"/"+f.Reason+": "+f.Message)
		}
		out := golden.YAML(t, said)
		if p.Infra != nil {
			out += "---\n" + golden.YAML(t, p.Infra)
		}
		return map[string]string{"out.yaml": out}
	})
}

// Anybody can copy a network into his own namespace. So a HostedCluster does not take its subnet from an Infra on such a copy.
func TestAHostedClusterHasItsSubnetFromNobodyWithACopyOfItsNetwork(t *testing.T) {
	g := NewWithT(t)
	in := load(t, "testdata/provision/subnet-of-another-infra/in.yaml").Provisionings(settings())[0]
	in.NAD = in.NAD.DeepCopy()
	in.NAD.Namespace = in.HostedCluster.Namespace
	in.NodePools[0].Spec.Platform.Kubevirt.AdditionalNetworks[0].Name = "clusters/vlan100"
	var intruder input.Neighbour
	for _, n := range in.OnVLAN {
		if n.Infra.Namespace == "others" {
			intruder = n
			intruder.NAD = n.NAD.DeepCopy()
			intruder.NAD.Namespace = "others"
		}
	}
	in.OnVLAN = []input.Neighbour{intruder}
	g.Expect(provision.Of(in).Findings).To(ContainElement(HaveField("Reason", "CIDRMissing")))
	in.NAD.Annotations = map[string]string{names.AnnotationAllowedNamespaces: "others"}
	g.Expect(provision.Of(in).Infra.Spec.NetworkConfig.CIDR).To(HaveValue(BeEquivalentTo("10.9.0.0/24")))
}

// A network in the namespace NAMESPACE-NAME is the HostedCluster's own only once its control plane runs there.
func TestNoSubnetIsReadOffANamespaceThatIsNoControlPlane(t *testing.T) {
	in := load(t, "testdata/provision/subnet-of-another-infra/in.yaml").Provisionings(settings())[0]
	in.NAD, in.OnVLAN = in.NAD.DeepCopy(), nil
	in.NAD.Namespace, in.NAD.Annotations = in.HostedCluster.Namespace+"-"+in.HostedCluster.Name, nil
	in.NAD.Spec.Config = `{"cniVersion":"0.3.1","name":"vlan","type":"ovn-k8s-cni-overlay","topology":"localnet","netAttachDefName":"` + in.NAD.Namespace + `/` + in.NAD.Name + `","subnets":"10.9.0.0/24"}`
	in.NodePools[0].Spec.Platform.Kubevirt.AdditionalNetworks[0].Name = in.NAD.Namespace + "/" + in.NAD.Name
	in.ControlPlane = ""
	g := NewWithT(t)
	g.Expect(provision.Of(in).Findings).To(ContainElement(HaveField("Reason", "CIDRMissing")))
	in.ControlPlane = in.NAD.Namespace
	g.Expect(provision.Of(in).Infra.Spec.NetworkConfig.CIDR).To(HaveValue(BeEquivalentTo("10.9.0.0/24")))
}

// Users who may annotate a HostedCluster may write any text.
func FuzzAnnotations(f *testing.F) {
	f.Add("default/vlan100", "192.168.100.0/24", "192.168.100.1", "10.0.0.53, fd00::53", "192.168.100.20-192.168.100.99")
	f.Add("/", "::/0", "fe80::1%eth0", ",", "-")
	f.Add("a/b", "::ffff:10.0.0.0/104", "::ffff:10.0.0.1", "::ffff:10.0.0.1", "0.0.0.0-255.255.255.255")
	f.Add("a/b", "64.0.0.0/7", "64.0.0.1", "10.0.0.53", "64.0.0.10-64.0.0.99")
	f.Add("a/b", "10.0.0.0/24", "10.0.0.1", "127.0.0.1", "10.0.0.10-10.0.0.99")
	f.Fuzz(func(t *testing.T, attachment, cidr, gateway, servers, pool string) {
		hc := &hyperv1.HostedCluster{}
		hc.Namespace, hc.Name = "clusters", "c1"
		hc.Annotations = map[string]string{
			names.AnnotationInfra: names.InfraAuto, names.AnnotationNetworkAttachment: attachment, names.AnnotationCIDR: cidr,
			names.AnnotationGateway: gateway, names.AnnotationDNSServers: servers, names.AnnotationDHCPRange: pool,
		}
		p := provision.Of(provision.Input{HostedCluster: hc})
		if p.Infra == nil {
			if finding.Worst(p.Findings, finding.Provisioned) != finding.Refused {
				t.Fatal("nothing is made, and nothing says why")
			}
			return
		}
		network := p.Infra.Spec.NetworkConfig
		subnet := netip.MustParsePrefix(string(*network.CIDR))
		if subnet != subnet.Masked() || subnet.Bits() < 8 || !subnet.Contains(netip.MustParseAddr(string(*network.Gateway))) {
			t.Fatalf("the API server would refuse %s with gateway %s", *network.CIDR, *network.Gateway)
		}
		for _, server := range network.DNSServers {
			if a := netip.MustParseAddr(string(server)); !a.IsGlobalUnicast() && !a.IsLinkLocalUnicast() {
				t.Fatalf("the API server would refuse resolver %s", server)
			}
		}
	})
}
