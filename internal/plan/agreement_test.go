package plan_test

import (
	"fmt"
	"net/netip"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/permission"
	"github.com/cldmnky/oooi/internal/render"
	"github.com/cldmnky/oooi/internal/testkit/stranger"
)

// pair are an older and a newer Infra on one VLAN, each of which serves its own clients.
func pair(t *testing.T) (both render.Objects) {
	t.Helper()
	both = load(t, "testdata/two-infras-each-serving-its-own/in.yaml")
	newer := plan.Infra(both.Inputs(settings())[1])
	NewWithT(t).Expect(newer.Frozen).To(BeFalse(), "%v", newer.Findings)
	both = append(both, readBack(t, newer.Objects)...)
	older := plan.Infra(both.Inputs(settings())[0])
	NewWithT(t).Expect(older.Frozen).To(BeFalse(), "%v", older.Findings)
	return append(readBack(t, older.Objects), both...)
}

// Of two Infras that serve one VLAN, an edit of one takes nothing from the other: it is refused, or leaves out what the other has.
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
			g.Expect(p.Frozen).To(Equal(c.refused != ""), "%v", p.Findings)
			if p.Frozen {
				g.Expect(p.Findings).To(ContainElement(HaveField("Reason", c.refused)))
			}
			g.Expect(said(t, other)).To(Equal(before), "the other hears of nothing")
		})
	}
}

// A widened range of an older Infra leaves out what a newer one leases, and the newer one's plan does not change.
func TestARangeThatIsWidenedLeavesOutWhatANeighbourLeases(t *testing.T) {
	g, both := NewWithT(t), pair(t)
	in := both.Inputs(settings())
	before := said(t, in[1])
	dhcp := &in[0].Infra.Spec.InfraComponents.DHCP
	dhcp.RangeStart, dhcp.RangeEnd = "192.168.100.24", "192.168.100.254"
	older := plan.Infra(in[0])
	g.Expect(older.Frozen).To(BeFalse(), "%v", older.Findings)
	g.Expect(said(t, append(readBack(t, older.Objects), both...).Inputs(settings())[1])).To(Equal(before))
}

// granted is a stranger with a reference grant of the network's owner.
func granted(of input.Input, created int64) input.Neighbour {
	n := ground.Neighbour(of.NAD)
	n.NAD = n.NAD.DeepCopy()
	n.NAD.Annotations = map[string]string{names.AnnotationAllowedNamespaces: n.Infra.Namespace}
	n.Infra.CreationTimestamp = metav1.Unix(created, 0)
	return n
}

// An Infra keeps the address with which it answers *.apps and its leases, whatever a neighbour that leases nothing writes.
func TestANeighbourTakesNeitherAppsNorLeasesFromWhoServes(t *testing.T) {
	const first, last, external = "192.168.100.1", "192.168.100.254", "192.168.100.201"
	ways := map[string]func(n *input.Neighbour){
		"is there": func(*input.Neighbour) {},
		"a DNSServer at the external IP": func(n *input.Neighbour) {
			n.Children = stranger.With(n.Children, component.DNS, stranger.DNSAt(external))
		},
		"a ProxyServer there": func(n *input.Neighbour) {
			n.Children = stranger.With(n.Children, component.Proxy, stranger.ProxyAt(external))
		},
		"a DNSServer that answers it": func(n *input.Neighbour) {
			n.Infra.Spec.AppsIngress = &v1alpha1.AppsIngress{Enabled: true}
			n.Children = stranger.With(n.Children, component.DNS, stranger.DNSAt("192.168.100.9", v1alpha1.DNSEntry{Hostname: "*.apps.c9.example.com", IP: external}))
		},
		"a serverIP": func(n *input.Neighbour) { stranger.ServerIPs(n, "", "", external) },
		"a status":   func(n *input.Neighbour) { stranger.Claims(n, first, "192.168.100.2", external) },
		"what it was given": func(n *input.Neighbour) {
			stranger.Remembers(t, n, map[string]string{"dhcp": first, "proxy": external}, first, last)
		},
		"what it was given, by many names": func(n *input.Neighbour) {
			all := map[string]string{}
			for i := range 254 {
				all[fmt.Sprint("c", i)] = fmt.Sprintf("192.168.100.%d", i+1)
			}
			stranger.Remembers(t, n, all)
		},
		"a status of many components": func(n *input.Neighbour) {
			for i := range 254 {
				n.Infra.Status.Addresses = append(n.Infra.Status.Addresses, v1alpha1.AssignedAddress{Component: fmt.Sprint("c", i), IP: v1alpha1.IPAddress(fmt.Sprintf("192.168.100.%d", i+1))})
			}
		},
		"a range": func(n *input.Neighbour) {
			n.Infra.Spec.InfraComponents.DHCP.RangeStart, n.Infra.Spec.InfraComponents.DHCP.RangeEnd = first, last
		},
		"a pool for *.apps":            func(n *input.Neighbour) { n.Infra.Spec.AppsIngress = stranger.PoolOf("192.168.100.0/24") },
		"a status of all IP endpoints": allIPs,
		"a DNSServer that answers all": func(n *input.Neighbour) {
			n.Infra.Spec.AppsIngress, n.Children = &v1alpha1.AppsIngress{Enabled: true}, stranger.With(n.Children, component.DNS, stranger.DNSAt("192.168.100.9", everyAddress()...))
		},
	}
	victim := victims(t)["with *.apps, serving"]
	alone := plan.Infra(victim)
	served := children(t, alone)
	for way, attack := range ways {
		for age, created := range map[string]int64{"an older one": 5, "a newer one": 20} {
			t.Run(age+"/"+way, func(t *testing.T) {
				n, in, g := granted(victim, created), victim, NewWithT(t)
				attack(&n)
				in.Neighbours = []input.Neighbour{n}
				p := plan.Infra(in)
				g.Expect(p.Frozen).To(BeFalse(), "%v", p.Findings)
				g.Expect(p.Apps).To(Equal(alone.Apps))
				now := children(t, p)
				g.Expect(now.DNS().Spec).To(Equal(served.DNS().Spec))
				g.Expect(now.Proxy().Spec).To(Equal(served.Proxy().Spec))
				g.Expect(now.DHCP().Spec.LeaseConfig).To(Equal(served.DHCP().Spec.LeaseConfig))
				g.Expect(excluded(now)).To(BeNumerically("<", 16), "single addresses, where he is, at most")
			})
		}
	}
}

// An older neighbour cannot take leased addresses with a hand-written DHCPServer: the Infra's plan is frozen, and it serves as before.
func TestAnOlderNeighbourTakesNoPartOfWhatIsLeased(t *testing.T) {
	const first, last = "192.168.100.30", "192.168.100.60"
	by := func(unknown v1alpha1.UnknownClients) func(*input.Neighbour) {
		return func(n *input.Neighbour) {
			n.Infra.Spec.InfraComponents.DHCP.UnknownClients = unknown
			n.Children = stranger.With(n.Children, component.DHCP, stranger.DHCPAt("192.168.100.9", first, last, unknown))
		}
	}
	newer := pair(t).Inputs(settings())[1]
	newer.Neighbours = nil
	for name, c := range map[string]struct {
		victim input.Input
		attack func(*input.Neighbour)
	}{
		"serves everybody": {victims(t)["with *.apps, serving"], by("")},
		"says that its DHCP is off": {victims(t)["with *.apps, serving"], func(n *input.Neighbour) {
			by("")(n)
			n.Infra.Spec.InfraComponents.DHCP.Enabled = new(bool)
		}},
		"each serves its own": {newer, by(v1alpha1.UnknownClientsIgnore)},
	} {
		t.Run(name, func(t *testing.T) {
			g, in := NewWithT(t), c.victim
			g.Expect(plan.Infra(in).Frozen).To(BeFalse())
			n := granted(in, -5)
			c.attack(&n)
			in.Neighbours = []input.Neighbour{n}
			p := plan.Infra(in)
			g.Expect(p.Frozen).To(BeTrue(), "%v", p.Objects)
			g.Expect(p.Findings).To(ContainElement(HaveField("Reason", "VLANInUse")))
			g.Expect(fmt.Sprint(p.Findings)).NotTo(ContainSubstring("tenant"))
		})
	}
}

// The plan is no longer frozen once the Infra excludes the neighbour's range.
func TestWhatBothLeaseMayBeLeftToTheOther(t *testing.T) {
	in := pair(t).Inputs(settings())[1]
	n := granted(in, -5)
	n.Infra.Spec.InfraComponents.DHCP.UnknownClients = v1alpha1.UnknownClientsIgnore
	n.Children = stranger.With(n.Children, component.DHCP, stranger.DHCPAt("192.168.100.9", "192.168.100.30", "192.168.100.60", v1alpha1.UnknownClientsIgnore))
	in.Neighbours = []input.Neighbour{n}
	in.Infra = in.Infra.DeepCopy()
	in.Infra.Spec.InfraComponents.DHCP.ExcludeRanges = []v1alpha1.AddressRange{{Start: "192.168.100.25", End: "192.168.100.60"}}
	NewWithT(t).Expect(plan.Infra(in).Frozen).To(BeFalse())
}

// A neighbour's status may have any text as a name: an address with an IPv6 zone is not on the VLAN, and no zone gets into our addresses.
func TestANeighboursZoneIsGivenToNobody(t *testing.T) {
	g, in := NewWithT(t), load(t, "testdata/ipv6-machine-network/in.yaml").Inputs(settings())[0]
	n := granted(in, 5)
	n.Children = input.Children{component.DNS: stranger.DNSAt("fd00:100::1"), component.Proxy: stranger.ProxyAt("fd00:100::2")}
	n.Infra.Status.Endpoints = []v1alpha1.EndpointStatus{{Name: "api", Hostnames: []string{"fd00:100::3", "fd00:100::2%x", "fd00:100::3%x", "fd00:100::4%x", "fd00:100::5%x"}}}
	in.Neighbours = []input.Neighbour{n}
	p := plan.Infra(in)
	g.Expect(p.Frozen).To(BeFalse(), "%v", p.Findings)
	g.Expect(p.Addresses).To(HaveLen(4))
	g.Expect(fmt.Sprint(p.Addresses)).NotTo(ContainSubstring("%"))
}

func excluded(c input.Children) (count int) {
	for _, r := range c.DHCP().Spec.ExcludeRanges {
		for at := netip.MustParseAddr(string(r.Start)); !netip.MustParseAddr(string(r.End)).Less(at); at = at.Next() {
			count++
		}
	}
	return count
}

// allIPs claims every address of the network as an endpoint of a control plane.
func allIPs(n *input.Neighbour) {
	e := v1alpha1.EndpointStatus{Name: "api"}
	for i := range 254 {
		e.Hostnames = append(e.Hostnames, fmt.Sprintf("192.168.100.%d", i+1))
	}
	n.Infra.Status.Endpoints = []v1alpha1.EndpointStatus{e}
}

func everyAddress() (all []v1alpha1.DNSEntry) {
	for i := range 254 {
		all = append(all, v1alpha1.DNSEntry{Hostname: v1alpha1.DNSNameOrWildcard(fmt.Sprintf("*.a%d.example.com", i)), IP: v1alpha1.IPAddress(fmt.Sprintf("192.168.100.%d", i+1))})
	}
	return all
}

// If neither Infra leases yet, the older one gets the range that it writes.
func TestARangeThatAnOlderOneWritesIsLeftToIt(t *testing.T) {
	g, in := NewWithT(t), victims(t)["with *.apps"]
	n := granted(in, 5)
	in.Infra = in.Infra.DeepCopy()
	theirs := &n.Infra.Spec.InfraComponents.DHCP
	theirs.RangeStart, theirs.RangeEnd, theirs.UnknownClients = "192.168.100.100", "192.168.100.150", v1alpha1.UnknownClientsIgnore
	in.Infra.Spec.InfraComponents.DHCP.UnknownClients = v1alpha1.UnknownClientsIgnore
	in.Neighbours = []input.Neighbour{n}
	p := plan.Infra(in)
	g.Expect(p.Frozen).To(BeFalse(), "%v", p.Findings)
	g.Expect(children(t, p).DHCP().Spec.ExcludeRanges).To(ContainElement(v1alpha1.AddressRange{Start: "192.168.100.100", End: "192.168.100.150"}))
}

// A serverIP with which a neighbour's DNS answers *.apps is refused.
func TestAnAddressThatANeighbourAnswersForAppsIsRefused(t *testing.T) {
	victim := victims(t)["with *.apps, serving"]
	for age, created := range map[string]int64{"an older one": 5, "a newer one": 20} {
		t.Run(age, func(t *testing.T) {
			g, n := NewWithT(t), granted(victim, created)
			stranger.ServerIPs(&n, "", "", "192.168.100.201")
			theirs := input.Input{Settings: victim.Settings, Infra: n.Infra, NAD: n.NAD}
			theirs.Neighbours = []input.Neighbour{{Infra: victim.Infra, NAD: victim.NAD, Children: victim.Children}}
			g.Expect(plan.Infra(theirs).Findings).To(ContainElement(And(HaveField("Reason", "AddressInUse"), HaveField("Message", ContainSubstring("192.168.100.201 is already used by another Infra")))))
		})
	}
}

// A refusal repeats the foreign namespace that the user wrote, and does not tell whether a control plane runs there.
func TestARefusalSaysNothingOfAForeignControlPlane(t *testing.T) {
	g := NewWithT(t)
	in := load(t, "testdata/seed-form/in.yaml").Inputs(settings())[0]
	in.Infra.Namespace = "tenant"
	g.Expect(in.HostedControlPlane).NotTo(BeNil())
	there := permission.Check(in)
	in.HostedControlPlane, in.HostedCluster = nil, nil
	g.Expect(there).To(Equal(permission.Check(in)))
	g.Expect(there).To(ConsistOf(HaveField("Message", And(ContainSubstring("namespace clusters-"), Not(ContainSubstring("hostedcluster "))))))
}
