// Package cmd wires the subcommands of the one binary; it decides nothing.
package cmd

import (
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Root is the oooi command.
func Root() *cobra.Command {
	root := &cobra.Command{
		Use:           "oooi",
		Short:         "Joins workers on isolated networks to OpenShift hosted control planes",
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version(),
	}
	root.AddCommand(newDHCPCommand(), newDNSCommand(), newManagerCommand(), newProxyCommand(), newRenderCommand())
	return root
}

// version is what the Go toolchain stamped: the module's version, else the commit.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && (info.Main.Version == "" || info.Main.Version == "(devel)") {
			return s.Value
		}
	}
	return info.Main.Version
}
