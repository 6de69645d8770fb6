package check

import (
	"testing"

	. "github.com/onsi/gomega"
	hyperv1 "github.com/openshift/hypershift/api/hypershift/v1beta1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/address"
	"github.com/cldmnky/oooi/internal/plan/apps"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/vlan"
)

// onVLAN is an Infra with NodePools on its VLAN that select nodes.
func onVLAN(of ...map[string]string) *apps.Published {
	infra := &v1alpha1.Infra{}
	infra.Namespace, infra.Spec.NetworkConfig.NetworkAttachmentDefinition = "clusters", "vlan100"
	in := input.Input{Infra: infra, NAD: &nad.NetworkAttachmentDefinition{}, HostedCluster: &hyperv1.HostedCluster{}}
	for _, nodes := range of {
		p := hyperv1.NodePool{}
		p.Spec.Platform.Kubevirt = &hyperv1.KubevirtNodePoolPlatform{NodeSelector: nodes, AdditionalNetworks: []hyperv1.KubevirtNetwork{{Name: "clusters/vlan100"}}}
		in.NodePools = append(in.NodePools, p)
	}
	return &apps.Published{Addressed: address.Addressed{Joined: vlan.Joined{Input: in}}}
}

func TestOurPodsGoWhereNodePoolsThatAgreeSay(t *testing.T) {
	a, b := map[string]string{"vlan": "yes", "rack": "a"}, map[string]string{"rack": "b"}
	for name, c := range map[string]struct {
		pools  []map[string]string
		change func(*apps.Published)
		nodes  string
		warned bool
	}{
		"one":                    {pools: []map[string]string{a}, nodes: "rack=a,vlan=yes"},
		"two that agree":         {pools: []map[string]string{a, {"rack": "a", "vlan": "yes"}}, nodes: "rack=a,vlan=yes"},
		"two that differ":        {pools: []map[string]string{a, b}, warned: true},
		"one that asks for none": {pools: []map[string]string{a, b, nil}},
		"none":                   {},
		"one on another VLAN": {pools: []map[string]string{a, b}, change: func(v *apps.Published) {
			v.NodePools[1].Spec.Platform.Kubevirt.AdditionalNetworks[0].Name = "clusters/other"
		}, nodes: "rack=a,vlan=yes"},
		"one of bare metal":        {pools: []map[string]string{a, nil}, change: func(v *apps.Published) { v.NodePools[1].Spec.Platform.Kubevirt = nil }, nodes: "rack=a,vlan=yes"},
		"bare metal alone":         {pools: []map[string]string{a}, change: func(v *apps.Published) { v.NodePools[0].Spec.Platform.Kubevirt = nil }},
		"two, and a resource":      {pools: []map[string]string{a, b}, change: func(v *apps.Published) { v.NAD.Annotations = map[string]string{nad.ResourceName: "example.com/br"} }},
		"two, and what is written": {pools: []map[string]string{a, b}, change: everywhereWritten},
		"one, and what is written": {pools: []map[string]string{a}, change: everywhereWritten},
	} {
		t.Run(name, func(t *testing.T) {
			g, v := NewWithT(t), onVLAN(c.pools...)
			if c.change != nil {
				c.change(v)
			}
			g.Expect(v.WithNodes(v.Infra.Spec.InfraComponents.DNS.Placement)[names.AnnotationNodes]).To(Equal(c.nodes))
			g.Expect(len(placement(*v)) > 0).To(Equal(c.warned))
		})
	}
}

func everywhereWritten(v *apps.Published) {
	c, here := &v.Infra.Spec.InfraComponents, map[string]string{"here": "yes"}
	c.DHCP.NodeSelector, c.DNS.NodeSelector, c.Proxy.NodeSelector = here, here, here
}
