package dhcp

import (
	"net/netip"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/pool"
	"github.com/cldmnky/oooi/internal/dhcp/wire"
)

// HappeningType is the reason of an event.
type HappeningType string

// What people are told of.
const (
	LeaseBound    HappeningType = "LeaseBound"
	LeaseReleased HappeningType = "LeaseReleased"
	LeaseDeclined HappeningType = "LeaseDeclined"
	LeaseRestored HappeningType = "LeaseRestored"
	AddressInUse  HappeningType = "AddressInUse"
	DuplicateMAC  HappeningType = "DuplicateMAC"
	ForeignServer HappeningType = "ForeignServer"
	PoolExhausted HappeningType = "PoolExhausted"
	// ReservationWaits for a client that has the address, or for its own to boot.
	ReservationWaits HappeningType = "ReservationWaits"
)

// Happening is something that people are told of.
type Happening struct {
	Type     HappeningType
	IP       netip.Addr
	Client   lease.Client
	VM       lease.VM
	Hostname string
	Reserved pool.Reservation // of ReservationWaits
}

// Warns says whether somebody should act.
func (h Happening) Warns() bool { return h.Type != LeaseBound && h.Type != LeaseReleased }

// String is the sentence of the event.
func (h Happening) String() string {
	switch h.Type {
	case LeaseBound:
		return h.IP.String() + " is bound to " + h.who()
	case LeaseReleased:
		return h.IP.String() + " was released by " + h.who()
	case LeaseDeclined:
		return h.who() + " found " + h.IP.String() + " in use by another host and declined it; find that host, or exclude the address"
	case LeaseRestored:
		return "the lease of " + h.IP.String() + " was deleted while it was promised to " + h.who() + ", and is written again"
	case AddressInUse:
		return "a host that has no lease answers at " + h.IP.String() + ", which is not offered for now: give that host a lease, or exclude the address"
	case DuplicateMAC:
		return "two running virtual machines have the hardware address " + h.Client.String() + "; give one of them another"
	case ForeignServer:
		return "another DHCP server answers on this VLAN: " + h.IP.String() + "; switch it off, or clients will get addresses from either"
	case ReservationWaits:
		if h.Reserved.IP != h.IP {
			return h.who() + " keeps " + h.IP.String() + " until it boots again; then it gets " + h.Reserved.IP.String() + ", which is reserved for it"
		}
		return h.IP.String() + " is reserved for " + h.Reserved.Client.String() + ", and " + h.who() + " has it; restart that machine, and it gets another"
	case PoolExhausted: // of many clients one event: it names none
		return "a client got no address, because none is left; " + wider
	}
	return string(h.Type)
}

// wider is how a pool gets room.
const wider = "widen networkConfig.cidr, or dhcp.rangeStart to rangeEnd, or exclude fewer addresses"

func (h Happening) who() string {
	if h.VM.Name != "" {
		return h.VM.Name + " (" + h.Client.String() + ")"
	}
	return h.Client.String()
}

// tell says what a write that succeeded means to people.
func (s *Server) tell(d pool.Decision, r lease.Record) {
	h := Happening{IP: r.IP, Client: r.Client, VM: r.VM, Hostname: r.Hostname}
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

// tellUnserved says which reservations have to wait, and for whom.
func (s *Server) tellUnserved() {
	now, steady := s.Clock.Now()
	for _, u := range s.Table.Unserved(now, steady) {
		s.Happened(Happening{Type: ReservationWaits, IP: u.Bound.IP, Client: u.Bound.Client, VM: u.Bound.VM, Hostname: u.Bound.Hostname, Reserved: u.Reservation})
	}
}

// tellRefused says why a client that may come to the VLAN gets nothing.
func (s *Server) tellRefused(m wire.Message, d pool.Decision) {
	switch d.Why {
	case "duplicate-mac":
		s.Happened(Happening{Type: DuplicateMAC, Client: m.Client})
	case "pool-exhausted":
		s.Happened(Happening{Type: PoolExhausted, Client: m.Client})
	}
}
