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
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/plan/apps"
	"github.com/cldmnky/oooi/internal/plan/check"
	"github.com/cldmnky/oooi/internal/plan/desired"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// crowd are Infras on one VLAN, oldest first. The oldest leases; all others have a DNS and a proxy, whose written addresses are not
// adjacent.
func crowd(size int) (all []input.Neighbour) {
	vlan := &nad.NetworkAttachmentDefinition{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "vlan100"}}
	vlan.Spec.Config = `{"cniVersion":"0.3.1","type":"bridge","bridge":"br1","vlan":100}`
	next := netip.MustParseAddr("10.0.2.0")
	for i := range size {
		infra := &v1alpha1.Infra{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: fmt.Sprintf("c%03d", i), CreationTimestamp: metav1.Unix(int64(i)*int64(time.Hour.Seconds()), 0)}}
		infra.Spec.NetworkConfig = v1alpha1.NetworkConfig{CIDR: "10.0.0.0/16", NetworkAttachmentDefinition: "vlan100"}
		if i > 0 {
			c := &infra.Spec.InfraComponents
			c.DHCP.Enabled = ptr.To(false)
			c.DNS.ServerIP, next = desired.IP(next), next.Next().Next()
			c.Proxy.ServerIP, next = desired.IP(next), next.Next().Next()
		}
		all = append(all, input.Neighbour{Infra: infra, NAD: vlan})
	}
	return all
}

// settle plans each Infra in turn, as the operator does, and returns those that were refused.
func settle(all []input.Neighbour) (refused []string) {
	for round := range 2 { // in the second round the oldest sees the others
		for i := range all {
			v := stages(among(all, i))
			if len(v.Assigned.Findings) > 0 || len(tooMany(v)) > 0 {
				if round == 1 {
					refused = append(refused, all[i].Infra.Name)
				}
				continue
			}
			all[i].Children = become(v)
		}
	}
	return refused
}

func tooMany(v apps.Published) []finding.Finding {
	return slices.DeleteFunc(check.All(v), func(f finding.Finding) bool { return f.Reason != "TooManyExclusions" })
}

// among is the input of one Infra, with all others as its neighbours.
func among(all []input.Neighbour, i int) input.Input {
	return input.Input{Infra: all[i].Infra, NAD: all[i].NAD, Children: all[i].Children, Neighbours: slices.Concat(all[:i], all[i+1:])}
}

// become are the children of a plan, with their addresses only.
func become(v apps.Published) input.Children {
	dhcp, dns, proxy := &v1alpha1.DHCPServer{}, &v1alpha1.DNSServer{}, &v1alpha1.ProxyServer{}
	c := input.Children{component.DNS: dns, component.Proxy: proxy}
	dns.Spec.NetworkConfig.ServerIP, proxy.Spec.NetworkConfig.ServerIP = desired.IP(v.Address(component.DNS)), desired.IP(v.Address(component.Proxy))
	if v.Assigned.Pool.IsValid() {
		c[component.DHCP] = dhcp
		dhcp.Spec.NetworkConfig.ServerIP = desired.IPv4(v.Address(component.DHCP))
		dhcp.Spec.LeaseConfig.RangeStart, dhcp.Spec.LeaseConfig.RangeEnd = desired.IPv4(v.Assigned.Pool.First), desired.IPv4(v.Assigned.Pool.Last)
		for _, r := range v.Assigned.Excluded {
			dhcp.Spec.ExcludeRanges = append(dhcp.Spec.ExcludeRanges, v1alpha1.AddressRange{Start: desired.IPv4(r.First), End: desired.IPv4(r.Last)})
		}
	}
	return c
}

func TestFortyInfrasShareAVLAN(t *testing.T) {
	g := NewWithT(t)
	all := crowd(40)
	g.Expect(settle(all)).To(BeEmpty())
	g.Expect(len(all[0].Children.DHCP().Spec.ExcludeRanges)).To(BeNumerically(">=", 2*39), "each address of the others is kept from DHCP")
}

// The test measures allocated memory, not time, because the machine's load does not change it.
func TestAnInfrasPlanGrowsAsItsNeighboursDo(t *testing.T) {
	g := NewWithT(t)
	few, many := allocated(among(served(100), 99)), allocated(among(served(400), 399))
	g.Expect(many).To(BeNumerically("<", 6*few), "four times the neighbours")
}

// served is a crowd with its children.
func served(size int) []input.Neighbour {
	all := crowd(size)
	for i := range all {
		all[i].Children = become(stages(among(all[i:i+1], 0)))
	}
	return all
}

func allocated(in input.Input) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	Infra(in)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A manager plans all Infras when it starts.
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

// mostExclusions is the limit in the schema of a DHCPServer.
const mostExclusions = 256

func TestACrowdStopsItsNewcomersNotItsOldest(t *testing.T) {
	g := NewWithT(t)
	oldest, newcomer := crowd(2)[0], crowd(2)[1]
	oldest.Children = input.Children{component.DHCP: &v1alpha1.DHCPServer{}}
	spec := &oldest.Children.DHCP().Spec
	spec.LeaseConfig.RangeStart, spec.LeaseConfig.RangeEnd = "10.0.0.8", "10.0.255.254"
	for at := netip.MustParseAddr("10.0.9.0"); len(spec.ExcludeRanges) < mostExclusions-1; at = at.Next().Next() {
		spec.ExcludeRanges = append(spec.ExcludeRanges, v1alpha1.AddressRange{Start: desired.IPv4(at), End: desired.IPv4(at)})
	}
	limits := func(n input.Neighbour, others ...input.Neighbour) []finding.Finding {
		return tooMany(stages(input.Input{Infra: n.Infra, NAD: n.NAD, Children: n.Children, Neighbours: others}))
	}
	g.Expect(limits(newcomer, oldest)).To(ConsistOf(And(HaveField("Reason", "TooManyExclusions"), HaveField("Message", HavePrefix("another Infra on this VLAN")))))
	g.Expect(limits(oldest, newcomer)).To(BeEmpty(), "an Infra that is refused is no burden")
	spec.ExcludeRanges = spec.ExcludeRanges[4:]
	g.Expect(limits(newcomer, oldest)).To(BeEmpty())
}
