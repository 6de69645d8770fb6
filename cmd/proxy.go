package cmd

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/proxy"
	"github.com/cldmnky/oooi/internal/proxy/bootstrap"
	"github.com/cldmnky/oooi/internal/valid"
)

func newProxyCommand() *cobra.Command {
	var o proxy.Options
	cmd := &cobra.Command{
		Use:   "proxy",
		Short: "Configure the Envoy in the same pod from a ProxyServer",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.ConfigFile == "" && (o.Namespace == "" || o.Name == "") {
				return errors.New("name the ProxyServer: set --namespace and --proxy-name, or --config-file")
			}
			if err := valid.Instance(o.Instance); err != nil {
				return err
			}
			if o.Log, err = logger(o.LogLevel); err != nil {
				return err
			}
			if o.Connections, err = connectionsHere(); err != nil {
				return err
			}
			return runProxy(cmd, o)
		},
	}
	o.Bind(cmd, "proxy-log-level")
	cmd.Flags().StringVar(&o.Name, "proxy-name", "", "name of the ProxyServer")
	cmd.Flags().IntVar(&o.Instance, "instance", 0, "which `number` of the ProxyServer's addresses to serve: 0 is serverIP, 1 the first of additionalServerIPs")
	cmd.Flags().StringVar(&o.XDSSocket, "xds-socket", bootstrap.DefaultSocket, "Unix socket on which Envoy gets its configuration (xDS)")
	cmd.Flags().IntVar(&o.XDSPort, "xds-port", 0, "loopback port that also serves xDS, for debugging; what its clients acknowledge counts for nothing (0: none)")
	cmd.AddCommand(newProxyBootstrapCommand())
	return cmd
}

func runProxy(cmd *cobra.Command, o proxy.Options) error {
	ctx := cmd.Context()
	if o.ConfigFile != "" {
		return proxy.Run(ctx, o, nil)
	}
	c, err := o.Kube()
	if err != nil {
		return err
	}
	return proxy.Run(ctx, o, c)
}

// bootstrapFlags are the inputs of a bootstrap, and where it is written.
type bootstrapFlags struct {
	template, configFile, output, xdsSocket string
}

func newProxyBootstrapCommand() *cobra.Command {
	var f bootstrapFlags
	cmd := &cobra.Command{
		Use:   "bootstrap",
		Short: "Write Envoy's bootstrap, with the number of connections that this machine allows",
		Long: "Writes Envoy's bootstrap. The maximum number of connections is derived from this process's limit of open files, and from\n" +
			"Envoy's memory limit in the environment variable " + bootstrap.MemoryLimitVariable + " (bytes; unset: no limit).",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			content, err := f.bootstrap()
			if err != nil {
				return err
			}
			if f.output == "" {
				_, err = cmd.OutOrStdout().Write(content)
				return err
			}
			if err := daemon.WriteFile(f.output, content); err != nil {
				return err
			}
			return os.Chmod(f.output, 0o644) //nolint:gosec // Envoy may run as another user than the sidecar
		},
	}
	cmd.Flags().StringVar(&f.template, "template", "", "file with the bootstrap template that the operator created")
	cmd.Flags().StringVar(&f.configFile, "config-file", "", "file with a ProxyServer to create the bootstrap from, instead of a template")
	cmd.Flags().StringVar(&f.output, "output", "", "file to write (default: standard output)")
	cmd.Flags().StringVar(&f.xdsSocket, "xds-socket", bootstrap.DefaultSocket, "Unix socket of oooi proxy; Envoy's admin socket is in the same directory")
	cmd.MarkFlagsOneRequired("template", "config-file")
	cmd.MarkFlagsMutuallyExclusive("template", "config-file")
	return cmd
}

func (f bootstrapFlags) bootstrap() ([]byte, error) {
	template, err := f.readTemplate()
	if err != nil {
		return nil, err
	}
	limits, err := limitsHere()
	if err != nil {
		return nil, err
	}
	connections, err := limits.Connections()
	if err != nil {
		return nil, err
	}
	content, err := bootstrap.Complete(template, bootstrap.Machine{XDSSocket: f.xdsSocket, Connections: connections, MemoryBytes: limits.MemoryBytes})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cmp.Or(f.template, f.configFile), err)
	}
	return content, nil
}

// connectionsHere is how many connections an Envoy beside this process can have.
func connectionsHere() (int64, error) {
	limits, err := limitsHere()
	if err != nil {
		return 0, err
	}
	return limits.Connections()
}

// limitsHere are the limits of an Envoy beside this process. A container's hooks get its environment, but cannot turn it into flags.
func limitsHere() (bootstrap.Limits, error) {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return bootstrap.Limits{}, fmt.Errorf("reading the limit of open files: %w", err)
	}
	limits := bootstrap.Limits{Descriptors: files.Max}
	if text := os.Getenv(bootstrap.MemoryLimitVariable); text != "" {
		memory, err := strconv.ParseUint(text, 10, 63)
		if err != nil {
			return limits, fmt.Errorf("%s: %q is not a number of bytes, e.g. 536870912", bootstrap.MemoryLimitVariable, text)
		}
		limits.MemoryBytes = int64(memory)
	}
	return limits, nil
}

func (f bootstrapFlags) readTemplate() (string, error) {
	path := cmp.Or(f.template, f.configFile)
	content, err := os.ReadFile(path)
	if err == nil && len(bytes.TrimSpace(content)) == 0 {
		err = fmt.Errorf("reading %s: it is empty", path)
	}
	if err != nil || f.template != "" {
		return string(content), err
	}
	server := &v1alpha1.ProxyServer{}
	if err := daemon.Decode(content, server); err != nil {
		return "", fmt.Errorf("reading %s: %w", f.configFile, err)
	}
	return bootstrap.Template(server.Namespace, cmp.Or(server.Name, "proxy")), nil
}
