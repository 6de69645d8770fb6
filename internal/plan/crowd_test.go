package plan

import (
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/ipam"
	"github.com/cldmnky/oooi/internal/nad"
)

// crowd are Infras on one VLAN, the oldest first: that one leases, all others have a DNS and a proxy, whose addresses, as
// written, touch nobody's.
func crowd(size int) (all []Neighbour) {
	vlan := &nad.NetworkAttachmentDefinition{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "vlan100"}}
	vlan.Spec.Config = `{"cniVersion":"0.3.1","type":"bridge","bridge":"br1","vlan":100}`
	next := netip.MustParseAddr("10.0.2.0")
	for i := range size {
		infra := &v1alpha1.Infra{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: fmt.Sprintf("c%03d", i), CreationTimestamp: metav1.Unix(int64(i)*int64(time.Hour.Seconds()), 0)}}
		infra.Spec.NetworkConfig = v1alpha1.NetworkConfig{CIDR: "10.0.0.0/16", NetworkAttachmentDefinition: "vlan100"}
		if i > 0 {
			c := &infra.Spec.InfraComponents
			c.DHCP.Enabled = ptr.To(false)
			c.DNS.ServerIP, next = ip(next), next.Next().Next()
			c.Proxy.ServerIP, next = ip(next), next.Next().Next()
		}
		all = append(all, Neighbour{Infra: infra, NAD: vlan})
	}
	return all
}

// settle plans each in its turn, as the operator does, and says who was refused.
func settle(all []Neighbour) (refused []string) {
	for round := range 2 { // the oldest hears of the others afterwards
		for i := range all {
			v := viewOf(among(all, i))
			if len(v.assigned.Findings) > 0 || len(v.limits()) > 0 {
				if round == 1 {
					refused = append(refused, all[i].Infra.Name)
				}
				continue
			}
			all[i].Children = v.become()
		}
	}
	return refused
}

// among is one of them, who is told of all others.
func among(all []Neighbour, i int) Input {
	return Input{Infra: all[i].Infra, NAD: all[i].NAD, Children: all[i].Children, Neighbours: slices.Concat(all[:i], all[i+1:])}
}

// become is what the children would say of addresses.
func (v *view) become() (c Children) {
	c.DNS, c.Proxy = &v1alpha1.DNSServer{}, &v1alpha1.ProxyServer{}
	c.DNS.Spec.NetworkConfig.ServerIP, c.Proxy.Spec.NetworkConfig.ServerIP = ip(v.address(ipam.DNS)), ip(v.address(ipam.Proxy))
	if v.assigned.Pool.IsValid() {
		c.DHCP = &v1alpha1.DHCPServer{}
		c.DHCP.Spec.NetworkConfig.ServerIP = ipv4(v.address(ipam.DHCP))
		c.DHCP.Spec.LeaseConfig.RangeStart, c.DHCP.Spec.LeaseConfig.RangeEnd = ipv4(v.assigned.Pool.First), ipv4(v.assigned.Pool.Last)
		c.DHCP.Spec.ExcludeRanges = v.excludeRanges()
	}
	return c
}

func TestFortyInfrasShareAVLAN(t *testing.T) {
	g := NewWithT(t)
	all := crowd(40)
	g.Expect(settle(all)).To(BeEmpty())
	g.Expect(len(all[0].Children.DHCP.Spec.ExcludeRanges)).To(BeNumerically(">=", 2*39), "each address of the others is kept from DHCP")
}

// What is allocated is counted in place of time: a neighbour that is looked at costs some of it, at any load.
func TestAnInfrasPlanGrowsAsItsNeighboursDo(t *testing.T) {
	g := NewWithT(t)
	few, many := allocated(among(served(100), 99)), allocated(among(served(400), 399))
	g.Expect(many).To(BeNumerically("<", 6*few), "four times the neighbours")
}

// served are a crowd each of which has its children.
func served(size int) []Neighbour {
	all := crowd(size)
	for i := range all {
		all[i].Children = viewOf(among(all[i:i+1], 0)).become()
	}
	return all
}

func allocated(in Input) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	Infra(in)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// As a manager does at its start.
func BenchmarkInfrasOfOneVLAN(b *testing.B) {
	for _, size := range []int{10, 40, 100, 270, 800} {
		all := served(size)
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			for b.Loop() {
				for i := range all {
					Infra(among(all, i))
				}
			}
		})
	}
}

func TestACrowdStopsItsNewcomersNotItsOldest(t *testing.T) {
	g := NewWithT(t)
	oldest, newcomer := crowd(2)[0], crowd(2)[1]
	oldest.Children.DHCP = &v1alpha1.DHCPServer{}
	spec := &oldest.Children.DHCP.Spec
	spec.LeaseConfig.RangeStart, spec.LeaseConfig.RangeEnd = "10.0.0.8", "10.0.255.254"
	for at := netip.MustParseAddr("10.0.9.0"); len(spec.ExcludeRanges) < mostExclusions-1; at = at.Next().Next() {
		spec.ExcludeRanges = append(spec.ExcludeRanges, v1alpha1.AddressRange{Start: ipv4(at), End: ipv4(at)})
	}
	of := func(n Neighbour, near ...Neighbour) *view {
		return viewOf(Input{Infra: n.Infra, NAD: n.NAD, Children: n.Children, Neighbours: near})
	}
	g.Expect(of(newcomer, oldest).limits()).To(ConsistOf(And(HaveField("Reason", "TooManyExclusions"), HaveField("Message", HavePrefix("another Infra on this VLAN")))))
	g.Expect(of(oldest, newcomer).limits()).To(BeEmpty(), "an Infra that is refused is no burden")
	spec.ExcludeRanges = spec.ExcludeRanges[4:]
	g.Expect(of(newcomer, oldest).limits()).To(BeEmpty())
}
