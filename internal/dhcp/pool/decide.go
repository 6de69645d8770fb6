package pool

import (
	"net/netip"
	"time"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/wire"
)

// Action is what to do about a message.
type Action string

// The first four are final. After the others, which find something out or make it durable, Decide is called again.
const (
	Silence Action = "silence"
	Offer   Action = "offer"
	Ack     Action = "ack"
	Nak     Action = "nak"

	Read   Action = "read"   // what the store has for the address, uncached
	Probe  Action = "probe"  // whether anybody answers at the address
	Create Action = "create" // the first record of the address
	Update Action = "update" // the record, in place of the version that it carries
)

// Ask is a message and what was found out for it.
type Ask struct {
	wire.Message
	// Now is the server's time; zero where it is not known.
	Now time.Time
	// Steady says whether the clock may be trusted to end a lease, so that another client gets the address.
	Steady bool
	// Away: the store did not answer; only memory is left.
	Away bool
	// Cut: nor does it answer a write for a holder.
	Cut bool
	// Confirmed are addresses whose record was read from the store, or written, for this message.
	Confirmed map[netip.Addr]bool
	// Undecided are addresses whose probe had no result: the kernel cannot tell yet whether the last client has left.
	Undecided map[netip.Addr]bool
}

// Decision is what to do, about which address, and why.
type Decision struct {
	Do Action
	// Why is a label for logs and metrics.
	Why string
	// IP is the address offered, acknowledged, read or probed.
	IP netip.Addr
	// Record is the record to write, the promise behind an OFFER or ACK, or the last record of an address to probe.
	Record lease.Record
	// Lease is the lease time that the client is told; 0 in the ACK of an INFORM.
	Lease time.Duration
	// Again: the address was probed ahead, so that a short probe is enough.
	Again bool
	// Begins: the write begins a binding, though it renews the record of a hardware address that another machine has now.
	Begins bool
	// Reclaims: the write gives an address to another client because the time of the last one is over.
	Reclaims bool
	// Final: after the write there is nothing to do, and no reply.
	Final bool
}

// extended is the Why of a write that renews a holder's record.
const extended = "extended"

func silent(why string) Decision { return Decision{Do: Silence, Why: why} }

func nak(a netip.Addr, why string) Decision { return Decision{Do: Nak, IP: a, Why: why} }

// Decide says what to do about a message, by the rules of docs/reference/dhcp-rules.md. Silence, Offer, Ack and Nak are final. After any other
// Decision the caller carries it out, tells the table (Learn, Attempt, Lost, InUse, Vacant), notes the result in the Ask, and calls again: an
// Ack never comes before its Record is stored. Several goroutines may call Decide, but only one at a time for the same client.
func (t *Table) Decide(a Ask) Decision {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a.Now.IsZero() {
		return silent("no-clock")
	}
	a.Now = a.Now.Truncate(time.Second) // option 51 counts seconds, and a horizon must not round below its promise
	t.sweep(a.Now)
	if why := t.astray(a); why != "" {
		return silent(why)
	}
	d := t.decide(a)
	switch {
	case t.mayWrite(d, a):
		return d
	case d.Why == extended && t.mayBeStale(a):
		return Decision{Do: Read, IP: d.IP, Why: "too-many-writes"}
	}
	return silent("too-many-writes")
}

func (t *Table) decide(a Ask) Decision {
	switch a.Kind {
	case wire.Discover:
		return t.discover(a)
	case wire.Selecting:
		return t.selecting(a)
	case wire.InitReboot:
		return t.initReboot(a)
	case wire.Renewing:
		return t.renewing(a)
	case wire.Release:
		return t.release(a)
	case wire.Decline:
		return t.decline(a)
	case wire.Inform, wire.Probe:
		hostname := t.hostname(a.Current, t.machines.Owner(a.Client.MAC), a)
		return Decision{Do: Ack, Record: lease.Record{Hostname: hostname}, Why: "informed"}
	}
	return silent("not-for-a-server")
}

// astray says why nothing may be sent for a message (dhcp-rules.md#wire-9): its relay is unknown, the reply would go to another subnet, or only
// known clients are served, and this one may be another server's on this wire.
func (t *Table) astray(a Ask) string {
	switch elsewhere := a.Current.IsValid() && !t.config.Network.Subnet.Contains(a.Current); {
	case a.Relay.IsValid() && !t.config.relays(a.Relay):
		return "relay-not-configured"
	case elsewhere && (a.Relay.IsValid() || a.Kind != wire.Renewing):
		return "address-of-another-subnet"
	case a.Kind == wire.Inform && !a.Current.IsValid():
		return "inform-without-address"
	case t.config.KnownOnly && a.Kind != wire.Probe && t.isStranger(a):
		return "unknown-client"
	}
	return ""
}

// isStranger says whether nothing ties a client to this server: no reservation, no virtual machine and no record.
func (t *Table) isStranger(a Ask) bool {
	_, reserved := t.reservation(a)
	return !reserved && len(t.byClient[a.Client]) == 0 && !t.machines.Owner(a.Client.MAC).Known()
}

// discover offers, in this order (dhcp-rules.md#wire-4): reservation, current binding, prior binding, requested address, fresh address.
func (t *Table) discover(a Ask) Decision {
	if r, ok := t.reservation(a); ok && t.free(r.IP, a) {
		return t.offer(r.IP, a)
	}
	if bound, ok := t.binding(a, lease.Bound); ok && !t.misplaced(bound.IP, a) && !t.isSpurned(bound.IP, a) {
		return t.offer(bound.IP, a)
	}
	if why := t.unwelcome(a); why != "" {
		return silent(why)
	}
	if inherited, ok := t.inheritance(a); ok {
		return t.offer(inherited.IP, a)
	}
	if prior, ok := t.binding(a, lease.Released); ok && t.free(prior.IP, a) {
		return t.offer(prior.IP, a)
	}
	if offered, ok := t.offered[a.Client]; ok && t.free(offered, a) && !a.Undecided[offered] {
		return t.offer(offered, a)
	}
	return t.offerFresh(a)
}

// offerFresh offers the requested address, or else one that we choose. If nobody can tell whether the requested address is in use, the client
// gets another: the last client may have left, and the kernel takes eight seconds to find out. An address that is free only because its lease
// expired comes after all that were never used: the clock may be wrong (dhcp-rules.md#lease-9).
func (t *Table) offerFresh(a Ask) Decision {
	full := len(t.offers) >= max(1, t.size/2) && t.offered[a.Client] == netip.Addr{} && !t.privileged(a)
	if full {
		return silent("too-many-offers")
	}
	last, used := t.records[a.Wanted]
	wish := a.Wanted.IsValid() && t.free(a.Wanted, a) && t.mayEnter(a.Wanted, a) && !a.Undecided[a.Wanted]
	if wish && (!used || t.unclaimed(last, a)) {
		return t.offer(a.Wanted, a)
	}
	if unused, ok := t.unused(a); ok {
		return t.offer(unused, a)
	}
	if wish {
		return t.offer(a.Wanted, a)
	}
	if over, ok := t.longestOver(a); ok {
		return t.offer(over, a)
	}
	if len(a.Undecided) > 0 {
		return silent("probe-undecided")
	}
	if t.shareUsedUp(a) {
		return silent("share-used-up")
	}
	return silent("pool-exhausted")
}

// offer offers an address, after a probe if one is due. It offers no lease that a REQUEST could not get.
func (t *Table) offer(ip netip.Addr, a Ask) Decision {
	r, known := t.records[ip]
	if known && r.BoundTo(a.Client) {
		told, ok := promised(r, a.Client, a.Now, t.term(ip, a))
		switch {
		case a.Away && !ok || a.Cut && t.mayBeStale(a): // beside another instance, the ACK would need a write
			return silent("store-away")
		case !a.Away && told < t.reach(ip, a):
			told = t.term(ip, a)
		}
		return Decision{Do: Offer, IP: ip, Record: t.promiseOf(ip, a), Lease: told, Why: "bound"}
	}
	if a.Away {
		return silent("store-away")
	}
	t.keepOffer(ip, a)
	if t.mustProbe(ip, a) {
		return t.probe(ip, a)
	}
	return Decision{Do: Offer, IP: ip, Record: t.promiseOf(ip, a), Lease: t.term(ip, a), Why: "free"}
}

// selecting acknowledges exactly the address that was requested, or refuses (dhcp-rules.md#wire-5).
func (t *Table) selecting(a Ask) Decision {
	if a.ServerID != t.config.Server {
		t.drop(a.Client) // the client chose another server: our offer is free again
		return silent("another-server-chosen")
	}
	if why := t.config.foreign(a.Wanted); why != "" {
		return nak(a.Wanted, why)
	}
	return t.bind(a)
}

// initReboot is strict about reservations: a changed one takes effect best at boot (dhcp-rules.md#wire-4).
func (t *Table) initReboot(a Ask) Decision {
	if why := t.config.foreign(a.Wanted); why != "" {
		return nak(a.Wanted, why)
	}
	if r, ok := t.reservation(a); ok && !a.Away && r.IP != a.Wanted && t.free(r.IP, a) {
		return nak(a.Wanted, "reservation-changed")
	}
	if !a.Away && t.misplaced(a.Wanted, a) {
		return nak(a.Wanted, "reserved-for-another")
	}
	return t.bind(a)
}

// renewing never refuses a holder for a changed pool or reservation, nor for option 54: the server may have moved.
func (t *Table) renewing(a Ask) Decision {
	if why := t.config.foreign(a.Wanted); why != "" {
		return nak(a.Wanted, why)
	}
	return t.bind(a)
}

// bind gives the wanted address to the client, if the client may have it. The same rules hold for a first REQUEST and for a binding that we
// forgot or that an earlier server made (dhcp-rules.md#lease-4, dhcp-rules.md#lease-6 and dhcp-rules.md#lease-11).
func (t *Table) bind(a Ask) Decision {
	ip := a.Wanted
	r, known := t.records[ip]
	switch {
	case known && r.BoundTo(a.Client):
		return t.keep(r, a)
	case a.Away:
		return silent("store-away")
	case t.unwelcome(a) != "" && !t.isReservedFor(ip, a):
		return silent(t.unwelcome(a))
	case known && !a.Confirmed[ip]:
		return Decision{Do: Read, IP: ip, Why: "another-holder"}
	case t.free(ip, a) && (t.mayEnter(ip, a) || known && r.Client == a.Client):
		return t.take(ip, a)
	case known && r.State == lease.Bound || a.Kind == wire.Selecting:
		return nak(ip, "held-by-another")
	}
	return silent("not-to-be-had")
}

// take binds a free address: it creates the address's first record, or replaces the version that was just read.
func (t *Table) take(ip netip.Addr, a Ask) Decision {
	// A client of an earlier server most likely has the address. It is probed only if a host was heard there: that client, or another.
	adopted := a.Kind != wire.Selecting && t.records[ip].IP != ip && !t.avoided[ip].ahead
	t.keepOffer(ip, a)
	if !adopted && t.mustProbe(ip, a) {
		return t.probe(ip, a)
	}
	d, was := write(t.promiseOf(ip, a), "bound"), t.records[ip]
	d.Reclaims = was.State == lease.Bound && t.ended(was, a)
	return d
}

// keep renews a holder: from memory while the horizon reaches far enough, else after a write that raises it (dhcp-rules.md#lease-3).
func (t *Table) keep(r lease.Record, a Ask) Decision {
	want := t.promiseOf(r.IP, a)
	doubtful := t.doubted[r.IP] || t.mayBeStale(a)
	stands := r.Version != 0 && !doubtful && !r.Horizon.Before(a.Now.Add(t.reach(r.IP, a))) && r.VM == want.VM && r.Hostname == want.Hostname
	if !stands && !a.Away {
		d := write(want, extended)
		d.Begins = !want.Continues(r)
		return d
	}
	told, ok := promised(r, a.Client, a.Now, t.term(r.IP, a))
	if !ok || doubtful {
		return silent("store-away")
	}
	t.drop(a.Client)
	return Decision{Do: Ack, IP: r.IP, Record: r, Lease: told, Why: "bound"}
}

// mayBeStale says whether the client may have released the address through another instance before our watch tells us; that instance then waits
// only for us to drop it. A write says so, and stops a release that is on its way there. A client that renews has released nothing.
func (t *Table) mayBeStale(a Ask) bool {
	return len(t.config.Instances) > 1 && a.Kind != wire.Renewing && !a.Confirmed[a.Wanted]
}

// promised is the check that every lease passes (dhcp-rules.md#lease-3): a durable record that is Bound to this client, and not a second beyond
// its horizon.
func promised(r lease.Record, c lease.Client, now time.Time, term time.Duration) (time.Duration, bool) {
	left := min(term, r.Horizon.Sub(now))
	return left, r.BoundTo(c) && left >= shortest
}

// promiseOf is the record that binds an address to the client. A horizon is never lowered for its holder (dhcp-rules.md#lease-4).
func (t *Table) promiseOf(ip netip.Addr, a Ask) lease.Record {
	was := t.records[ip]
	owner, term := t.machines.Owner(a.Client.MAC), t.term(ip, a)
	r := lease.Record{IP: ip, Client: a.Client, State: lease.Bound, VM: owner.VM, Hostname: t.hostname(ip, owner, a), Owner: t.config.Owner, Version: was.Version}
	if a.ClientID != nil {
		r.ClientID = lease.Hex(a.ClientID)
	}
	r.Horizon, r.Expires = a.Now.Add(2*t.config.LeaseTime), a.Now.Add(term)
	if t.isAnonymous(ip, a) {
		r.Horizon = a.Now.Add(term)
	}
	if was.BoundTo(a.Client) {
		if was.Horizon.After(r.Horizon) {
			r.Horizon = was.Horizon
		}
		if !owner.Known() { // a machine that is not seen now may just be stopped
			r.VM = was.VM
			if r.Hostname == "" {
				r.Hostname = was.Hostname
			}
		}
	}
	if r.Since = lease.SecondsOf(a.Now); r.Continues(was) {
		r.Since = was.Since
	}
	return r
}

func write(r lease.Record, why string) Decision {
	if r.Version == 0 {
		return Decision{Do: Create, IP: r.IP, Record: r, Why: why}
	}
	return Decision{Do: Update, IP: r.IP, Record: r, Why: why}
}
