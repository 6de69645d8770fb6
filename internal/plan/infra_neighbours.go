package plan

import (
	"cmp"
	"maps"
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
	vlan  *vlan
	older bool
	taken []ipam.Taken // by it, from us
}

// onSameLayer2 are the Infras whose frames reach us, the oldest first.
func (in Input) onSameLayer2(ours nad.Config) []near {
	if ours.Layer2() == "" {
		return nil
	}
	var all []near
	here := map[*nad.NetworkAttachmentDefinition]*vlan{} // many Infras join one: it is read once. Nil: elsewhere
	for _, n := range in.Neighbours {
		if _, read := here[n.NAD]; !read {
			here[n.NAD] = nil
			if v := vlanAt(n.NAD); v.config.Layer2() == ours.Layer2() {
				here[n.NAD] = &v
			}
		}
		if vlan := here[n.NAD]; vlan != nil && in.joined(n) && !n.refused() {
			all = append(all, near{Neighbour: n, vlan: vlan, older: byAge(n.Infra, in.Infra) < 0})
		}
	}
	slices.SortFunc(all, func(a, b near) int { return byAge(a.Infra, b.Infra) })
	in.leave(all)
	return all
}

// leave says what is each neighbour's, the oldest first: what one sets aside follows from what those before it have.
func (in Input) leave(all []near) {
	var before ipam.Set
	addresses, leased := in.Children.addresses(), in.Children.leased()
	for i := range all {
		n := &all[i]
		n.taken = n.holds(addresses, leased)
		if !n.older {
			continue
		}
		n.taken = append(n.taken, n.spares(before)...)
		for _, t := range n.taken {
			before.Add(t.Range)
		}
	}
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

// spares are what an older neighbour has set aside, beside what those have that are older still.
func (n near) spares(before ipam.Set) []ipam.Taken {
	if n.Children == (Children{}) {
		return nil
	}
	v := &view{Input: Input{Infra: n.Infra, NAD: n.NAD, Children: n.Children}, vlan: *n.vlan, table: published(n.Infra)}
	v.readNetwork()
	var taken []ipam.Taken
	for _, a := range ipam.Spare(v.request(), before) {
		taken = append(taken, ipam.Taken{Range: ipam.Single(a), Neighbour: true})
	}
	return taken
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

// joined says whether a neighbour may be on the network that it names. Children of its name prove nothing: whoever may write an
// Infra may write those by hand. So an Infra whose permission was withdrawn stands in nobody's way either, and its network's owner
// sees to what it still serves.
func (in Input) joined(n Neighbour) bool {
	return n.Lent || permit.Reference{
		From: n.Infra.Namespace, Namespace: n.NAD.Namespace, Annotations: n.NAD.Annotations, Lent: in.Settings.NADSourceNamespaces,
	}.Allowed()
}

func byAge(a, b *v1alpha1.Infra) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// takenByNeighbours are the addresses that neighbours hold.
func (v *view) takenByNeighbours() []ipam.Taken {
	var taken []ipam.Taken
	for _, n := range v.near {
		taken = append(taken, n.taken...)
	}
	return taken
}

// holds are the addresses that a neighbour has, or is given, beside those that we have. An older one also holds what it has only
// written, but for what we have or lease.
func (n near) holds(ours map[ipam.Component]netip.Addr, leased []ipam.Range) []ipam.Taken {
	theirs := n.Children.addresses()
	held := slices.Collect(maps.Values(given(n.Infra, n.Children)))
	if n.older {
		held = slices.AppendSeq(held, maps.Values(written(n.Infra)))
	}
	var taken []ipam.Taken
	for _, a := range held {
		by := ""
		if n.precedes(has(theirs, a), has(ours, a)) {
			by = anotherInfra
		}
		taken = append(taken, ipam.Taken{Range: ipam.Single(a), By: by, Neighbour: true})
	}
	return append(taken, n.keeps(ours, leased)...)
}

const anotherInfra = "another Infra on this VLAN"

// keeps are a neighbour's ranges. What nobody leases from by now takes nothing from who leases: an Infra's age does not tell when its
// range was written.
func (n near) keeps(ours map[ipam.Component]netip.Addr, leased []ipam.Range) (taken []ipam.Taken) {
	said, answered := n.says()
	serves := n.Children.leased()
	if !n.older {
		serves, answered = beside(serves, leased), beside(answered, leased)
	}
	for _, r := range slices.Concat(beside(said, leased), serves) {
		taken = append(taken, ipam.Taken{Range: r, Neighbour: true})
	}
	for _, r := range answered {
		by := anotherInfra
		if has(ours, r.First) {
			by = ""
		}
		taken = append(taken, ipam.Taken{Range: r, By: by, Neighbour: true})
	}
	return taken
}

// says are the ranges that a neighbour wants kept, and the addresses that its DNS answers for *.apps by now.
func (n near) says() (all, answered []ipam.Range) {
	all, answered = keptForApps(n.Infra, n.Children)
	for _, e := range published(n.Infra).Endpoints {
		for _, a := range e.Literals {
			all = append(all, ipam.Single(a))
		}
	}
	if n.older && n.Children.DHCP == nil {
		all = append(all, n.leases()...)
	}
	return all, answered
}

// beside is what is left of a neighbour's ranges beside what we lease by now.
func beside(ranges, leased []ipam.Range) []ipam.Range {
	var left []ipam.Range
	for _, r := range ranges {
		left = append(left, ipam.Without(r, leased)...)
	}
	return left
}

// leased is what a DHCP server leases from by now: our pool grows around what a newer Infra leases, but gives it nothing.
func (c Children) leased() []ipam.Range { return ipam.Without(c.pool(), c.exclusions()) }

// precedes says who has what two of us want: who alone has it by now, else the older. An edit takes nothing away that serves.
func (n near) precedes(theirs, ours bool) bool {
	if theirs != ours {
		return theirs
	}
	return n.older
}

// leases are the ranges that a neighbour leases from or, before it does, will.
func (n near) leases() []ipam.Range {
	dhcp := n.Infra.Spec.InfraComponents.DHCP
	if n.Children.DHCP != nil {
		return n.Children.leased()
	}
	if w := span(dhcp.RangeStart, dhcp.RangeEnd); w.IsValid() && enabled(dhcp.Enabled) {
		return []ipam.Range{w}
	}
	return []ipam.Range{givenPool(n.Infra, n.Children)}
}

// unknownClients is whom a neighbour's DHCP serves or, before there is one, will: an edit that we hold up says nothing.
func (n near) unknownClients() v1alpha1.UnknownClients {
	if live := n.Children.DHCP; live != nil {
		return live.Spec.UnknownClients
	}
	return n.Infra.Spec.InfraComponents.DHCP.UnknownClients
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
		if !enabled(n.Infra.Spec.InfraComponents.DHCP.Enabled) || !v.leasesAfter(n) && !v.leasesBy(n) {
			continue
		}
		if ours.UnknownClients != v1alpha1.UnknownClientsIgnore || n.unknownClients() != v1alpha1.UnknownClientsIgnore {
			return []finding.Finding{v.leasesBeside(n)}
		}
		if pool := span(ours.RangeStart, ours.RangeEnd); slices.ContainsFunc(n.leases(), pool.Overlaps) && v.leasesAfter(n) {
			return []finding.Finding{inUse().Set(finding.Values{ipam.FieldStart: nil, ipam.FieldEnd: nil}).Say("dhcp.rangeStart to rangeEnd %s overlaps the range of %s on this layer 2; choose another range, or leave it out", pool, v.nameOf(n))}
		}
	}
	return nil
}

// leasesBeside: a machine takes the first lease that it is offered, and with it the DNS of that cluster.
func (v *view) leasesBeside(n near) finding.Finding {
	known := ""
	if v.leasesByReservation() {
		known = " with a reservation for each worker"
	}
	found := inUse()
	if n.Infra.Namespace == v.Infra.Namespace {
		for _, infra := range []*v1alpha1.Infra{v.Infra, n.Infra} {
			found = found.Change(finding.Change{Of: infraObject(infra), Values: finding.Values{fieldUnknownClients: string(v1alpha1.UnknownClientsIgnore)}})
		}
	}
	return found.Say("%s serves DHCP on this layer 2, and its leases name its own DNS; give each hosted cluster a VLAN of its own, or set dhcp.unknownClients: Ignore on both%s", v.nameOf(n), known)
}

// leasesAfter says whether a neighbour goes before us.
func (v *view) leasesAfter(n near) bool {
	return n.precedes(n.Children.DHCP != nil, v.Children.DHCP != nil)
}

// leasesBy says whether both lease by an agreement: each serves only its own. Whoever leaves it would serve the other's.
func (v *view) leasesBy(n near) bool {
	return v.Children.ignores() && n.Children.ignores()
}

func (c Children) ignores() bool {
	return c.DHCP != nil && c.DHCP.Spec.UnknownClients == v1alpha1.UnknownClientsIgnore
}

// nameOf a neighbour, for who may know it.
func (v *view) nameOf(n near) string {
	if n.Infra.Namespace == v.Infra.Namespace {
		return "Infra " + n.Infra.Name
	}
	return "another Infra"
}

func inUse() finding.Builder { return wrongAt("VLANInUse", "spec.infraComponents.dhcp") }

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
	return n.precedes(n.Children.carries(literal), v.Children.carries(literal)) && v.claims(n, literal)
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
