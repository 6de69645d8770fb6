// Package leasecli is what `oooi leases` does with the leases of a DHCPServer, or of a lease file: list, show, release, export and import them.
package leasecli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/leasekube"
)

// Lease is a lease of a DHCPServer; Server is empty in a lease file.
type Lease struct {
	Server string
	lease.Record
	// Past leases of the address, the last one last.
	Past []lease.Past
}

// sortLeases sorts leases by server and address.
func sortLeases(leases []Lease) {
	slices.SortFunc(leases, func(a, b Lease) int { return cmp.Or(strings.Compare(a.Server, b.Server), a.IP.Compare(b.IP)) })
}

// Matching are the leases of an address, a hardware address, a client identifier, a host name or a virtual machine.
func Matching(leases []Lease, who string) []Lease {
	return slices.DeleteFunc(slices.Clone(leases), func(l Lease) bool { return !names(who, l.IP, l.Client, l.ClientID, l.Hostname, l.VM) })
}

// names takes a hardware address as switches, Windows and Linux write it, too: 5254.0000.0001, 52-54-00-00-00-01 or 52:54:00:00:00:01.
func names(who string, of netip.Addr, client lease.Client, id, hostname string, vm lease.VM) bool {
	ip, _ := netip.ParseAddr(who)
	all := []string{client.MAC, client.ID, id, hostname, vm.Name, vm.Namespace + "/" + vm.Name}
	hardware, _ := net.ParseMAC(who)
	return of == ip || slices.Contains(all, strings.ToLower(who)) || len(hardware) > 0 && slices.Contains(all, hardware.String())
}

// Table writes leases for people, as of a time.
func Table(to io.Writer, leases []Lease, now time.Time) error {
	if len(leases) == 0 {
		_, err := fmt.Fprintln(to, "no leases")
		return err
	}
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "IP\tCLIENT\tHOSTNAME\tVM\tSTATE\tENDS\tSERVER")
	for _, l := range leases {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", l.IP, l.Client, cmp.Or(l.Hostname, "-"), cmp.Or(l.VM.Name, "-"), l.State, ends(l.Record, now), cmp.Or(l.Server, "-"))
	}
	return table.Flush()
}

// ends is when the client's lease ends, as far as it was told.
func ends(r lease.Record, now time.Time) string {
	switch {
	case r.State != lease.Bound || r.Expires.IsZero():
		return "-"
	case now.Before(r.Expires):
		return "in " + duration.HumanDuration(r.Expires.Sub(now))
	case now.Before(r.Horizon):
		return "within " + duration.HumanDuration(r.Horizon.Sub(now))
	}
	return duration.HumanDuration(now.Sub(r.Horizon)) + " ago"
}

// told is until when a client was told that it has its lease. Renewals below the horizon write nothing (dhcp-rules.md#lease-3).
func told(r lease.Record, now time.Time) string {
	until := "until " + r.Expires.UTC().Format(time.RFC3339)
	if r.State == lease.Bound && now.After(r.Expires) && r.Horizon.After(r.Expires) {
		until += "; if it has renewed since, until " + r.Horizon.UTC().Format(time.RFC3339) + " at most"
	}
	return until
}

// Show writes all that is known of a lease, and when another client may get its address. grace is the server's (dhcp-rules.md#leases).
func Show(to io.Writer, l Lease, grace time.Duration, now time.Time) error {
	c := cardOf(to, Holding{Server: l.Server, IP: l.IP, Past: lease.Past{Client: l.Client, ClientID: l.ClientID, Hostname: l.Hostname, VM: l.VM}})
	c.row("State", string(l.State))
	if !l.Expires.IsZero() {
		c.row("Told to the client", told(l.Record, now))
	}
	c.row("Another client", next(l, grace, now))
	return c.Flush()
}

// card has a name and a value in each row.
type card struct{ *tabwriter.Writer }

// cardOf begins with who has, or had, an address.
func cardOf(to io.Writer, h Holding) card {
	c := card{tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)}
	c.row("Address", h.IP.String())
	c.row("DHCPServer", h.Server)
	c.row("Hardware address", h.Client.MAC)
	c.row("Client identifier", cmp.Or(h.ClientID, h.Client.ID))
	c.row("Host name", h.Hostname)
	if h.VM.Name != "" {
		c.row("Virtual machine", h.VM.Namespace+"/"+h.VM.Name)
	}
	return c
}

func (c card) row(name, value string) {
	if value != "" {
		fmt.Fprintf(c, "%s:\t%s\n", name, value)
	}
}

// next says when another client may get the address (dhcp-rules.md#lease-6).
func next(l Lease, grace time.Duration, now time.Time) string {
	at := l.Horizon.Add(grace)
	after := "after " + at.UTC().Format(time.RFC3339)
	if now.After(at) {
		after = "now"
	}
	switch {
	case l.State == lease.Released && !now.After(at):
		return after + ", or once every instance has dropped the lease; done: " + cmp.Or(strings.Join(texts(l.Dropped), ", "), "none")
	case l.State == lease.Bound && l.VM.Name != "":
		return "when the virtual machine is gone, or " + after + " if it no longer exists then"
	}
	return after
}

func texts(all []netip.Addr) []string {
	out := make([]string, len(all))
	for i, a := range all {
		out[i] = a.String()
	}
	return out
}

// Export writes a line of JSON for each lease: the spec of a DHCPLease, as `kubectl explain olease.spec` describes it.
func Export(to io.Writer, leases []Lease) error {
	encoder := json.NewEncoder(to)
	for _, l := range leases {
		spec := leasekube.SpecOf(l.Record, l.Server)
		spec.History = leasekube.History(l.Past)
		if err := encoder.Encode(spec); err != nil {
			return err
		}
	}
	return nil
}
