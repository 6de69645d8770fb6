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

// othersOf lists the neighbours with their addresses, oldest first, because the spares of one depend on the addresses of older ones.
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

// spares are an older neighbour's spare addresses, chosen outside those of still older ones.
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

// published are an Infra's IP endpoints according to its status, because a neighbour's control plane is not read.
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

// holds are the addresses that a neighbour has or was given, except ours. An older one also holds what is only in its spec, except what
// we have or lease.
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

// keeps are a neighbour's ranges. A range that is not leased from yet takes nothing from our leased one, even if the neighbour is older:
// an Infra's age does not tell when its range was written.
func (n Neighbour) keeps(ours map[component.Name]netip.Addr, leased []ipam.Range) (taken []ipam.Taken) {
	said, answered := n.says()
	serves := n.Children.Leased()
	if !n.Older {
		serves, answered = beside(serves, leased), beside(answered, leased)
	}
	for _, r := range slices.Concat(beside(said, leased), serves) {
		taken = append(taken, ipam.Taken{Range: r, Neighbour: true})
	}
	theirs := Addressed{Joined: n.Side()}
	for _, t := range append(theirs.takenHere(), ipam.Taken{Range: ipam.Single(theirs.Gateway)}) { // machines and routers that only its author tells of
		taken = append(taken, ipam.Taken{Range: t.Range, Reserved: true, Neighbour: true})
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

// says are the ranges that a neighbour wants kept free, and the addresses with which its DNS already answers *.apps.
func (n Neighbour) says() (all, answered []ipam.Range) {
	all, answered = keptForApps(n.Infra, n.Children, "")
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

// beside is what is left of a neighbour's ranges without the addresses that we already lease.
func beside(ranges, leased []ipam.Range) []ipam.Range {
	var left []ipam.Range
	for _, r := range ranges {
		left = append(left, ipam.Without(r, leased)...)
	}
	return left
}
