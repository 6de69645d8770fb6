package scene

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Machine is one worker: a virtual machine whose only card is on a VLAN.
type Machine struct {
	Name, MAC string
	// Cluster is the hosted cluster to join.
	Cluster string
	// Bridge is the VLAN's bridge in the node.
	Bridge string
	// NAD is the network attachment definition of its card, namespace/name. Without one, the machine is not KubeVirt's, and the management
	// cluster does not know it.
	NAD string
	// UserData is a file that it boots with; without it, what the stand-in's NodePool gives its machines.
	UserData string
	// StandinFlags are those with which the hosted cluster was applied.
	StandinFlags []string
}

// Console is a running machine's output.
type Console struct {
	machine Machine
	path    string
	// PoweredOn is when the machine was started.
	PoweredOn time.Time
}

// PowerOn registers the machine with the management cluster and starts it.
func (s *Scene) PowerOn(ctx context.Context, m Machine) (*Console, error) {
	userData := m.UserData
	if userData == "" {
		var err error
		if userData, err = s.Standin(ctx, append(m.order(), m.StandinFlags...)...); err != nil {
			return nil, err
		}
	}
	c := &Console{machine: m, path: filepath.Join(s.State, "vm", m.Name, "console"), PoweredOn: time.Now()}
	if _, err := s.Lab(ctx, "vm", m.Name, m.MAC, m.Bridge, "--userdata", userData); err != nil {
		return nil, err
	}
	return c, nil
}

// order is the stand-in's subcommand that returns the machine's user data.
func (m Machine) order() []string {
	if m.NAD == "" {
		return []string{"user-data", "--cluster", m.Cluster}
	}
	return []string{"worker", "--cluster", m.Cluster, "--name", m.Name, "--mac", m.MAC, "--nad", m.NAD}
}

// PowerOff ends the machine and removes it from the management cluster.
func (s *Scene) PowerOff(ctx context.Context, m Machine) error {
	if _, err := s.Lab(ctx, "vm-off", m.Name); err != nil || m.NAD == "" {
		return err
	}
	_, err := s.Standin(ctx, append(m.order(), "--remove")...)
	return err
}

// On runs a command in the machine.
func (s *Scene) On(ctx context.Context, m Machine, command ...string) (string, error) {
	return s.Lab(ctx, append([]string{"vm-exec", m.Name}, command...)...)
}

// Stage is a line that the machine writes while it boots.
type Stage struct {
	Name, Detail string
	// Waiting: the machine has not passed the stage yet; Detail says what it lacks.
	Waiting bool
	// Uptime is the time since power-on by the machine's own clock.
	Uptime time.Duration
}

// Await returns the stage once the machine has passed it. If the context ends first, the error says what the machine waited for.
func (c *Console) Await(ctx context.Context, stage string) (Stage, error) {
	var last Stage
	err := Until(ctx, "stage "+stage, func(context.Context) error {
		last = c.last(stage)
		switch {
		case last.Name == "":
			return fmt.Errorf("%s has not come so far; its console ends with %q", c.machine.Name, c.end())
		case last.Waiting:
			return fmt.Errorf("%s", last.Detail)
		}
		return nil
	})
	return last, err
}

// Waits returns once the machine is at a stage that it cannot pass.
func (c *Console) Waits(ctx context.Context, stage string) error {
	return Until(ctx, "waiting at "+stage, func(context.Context) error {
		if last := c.last(stage); !last.Waiting {
			return fmt.Errorf("%s says %q", c.machine.Name, last.Detail)
		}
		return nil
	})
}

// last is the newest line of one stage.
func (c *Console) last(stage string) Stage {
	content, err := os.ReadFile(c.path)
	if err != nil {
		return Stage{}
	}
	var found Stage
	for line := range strings.Lines(string(content)) {
		if s, ok := parseStage(line); ok && s.Name == stage {
			found = s
		}
	}
	return found
}

// end is the console's last line.
func (c *Console) end() string {
	content, err := os.ReadFile(c.path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// parseStage reads `WORKER <seconds> <stage> <detail>`.
func parseStage(line string) (Stage, bool) {
	_, line, ok := strings.Cut(strings.TrimSpace(line), "WORKER ")
	if !ok {
		return Stage{}, false
	}
	fields := strings.SplitN(line, " ", 3)
	if len(fields) < 3 {
		return Stage{}, false
	}
	uptime, err := time.ParseDuration(fields[0] + "s")
	if err != nil {
		return Stage{}, false
	}
	waiting := strings.HasPrefix(fields[2], "waiting: ") || strings.HasPrefix(fields[2], "failed: ")
	return Stage{Name: fields[1], Detail: fields[2], Waiting: waiting, Uptime: uptime}, true
}
