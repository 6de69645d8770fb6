// Package daemon is what the daemons share: flags, logs, health and metrics, the watch of a daemon's own object (or
// file) with its last good copy, and the writer of its part of that object's status.
package daemon

import (
	"net/netip"
	"os"

	"github.com/spf13/cobra"
)

// Flags are common to every daemon.
type Flags struct {
	// Namespace of the daemon's own object.
	Namespace string
	// ConfigFile replaces the object: the same YAML, without a cluster.
	ConfigFile string
	// StateDir keeps the last good configuration across restarts; empty keeps none.
	StateDir string
	// HealthAddress and MetricsAddress are ip:port; empty serves nothing.
	HealthAddress, MetricsAddress string
	// LogLevel is debug, info, warn or error.
	LogLevel string
}

// Bind puts the flags on a command. The seeds name the level's flag differently per daemon.
func (f *Flags) Bind(cmd *cobra.Command, levelFlag string) {
	flags := cmd.Flags()
	flags.StringVar(&f.Namespace, "namespace", "", "namespace of the object that configures this daemon")
	flags.StringVar(&f.ConfigFile, "config-file", "", "YAML file to be configured from instead, without a cluster")
	flags.StringVar(&f.StateDir, "state-dir", "", "directory for the last good configuration (none: nothing is kept)")
	flags.StringVar(&f.HealthAddress, "health-address", "", "ip:port of /livez and /readyz (none: not served)")
	flags.StringVar(&f.MetricsAddress, "metrics-address", "", "ip:port of /metrics (none: not served)")
	flags.StringVar(&f.LogLevel, levelFlag, "info", "debug, info, warn or error")
}

// Tuned says whether the pod's attachment switches forwarding off; the manager, which derived it, says so.
func Tuned() bool { return os.Getenv("OOOI_VLAN_TUNED") == "true" }

func parseAddress(s string) (netip.AddrPort, error) {
	if s == "" {
		return netip.AddrPort{}, nil
	}
	return netip.ParseAddrPort(s)
}
