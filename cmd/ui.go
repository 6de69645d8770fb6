package cmd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/cldmnky/oooi/internal/dhcp/clock"
	"github.com/cldmnky/oooi/internal/live"
)

func newUICommand() *cobra.Command {
	var port uint16
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Show Infras, their workers and bridges in a browser on this machine, live",
		Long: "Serves pages on 127.0.0.1 until it is ended, and prints their address: open it in a browser on this machine. They show what\n" +
			"oooi status draws, and change as the cluster does. docs/STATUS.md explains them.\n\n" +
			"It reads with your own permissions, and changes nothing. Whoever has the address sees what you may see: it contains a\n" +
			"secret, which is new each time.\n\n" +
			"Exit code: 0 if it was ended, 2 if it cannot serve.",
		Example: "  oooi ui",
		Args:    noArguments,
	}
	cluster := bindCluster(cmd)
	cmd.Flags().Lookup("namespace").Usage = "namespace to show if you may not list Infras in all (default: the context's)"
	cmd.Flags().Uint16Var(&port, "port", 0, "port to listen on (default: any that is free)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return asUnusable(serveUI(cmd, cluster, port)) }
	return cmd
}

func serveUI(cmd *cobra.Command, cluster *clusterFlags, port uint16) error {
	namespace, err := cluster.namespace()
	if err != nil {
		return err
	}
	config, err := cluster.rest(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	apiServer := clock.New()
	config.Wrap(apiServer.Listen)
	config.QPS = -1 // a page takes a dozen requests; the API server's own priority and fairness is the limit
	api, err := clientOf(config)
	if err != nil {
		return err
	}
	if err := loggedIn(api); err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(cmd.Context(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
	if err != nil {
		return fmt.Errorf("%w; choose another port with --port, or none", err)
	}
	_, taken, _ := net.SplitHostPort(listener.Addr().String())
	secret, hosts := live.Secret(), []string{"127.0.0.1:" + taken, "localhost:" + taken}
	pages := live.New(cmd.Context(), live.Own(api, namespace, func() time.Time { return apiServer.NowOr(time.Now()) }))
	fmt.Fprintf(cmd.OutOrStdout(), "http://%s/%s/\n", hosts[0], secret)
	fmt.Fprintln(cmd.ErrOrStderr(), "Open this address in a browser on this machine. End with Ctrl-C.")
	return serveUntil(cmd.Context(), listener, live.Private(secret, hosts, pages))
}

// serveUntil ends streams, too, once the context does.
func serveUntil(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // nothing is lost
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
