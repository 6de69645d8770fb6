package audited

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// ManageWith starts a manager as Manage does, but within its container's limits and with some names resolved to these addresses. It needs
// root: the manager gets an /etc/hosts of its own.
func (c *Cluster) ManageWith(ctx context.Context, hosts map[string]string, binary string, args ...string) error {
	lines := []string{"127.0.0.1 localhost"}
	for name, address := range hosts {
		lines = append(lines, address+" "+name)
	}
	file := filepath.Join(c.dir, "hosts")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		return err
	}
	limits, err := Limits()
	if err != nil {
		return err
	}
	if c.cgroups, err = Confine("manager", limits); err != nil {
		return err
	}
	script := `mount --bind "$0" /etc/hosts`
	for _, dir := range c.cgroups {
		script += " && echo $$ > " + dir + "/cgroup.procs"
	}
	manager := exec.CommandContext(ctx, "sh", append([]string{"-c", script + ` && exec "$@"`, file, binary}, args...)...) //nolint:gosec // all of it is ours
	manager.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	return c.Manage(manager)
}

// Elsewhere is a network of nobody's (RFC 2544) that IsElsewhere makes local to this machine: the manager dials no loopback address.
const Elsewhere = "198.19.0.0/16"

// IsElsewhere lets servers listen there, until Stop. It needs root.
func (c *Cluster) IsElsewhere() error {
	c.elsewhere = true
	return elsewhere("replace")
}

func elsewhere(verb string) error {
	return exec.Command("ip", "route", verb, "local", Elsewhere, "dev", "lo").Run() //nolint:gosec // all of it is ours
}

// Relay connections from an address to the API server at a URL or address, until ctx ends.
func Relay(ctx context.Context, from, to string) error {
	listener, err := net.Listen("tcp", from)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	go relay(listener, strings.Trim(strings.TrimPrefix(to, "https:"), "/"))
	return nil
}

func relay(from net.Listener, to string) {
	for {
		here, err := from.Accept()
		if err != nil {
			return // it is closed
		}
		go func() {
			defer here.Close()
			there, err := net.Dial("tcp", to)
			if err != nil {
				return
			}
			defer there.Close()
			go io.Copy(there, here) //nolint:errcheck // whichever way ends first, both are closed
			_, _ = io.Copy(here, there)
		}()
	}
}
