package plan_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/plan"
	"github.com/cldmnky/oooi/internal/render"
)

// pair are two Infras of one VLAN, an older and a newer one, each of which serves its own clients.
func pair(t *testing.T) (both render.Objects) {
	t.Helper()
	both = load(t, "testdata/two-infras-each-serving-its-own/in.yaml")
	newer := plan.Infra(both.Inputs(settings())[1])
	NewWithT(t).Expect(newer.Held).To(BeFalse(), "%v", newer.Findings)
	both = append(both, readBack(t, newer.Objects)...)
	older := plan.Infra(both.Inputs(settings())[0])
	NewWithT(t).Expect(older.Held).To(BeFalse(), "%v", older.Findings)
	return append(readBack(t, older.Objects), both...)
}

// What two serve beside each other, an edit of one does not take from the other: the edit is refused, or keeps away.
func TestAnEditTakesNothingFromANeighbourThatServes(t *testing.T) {
	for name, c := range map[string]struct {
		which   int // 0: the older one is edited
		edit    func(*v1alpha1.InfraComponents)
		refused string
	}{
		"the older one serves everybody": {0, func(on *v1alpha1.InfraComponents) { on.DHCP.UnknownClients = v1alpha1.UnknownClientsPool }, "VLANInUse"},
		"the newer one serves everybody": {1, func(on *v1alpha1.InfraComponents) { on.DHCP.UnknownClients = v1alpha1.UnknownClientsPool }, "VLANInUse"},
		"by default":                     {0, func(on *v1alpha1.InfraComponents) { on.DHCP.UnknownClients = "" }, "VLANInUse"},
		"the older one leases all": {0, func(on *v1alpha1.InfraComponents) {
			on.DHCP.RangeStart, on.DHCP.RangeEnd = "192.168.100.2", "192.168.100.254"
		}, ""},
		"the newer one leases all": {1, func(on *v1alpha1.InfraComponents) {
			on.DHCP.RangeStart, on.DHCP.RangeEnd = "192.168.100.2", "192.168.100.254"
		}, "VLANInUse"},
		"the older one moves its DHCP":  {0, func(on *v1alpha1.InfraComponents) { on.DHCP.ServerIP = "192.168.100.3" }, "AddressInUse"},
		"the older one moves its DNS":   {0, func(on *v1alpha1.InfraComponents) { on.DNS.ServerIP = "192.168.100.4" }, "AddressInUse"},
		"the older one moves its proxy": {0, func(on *v1alpha1.InfraComponents) { on.Proxy.ServerIP = "192.168.100.5" }, "AddressInUse"},
		"the newer one moves its DHCP":  {1, func(on *v1alpha1.InfraComponents) { on.DHCP.ServerIP = "192.168.100.21" }, "AddressInUse"},
	} {
		t.Run(name, func(t *testing.T) {
			g, both := NewWithT(t), pair(t).Inputs(settings())
			other := both[1-c.which]
			before := said(t, other)
			c.edit(&both[c.which].Infra.Spec.InfraComponents)
			p := plan.Infra(both[c.which])
			g.Expect(p.Held).To(Equal(c.refused != ""), "%v", p.Findings)
			if p.Held {
				g.Expect(p.Findings).To(ContainElement(HaveField("Reason", c.refused)))
			}
			g.Expect(said(t, other)).To(Equal(before), "the other hears of nothing")
		})
	}
}

// What an older Infra leases anew leaves out what a newer one leases, which finds nothing to say of it.
func TestARangeThatIsWidenedLeavesOutWhatANeighbourLeases(t *testing.T) {
	g, both := NewWithT(t), pair(t)
	in := both.Inputs(settings())
	before := said(t, in[1])
	dhcp := &in[0].Infra.Spec.InfraComponents.DHCP
	dhcp.RangeStart, dhcp.RangeEnd = "192.168.100.24", "192.168.100.254"
	older := plan.Infra(in[0])
	g.Expect(older.Held).To(BeFalse(), "%v", older.Findings)
	g.Expect(said(t, append(readBack(t, older.Objects), both...).Inputs(settings())[1])).To(Equal(before))
}

// Who may name a foreign control plane's namespace hears of it what he wrote, and not whether a control plane is there.
func TestARefusalSaysNothingOfAForeignControlPlane(t *testing.T) {
	g := NewWithT(t)
	in := load(t, "testdata/seed-form/in.yaml").Inputs(settings())[0]
	in.Infra.Namespace = "tenant"
	g.Expect(in.HostedControlPlane).NotTo(BeNil())
	there := plan.Permitted(in)
	in.HostedControlPlane, in.HostedCluster = nil, nil
	g.Expect(there).To(Equal(plan.Permitted(in)))
	g.Expect(there).To(ConsistOf(HaveField("Message", And(ContainSubstring("namespace clusters-"), Not(ContainSubstring("hostedcluster "))))))
}
