package leasecli

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/pool"
	"github.com/cldmnky/oooi/internal/moving/leasefile"
)

// Importing is where leases go.
type Importing struct {
	Store  lease.Store
	Config pool.Config
	// Instances that have to drop a released lease before another client gets its address; none for a lease file.
	Instances []netip.Addr
	Now       time.Time
}

// Count is what became of entries.
type Count struct{ Leased, Already, Ended, Refused int }

// All makes entries leases. told hears which lines were refused, and what to do about each. An error names the line, and means that the store does
// not work, so that the next entry would fail as well.
func (i Importing) All(ctx context.Context, entries []leasefile.Entry, count *Count, told func(line int, what string)) error {
	for _, e := range entries {
		if e.Over != "" || !e.VM && !e.Ends.IsZero() && !i.Now.Before(e.Ends) {
			count.Ended++
			continue
		}
		refused, err := i.take(ctx, e, count)
		if err != nil {
			return fmt.Errorf("%d: %s: %w", e.Line, e.IP, err)
		}
		if refused != "" {
			count.Refused++
			told(e.Line, fmt.Sprintf("%s of %s: %s", e.IP, e.Client, refused))
		}
	}
	return nil
}

func (i Importing) take(ctx context.Context, e leasefile.Entry, count *Count) (refused string, err error) {
	if why := i.Config.Closed(e.IP, e.Client); why != "" {
		return why + ": the client gets another address when it asks oooi", nil
	}
	if e.Ends.IsZero() {
		return "its lease never ends, so that the client will not ask oooi: reserve it, " + reservation(e), nil
	}
	record := lease.Record{IP: e.IP, Client: e.Client, ClientID: e.ClientID, Hostname: e.Hostname, State: lease.Bound, Horizon: e.Ends, Expires: e.Ends, Since: lease.SecondsOf(i.Now)}
	if !e.Since.IsZero() && e.Since.Before(i.Now) {
		record.Since = lease.SecondsOf(e.Since)
	}
	if !i.Now.Before(e.Ends) { // of a machine, which has it until it is gone (dhcp-rules.md#lease-6): it has time to ask
		record.Horizon = i.Now.Add(2 * i.Config.LeaseTime)
	}
	if _, err := i.Store.Create(ctx, record); errors.Is(err, lease.ErrExists) {
		return i.beside(ctx, e, record, count)
	} else if err != nil {
		return "", err
	}
	count.Leased++
	return "", nil
}

// beside judges an entry whose address has a record already. That of the same client never ends earlier than that client was told.
func (i Importing) beside(ctx context.Context, e leasefile.Entry, record lease.Record, count *Count) (refused string, err error) {
	has, err := i.Store.Get(ctx, e.IP)
	switch {
	case err != nil:
		return "", err
	case has.BoundTo(e.Client) && !e.Ends.After(has.Horizon):
		count.Already++
		return "", nil
	case has.BoundTo(e.Client):
		record = has
		record.Horizon, record.Expires = e.Ends, e.Ends
	case has.State == lease.Released && (has.Client == e.Client || i.dropped(has)):
		record.Version, record.Owner = has.Version, has.Owner
	default:
		return fmt.Sprintf("oooi has a lease of it already, %s to %s: release that one if it is wrong (oooi leases release %s)", has.State, has.Client, e.IP), nil
	}
	switch _, err := i.Store.Update(ctx, record); {
	case errors.Is(err, lease.ErrConflict):
		return "oooi's lease of it has just changed: import the file again", nil
	case err != nil:
		return "", err
	}
	count.Leased++
	return "", nil
}

// dropped says whether every instance has forgotten a released lease (dhcp-rules.md#lease-7).
func (i Importing) dropped(r lease.Record) bool {
	return !slices.ContainsFunc(i.Instances, func(at netip.Addr) bool { return !slices.Contains(r.Dropped, at) })
}

// reservation is the entry of an Infra's list of reservations.
func reservation(e leasefile.Entry) string {
	key := "mac: " + e.Client.MAC
	if e.Client.MAC == "" {
		key = "clientID: " + e.Client.ID
	}
	return fmt.Sprintf("infraComponents.dhcp.reservations: [{ip: %s, %s}]", e.IP, key)
}
