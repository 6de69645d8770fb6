package pool

import (
	"net/netip"
	"slices"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
)

// All that is looked up by something other than its address is indexed: anybody on the VLAN can cause a lookup, and all others wait for it.

func (t *Table) index(r lease.Record) {
	put(t.byClient, r.Client, r.IP)
	if r.State == lease.Bound && r.VM.UID != "" {
		put(t.byMachine, r.VM.UID, r.IP)
	}
	_, reserved := t.config.reservedIP(r.IP)
	mark(t.declined, r.IP, r.State == lease.Declined)
	mark(t.anonymous, r.IP, r.State == lease.Bound && r.VM.UID == "" && !reserved)
	t.standing.put(r.IP, r.Horizon, r.State == lease.Bound)
	t.refresh(r.IP)
}

// unindex removes a record from the indexes, and from the table.
func (t *Table) unindex(r lease.Record) {
	if !r.IP.IsValid() {
		return
	}
	take(t.byClient, r.Client, r.IP)
	take(t.byMachine, r.VM.UID, r.IP)
	delete(t.anonymous, r.IP)
	delete(t.declined, r.IP)
	t.standing.put(r.IP, r.Horizon, false)
	delete(t.records, r.IP)
	t.refresh(r.IP)
}

// reindex fills the indexes again after a change of the configuration.
func (t *Table) reindex() {
	t.untaken = newUntaken(Range{t.config.First, t.config.Last})
	for _, r := range t.config.closed() {
		t.untaken.take(r)
	}
	for _, r := range t.records {
		t.index(r)
	}
	for ip := range t.offers {
		t.refresh(ip)
	}
	for ip := range t.avoided {
		t.refresh(ip)
	}
}

// refresh notes whether a client without a claim may get an address: at once, or when its lease ends. The lease of a virtual machine does not
// end by time, but is released when the machine is gone (dhcp-rules.md#lease-7). One that is released ends by time where an instance that is lost
// never drops it.
func (t *Table) refresh(ip netip.Addr) {
	if t.untaken == nil { // nothing is served yet
		return
	}
	r, used := t.records[ip]
	_, offered := t.offers[ip]
	_, avoided := t.avoided[ip]
	open := !offered && !avoided && t.config.open(ip)
	t.untaken.put(ip, used || !open)
	if used || !open {
		delete(t.ahead, ip)
	}
	dropped := t.dropped(r)
	t.returned.put(ip, r.Horizon, open && used && dropped)
	t.ending.put(ip, r.Horizon, open && used && !dropped && (r.State != lease.Bound || r.VM.UID == ""))
}

func mark(set map[netip.Addr]bool, a netip.Addr, in bool) {
	if in {
		set[a] = true
	} else {
		delete(set, a)
	}
}

func put[K comparable](index map[K][]netip.Addr, key K, a netip.Addr) {
	if !slices.Contains(index[key], a) {
		index[key] = append(index[key], a)
	}
}

func take[K comparable](index map[K][]netip.Addr, key K, a netip.Addr) {
	index[key] = slices.DeleteFunc(index[key], func(other netip.Addr) bool { return other == a })
	if len(index[key]) == 0 {
		delete(index, key)
	}
}
