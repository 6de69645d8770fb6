package check

import (
	"net/netip"
	"slices"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/ipam"
	"github.com/cldmnky/oooi/internal/plan/address"
	"github.com/cldmnky/oooi/internal/plan/apps"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/subject"
	"github.com/cldmnky/oooi/internal/plan/vlan"
)

// sharing checks the assigned addresses, and who else leases on this layer 2. If another does, that is the cause, and a lack of free
// addresses only follows from it.
func sharing(in apps.Published) []finding.Finding {
	all := neighbourFindings(in)
	for _, f := range in.Assigned.Findings {
		if len(all) == 0 || f.Reason != "NoFreeAddress" {
			all = append(all, f)
		}
	}
	return all
}

// neighbourFindings: two DHCP servers on one layer 2 answer the same clients, unless each serves only known ones.
func neighbourFindings(in apps.Published) []finding.Finding {
	ours := in.Infra.Spec.InfraComponents.DHCP
	if !input.Enabled(ours.Enabled) {
		return nil
	}
	for _, n := range in.Others {
		if !leases(n) || !leasesAfter(in, n) && !leasesBy(in, n) {
			continue
		}
		if ours.UnknownClients != v1alpha1.UnknownClientsIgnore || unknownClients(n) != v1alpha1.UnknownClientsIgnore {
			return []finding.Finding{leasesBeside(in, n)}
		}
		if pool := input.Span(ours.RangeStart, ours.RangeEnd); slices.ContainsFunc(n.Leases(), pool.Overlaps) && leasesAfter(in, n) {
			return []finding.Finding{inUse().Set(finding.Values{ipam.FieldStart: nil, ipam.FieldEnd: nil}).Say("dhcp.rangeStart to rangeEnd %s overlaps the range of %s on this layer 2; choose another range, or omit it", pool, nameOf(in, n))}
		}
		if both := leasedByBoth(in, n); both.IsValid() && leasesAfter(in, n) {
			return []finding.Finding{inUse().Say("%s on this layer 2 leases %s, which this Infra leases too and goes on to; exclude it here (dhcp.excludeRanges), or have the other one do so", nameOf(in, n), both)}
		}
	}
	return nil
}

// leases says whether a neighbour has a DHCP server, or will have one.
func leases(n address.Neighbour) bool {
	return n.Children.DHCP() != nil || input.Enabled(n.Infra.Spec.InfraComponents.DHCP.Enabled)
}

// leasedByBoth is a range that we lease and want to keep, and a neighbour leases too. A derived DHCPServer excludes what others lease, so
// somebody wrote one by hand; the age of its Infra must not take the range from whoever serves it.
func leasedByBoth(in apps.Published, n address.Neighbour) ipam.Range {
	excluded := input.Spans(in.Infra.Spec.InfraComponents.DHCP.ExcludeRanges)
	for _, ours := range in.Children.Leased() {
		for _, kept := range ipam.Without(ours.Intersect(in.Assigned.Pool), excluded) {
			for _, theirs := range n.Children.Leased() {
				if kept.Overlaps(theirs) {
					return kept.Intersect(theirs)
				}
			}
		}
	}
	return ipam.Range{}
}

// unknownClients is the policy of a neighbour's DHCPServer or, before there is one, of its Infra, of which an edit may still be refused.
func unknownClients(n address.Neighbour) v1alpha1.UnknownClients {
	if live := n.Children.DHCP(); live != nil {
		return live.Spec.UnknownClients
	}
	return n.Infra.Spec.InfraComponents.DHCP.UnknownClients
}

// leasesBeside: a machine takes the first OFFER, and with it the DNS server of that cluster.
func leasesBeside(in apps.Published, n address.Neighbour) finding.Finding {
	known := ""
	if in.LeasesByReservation() {
		known = " with a reservation for each worker"
	}
	found := inUse()
	if n.Infra.Namespace == in.Infra.Namespace {
		for _, infra := range []*v1alpha1.Infra{in.Infra, n.Infra} {
			found = found.Change(finding.Change{Of: subject.Infra(infra), Values: finding.Values{subject.FieldUnknownClients: string(v1alpha1.UnknownClientsIgnore)}})
		}
	}
	return found.Say("%s serves DHCP on this layer 2 and announces its own DNS server; give each hosted cluster its own VLAN, or set dhcp.unknownClients: Ignore on both%s", nameOf(in, n), known)
}

// leasesAfter says whether a neighbour's DHCP precedes ours.
func leasesAfter(in apps.Published, n address.Neighbour) bool {
	return n.Precedes(n.Children.DHCP() != nil, in.Children.DHCP() != nil)
}

// leasesBy says whether both ignore unknown clients now. Whoever stops doing so would serve the other's.
func leasesBy(in apps.Published, n address.Neighbour) bool {
	return in.Children.Ignores() && n.Children.Ignores()
}

// nameOf names a neighbour in our namespace; another may be another tenant's.
func nameOf(in apps.Published, n address.Neighbour) string {
	if n.Infra.Namespace == in.Infra.Namespace {
		return "Infra " + n.Infra.Name
	}
	return "another Infra"
}

func inUse() finding.Builder { return wrongAt("VLANInUse", "spec.infraComponents.dhcp") }

// capturedByNeighbour: on one layer 2, only one proxy can carry a captured address.
func capturedByNeighbour(in apps.Published) []finding.Finding {
	var all []finding.Finding
	for _, c := range in.CapturedAddresses {
		for _, n := range in.Others {
			if yields(in, n, c.IP) {
				all = append(all, finding.Refuse(v1alpha1.ConditionEndpointsResolved, "CapturedAddressInUse").
					In(endpoint.Object(in.HostedCluster)).At("spec.services").Change(in.Table.Renamed(c.IP)...).
					Say("another Infra on this layer 2 already captures %s (clusters share NodePort addresses); move this cluster's workers to their own VLAN, or recreate the HostedCluster with its own address or name", c.IP))
			}
		}
	}
	return all
}

// yields says whether a captured address is a neighbour's: if one proxy carries it, its; or else the older Infra's.
func yields(in apps.Published, n address.Neighbour, published netip.Addr) bool {
	return n.Precedes(n.Children.Carries(published), in.Children.Carries(published)) && claims(in, n, published)
}

// claims says whether a neighbour's proxy carries a captured address, or will once it is created.
func claims(in apps.Published, n address.Neighbour, published netip.Addr) bool {
	if n.Children.Proxy() != nil || n.HostedCluster == nil {
		return n.Children.Carries(published)
	}
	theirs := input.Input{Settings: in.Settings, Infra: n.Infra, NAD: n.NAD, HostedCluster: n.HostedCluster}
	return slices.ContainsFunc(address.Assign(vlan.Join(theirs), theirs.Endpoints()).CapturedAddresses, func(c endpoint.CapturedAddress) bool { return c.IP == published })
}
