package address

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/endpoint"
	"github.com/cldmnky/oooi/internal/ipam"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/vlan"
	"github.com/cldmnky/oooi/internal/valid"
)

// othersOf says what is each neighbour's, the oldest first: what one sets aside follows from what those before it have.
func othersOf(j vlan.Joined) []Neighbour {
	var before ipam.Set
	addresses, leased := j.Children.Addresses(), j.Children.Leased()
	var all []Neighbour
	for _, other := range j.OnVLAN {
		n := Neighbour{Neighbour: other}
		n.Taken = n.holds(addresses, leased)
		if n.Older {
			n.Taken = append(n.Taken, n.spares(before)...)
			for _, t := range n.Taken {
				before.Add(t.Range)
			}
		}
		all = append(all, n)
	}
	return all
}

// spares are what an older neighbour has set aside, beside what those have that are older still.
func (n Neighbour) spares(before ipam.Set) []ipam.Taken {
	if len(n.Children) == 0 {
		return nil
	}
	theirs := Addressed{Joined: n.Side(), Table: published(n.Infra)}
	var taken []ipam.Taken
	for _, a := range ipam.Spare(theirs.request(), before) {
		taken = append(taken, ipam.Taken{Range: ipam.Single(a), Neighbour: true})
	}
	return taken
}

// published is what an Infra's status says of its IP endpoints: of a neighbour's control plane nothing else is read.
func published(infra *v1alpha1.Infra) endpoint.Table {
	var table endpoint.Table
	for _, e := range infra.Status.Endpoints {
		row := endpoint.Endpoint{Name: e.Name}
		for _, host := range e.Hostnames {
			if a, ok := valid.Address(host); ok {
				row.PublishedIPs = append(row.PublishedIPs, a)
			}
		}
		table.Endpoints = append(table.Endpoints, row)
	}
	return table
}

// holds are the addresses that a neighbour has, or is given, beside those that we have. An older one also holds what it has only
// written, but for what we have or lease.
func (n Neighbour) holds(ours map[component.Name]netip.Addr, leased []ipam.Range) []ipam.Taken {
	theirs := n.Children.Addresses()
	assigned := slices.Collect(maps.Values(input.Given(n.Infra, n.Children)))
	if n.Older {
		assigned = slices.AppendSeq(assigned, maps.Values(input.Written(n.Infra)))
	}
	var taken []ipam.Taken
	for _, a := range assigned {
		by := ""
		if n.Precedes(has(theirs, a), has(ours, a)) {
			by = anotherInfra
		}
		taken = append(taken, ipam.Taken{Range: ipam.Single(a), By: by, Neighbour: true})
	}
	return append(taken, n.keeps(ours, leased)...)
}

const anotherInfra = "another Infra on this VLAN"

// keeps are a neighbour's ranges. What nobody leases from by now takes nothing from who leases: an Infra's age does not tell when its
// range was written.
func (n Neighbour) keeps(ours map[component.Name]netip.Addr, leased []ipam.Range) (taken []ipam.Taken) {
	said, answered := n.says()
	serves := n.Children.Leased()
	if !n.Older {
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
func (n Neighbour) says() (all, answered []ipam.Range) {
	all, answered = keptForApps(n.Infra, n.Children)
	for _, e := range published(n.Infra).Endpoints {
		for _, a := range e.PublishedIPs {
			all = append(all, ipam.Single(a))
		}
	}
	if n.Older && n.Children.DHCP() == nil {
		all = append(all, n.Leases()...)
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
