// Package records decides the DNS server's answers: it builds an immutable Snapshot of two views from the owned names. It is pure, and
// independent of sockets, CoreDNS and Kubernetes.
package records

import (
	"net/netip"
	"time"
)

// Intent is all that one DNS server is to answer. Names are fully qualified and in lower case.
type Intent struct {
	// Domain is the hosted cluster's domain: never forwarded, and the parent of the leases' names.
	Domain string
	// Network is the VLAN's: the addresses of its names are answered with a name in return (PTR).
	Network netip.Prefix
	// VLAN and Pods are the owned names of the two views; a name may begin with "*.".
	VLAN, Pods []Record
	// Leases are the addresses that DHCP promised, the latest horizon first.
	Leases []Lease
	// Denied are zones that get NXDOMAIN on the VLAN.
	Denied []string
	// Clients are the sources that the VLAN view answers.
	Clients []netip.Prefix
	// Upstreams resolve all other names of the VLAN view.
	Upstreams []netip.AddrPort
	// CacheTTL is the longest time that the upstreams' answers are cached.
	CacheTTL time.Duration
}

// Record is one address of one name.
type Record struct {
	Name string
	Addr netip.Addr
}

// Lease is the address of a host, whose name is a single label.
type Lease struct {
	Host string
	Addr netip.Addr
}

// Snapshot is both views. It is immutable: a change makes a new one.
type Snapshot struct {
	VLAN, Pods *View
}

// Build makes the snapshot of an intent.
func Build(in Intent) *Snapshot {
	return &Snapshot{
		VLAN: &View{zones: newZones(in.Domain, in.VLAN, in.Leases).inReturn(in), denied: in.Denied, clients: in.Clients, forwards: len(in.Upstreams) > 0},
		Pods: &View{zones: newZones(in.Domain, in.Pods, nil), clients: everyone},
	}
}

// everyone may query the pod network's view, whose clients a NetworkPolicy limits.
var everyone = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
