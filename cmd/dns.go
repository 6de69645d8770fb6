package cmd

import (
	"errors"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/dhcp/clock"
	"github.com/cldmnky/oooi/internal/dns"
	"github.com/cldmnky/oooi/internal/dns/server"
	"github.com/cldmnky/oooi/internal/valid"
)

func newDNSCommand() *cobra.Command {
	var flags daemon.Flags
	var name, corefile string
	var instance int
	cmd := &cobra.Command{
		Use:   "dns",
		Short: "Serve split-horizon DNS on one VLAN",
		Long: "Serves one DNSServer: answers the hosted cluster's names on the VLAN and, on --pod-ip, on the pod network.\n" +
			"With --config-file it needs no cluster; with --corefile it only runs CoreDNS with that Corefile.",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if corefile != "" {
				return server.ServeCorefile(cmd.Context(), corefile)
			}
			daemon.LimitMemory()
			d, err := newDNSDaemon(&flags, name, instance)
			if err != nil {
				return err
			}
			return d.Run(cmd.Context())
		},
	}
	flags.Bind(cmd, "log-level")
	cmd.Flags().StringVar(&name, "dns-name", "", "name of the DNSServer")
	cmd.Flags().IntVar(&instance, "instance", 0, "which `number` of the DNSServer's addresses to serve: 0 is serverIP, 1 the first of additionalServerIPs")
	cmd.Flags().StringVar(&corefile, "corefile", "", "Corefile to run unchanged, instead of a DNSServer")
	cmd.MarkFlagsMutuallyExclusive("dns-name", "config-file", "corefile")
	return cmd
}

func newDNSDaemon(flags *daemon.Flags, name string, instance int) (*dns.Daemon, error) {
	if err := valid.Instance(instance); err != nil {
		return nil, err
	}
	if flags.ConfigFile == "" && (flags.Namespace == "" || name == "") {
		return nil, errors.New("name the DNSServer: set --namespace and --dns-name, or --config-file, or --corefile")
	}
	log, err := logger(flags.LogLevel)
	if err != nil {
		return nil, err
	}
	apiServer := clock.New() // every answer has the API server's time
	d := &dns.Daemon{Flags: flags, Name: name, Instance: instance, Now: func() time.Time { now, _ := apiServer.Now(); return now }, Log: log}
	if flags.ConfigFile == "" {
		d.Kube, err = flags.Kube(func(config *rest.Config) { config.Wrap(apiServer.Listen) })
	}
	return d, err
}
