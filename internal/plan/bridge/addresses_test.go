package bridge_test

import (
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"
	"github.com/openshift/hypershift/api/util/ipnet"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/plan/bridge"
)

func TestAddressesOfTheAPI(t *testing.T) {
	b, hc := &dpuv1.DPUHCPBridge{}, &hyperv1.HostedCluster{}
	b.Spec.MetalLBVirtualIP = "::ffff:192.0.2.10"
	hc.Status.ControlPlaneEndpoint.Host = "192.0.2.10"
	hc.Spec.Services = []hyperv1.ServicePublishingStrategyMapping{
		{ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{NodePort: &hyperv1.NodePortPublishingStrategy{Address: "192.0.2.20"}}},
		{ServicePublishingStrategy: hyperv1.ServicePublishingStrategy{NodePort: &hyperv1.NodePortPublishingStrategy{Address: "node.example.com"}}},
	}
	NewWithT(t).Expect(bridge.APIAddresses(b, hc)).To(Equal([]netip.Addr{netip.MustParseAddr("192.0.2.10"), netip.MustParseAddr("192.0.2.20")}))
}

func TestAnApproverIsToldWhatNoKubeletMayClaim(t *testing.T) {
	in := load(t, "testdata/loadbalancer/in.yaml")
	made(&in)
	in.HostedCluster.Spec.Networking.ServiceNetwork = []hyperv1.ServiceNetworkEntry{{CIDR: *ipnet.MustParseCIDR("172.31.0.0/16")}, {CIDR: *ipnet.MustParseCIDR("fd02::/112")}}
	NewWithT(t).Expect(bridge.Of(in).Approve).To(And(
		HaveField("API", ConsistOf(netip.MustParseAddr(string(in.Bridge.Spec.MetalLBVirtualIP)))),
		HaveField("ServiceNetworks", Equal([]netip.Prefix{netip.MustParsePrefix("172.31.0.0/16"), netip.MustParsePrefix("fd02::/112")}))))
}
