package dhcp

import (
	"net/netip"
	"slices"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/pool"
	"github.com/cldmnky/oooi/internal/dhcp/wire"
)

// EventType is the reason of an event.
type EventType string

// Events for admins.
const (
	LeaseBound    EventType = "LeaseBound"
	LeaseReleased EventType = "LeaseReleased"
	LeaseDeclined EventType = "LeaseDeclined"
	LeaseRestored EventType = "LeaseRestored"
	AddressInUse  EventType = "AddressInUse"
	DuplicateMAC  EventType = "DuplicateMAC"
	ForeignServer EventType = "ForeignServer"
	PoolExhausted EventType = "PoolExhausted"
	// GuestShareUsed: those that are no virtual machines have their half of the pool, and there is another.
	GuestShareUsed EventType = "GuestShareUsed"
	// ReservationPending: a reservation waits for another client that has its address, or for its own client to boot.
	ReservationPending EventType = "ReservationPending"
)

// Event is what an admin is told.
type Event struct {
	Type     EventType
	IP       netip.Addr
	Client   lease.Client
	VM       lease.VM
	Hostname string
	Reserved pool.Reservation // of ReservationPending
}

// Warns says whether an admin should act.
func (h Event) Warns() bool { return h.Type != LeaseBound && h.Type != LeaseReleased }

// String is the message of the event.
func (h Event) String() string {
	switch h.Type {
	case LeaseBound:
		return h.IP.String() + " is bound to " + h.who()
	case LeaseReleased:
		return h.IP.String() + " was released by " + h.who()
	case LeaseDeclined:
		return h.who() + " found " + h.IP.String() + " in use by another host and declined it; find that host, or exclude the address"
	case LeaseRestored:
		return "the lease of " + h.IP.String() + " was deleted, or set back with etcd, while it was promised to " + h.who() + ", and is written again"
	case AddressInUse:
		return "a host that has no lease answers at " + h.IP.String() + ", which is not offered for now: give that host a lease, or exclude the address"
	case DuplicateMAC:
		return "two running virtual machines have the hardware address " + h.Client.String() + "; give one of them another"
	case ForeignServer:
		return "another DHCP server answers on this VLAN: " + h.IP.String() + "; switch it off, or clients will get addresses from either"
	case ReservationPending:
		if h.Reserved.IP != h.IP {
			return h.who() + " keeps " + h.IP.String() + " until it boots again; then it gets " + h.Reserved.IP.String() + ", which is reserved for it"
		}
		return h.IP.String() + " is reserved for " + h.Reserved.Client.String() + ", and " + h.who() + " has it; restart that machine, and it gets another"
	case PoolExhausted: // names no client, so that many clients cause one event
		return "a client got no address, because none is left; " + wider
	case GuestShareUsed: // likewise
		return "a client that is no virtual machine here got no address: all such clients together have half of the pool; reserve an address for it (dhcp.reservations), or " + wider
	}
	return string(h.Type)
}

// wider says how to enlarge a pool.
const wider = "widen networkConfig.cidr, or dhcp.rangeStart to rangeEnd, or exclude fewer addresses"

func (h Event) who() string {
	if h.VM.Name != "" {
		return h.VM.Name + " (" + h.Client.String() + ")"
	}
	return h.Client.String()
}

// record logs each write that begins or ends a lease, and leaves none out: with a collector of logs it is the history that no limit shortens
// (docs/adr/0025-who-had-an-address.md).
func (s *Server) record(w written) {
	r := w.stored
	if w.Begins || slices.Contains([]string{"bound", "released", "declined", "restored"}, w.Why) {
		s.Log.Info("lease", "state", r.State, "ip", r.IP, "client", r.Client, "clientID", r.ClientID, "hostname", r.Hostname, "vm", r.VM.Name, "since", r.Since.Time(), "until", r.Horizon, "why", w.Why)
	}
}

// tell reports a successful write as an event.
func (s *Server) tell(d pool.Decision, r lease.Record) {
	h := Event{IP: r.IP, Client: r.Client, VM: r.VM, Hostname: r.Hostname}
	switch d.Why {
	case "bound":
		h.Type = LeaseBound
	case "released":
		h.Type = LeaseReleased
	case "declined":
		h.Type = LeaseDeclined
	case "restored":
		h.Type = LeaseRestored
	default:
		return
	}
	s.Happened(h)
}

// tellUnserved reports which reservations have to wait, and for which client.
func (s *Server) tellUnserved() {
	now, steady := s.Clock.Now()
	for _, u := range s.Table.Unserved(now, steady) {
		s.Happened(Event{Type: ReservationPending, IP: u.Bound.IP, Client: u.Bound.Client, VM: u.Bound.VM, Hostname: u.Bound.Hostname, Reserved: u.Reservation})
	}
}

// tellRefused reports why a client that is allowed on the VLAN gets no address.
func (s *Server) tellRefused(m wire.Message, d pool.Decision) {
	switch d.Why {
	case "duplicate-mac":
		s.Happened(Event{Type: DuplicateMAC, Client: m.Client})
	case "share-used-up":
		s.Happened(Event{Type: GuestShareUsed, Client: m.Client})
	case "pool-exhausted":
		s.Happened(Event{Type: PoolExhausted, Client: m.Client})
	}
}
