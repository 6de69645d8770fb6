package pool

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
)

// free says whether an address is to be had and nobody else has a claim to it: no reservation, no hold, no promise that
// stands. The client that had it last gets it back only where it is still to be had.
func (t *Table) free(ip netip.Addr, a Ask) bool {
	h, offered := t.offers[ip]
	avoided, isAvoided := t.avoided[ip]
	switch {
	case !t.admits(ip, a) || isAvoided && !avoided.ahead || offered && h.client != a.Client || t.isSpurned(ip, a):
		return false
	case t.records[ip].IP != ip:
		return true
	}
	return t.reusable(t.records[ip], a)
}

// reusable says whether a record's address may become this client's (dhcp-rules.md#lease-6 and dhcp-rules.md#lease-7).
func (t *Table) reusable(r lease.Record, a Ask) bool { return t.unclaimed(r, a) || t.over(r, a) }

// unclaimed says whether nobody else has a claim to a record's address, whatever the time is.
func (t *Table) unclaimed(r lease.Record, a Ask) bool {
	mine := r.Client == a.Client && r.State != lease.Declined
	return mine || t.dropped(r) || t.inherits(r, a)
}

// over says whether the time of a record is up. It counts only where the clock is steady and the machine that holds the lease is gone: a
// lease lives as long as its machine.
func (t *Table) over(r lease.Record, a Ask) bool {
	if !t.ended(r, a) {
		return false
	}
	alive, _ := t.exists(r.VM)
	return !alive
}

// ended says whether horizon and grace have passed for sure.
func (t *Table) ended(r lease.Record, a Ask) bool {
	return a.Steady && a.Now.After(r.Horizon.Add(t.config.Grace()))
}

// dropped says whether every instance has forgotten a released binding.
func (t *Table) dropped(r lease.Record) bool {
	return r.State == lease.Released &&
		!slices.ContainsFunc(t.config.Instances, func(i netip.Addr) bool { return !slices.Contains(r.Dropped, i) })
}

// inherits says whether the client is the machine that holds the lease, started again with another hardware address:
// HyperShift sets none.
func (t *Table) inherits(r lease.Record, a Ask) bool {
	owner := t.machines.Owner(a.Client.MAC)
	return owner.Known() && !owner.Duplicate && r.State == lease.Bound && r.VM == owner.VM &&
		r.Client.MAC != a.Client.MAC && !t.machines.InUse(r.Client.MAC)
}

func (t *Table) inheritance(a Ask) (lease.Record, bool) {
	owner := t.machines.Owner(a.Client.MAC)
	if !owner.Known() {
		return lease.Record{}, false
	}
	for ip := range t.byMachine[owner.VM] {
		if r := t.records[ip]; t.inherits(r, a) && t.free(ip, a) {
			return r, true
		}
	}
	return lease.Record{}, false
}

func (t *Table) exists(vm lease.VM) (bool, lease.VM) {
	if vm.UID == "" {
		return false, lease.VM{}
	}
	return t.machines.Exists(vm)
}

// binding finds the client's lease in a state; of several the one that lasts longest.
func (t *Table) binding(a Ask, s lease.State) (lease.Record, bool) {
	var found []lease.Record
	for ip := range t.byClient[a.Client] {
		if r := t.records[ip]; r.State == s && t.config.foreign(ip) == "" {
			found = append(found, r)
		}
	}
	if len(found) == 0 {
		return lease.Record{}, false
	}
	return slices.MaxFunc(found, func(x, y lease.Record) int { return cmp.Or(x.Horizon.Compare(y.Horizon), x.IP.Compare(y.IP)) }), true
}

// reservation is the address that is written down for the client, by its key or by the client-id that it sent.
func (t *Table) reservation(a Ask) (Reservation, bool) {
	return t.config.reservation(a.Client, lease.Hex(a.ClientID))
}

// isReservedFor says whether an address is the one that is written down for the client.
func (t *Table) isReservedFor(ip netip.Addr, a Ask) bool {
	mine, ok := t.reservation(a)
	return ok && mine.IP == ip
}

// admits says whether an address is one that the client may enter: its reservation, or the open pool.
func (t *Table) admits(ip netip.Addr, a Ask) bool {
	return t.config.open(ip) || t.isReservedFor(ip, a) && !t.config.never(ip)
}

// misplaced says whether an address is reserved for another client.
func (t *Table) misplaced(ip netip.Addr, a Ask) bool {
	_, reserved := t.config.reservedIP(ip)
	return reserved && !t.isReservedFor(ip, a)
}

// mayEnter says whether the client may newly get a free address: its reservation, or one within its share.
func (t *Table) mayEnter(ip netip.Addr, a Ask) bool {
	return t.isReservedFor(ip, a) || t.anonymous[ip] || !t.shareUsedUp(a)
}

// shareUsedUp says whether strangers hold their half of the pool. One that holds an address is in its share already.
func (t *Table) shareUsedUp(a Ask) bool {
	_, offered := t.offered[a.Client]
	return t.isGuest(a) && !offered && len(t.anonymous)+t.strangers >= max(1, t.size/2)
}

// isGuest: where machines are looked up, who is none (and has no reservation) is a guest with half the pool and an hour.
func (t *Table) isGuest(a Ask) bool { return t.config.LooksUpVMs && !t.privileged(a) }

// isAnonymous says whether an address would be a guest's. One that is reserved for the client-id is not, and any other is.
func (t *Table) isAnonymous(ip netip.Addr, a Ask) bool {
	return t.isGuest(a) && !t.isReservedFor(ip, a)
}

// privileged clients have a reservation or a machine; a machine that is not seen now is known from its lease.
func (t *Table) privileged(a Ask) bool {
	_, reserved := t.config.reservationByKey(a.Client)
	bound, _ := t.binding(a, lease.Bound)
	return reserved || bound.VM.UID != "" || t.machines.Owner(a.Client.MAC).Known()
}

func (t *Table) term(ip netip.Addr, a Ask) time.Duration {
	if t.isAnonymous(ip, a) {
		return min(t.config.LeaseTime, anonymousTerm)
	}
	return t.config.LeaseTime
}

// unwelcome says why a client gets no new lease; empty when it may.
func (t *Table) unwelcome(a Ask) string {
	owner := t.machines.Owner(a.Client.MAC)
	_, reserved := t.config.reservationByKey(a.Client)
	switch {
	case owner.Duplicate:
		return "duplicate-mac"
	case reserved || owner.Known():
		return ""
	case t.config.LooksUpVMs && owner.Unresolved && t.stillWaits(a):
		return "machine-not-known-yet"
	case t.config.KnownOnly:
		return "unknown-client"
	}
	return ""
}

func (t *Table) stillWaits(a Ask) bool {
	since, waits := t.waiting[a.Client]
	if !waits {
		if len(t.waiting) < maxWaiting {
			t.waiting[a.Client] = a.Now
		}
		return true
	}
	return a.Now.Sub(since) < resolveTime
}

// hostname is option 12: what the reservation says, else the machine's name, as the machine approver compares it.
func (t *Table) hostname(ip netip.Addr, owner Owner, a Ask) string {
	if r, ok := t.reservation(a); ok && r.Hostname != "" && (r.Client == a.Client || r.IP == ip) {
		return r.Hostname
	}
	if len(owner.VM.Name) > 63 {
		return ""
	}
	return owner.VM.Name
}

// unused chooses an address that was never used: one that was probed ahead, then our own half, in an order of the client's own
// (dhcp-rules.md#lease-11). What is being probed ahead comes last: a second probe waits for the first.
func (t *Table) unused(a Ask) (found netip.Addr, ok bool) {
	if t.shareUsedUp(a) {
		return netip.Addr{}, false
	}
	start := spread(a.Client.MAC, a.Client.ID) % t.untaken.size
	if found, ok = t.nearestReady(start, a.Now); ok {
		return found, true
	}
	free := false // of a probe ahead
	for ip := range t.untaken.from(start) {
		_, asked := t.ahead[ip]
		switch {
		case !asked && t.own(ip):
			return ip, true
		case !ok, !asked && !free:
			found, ok, free = ip, true, !asked
		}
	}
	return found, ok
}

// longestOver chooses the address that has been free longest. One that was released may be as young as it likes.
func (t *Table) longestOver(a Ask) (netip.Addr, bool) {
	suits := func(ip netip.Addr) bool { return t.free(ip, a) && t.mayEnter(ip, a) && !a.Undecided[ip] }
	over, isOver := t.ending.find(func(ip netip.Addr) bool { return !t.ended(t.records[ip], a) || suits(ip) })
	isOver = isOver && t.ended(t.records[over], a) // and not the first whose time is to come
	returned, isReturned := netip.Addr{}, false
	if !t.shareUsedUp(a) {
		returned, isReturned = t.returned.find(suits)
	}
	if isOver && isReturned {
		isOver = cmp.Or(t.records[over].Horizon.Compare(t.records[returned].Horizon), over.Compare(returned)) < 0
	}
	if isOver {
		return over, true
	}
	return returned, isReturned
}

// own says whether an address is of this instance's half.
func (t *Table) own(ip netip.Addr) bool {
	mine := slices.Index(t.config.Instances, t.config.Server)
	return int(spread(ip.String())%uint64(len(t.config.Instances))) == mine
}

func number(a netip.Addr) uint64 {
	o := a.As4()
	return uint64(o[0])<<24 | uint64(o[1])<<16 | uint64(o[2])<<8 | uint64(o[3])
}

func addrOf(n uint64) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}
