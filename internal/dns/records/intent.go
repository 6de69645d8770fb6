// Package records decides what the DNS server says: pure, from the names that it owns to an immutable Snapshot of two
// views. It speaks names and addresses; sockets, CoreDNS and Kubernetes are elsewhere.
package records

import (
	"net/netip"
	"time"
)

// Intent is everything that one DNS server is to say. Names are fully qualified and in lower case.
type Intent struct {
	// Domain is the hosted cluster's own: never forwarded, and leases are named under it.
	Domain string
	// VLAN and Pods are the owned names of the two views; a name may begin with "*.".
	VLAN, Pods []Record
	// Leases are the addresses that DHCP promised, the one promised longest first.
	Leases []Lease
	// Denied are zones that do not exist for the VLAN.
	Denied []string
	// Clients are the sources that the VLAN view answers.
	Clients []netip.Prefix
	// Upstreams resolve all other names of the VLAN view.
	Upstreams []netip.AddrPort
	// CacheTTL is how long their answers are kept at most.
	CacheTTL time.Duration
}

// Record is one address of one name.
type Record struct {
	Name string
	Addr netip.Addr
}

// Lease is the address of a host, which is a single label.
type Lease struct {
	Host string
	Addr netip.Addr
}

// Snapshot is what both views say. It never changes: a new one takes its place.
type Snapshot struct {
	VLAN, Pods *View
}

// Build makes the snapshot of an intent.
func Build(in Intent) *Snapshot {
	return &Snapshot{
		VLAN: &View{zones: newZones(in.Domain, in.VLAN, in.Leases), denied: in.Denied, clients: in.Clients, forwards: len(in.Upstreams) > 0},
		Pods: &View{zones: newZones(in.Domain, in.Pods, nil), clients: everyone},
	}
}

// everyone may ask the view of the pod network: there a NetworkPolicy limits, not the source.
var everyone = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
