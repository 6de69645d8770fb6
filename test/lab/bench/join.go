package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cldmnky/oooi/test/lab/scene"
)

// joins boots the same machine through oooi and on a direct attachment, in turn.
func (b *bench) joins(ctx context.Context, pairs int) ([]row, error) {
	if pairs == 0 {
		return nil, nil
	}
	kubeconfig, err := b.Standin(ctx, "kubeconfig", "--cluster", "c1")
	if err != nil {
		return nil, err
	}
	hosted := func(ctx context.Context, args ...string) error {
		_, err := b.Lab(ctx, append([]string{"exec", "kubectl", "--kubeconfig", kubeconfig}, args...)...)
		return err
	}
	var through, direct times
	err = b.withDirectNetwork(ctx, directWorkers(pairs), func(ctx context.Context) error {
		for i := range pairs {
			for _, one := range []struct {
				machine scene.Machine
				to      *times
			}{{oooiWorker(i), &through}, {directWorker(i), &direct}} {
				took, err := b.join(ctx, one.machine, hosted)
				if err != nil {
					return err
				}
				*one.to = append(*one.to, took)
				if err := errors.Join(hosted(ctx, "delete", "node", one.machine.Name), b.PowerOff(ctx, one.machine)); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return []row{
		{fmt.Sprintf("power-on to Node Ready through oooi (%d)", pairs), through.String(), ""},
		{fmt.Sprintf("power-on to Node Ready directly on the API's network (%d)", pairs), direct.String(), ""},
		{"the one over the other, medians", fmt.Sprintf("%.3f", through.median().Seconds()/direct.median().Seconds()), "<= 1.1"},
	}, nil
}

func oooiWorker(i int) scene.Machine {
	return scene.Machine{Name: fmt.Sprintf("oooi-%d", i+1), MAC: fmt.Sprintf("52:54:00:00:02:%02x", i+1), Cluster: "c1", Bridge: "br100", NAD: "default/vlan100"}
}

func directWorker(i int) scene.Machine {
	return scene.Machine{Name: fmt.Sprintf("direct-%d", i+1), MAC: fmt.Sprintf("52:54:00:00:03:%02x", i+1), Cluster: "c1", Bridge: directBridge, NAD: "default/direct"}
}

func directWorkers(n int) []scene.Machine {
	var all []scene.Machine
	for i := range n {
		all = append(all, directWorker(i))
	}
	return all
}

// join is the time from power-on to the Node's readiness.
func (b *bench) join(ctx context.Context, m scene.Machine, hosted func(context.Context, ...string) error) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	console, err := b.PowerOn(ctx, m)
	if err != nil {
		return 0, err
	}
	var stages []string
	for _, name := range []string{"lease", "names", "ignition", "api", "certificate"} {
		stage, err := console.Await(ctx, name)
		if err != nil {
			return 0, fmt.Errorf("%s did not join: %w", m.Name, err)
		}
		stages = append(stages, fmt.Sprintf("%s %.1f s", name, stage.Uptime.Seconds()))
	}
	for _, condition := range []string{"create", "condition=Ready"} {
		if err := hosted(ctx, "wait", "--for="+condition, "node/"+m.Name, "--timeout=150s"); err != nil {
			return 0, err
		}
	}
	took := time.Since(console.PoweredOn)
	b.Say("%s: Ready after %.1f s (%s)", m.Name, took.Seconds(), strings.Join(stages, ", "))
	return took, nil
}
