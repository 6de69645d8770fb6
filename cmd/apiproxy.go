package cmd

import (
	"github.com/spf13/cobra"

	"github.com/cldmnky/oooi/internal/daemon"
)

func newAPIProxyCommand() *cobra.Command {
	var p daemon.APIProxy
	var level string
	cmd := &cobra.Command{
		Use:   "api-proxy",
		Short: "Forward a daemon's requests to the API server with a token that the daemon does not have",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if p.Log, err = logger(level); err != nil {
				return err
			}
			if p.Cluster, err = daemon.Cluster(); err != nil {
				return err
			}
			return p.Run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&p.Socket, "socket", "/api/api.sock", "Unix socket to listen on; the daemon gets the same path in --api-socket")
	cmd.Flags().StringVar(&level, "log-level", "info", "debug, info, warn or error")
	return cmd
}
