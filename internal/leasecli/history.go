package leasecli

import (
	"cmp"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
)

// Holding is a lease of an address that stands or has ended.
type Holding struct {
	Server string
	IP     netip.Addr
	lease.Past
	// Stands: it has not ended, and Until is the horizon.
	Stands bool
}

// History are the leases of each address, the last one last.
func History(leases []Lease) (all []Holding) {
	for _, l := range leases {
		for _, p := range l.Past {
			all = append(all, Holding{l.Server, l.IP, p, false})
		}
		if l.State == lease.Bound {
			p := lease.Past{Client: l.Client, ClientID: l.ClientID, Hostname: l.Hostname, VM: l.VM, From: l.Since.Time(), Until: l.Horizon}
			all = append(all, Holding{l.Server, l.IP, p, true})
		}
	}
	return all
}

// Of are the holdings of an address, a hardware address, a client identifier, a host name or a virtual machine.
func Of(all []Holding, who string) []Holding {
	return slices.DeleteFunc(slices.Clone(all), func(h Holding) bool {
		return !names(who, h.IP, h.Client, h.ClientID, h.Hostname, h.VM)
	})
}

// Timeline writes holdings as a table.
func Timeline(to io.Writer, all []Holding) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "IP\tCLIENT\tHOSTNAME\tVM\tFROM\tUNTIL\tENDED\tSERVER")
	for _, h := range all {
		until, ended := stamp(h.Until), string(h.End)
		if h.Stands {
			until, ended = "-", "-"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", h.IP, h.Client, cmp.Or(h.Hostname, "-"), cmp.Or(h.VM.Name, "-"), cmp.Or(stamp(h.From), "?"), until, ended, cmp.Or(h.Server, "-"))
	}
	return table.Flush()
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// At finds who had the address of a lease at a time. Without a holder, why says what is on record instead.
func At(l Lease, at time.Time) (had Holding, why string) {
	all := History([]Lease{l})
	after := slices.IndexFunc(all, func(h Holding) bool { return at.Before(h.Until) })
	if after < 0 && len(all) == 0 {
		return had, "it was never leased"
	}
	if after < 0 {
		return had, lastly(all[len(all)-1])
	}
	next := all[after]
	switch {
	case next.From.IsZero():
		return had, fmt.Sprintf("it is not known since when %s had it: an older release leased it", next.Client)
	case !at.Before(next.From):
		return next, ""
	case after > 0:
		return had, fmt.Sprintf("%s; %s got it at %s", lastly(all[after-1]), next.Client, stamp(next.From))
	case len(l.Past) >= lease.Kept:
		return had, fmt.Sprintf("of an address the last %d leases that have ended are kept, and they begin at %s; earlier ones are in the log of the DHCP pods", lease.Kept, stamp(next.From))
	}
	return had, fmt.Sprintf("its record begins at %s, with a lease of %s", stamp(next.From), next.Client)
}

// lastly says until when a holder had the address.
func lastly(h Holding) string {
	if h.Stands {
		return fmt.Sprintf("the lease of %s was over at %s, and no other client has got it since", h.Client, stamp(h.Until))
	}
	return fmt.Sprintf("%s had it until %s", h.Client, stamp(h.Until))
}

// Tell writes who had an address.
func (h Holding) Tell(to io.Writer) error {
	c := cardOf(to, h)
	c.row("From", stamp(h.From))
	if h.Stands {
		c.row("Until", "it has it still")
	} else {
		c.row("Until", stamp(h.Until))
		c.row("Ended", string(h.End))
	}
	return c.Flush()
}
