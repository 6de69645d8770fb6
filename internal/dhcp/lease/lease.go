// Package lease is the record of one address promised to one client, and the store that makes promises durable.
package lease

import (
	"context"
	"encoding/hex"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unique"
)

// State is where a lease stands.
type State string

// The states of a lease (dhcp-rules.md#states).
const (
	Bound    State = "Bound"
	Declined State = "Declined"
	Released State = "Released"
)

// Client is the key of a lease: the hardware address, always, and the client-id only where there is none. RFC 2131 §4.2
// prefers the client-id; we depart from it because RHCOS asks with two of them (initrd, real root) and cloned images
// share one.
type Client struct {
	MAC string `json:"mac,omitempty"` // lower case with colons
	ID  string `json:"id,omitempty"`  // option 61 in hex with colons
}

const ethernet = 1

// ClientOf finds the key in a message. Hardware that is not Ethernet is keyed by its type and address in the form that
// RFC 2132 §9.14 gives a client-id.
func ClientOf(hardwareType byte, hardware net.HardwareAddr, clientID []byte) Client {
	switch {
	case hardwareType == ethernet && len(hardware) == 6 && !allZero(hardware):
		return Client{MAC: hardware.String()}
	case len(hardware) > 0 && !allZero(hardware):
		return Client{ID: Hex(append([]byte{hardwareType}, hardware...))}
	case len(clientID) > 0:
		return Client{ID: Hex(clientID)}
	}
	return Client{}
}

// Known says whether the message had any key at all.
func (c Client) Known() bool { return c != Client{} }

// String is for logs.
func (c Client) String() string {
	if c.MAC != "" {
		return c.MAC
	}
	return "id " + c.ID
}

// Hex writes octets in hex with colons.
func Hex(octets []byte) string {
	pairs := make([]string, len(octets))
	for i, o := range octets {
		pairs[i] = hex.EncodeToString([]byte{o})
	}
	return strings.Join(pairs, ":")
}

func allZero(octets []byte) bool {
	return !slices.ContainsFunc(octets, func(o byte) bool { return o != 0 })
}

// VM is the virtual machine that owns a hardware address.
type VM struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	UID       string `json:"uid,omitempty"`
}

// Record is one address and to whom it is promised.
type Record struct {
	IP       netip.Addr   `json:"ip"`
	Client   Client       `json:"client"`
	ClientID string       `json:"clientID,omitempty"` // option 61 as last seen, for admins
	Hostname string       `json:"hostname,omitempty"`
	VM       VM           `json:"vm,omitzero"`
	State    State        `json:"state"`
	Horizon  time.Time    `json:"horizon"` // the only fence: no other client gets the address before it plus the grace
	Expires  time.Time    `json:"expires"` // as last told to the client, for admins
	Dropped  []netip.Addr `json:"dropped,omitempty"`
	Since    Seconds      `json:"since,omitempty"` // when the client got the address, gave it back or declined it; 0: not noted
	Owner    string       `json:"owner,omitempty"` // UID of the Infra that the record is labelled with
	// Version is the store's: higher is newer, over all records. 0 was never stored.
	Version uint64 `json:"version"`
}

// Seconds is a time since 1970: with a time.Time for each, 65,536 records would take more memory than the pod has.
type Seconds int64

// SecondsOf is a time without what is less than a second.
func SecondsOf(t time.Time) Seconds { return Seconds(t.Unix()) }

// Time returns the time; the zero one for 0.
func (s Seconds) Time() time.Time {
	if s == 0 {
		return time.Time{}
	}
	return time.Unix(int64(s), 0).UTC()
}

// Compact returns the record without second copies of what other records have, too: a pool has up to 65,536.
func (r Record) Compact() Record {
	r.State, r.Owner, r.VM.Namespace = unique.Make(r.State).Value(), unique.Make(r.Owner).Value(), unique.Make(r.VM.Namespace).Value()
	if r.Hostname == r.VM.Name {
		r.Hostname = r.VM.Name
	}
	return r
}

// BoundTo says whether the record is a promise to this client.
func (r Record) BoundTo(c Client) bool { return r.State == Bound && r.Client == c }

// Errors of a store that has not done what was asked. After any other error the outcome is unknown until Get answers.
var (
	ErrExists   = errors.New("the address has a record already")
	ErrConflict = errors.New("the record has changed")
	ErrNotFound = errors.New("the address has no record")
)

// Store makes records durable. What it returned without an error survives a crash.
type Store interface {
	// Create stores the first record of an address: this is the allocation lock. ErrExists if there is one.
	Create(context.Context, Record) (Record, error)
	// Update replaces the version that the record carries. ErrConflict if that is no longer the newest.
	Update(context.Context, Record) (Record, error)
	// Get reads the newest record, never a cached one. ErrNotFound if there is none.
	Get(context.Context, netip.Addr) (Record, error)
	// List gives all records to take, never from a cache, and returns the version of the list: of what was written before, none is newer.
	List(ctx context.Context, take func(Record)) (version uint64, err error)
}
