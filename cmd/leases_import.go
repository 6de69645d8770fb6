package cmd

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
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
		if kind == "kea" {
			files = besideKeas(files, func(what string) { fmt.Fprintln(cmd.ErrOrStderr(), what) })
		}
		read, err := readLeases(files, kind)
		if err != nil {
			return asUnusable(err)
		}
		return importLeases(cmd, pools[0], read, dryRun)
	}
	return cmd
}

// leasesIn is what a file says.
type leasesIn struct {
	file     string
	entries  []leasefile.Entry
	problems []leasefile.Problem
}

// readLeases reads all files. Of each address only the last file that has it says something.
func readLeases(files []string, kind string) (all []leasesIn, err error) {
	latest := map[netip.Addr]int{}
	for n, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		in := leasesIn{file: file}
		in.entries, in.problems = leasefile.Kinds[kind](string(content))
		for _, e := range in.entries {
			latest[e.IP] = n
		}
		all = append(all, in)
	}
	for n := range all {
		all[n].entries = slices.DeleteFunc(all[n].entries, func(e leasefile.Entry) bool { return latest[e.IP] != n })
	}
	return all, nil
}

// besideKeas adds the files that Kea reads before each file, unless they are given: FILE.completed, or else FILE.2 and FILE.1 (Kea 2.6,
// src/lib/dhcpsrv/memfile_lease_mgr.cc, loadLeasesFromFiles). FILE itself has no more than the changes since they were written.
func besideKeas(files []string, told func(string)) (all []string) {
	there := func(file string) bool {
		_, err := os.Stat(file)
		return err == nil && !slices.Contains(files, file)
	}
	for _, file := range files {
		var before []string
		if completed := file + ".completed"; there(completed) {
			before = []string{completed}
		} else {
			before = slices.DeleteFunc([]string{file + ".2", file + ".1"}, func(f string) bool { return !there(f) })
		}
		if len(before) > 0 {
			told(fmt.Sprintf("%s read first: %s has only what changed since", strings.Join(before, " and "), file))
		}
		all = append(append(all, before...), file)
	}
	return all
}

func importLeases(cmd *cobra.Command, p leasecli.Pool, read []leasesIn, dryRun bool) error {
	open, verb := p.Open, "taken over"
	if dryRun {
		open, verb = p.Trial(cmd.Context()), "would be taken over"
	}
	store, done, err := open()
	if err != nil {
		return err
	}
	i := leasecli.Importing{Store: store, Config: p.Config, Instances: p.Instances, Now: time.Now()}
	var count leasecli.Count
	for _, in := range read {
		told := func(line int, what string) { fmt.Fprintf(cmd.ErrOrStderr(), "%s:%d: %s\n", in.file, line, what) }
		for _, p := range in.problems {
			count.Refused++
			told(p.Line, p.Says)
		}
		if err := i.All(cmd.Context(), in.entries, &count, told); err != nil {
			return errors.Join(fmt.Errorf("%s:%w", in.file, err), done())
		}
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%d leases %s, %d are there already, %d have ended\n", count.Leased, verb, count.Already, count.Ended)
	if err := done(); err != nil || count.Refused == 0 {
		return err
	}
	return fmt.Errorf("%d lines were not taken over; see above", count.Refused)
}
