package plan

import (
	"cmp"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/finding"
	"github.com/cldmnky/oooi/internal/ipam"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/permit"
)

// near is a neighbour on our layer 2. Findings name it to its own namespace only: it may be another tenant's.
type near struct {
	Neighbour
	older bool
	spare []netip.Addr // set aside by an older one
}

// onSameLayer2 are the Infras whose frames reach us, the oldest first.
func (in Input) onSameLayer2(ours nad.Config) []near {
	if ours.Layer2() == "" {
		return nil
	}
	var all []near
	for _, n := range in.Neighbours {
		if n.NAD.Layer2() == ours.Layer2() && in.joined(n) && !n.refused() {
			all = append(all, near{Neighbour: n, older: byAge(n.Infra, in.Infra) < 0})
		}
	}
	slices.SortFunc(all, func(a, b near) int { return byAge(a.Infra, b.Infra) })
	for i := range all {
		if all[i].older && all[i].Children != (Children{}) {
			all[i].spare = in.spares(all[i], all[:i])
		}
	}
	return all
}

// refused says whether a neighbour has nothing on the VLAN and, as it is written, will get nothing.
func (n Neighbour) refused() bool { return n.Children == (Children{}) && Refused(n.Infra) }

// Refused says whether an Infra's status is that it is to be changed before it gets anything. One that waits for its control plane
// keeps its turn.
func Refused(infra *v1alpha1.Infra) bool {
	s := infra.Status
	if len(s.Addresses) > 0 || meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionProgressing) {
		return false
	}
	return slices.ContainsFunc(s.Conditions, func(c metav1.Condition) bool {
		gates := c.Type == v1alpha1.ConditionAccepted || c.Type == v1alpha1.ConditionNetworkReady || c.Type == v1alpha1.ConditionEndpointsResolved
		return gates && c.Status == metav1.ConditionFalse && c.ObservedGeneration == infra.Generation
	})
}

// spares are what an older neighbour has set aside, having seen those that are older still.
func (in Input) spares(n near, older []near) []netip.Addr {
	theirs := Input{Settings: in.Settings, Infra: n.Infra, NAD: n.NAD, Children: n.Children}
	v := &view{Input: theirs, vlan: vlanOf(theirs), near: older, table: published(n.Infra)}
	v.readNetwork()
	return ipam.Assign(v.request()).Spare
}

// published is what an Infra's status says of its literals: of a neighbour's control plane nothing else is read.
func published(infra *v1alpha1.Infra) endpoint.Table {
	var table endpoint.Table
	for _, e := range infra.Status.Endpoints {
		row := endpoint.Endpoint{Name: e.Name}
		for _, host := range e.Hostnames {
			if a, err := netip.ParseAddr(host); err == nil {
				row.Literals = append(row.Literals, a)
			}
		}
		table.Endpoints = append(table.Endpoints, row)
	}
	return table
}

// joined says whether a neighbour is, or may come, on the network that it names: an Infra that only names another
// tenant's must not stand in that tenant's way.
func (in Input) joined(n Neighbour) bool {
	if n.Children != (Children{}) {
		return true
	}
	return permit.Reference{
		From: n.Infra.Namespace, Namespace: n.NAD.Namespace, Annotations: n.NAD.Annotations, Lent: in.Settings.NADSourceNamespaces,
	}.Allowed()
}

func byAge(a, b *v1alpha1.Infra) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// takenByNeighbours are the addresses that neighbours hold. An older one also holds what it has only written; what we
// held before a newer one came stays ours.
func (v *view) takenByNeighbours() []ipam.Taken {
	var taken []ipam.Taken
	for _, n := range v.near {
		held, by := given(n.Infra, n.Children), ""
		if n.older {
			by = "another Infra on this VLAN"
			taken = append(taken, ipam.Taken{Range: n.pool()})
			for c, a := range written(n.Infra) {
				held[c] = a
			}
		}
		for _, e := range published(n.Infra).Endpoints {
			for _, a := range e.Literals {
				taken = append(taken, ipam.Taken{Range: ipam.Single(a)})
			}
		}
		pool, seen := keptForApps(n.Infra, n.Children)
		if !n.older {
			pool, seen = beside(pool, v.leased()), beside(seen, v.leased())
		}
		for _, r := range slices.Concat(pool, seen) {
			taken = append(taken, ipam.Taken{Range: r})
		}
		for _, a := range n.spare {
			taken = append(taken, ipam.Taken{Range: ipam.Single(a)})
		}
		if !n.older {
			for _, r := range ipam.Without(n.Children.pool(), slices.Concat(n.Children.exclusions(), v.leased())) {
				taken = append(taken, ipam.Taken{Range: r})
			}
		}
		for _, a := range held {
			taken = append(taken, ipam.Taken{Range: ipam.Single(a), By: by})
		}
	}
	for i := range taken {
		taken[i].Neighbour = true
	}
	return taken
}

// beside is what is left of a newer neighbour's ranges beside what we lease by now.
func beside(ranges, leased []ipam.Range) []ipam.Range {
	var left []ipam.Range
	for _, r := range ranges {
		left = append(left, ipam.Without(r, leased)...)
	}
	return left
}

// leased is what our DHCP server leases from by now: our pool grows around what a newer Infra leases, but gives it nothing.
func (v *view) leased() []ipam.Range { return ipam.Without(v.Children.pool(), v.Children.exclusions()) }

// pool is what a neighbour leases from, or will.
func (n near) pool() ipam.Range {
	dhcp := n.Infra.Spec.InfraComponents.DHCP
	if w := span(dhcp.RangeStart, dhcp.RangeEnd); w.IsValid() && enabled(dhcp.Enabled) {
		return w
	}
	return givenPool(n.Infra, n.Children)
}

// sharing judges the addresses, and who else leases on this layer 2. Where another does, that is the cause: that he leaves no
// address only follows from it.
func (v *view) sharing() []finding.Finding {
	all := v.neighbourFindings()
	for _, f := range v.assigned.Findings {
		if len(all) == 0 || f.Reason != "NoFreeAddress" {
			all = append(all, f)
		}
	}
	return all
}

// neighbourFindings: two DHCP servers on one layer 2 answer the same clients, unless each serves only its own.
func (v *view) neighbourFindings() []finding.Finding {
	ours := v.Infra.Spec.InfraComponents.DHCP
	if !enabled(ours.Enabled) {
		return nil
	}
	for _, n := range v.near {
		theirs := n.Infra.Spec.InfraComponents.DHCP
		if !v.leasesAfter(n) || !enabled(theirs.Enabled) {
			continue
		}
		if ours.UnknownClients != v1alpha1.UnknownClientsIgnore || theirs.UnknownClients != v1alpha1.UnknownClientsIgnore {
			return []finding.Finding{inUse(finding.Values{fieldDHCP: false}, "%s serves DHCP on this layer 2; set dhcp.enabled: false, or dhcp.unknownClients: Ignore on both", v.nameOf(n))}
		}
		if pool := span(ours.RangeStart, ours.RangeEnd); pool.Overlaps(n.pool()) {
			return []finding.Finding{inUse(finding.Values{ipam.FieldStart: nil, ipam.FieldEnd: nil}, "dhcp.rangeStart to rangeEnd %s overlaps the range of %s on this layer 2; choose another range, or leave it out", pool, v.nameOf(n))}
		}
	}
	return nil
}

// leasesAfter says whether a neighbour goes before us: the one that alone has a DHCP server, else the older.
func (v *view) leasesAfter(n near) bool {
	if ours, theirs := v.Children.DHCP != nil, n.Children.DHCP != nil; ours != theirs {
		return theirs
	}
	return n.older
}

// nameOf a neighbour, for who may know it.
func (v *view) nameOf(n near) string {
	if n.Infra.Namespace == v.Infra.Namespace {
		return "Infra " + n.Infra.Name
	}
	return "another Infra"
}

func inUse(instead finding.Values, format string, args ...any) finding.Finding {
	return finding.Wrong(v1alpha1.ConditionAccepted, "VLANInUse").At("spec.infraComponents.dhcp").Set(instead).Say(format, args...)
}

// capturedByNeighbours: one literal on one layer 2 can be carried by one proxy only.
func (v *view) capturedByNeighbours() []finding.Finding {
	var all []finding.Finding
	for _, c := range v.captured {
		for _, n := range v.near {
			if v.yields(n, c.IP) {
				all = append(all, finding.Wrong(v1alpha1.ConditionEndpointsResolved, "CapturedAddressInUse").
					In(endpoint.Object(v.HostedCluster)).At("spec.services").Change(v.table.Renamed(c.IP)...).
					Say("another Infra on this layer 2 carries %s already (NodePort addresses are shared by clusters); put this cluster's workers on a VLAN of their own, or make the HostedCluster anew with an address or name of its own", c.IP))
			}
		}
	}
	return all
}

// yields says whether a literal is a neighbour's: of the proxy that alone carries it, else of the older Infra.
func (v *view) yields(n near, literal netip.Addr) bool {
	if ours, theirs := v.Children.carries(literal), n.Children.carries(literal); ours != theirs {
		return theirs
	}
	return n.older && v.claims(n, literal)
}

// claims says whether a neighbour's proxy carries a literal or, before anything is created, will.
func (v *view) claims(n near, literal netip.Addr) bool {
	if n.Children.Proxy != nil || n.HostedCluster == nil {
		return n.Children.carries(literal)
	}
	theirs := viewOf(Input{Settings: v.Settings, Infra: n.Infra, NAD: n.NAD, HostedCluster: n.HostedCluster})
	return slices.ContainsFunc(theirs.captured, func(c endpoint.Captured) bool { return c.IP == literal })
}

func (c Children) carries(literal netip.Addr) bool {
	return c.Proxy != nil && slices.ContainsFunc(c.Proxy.Spec.NetworkConfig.CapturedAddresses, func(a v1alpha1.CapturedAddress) bool { return a.IP == ip(literal) })
}
