// Command hostile runs the manager beside hosted clusters whose administrators want it to serve nobody else, and tells how long the
// others wait meanwhile, and how much memory it takes. It wants root: the manager gets an /etc/hosts of its own.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"time"

	"github.com/cldmnky/oooi/test/bench/internal/audited"
	"github.com/cldmnky/oooi/test/bench/internal/table"
)

func main() {
	length := flag.Duration("for", 10*time.Minute, "how long the hostile clusters go on")
	manager := flag.String("oooi", "bin/oooi", "the binary")
	quiet := flag.Bool("quiet", false, "with hosted clusters that say nothing in place of the hostile ones, to compare with")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *length, *manager, *quiet); err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
		os.Exit(1)
	}
}

// memoryLimit of the manager's container (config/manager/manager.yaml).
const memoryLimit table.MiB = 256

// hostile clusters by name: bridges evil1 and evil2, whose certificate requests are read, and Infras evil3 and evil4 with *.apps.
var hostile = map[string]*evil{
	"evil1": {services: 5001}, // one more than is kept; 20,000 requests
	"evil2": {services: 5001, endless: []string{"*"}, fat: []string{"nodes", "endpointslices"}},
	"evil3": {services: 4999}, // all of them kept, and taken for ours
	"evil4": {services: 1, endless: []string{"*"}, fat: []string{"*"}},
}

func run(ctx context.Context, length time.Duration, binary string, quiet bool) error {
	b, err := begin(ctx, binary, quiet)
	if err != nil {
		return err
	}
	defer b.end()
	audited.Progress("everything is there; measuring for %s", length)
	csrs, infras, bridges := &waits{}, &waits{}, &waits{}
	ctx, cancel := context.WithTimeout(ctx, length+time.Minute)
	defer cancel()
	for until := time.Now().Add(length); time.Now().Before(until); {
		for _, probe := range []struct {
			of   *waits
			take func(context.Context) error
		}{{csrs, b.approves}, {infras, b.appliesInfra}, {bridges, b.appliesBridge}} {
			begun := time.Now()
			if err := probe.take(ctx); err != nil {
				return fmt.Errorf("after %s: %w", time.Since(begun).Round(time.Millisecond), err)
			}
			probe.of.add(time.Since(begun))
		}
		audited.Progress("%d rounds, the slowest: CSR %s, Infra %s, bridge %s", len(csrs.all), csrs.most(), infras.most(), bridges.most())
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * time.Second): // between two rounds
		}
	}
	peak, err := b.Peak()
	if err != nil {
		return err
	}
	t := table.New()
	for name, e := range hostile {
		t.Say(fmt.Sprintf("hosted cluster %s: requests, MiB said", name), fmt.Sprintf("%d, %d", e.asked.Load(), e.said.Load()>>20))
	}
	table.Below(t, fmt.Sprintf("another cluster's CSR approved, slowest of %d", len(csrs.all)), csrs.most(), time.Second)
	table.Below(t, fmt.Sprintf("an Infra's change applied, slowest of %d", len(infras.all)), infras.most(), 5*time.Second)
	table.Below(t, fmt.Sprintf("a bridge's change applied, slowest of %d", len(bridges.all)), bridges.most(), 5*time.Second)
	table.Below(t, "most memory of the manager (VmHWM)", peak, memoryLimit*8/10)
	return t.End()
}

// waits are how long something took.
type waits struct{ all []time.Duration }

func (w *waits) add(d time.Duration) { w.all = append(w.all, d.Round(time.Millisecond)) }

func (w *waits) most() (most time.Duration) {
	for _, d := range w.all {
		most = max(most, d)
	}
	return most
}

func address(number int) string { return fmt.Sprintf("198.19.44.%d", number) }

func endpoint(number int) string { return net.JoinHostPort(address(number), "6443") }
