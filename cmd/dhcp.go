package cmd

import (
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/dhcp"
	"github.com/cldmnky/oooi/internal/dhcp/clock"
)

func newDHCPCommand() *cobra.Command {
	var o dhcp.Options
	cmd := &cobra.Command{
		Use:   "dhcp",
		Short: "Serve DHCP on one VLAN",
		Long: "Serves one DHCPServer, with its leases as DHCPLease objects.\n" +
			"With --config-file and --lease-file it needs no cluster.",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := o.Check(); err != nil {
				return err
			}
			if o.Log, err = logger(o.LogLevel); err != nil {
				return err
			}
			daemon.LimitMemory()
			return runDHCP(cmd, o)
		},
	}
	o.Bind(cmd, "log-level")
	cmd.Flags().StringVar(&o.Name, "dhcp-name", "", "name of the DHCPServer")
	cmd.Flags().IntVar(&o.Number, "instance", 0, "which `number` of the DHCPServer's addresses to serve: 0 is serverIP, 1 the first of additionalServerIPs")
	cmd.Flags().StringVar(&o.LeaseFile, "lease-file", "", "file for the leases, for use without a cluster (with --config-file)")
	return cmd
}

func runDHCP(cmd *cobra.Command, o dhcp.Options) error {
	ctx := cmd.Context()
	o.Clock = clock.New()
	if o.ConfigFile != "" {
		return dhcp.Run(ctx, o, nil)
	}
	// The server uses the API server's time, which every answer has.
	c, err := o.Kube(func(config *rest.Config) { config.Wrap(o.Clock.Listen) })
	if err != nil {
		return err
	}
	return dhcp.Run(ctx, o, c)
}
