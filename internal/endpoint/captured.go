package endpoint

import (
	"net/netip"
	"slices"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/unroutable"
)

// CapturedAddress is an address of the control plane that the proxy's pod carries, so that workers who dial it reach the proxy.
type CapturedAddress struct {
	IP    netip.Addr
	Ports []int32
}

// VLAN is what decides how an IP endpoint is handled.
type VLAN struct {
	CIDR netip.Prefix
	VIP  netip.Addr
	// Cluster are the management cluster's own networks: a pod that carried an address of theirs would be cut off from it.
	Cluster []netip.Prefix
}

// CapturedAddresses judges the table's IP endpoints. It captures those outside the VLAN's subnet, leaves alone those that are on-link
// already, and refuses those that must not be on a pod's interface.
func (t Table) CapturedAddresses(v VLAN) ([]CapturedAddress, []finding.Finding) {
	var captured []CapturedAddress
	var findings []finding.Finding
	for _, e := range append(slices.Clone(t.Endpoints), t.Announced()...) {
		for _, published := range e.PublishedIPs {
			if published == v.VIP || v.CIDR.Contains(published) {
				continue
			}
			if why := v.refuses(published); why != "" {
				findings = append(findings, finding.Refuse(v1alpha1.ConditionEndpointsResolved, "CapturedAddressRefused").In(Object(t.of.HostedCluster)).At("spec.services").Change(t.Renamed(published)...).
					Say("%s is %s (%s), %s; recreate the HostedCluster with a name that workers can resolve, or with another address", e.Name, published, e.Source, why))
				continue
			}
			captured = capture(captured, published, e.Port)
		}
	}
	slices.SortFunc(captured, func(a, b CapturedAddress) int { return a.IP.Compare(b.IP) })
	return captured, findings
}

func (v VLAN) refuses(published netip.Addr) string {
	switch {
	case unroutable.Is(published):
		return "which is not the address of a single host that others can reach"
	case published.Is4() != v.CIDR.Addr().Is4():
		return "which is of another address family than " + v.CIDR.String()
	case slices.ContainsFunc(v.Cluster, func(p netip.Prefix) bool { return p.Contains(published) }):
		return "which lies in the management cluster's pod or service network"
	}
	return ""
}

func capture(captured []CapturedAddress, published netip.Addr, port int32) []CapturedAddress {
	for i := range captured {
		if captured[i].IP == published {
			captured[i].Ports = appendNew(captured[i].Ports, port)
			slices.Sort(captured[i].Ports)
			return captured
		}
	}
	return append(captured, CapturedAddress{published, []int32{port}})
}
