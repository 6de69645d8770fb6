package cmd

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cldmnky/oooi/internal/leasecli"
	"github.com/cldmnky/oooi/internal/moving/leasefile"
)

func newLeasesImportCommand() *cobra.Command {
	var kind string
	var dryRun bool
	cmd := &cobra.Command{
		Use: "import FILE … --from KIND", Short: "Take over the leases of another DHCP server",
		Long: "Reads lease files of dnsmasq, ISC dhcpd (isc-dhcpd) or Kea's memfile (kea), or what `oooi leases export` printed (oooi),\n" +
			"and makes each lease that still stands one of the DHCPServer, until the time that its client was told. Stop the other\n" +
			"server first. What cannot be taken over is reported on standard error, with file and line. You can run it again.\n\n" +
			"Several files are one: what the last of them says of an address counts. Kea moves what it has written to FILE.completed,\n" +
			"or FILE.2 and FILE.1: of these, those that lie beside FILE are read before it.\n\n" +
			"Exit code: 0 if every lease that stands was taken over, 1 if not, 2 if flags or files cannot be read.",
		Example: "  oooi leases import /var/lib/misc/dnsmasq.leases --from dnsmasq -n clusters --server c1-dhcp",
	}
	f := bindLeases(cmd)
	cmd.Flags().StringVar(&kind, "from", "", "what wrote the files: "+strings.Join(leasefile.Names(), ", "))
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "report, and write nothing")
	_ = cmd.MarkFlagRequired("from")
	cmd.Args = func(cmd *cobra.Command, _ []string) error { return asUnusable(cmd.ValidateRequiredFlags()) }
	cmd.RunE = func(cmd *cobra.Command, files []string) error {
		switch _, known := leasefile.Kinds[kind]; {
		case !known:
			return asUnusable(fmt.Errorf("--from %s: write %s", kind, strings.Join(leasefile.Names(), ", ")))
		case len(files) == 0:
			return asUnusable(fmt.Errorf("give a lease file: %s", cmd.UseLine()))
		}
		pools, _, err := f.pools(cmd)
		if err != nil {
			return asUnusable(err)
		}
		if len(pools) > 1 {
			return asUnusable(fmt.Errorf("the namespace has DHCPServers %s and %s: say which with --server", pools[0].Server, pools[1].Server))
		}
		read, err := leasecli.ReadFiles(files, kind, func(what string) { fmt.Fprintln(cmd.ErrOrStderr(), what) })
		if err != nil {
			return asUnusable(err)
		}
		return importLeases(cmd, pools[0], read, f.apiServer.NowOr(time.Now()), dryRun)
	}
	return cmd
}

func importLeases(cmd *cobra.Command, p leasecli.Pool, read []leasecli.File, now time.Time, dryRun bool) error {
	open, verb := p.Open, "taken over"
	if dryRun {
		open, verb = p.Trial(cmd.Context()), "would be taken over"
	}
	store, done, err := open()
	if err != nil {
		return err
	}
	i := leasecli.Importing{Store: store, Config: p.Config, Instances: p.Instances, Now: now}
	var count leasecli.Count
	for _, in := range read {
		told := func(line int, what string) { fmt.Fprintf(cmd.ErrOrStderr(), "%s:%d: %s\n", in.Name, line, what) }
		for _, p := range in.Problems {
			count.Refused++
			told(p.Line, p.Says)
		}
		if err := i.All(cmd.Context(), in.Entries, &count, told); err != nil {
			return errors.Join(fmt.Errorf("%s:%w", in.Name, err), done())
		}
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%d leases %s, %d are there already, %d have ended\n", count.Leased, verb, count.Already, count.Ended)
	if err := done(); err != nil || count.Refused == 0 {
		return err
	}
	return fmt.Errorf("%d lines were not taken over; see above", count.Refused)
}
