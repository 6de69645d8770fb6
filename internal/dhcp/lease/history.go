package lease

import (
	"slices"
	"time"
)

// Kept is how many ended bindings of an address a store keeps: with more, a pool that changes hands all day would fill the store.
const Kept = 16

// End is how a binding ended.
type End string

const (
	// EndReleased says that the client gave the address back or got another one, its virtual machine is gone, or an admin released the lease.
	EndReleased End = "Released"
	// EndDeclined says that the client found the address in use.
	EndDeclined End = "Declined"
	// EndExpired says that its time was over, before another client got the address or somebody released it.
	EndExpired End = "Expired"
	// EndReplaced says that its virtual machine started with another hardware address, or the hardware address is another machine's.
	EndReplaced End = "Replaced"
)

// Past is a binding that has ended.
type Past struct {
	Client   Client    `json:"client"`
	ClientID string    `json:"clientID,omitempty"`
	Hostname string    `json:"hostname,omitempty"`
	VM       VM        `json:"vm,omitzero"`
	From     time.Time `json:"from,omitzero"` // zero: a release that did not note it made the binding
	Until    time.Time `json:"until"`
	End      End       `json:"end"`
}

// Continues says whether a record is the binding that was goes on as, under a horizon or with names that may differ.
func (r Record) Continues(was Record) bool {
	return was.State == Bound && r.BoundTo(was.Client) && (was.VM.Name == "" || r.VM.Name == was.VM.Name)
}

// Succession returns the ended bindings of an address whose record goes from was to now, the last one last. A store calls it for each Update, so
// that a binding is on record by the write that ends it, or has not ended (dhcp-rules.md#lease-15).
func Succession(past []Past, was, now Record) []Past {
	if was.State == Bound && !now.Continues(was) {
		past = append(slices.Clip(past), was.ended(now))
	}
	return past[max(0, len(past)-Kept):]
}

func (r Record) ended(by Record) Past {
	p := Past{Client: r.Client, ClientID: r.ClientID, Hostname: r.Hostname, VM: r.VM, From: r.Since.Time(), Until: by.Since.Time()}
	switch {
	case by.State == Declined:
		p.End = EndDeclined
	case by.State == Released && (r.VM.UID != "" || by.Since == 0 || !r.Horizon.Before(by.Since.Time())):
		p.End = EndReleased // in its time, which a running machine's lease has always
	case by.Since == 0: // not noted: a record without an end would be refused, and with it the new binding
		p.End, p.Until = EndReplaced, r.Horizon
	case r.Horizon.Before(by.Since.Time()): // of a renewal below the horizon nothing is written, so it is the last moment that the client may have had it
		p.End, p.Until = EndExpired, r.Horizon
	default:
		p.End = EndReplaced
	}
	return p
}
