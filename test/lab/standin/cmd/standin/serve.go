package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/cldmnky/oooi/test/lab/standin"
)

// serveCommand has what runs in the pods; each subcommand has the name of its workload.
func serveCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "serve", Short: "Be one of the control plane's pods"}
	var kubeconfig, namespace, certDir string
	f := cmd.PersistentFlags()
	f.StringVar(&kubeconfig, "kubeconfig", "", "way into the hosted cluster")
	f.StringVar(&namespace, "namespace", "", "namespace of the control plane")
	f.StringVar(&certDir, "cert-dir", "", "directory of tls.crt and tls.key")

	part := func(name, short string, run func(ctx context.Context) error) *cobra.Command {
		c := &cobra.Command{Use: name, Short: short, Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return run(c.Context()) }}
		cmd.AddCommand(c)
		return c
	}
	part("ignition-server", "the config for workers that show their token", func(ctx context.Context) error {
		return standin.ServeIgnition(ctx, namespace, certDir)
	})
	var backend, backendCA string
	proxy := part("ignition-server-proxy", "the TLS in front of it", func(ctx context.Context) error {
		return standin.ServeIgnitionProxy(ctx, certDir, backend, backendCA)
	})
	proxy.Flags().StringVar(&backend, "backend", "", "URL of the ignition server")
	proxy.Flags().StringVar(&backendCA, "backend-ca", "", "file of the CA that signed it")
	var host string
	part("oauth-openshift", "the OAuth endpoint", func(ctx context.Context) error {
		return standin.ServeOAuth(ctx, certDir, host)
	}).Flags().StringVar(&host, "host", "", "name under which it is reached")
	var backends standin.Backends
	router := part("router", "TLS passed through by server name", func(ctx context.Context) error {
		return standin.ServeRouter(ctx, backends)
	})
	router.Flags().StringToStringVar(&backends.ByName, "to", nil, "server name=service:port")
	router.Flags().StringVar(&backends.Default, "default", "", "service:port for any other name, or none")
	part("machine-approver", "certificates for the kubelets of known machines", func(ctx context.Context) error {
		return standin.ServeMachineApprover(ctx, kubeconfig, namespace)
	})
	part("capi-provider", "what guests say of themselves, in the machines' status", func(ctx context.Context) error {
		return standin.ServeProvider(ctx, kubeconfig, namespace)
	})
	var objects string
	part("hosted-cluster-config-operator", "objects kept in the hosted cluster", func(ctx context.Context) error {
		return standin.ServeHostedObjects(ctx, kubeconfig, objects)
	}).Flags().StringVar(&objects, "objects", "", "directory of the objects")
	return cmd
}
