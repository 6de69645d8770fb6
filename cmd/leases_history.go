package cmd

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"github.com/cldmnky/oooi/internal/leasecli"
)

func newLeasesWhoCommand() *cobra.Command {
	var at string
	cmd := &cobra.Command{
		Use: "who IP --at TIME", Short: "Say who had an address at a time",
		Long: "Says whose lease an address was at a time, and since when and until when, as far as it is on record: of each address the\n" +
			"lease that stands and the last 16 that have ended.\n\n" +
			"Exit code: 0 if a client had the address, 1 if none had, or it is not on record, 2 if flags are invalid or leases cannot\nbe read.",
		Example: "  oooi leases who 192.168.100.20 --at 2026-11-24T14:03:00+01:00 -n clusters",
		Args:    oneName,
	}
	f := bindLeases(cmd)
	cmd.Flags().StringVar(&at, "at", "", "the time, with its zone, like 2026-11-24T14:03:00+01:00")
	_ = cmd.MarkFlagRequired("at")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ip, err := netip.ParseAddr(args[0])
		if err != nil {
			return asUnusable(fmt.Errorf("%q is no IP address; for a machine: oooi leases history %s", args[0], args[0]))
		}
		when, err := time.Parse(time.RFC3339, at)
		switch {
		case err != nil:
			return asUnusable(fmt.Errorf("--at %q: write the time with its zone, like 2026-11-24T14:03:00+01:00", at))
		case when.After(time.Now()):
			return asUnusable(fmt.Errorf("--at %s is not over yet", at))
		}
		return f.who(cmd, ip, when)
	}
	return cmd
}

func (f *leaseFlags) who(cmd *cobra.Command, ip netip.Addr, at time.Time) error {
	leases, err := f.all(cmd)
	if err != nil {
		return err
	}
	had, why := 0, "no lease of it is on record"
	for _, l := range leasecli.Matching(leases, ip.String()) {
		h, instead := leasecli.At(l, at)
		if instead != "" {
			why = instead
			continue
		}
		if had++; had > 1 {
			fmt.Fprintln(cmd.OutOrStdout())
		}
		if err := h.Tell(cmd.OutOrStdout()); err != nil {
			return err
		}
	}
	if had == 0 {
		return fmt.Errorf("nobody is on record to have had %s at %s: %s", ip, at.Format(time.RFC3339), why)
	}
	return nil
}

func newLeasesHistoryCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "history IP|MAC|NAME", Short: "List the leases of an address, or of a client, that stand or have ended",
		Long: "Lists who had an address, or which addresses a hardware address, a client identifier, a host name or a virtual machine\n" +
			"had, sorted by address and time: of each address the lease that stands and the last 16 that have ended.\n\n" +
			"Exit code: 0 if there was a lease, 1 if none is on record, 2 if leases cannot be read.",
		Example: "  oooi leases history 192.168.100.20 -n clusters",
		Args:    oneName,
	}
	f := bindLeases(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		leases, err := f.all(cmd)
		if err != nil {
			return err
		}
		of := leasecli.Of(leasecli.History(leases), args[0])
		if len(of) == 0 {
			return fmt.Errorf("no lease of, or as, %s is on record", args[0])
		}
		return leasecli.Timeline(cmd.OutOrStdout(), of)
	}
	return cmd
}

// all reads the leases of all pools.
func (f *leaseFlags) all(cmd *cobra.Command) ([]leasecli.Lease, error) {
	pools, _, err := f.pools(cmd)
	if err != nil {
		return nil, asUnusable(err)
	}
	leases, err := leasecli.Leases(cmd.Context(), pools)
	return leases, asUnusable(err)
}
