// Package daemon has what the daemons share: flags, logs, health and metrics, the watch of a daemon's own object (or file) with its last
// good copy, and the writer of its part of that object's status.
package daemon

import (
	"fmt"
	"net/netip"
	"os"

	"github.com/spf13/cobra"

	"github.com/cldmnky/oooi/internal/names"
)

// Flags of every daemon.
type Flags struct {
	// Namespace of the daemon's own object.
	Namespace string
	// ConfigFile replaces the object: the same YAML, without a cluster.
	ConfigFile string
	// StateDir keeps the last good configuration across restarts; empty keeps none.
	StateDir string
	// APISocket is where APIProxy listens; empty connects to the API server directly.
	APISocket string
	// PodIP is this pod's address on the pod network; invalid if it has none.
	PodIP netip.Addr
	// HealthAddress and MetricsAddress are ip:port; empty means the pod's address and the ports of package names.
	HealthAddress, MetricsAddress string
	// LogLevel is debug, info, warn or error.
	LogLevel string
}

// Bind adds the flags to a command. In the seeds, each daemon has its own name for the level's flag.
func (f *Flags) Bind(cmd *cobra.Command, levelFlag string) {
	flags := cmd.Flags()
	flags.StringVar(&f.Namespace, "namespace", "", "namespace of the object that configures this daemon")
	flags.StringVar(&f.ConfigFile, "config-file", "", "YAML file with the object that configures this daemon, for use without a cluster")
	flags.StringVar(&f.StateDir, "state-dir", "", "directory for the last good configuration (empty: it is not stored)")
	flags.StringVar(&f.APISocket, "api-socket", "", "Unix socket of oooi api-proxy, which has the token (empty: connect to the API server directly)")
	flags.TextVar(&f.PodIP, "pod-ip", netip.Addr{}, "`address` of this pod, for health, metrics and clients on the pod network (empty: serve the VLAN only)")
	flags.StringVar(&f.HealthAddress, "health-address", "", fmt.Sprintf("ip:port of /livez and /readyz (default: port %d of --pod-ip)", names.HealthPort))
	flags.StringVar(&f.MetricsAddress, "metrics-address", "", fmt.Sprintf("ip:port of /metrics (default: port %d of --pod-ip)", names.MetricsPort))
	flags.StringVar(&f.LogLevel, levelFlag, "info", "debug, info, warn or error")
}

// MakeStateDir creates the state directory.
func (f *Flags) MakeStateDir() error {
	if f.StateDir == "" {
		return nil
	}
	if err := os.MkdirAll(f.StateDir, 0o700); err != nil {
		return fmt.Errorf("--state-dir: %w; give a directory that this user can write", err)
	}
	return nil
}

// Tuned says whether the pod's attachment turns forwarding off; the manager, which derived it, says so.
func Tuned() bool { return os.Getenv("OOOI_VLAN_TUNED") == "true" }

// at is where something is served: the address of its flag, or else the pod's address and this port; invalid where it is not served.
func (f *Flags) at(flag, value string, port uint16) (netip.AddrPort, error) {
	switch {
	case value != "":
		at, err := netip.ParseAddrPort(value)
		if err != nil {
			return at, fmt.Errorf("%s %q must be an IP address and a port, e.g. 192.168.100.2:%d or [fd00::2]:%d", flag, value, port, port)
		}
		return at, nil
	case f.PodIP.IsValid():
		return netip.AddrPortFrom(f.PodIP, port), nil
	}
	return netip.AddrPort{}, nil
}
