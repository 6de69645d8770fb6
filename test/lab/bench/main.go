// Command bench measures on the running lab what only a whole cluster can show: who writes when nothing changes, how soon a
// changed record and a changed endpoint are served, and what the bridge costs a machine that joins through it. It prints a table.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"text/tabwriter"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/test/lab/scene"
	"github.com/cldmnky/oooi/test/lab/standin"
)

func main() {
	pairs := flag.Int("pairs", 10, "how many machines to boot each way, one at a time in turn")
	idle := flag.Duration("idle", 10*time.Minute, "how long to count writes while nothing changes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *pairs, *idle); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench is the lab with a client of the management cluster, for writes whose moment counts.
type bench struct {
	*scene.Scene
	cluster client.Client
}

func run(ctx context.Context, pairs int, idle time.Duration) error {
	start := time.Now()
	lab, err := scene.Open(func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "[%6.1f s] %s\n", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
	})
	if err != nil {
		return err
	}
	cluster, _, err := standin.Connect("")
	if err != nil {
		return err
	}
	b := &bench{lab, cluster}
	if err := b.prepare(ctx); err != nil {
		return err
	}
	var rows []row
	for _, part := range []func(context.Context) ([]row, error){
		func(ctx context.Context) ([]row, error) { return b.silence(ctx, idle) }, // first: no machine has a lease yet that could be due
		b.latency,
		func(ctx context.Context) ([]row, error) { return b.joins(ctx, pairs) },
	} {
		more, err := part(ctx)
		if err != nil {
			return errors.Join(err, printTable(rows)) // what took minutes to measure is told all the same
		}
		rows = append(rows, more...)
	}
	return printTable(rows)
}

const infra = `apiVersion: hostedcluster.densityops.com/v1alpha1
kind: Infra
metadata: {name: c1, namespace: clusters}
spec:
  hostedClusterRef: {name: c1}
  networkConfig: {cidr: 192.168.100.0/24, networkAttachmentDefinition: vlan100, networkAttachmentNamespace: default}
`

func (b *bench) prepare(ctx context.Context) error {
	b.Say("bringing up hosted control plane c1, the operator and Infra c1 on VLAN 100")
	for _, step := range []func() error{
		func() error { _, err := b.Lab(ctx, "vlan", "100"); return err },
		func() error { _, err := b.Standin(ctx, "apply", "--cluster", "c1"); return err },
		func() error { return b.DeployOperator(ctx) },
		func() error { return b.Apply(ctx, scene.BridgeNAD("vlan100", "br100")) },
		func() error { return b.Apply(ctx, infra) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	_, err := b.Kubectl(ctx, "-n", "clusters", "wait", "--for=condition=Ready", "infra/c1", "--timeout=90s")
	return err
}

// row is one line of the table.
type row struct{ what, value, wanted string }

func printTable(rows []row) error {
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "WHAT\tVALUE\tWANTED")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%s\t%s\n", r.what, r.value, r.wanted)
	}
	return t.Flush()
}

// times are those of the same thing, measured again and again.
type times []time.Duration

func (t times) median() time.Duration {
	sorted := slices.Sorted(slices.Values(t))
	return (sorted[(len(t)-1)/2] + sorted[len(t)/2]) / 2
}

func (t times) String() string {
	return fmt.Sprintf("median %.2f s, %.2f to %.2f s", t.median().Seconds(), slices.Min(t).Seconds(), slices.Max(t).Seconds())
}

// pause lets time go by that is itself the measurement, or keeps two of them apart.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
