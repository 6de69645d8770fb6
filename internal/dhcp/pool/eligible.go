package pool

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
)

// free says whether the client may get an address: the pool admits it, and there is no offer, probe answer or standing promise against it. Even
// its last holder gets it back only if the pool still admits it.
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

// reusable says whether the address of a record may go to this client (dhcp-rules.md#lease-6 and dhcp-rules.md#lease-7).
func (t *Table) reusable(r lease.Record, a Ask) bool { return t.unclaimed(r, a) || t.over(r, a) }

// unclaimed says whether no other client has a claim to a record's address, whatever the time.
func (t *Table) unclaimed(r lease.Record, a Ask) bool {
	return mine(r, a) || t.dropped(r) || t.inherits(r, a)
}

// mine says whether a record is the client's own; one that it declined is not.
func mine(r lease.Record, a Ask) bool { return r.Client == a.Client && r.State != lease.Declined }

// over says whether a record's lease has ended by time. Its virtual machine must be gone, too: a lease lasts as long as its machine, unless the
// machine has declined it.
func (t *Table) over(r lease.Record, a Ask) bool {
	if !t.ended(r, a) {
		return false
	}
	alive, _ := t.exists(r.VM)
	return !alive || r.State == lease.Declined
}

// ended says whether horizon and grace have passed by a steady clock.
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
	for _, ip := range t.byMachine[owner.VM.UID] {
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

// binding finds the client's lease in a state; of several, the one with the latest horizon.
func (t *Table) binding(a Ask, s lease.State) (lease.Record, bool) {
	var found []lease.Record
	for _, ip := range t.byClient[a.Client] {
		if r := t.records[ip]; r.State == s && t.config.foreign(ip) == "" {
			found = append(found, r)
		}
	}
	if len(found) == 0 {
		return lease.Record{}, false
	}
	return slices.MaxFunc(found, func(x, y lease.Record) int { return cmp.Or(x.Horizon.Compare(y.Horizon), x.IP.Compare(y.IP)) }), true
}

// reservation is the client's reservation: by its key, or by the client-id that it sent.
func (t *Table) reservation(a Ask) (Reservation, bool) {
	return t.config.reservation(a.Client, lease.Hex(a.ClientID))
}

func (t *Table) isReservedFor(ip netip.Addr, a Ask) bool {
	mine, ok := t.reservation(a)
	return ok && mine.IP == ip
}

// admits says whether an address is open to the client: its reservation, or one of the open pool.
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

// shareUsedUp says whether the guests have their half of the pool. A guest that was offered an address is counted already.
func (t *Table) shareUsedUp(a Ask) bool {
	_, offered := t.offered[a.Client]
	return t.isGuest(a) && !offered && len(t.anonymous)+t.strangers >= max(1, t.size/2)
}

// isGuest says whether virtual machines are looked up, and the client is none and has no reservation: a guest has half the pool, for an hour.
func (t *Table) isGuest(a Ask) bool { return t.config.LooksUpVMs && !t.privileged(a) }

// isAnonymous says whether the client would have an address as a guest: any but the one that is reserved for its client-id.
func (t *Table) isAnonymous(ip netip.Addr, a Ask) bool {
	return t.isGuest(a) && !t.isReservedFor(ip, a)
}

// privileged says whether a client has a reservation or a virtual machine; a machine that is not seen now is known from its lease.
func (t *Table) privileged(a Ask) bool {
	_, reserved := t.config.ReservationOf(a.Client)
	bound, _ := t.binding(a, lease.Bound)
	return reserved || bound.VM.UID != "" || t.machines.Owner(a.Client.MAC).Known()
}

func (t *Table) term(ip netip.Addr, a Ask) time.Duration {
	if t.isAnonymous(ip, a) {
		return min(t.config.LeaseTime, anonymousTerm)
	}
	return t.config.LeaseTime
}

// reach is how far a holder's horizon must reach for a renewal to write nothing. That of a guest is one term from its last write: half of it may
// pass, as it does until T1, or a guest would cause a write each second.
func (t *Table) reach(ip netip.Addr, a Ask) time.Duration {
	if t.isAnonymous(ip, a) {
		return t.term(ip, a) / 2
	}
	return t.term(ip, a)
}

// unwelcome says why a client gets no new lease; empty when it may.
func (t *Table) unwelcome(a Ask) string {
	owner := t.machines.Owner(a.Client.MAC)
	_, reserved := t.config.ReservationOf(a.Client)
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

// unused chooses an address that was never used: one that was probed ahead, else one of our half, in an order that is hashed from the client
// (dhcp-rules.md#lease-11). An address that is being probed ahead comes last: a second probe waits for the first.
func (t *Table) unused(a Ask) (found netip.Addr, ok bool) {
	if t.shareUsedUp(a) {
		return netip.Addr{}, false
	}
	start := spread(a.Client.MAC, a.Client.ID) % t.untaken.size
	if found, ok = t.nearestReady(start, a.Now); ok {
		return found, true
	}
	free := false // found is not being probed ahead
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

// longestOver chooses the address that has been free longest. A released address need not have reached its horizon.
func (t *Table) longestOver(a Ask) (netip.Addr, bool) {
	suits := func(ip netip.Addr) bool { return t.free(ip, a) && t.mayEnter(ip, a) && !a.Undecided[ip] }
	over, isOver := t.ending.find(func(ip netip.Addr) bool { return !t.ended(t.records[ip], a) || suits(ip) })
	isOver = isOver && t.ended(t.records[over], a) // find stops at the first lease that has not ended
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

// own says whether an address is in this instance's half.
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
