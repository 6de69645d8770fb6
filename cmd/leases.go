package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/internal/dhcp/clock"
	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/leasecli"
)

func newLeasesCommand() *cobra.Command {
	cmd := ofSubcommands(&cobra.Command{Use: "leases", Short: "List DHCP leases, say who had an address, and release, export or import them",
		Long: "Leases of the DHCPServers of a namespace, or with --lease-file and --config-file those of an `oooi dhcp` without a cluster."})
	cmd.AddCommand(newLeasesListCommand(), newLeasesShowCommand(), newLeasesWhoCommand(), newLeasesHistoryCommand(), newLeasesReleaseCommand(), newLeasesExportCommand(), newLeasesImportCommand())
	return cmd
}

// leaseFlags say whose leases.
type leaseFlags struct {
	cluster                       *clusterFlags
	apiServer                     *clock.Clock // knows the time once pools has asked a cluster
	server, leaseFile, configFile string
}

func bindLeases(cmd *cobra.Command) *leaseFlags {
	f := &leaseFlags{cluster: bindCluster(cmd), apiServer: clock.New()}
	cmd.Flags().StringVar(&f.server, "server", "", "name of the DHCPServer (default: all of the namespace)")
	_ = cmd.RegisterFlagCompletionFunc("server", f.cluster.completes(serverKind))
	cmd.Flags().StringVar(&f.leaseFile, "lease-file", "", "lease file of an oooi dhcp without a cluster")
	cmd.Flags().StringVar(&f.configFile, "config-file", "", "configuration of that oooi dhcp")
	return f
}

// pools finds the leases' pools; api is nil for a lease file.
func (f *leaseFlags) pools(cmd *cobra.Command) (pools []leasecli.Pool, api client.Client, err error) {
	switch {
	case (f.leaseFile == "") != (f.configFile == ""):
		return nil, nil, errors.New("give --lease-file and --config-file together, as to oooi dhcp")
	case f.leaseFile != "" && f.server != "":
		return nil, nil, errors.New("--server is a DHCPServer of a cluster, and --lease-file needs none: give one of them")
	}
	if f.leaseFile != "" {
		damaged := func(octets int) {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: %d octets are damaged, or are just being written; all others were read\n", f.leaseFile, octets)
		}
		p, err := leasecli.InFile(f.leaseFile, f.configFile, damaged)
		return []leasecli.Pool{p}, nil, err
	}
	namespace, err := f.cluster.namespace()
	if err != nil {
		return nil, nil, err
	}
	if api, err = f.cluster.clientListening(cmd.ErrOrStderr(), f.apiServer.Listen); err != nil {
		return nil, nil, err
	}
	pools, err = leasecli.InCluster(cmd.Context(), api, namespace, f.server)
	return pools, api, err
}

func newLeasesListCommand() *cobra.Command {
	return writesLeases(&cobra.Command{
		Use: "list", Short: "List leases, sorted by address",
		Long:    "ENDS is when the client's lease ends if it does not renew, as it was last told; \"within\" a time, where it may have renewed since. For programs: oooi leases export.",
		Example: "  oooi leases list -n clusters",
	}, func(to io.Writer, leases []leasecli.Lease) error { return leasecli.Table(to, leases, time.Now()) })
}

// writesLeases makes a command write all leases that its flags choose.
func writesLeases(cmd *cobra.Command, write func(io.Writer, []leasecli.Lease) error) *cobra.Command {
	f := bindLeases(cmd)
	cmd.Args = noArguments
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		leases, err := f.all(cmd)
		if err != nil {
			return err
		}
		return write(cmd.OutOrStdout(), leases)
	}
	return cmd
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return asUnusable(fmt.Errorf("%q is not expected: %s", args[0], cmd.UseLine()))
	}
	return nil
}

func newLeasesShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show IP|MAC|NAME", Short: "Show the leases of an address, a hardware address, a host name or a virtual machine",
		Long:    "Shows what is known of each lease, and when another client may get its address.\n\nExit code: 0 if there is a lease, 1 if there is none, 2 if leases cannot be read.",
		Example: "  oooi leases show 192.168.100.20 -n clusters",
		Args:    oneName,
	}
	f := bindLeases(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		pools, _, err := f.pools(cmd)
		if err != nil {
			return asUnusable(err)
		}
		found := 0
		for _, p := range pools {
			leases, err := leasecli.Leases(cmd.Context(), []leasecli.Pool{p})
			if err != nil {
				return asUnusable(err)
			}
			for _, l := range leasecli.Matching(leases, args[0]) {
				if found++; found > 1 {
					fmt.Fprintln(cmd.OutOrStdout())
				}
				if err := leasecli.Show(cmd.OutOrStdout(), l, p.Config.Grace(), time.Now()); err != nil {
					return err
				}
			}
		}
		if found == 0 {
			return fmt.Errorf("nobody has a lease of, or as, %s", args[0])
		}
		return nil
	}
	return cmd
}

func newLeasesExportCommand() *cobra.Command {
	return writesLeases(&cobra.Command{
		Use: "export", Short: "Print leases for programs, and for `oooi leases import`",
		Long:    "Prints a line of JSON for each lease: the spec of a DHCPLease (kubectl explain olease.spec).",
		Example: "  oooi leases export -n clusters > leases.jsonl",
	}, leasecli.Export)
}

func newLeasesReleaseCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "release IP", Short: "Free the address of a machine that is gone",
		Long: "Marks the lease as released, as its client could have done, and waits until every DHCP instance has dropped it. A\n" +
			"lease of a virtual machine that exists is refused. A lease that is deleted instead is written again by the daemons.\n" +
			"Of a lease file the daemon has to be stopped first.\n\n" +
			"Exit code: 0 if the address is free, 1 if not (yet), 2 if flags are invalid or leases cannot be read.",
		Example: "  oooi leases release 192.168.100.20 -n clusters",
		Args:    oneName,
	}
	f := bindLeases(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ip, err := netip.ParseAddr(args[0])
		if err != nil {
			return asUnusable(fmt.Errorf("%q is no IP address; find it with oooi leases show %s", args[0], args[0]))
		}
		pools, api, err := f.pools(cmd)
		if err != nil {
			return asUnusable(err)
		}
		return f.release(cmd, pools, api, ip)
	}
	return cmd
}

func (f *leaseFlags) release(cmd *cobra.Command, pools []leasecli.Pool, api client.Client, ip netip.Addr) error {
	var of []leasecli.Pool
	for _, p := range pools {
		leases, err := leasecli.Leases(cmd.Context(), []leasecli.Pool{p})
		if err != nil {
			return asUnusable(err)
		}
		if len(leasecli.Matching(leases, ip.String())) > 0 {
			of = append(of, p)
		}
	}
	switch {
	case len(of) == 0:
		return fmt.Errorf("%s has no lease: there is nothing to release", ip)
	case len(of) > 1:
		return asUnusable(fmt.Errorf("both DHCPServers %s and %s lease %s: say which with --server", of[0].Server, of[1].Server, ip))
	}
	store, done, err := of[0].Open()
	if err != nil {
		return err
	}
	r := leasecli.Releasing{Store: store, IP: ip, Now: f.apiServer.NowOr(time.Now()), Instances: of[0].Instances}
	r.Exists = func(ctx context.Context, vm lease.VM) (bool, error) { return machineExists(ctx, api, vm) }
	return errors.Join(r.Release(cmd.Context(), func(what string) { fmt.Fprintln(cmd.OutOrStdout(), what) }), done())
}

// machineExists asks for a virtual machine's metadata. One of the same name that was made anew takes the lease over (dhcp-rules.md#lease-7).
func machineExists(ctx context.Context, api client.Client, vm lease.VM) (bool, error) {
	if api == nil {
		return false, errors.New("a lease file has no cluster to ask")
	}
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: "kubevirt.io", Version: "v1", Kind: "VirtualMachine"})
	err := api.Get(ctx, types.NamespacedName{Namespace: vm.Namespace, Name: vm.Name}, object)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}
