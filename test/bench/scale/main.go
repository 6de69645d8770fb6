// Command scale measures the manager with many Infras beside a real kube-apiserver: how long until every child is applied, how much memory
// it uses, and how often it writes afterwards, when nothing changes.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/test/bench/internal/audited"
	"github.com/cldmnky/oooi/test/bench/internal/objects"
	"github.com/cldmnky/oooi/test/bench/internal/table"
)

func main() {
	infras := flag.Int("infras", 500, "how many Infras, each of a HostedCluster of its own")
	idle := flag.Duration("idle", 10*time.Minute, "how long to count writes after everything is applied")
	manager := flag.String("oooi", "bin/oooi", "the binary")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *infras, *idle, *manager); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// children and workloads are what to await for one Infra, by resource: what plan.Infra plans, and the workloads.
var (
	children = map[string]int{"dhcpservers": 1, "dnsservers": 1, "proxyservers": 1, "network-attachment-definitions": 5,
		"networkpolicies in the control plane": 3, "roles in the control plane": 2, "rolebindings in the control plane": 2}
	workloads = map[string]int{"statefulsets": 4, "deployments": 1}
)

func run(ctx context.Context, infras int, idle time.Duration, binary string) error {
	c, err := audited.Start()
	if err != nil {
		return err
	}
	defer c.Stop()
	audited.Progress("creating %d hosted clusters", infras)
	if err := create(ctx, c, infras); err != nil {
		return err
	}
	begin := time.Now()
	err = c.Manage(exec.CommandContext(ctx, binary, "manager", "--metrics-bind-address=0", "--health-probe-bind-address=0",
		"--image=e2e.local/oooi:dev", "--envoy-image=e2e.local/envoy:lab"))
	if err != nil {
		return err
	}
	if err := awaitCreated(ctx, c, children, infras); err != nil {
		return err
	}
	applied := time.Since(begin).Round(100 * time.Millisecond)
	audited.Progress("all children after %s", applied)
	if err := awaitCreated(ctx, c, workloads, infras); err != nil {
		return err
	}
	deployed := time.Since(begin).Round(100 * time.Millisecond)
	audited.Progress("all workloads after %s", deployed)
	steady, err := c.Idle(ctx, idle)
	if err != nil {
		return err
	}
	t := table.New()
	table.Below(t, fmt.Sprintf("%d Infras: all children applied", infras), applied, time.Minute)
	t.Say("and their workloads", deployed)
	steady.Rows(t, infras, "Infra", 150)
	return t.End()
}

// create makes Infras, and what each reads of its hosted cluster.
func create(ctx context.Context, c *audited.Cluster, infras int) error {
	api, err := client.New(c.Config, client.Options{})
	if err != nil {
		return err
	}
	for n := range infras {
		if err := objects.CreateInfra(ctx, api, n, fmt.Sprintf("t%d", n), ""); err != nil {
			return err
		}
	}
	return nil
}

// awaitCreated waits until the manager has created this many of each resource.
func awaitCreated(ctx context.Context, c *audited.Cluster, wanted map[string]int, infras int) error {
	return c.Until(ctx, func() (bool, error) {
		writes, err := c.Writes()
		created, where := map[string]int{}, map[bool]string{true: " in the control plane"}
		for _, w := range writes {
			if w.Created() {
				created[w.ObjectRef.Resource+where[w.ObjectRef.Namespace != objects.Namespace]]++
			}
		}
		for resource, each := range wanted {
			if created[resource] < each*infras {
				return false, err
			}
		}
		return true, err
	})
}
