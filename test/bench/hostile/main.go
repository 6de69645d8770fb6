// Command hostile runs the manager beside hosted clusters whose administrators want it to serve nobody else, and measures how long the
// others wait meanwhile, and how much memory it uses. It needs root: the manager gets an /etc/hosts of its own.
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"net"
	"os"
	"os/signal"
	"slices"
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

const (
	// listsPerBridge bounds lists a second: one for each CSR of a rack of DPUs that boot together, or for all that are decided within a
	// second, and some for slow ones. Each lists all DPUs, from etcd.
	listsPerBridge = 3
	// eventsAtMost bounds Events a second, of all bridges: the management cluster keeps each for an hour.
	eventsAtMost = 5
	// patience bounds each measurement: a longer wait counts as this long.
	patience = 30 * time.Second
)

// hostile clusters, by name: those of bridges evil1, evil2, evil5 and evil6, whose certificate requests are read, and those of Infras evil3
// and evil4 with *.apps. As far as can be seen, any request of evil1 and evil6 may be approved. evil1 asks as often as it can, and makes
// all be decided again with each change of a Node; evil6 asks so that each request is decided alone.
var hostile = map[string]*evil{
	"evil1": {cards: numbers(0, 20), joined: 5, strangers: 80, waiting: 20000, services: 10, changing: map[string]int{requests: changes, nodes: 5}},
	"evil2": {strangers: 80, waiting: 20000, services: 5001, endless: []string{"*"}, fat: []string{nodes, "endpointslices"}},
	"evil3": {services: 4999}, // all of them are kept, and taken for ours
	"evil4": {services: 1, endless: []string{"*"}, fat: []string{"*"}},
	"evil5": {services: 5000, addresses: 60, changing: map[string]int{services: changes}}, // as many as are kept
	"evil6": {cards: numbers(20, 21), joined: 1, services: 10, changing: map[string]int{requests: 30}},
}

// asking is the number of bridges that ask: evil1 and evil6.
const asking = 2

func run(ctx context.Context, length time.Duration, binary string, quiet bool) error {
	b, err := begin(ctx, binary, quiet)
	if err != nil {
		return err
	}
	defer b.end()
	audited.Progress("everything is there; measuring for %s", length)
	before, err := b.Used()
	if err != nil {
		return err
	}
	begun := time.Now()
	if err := b.measure(ctx, length); err != nil {
		return err
	}
	took := time.Since(begun)
	after, err := b.Used()
	if err != nil {
		return err
	}
	peak, err := b.Peak()
	if err != nil {
		return err
	}
	limits, err := audited.Limits()
	if err != nil {
		return err
	}
	t := table.New()
	inert := sayHostile(t)
	if !quiet {
		t.None("of three floods, those that came to nothing", inert)
	}
	b.sayWaits(t)
	table.Below(t, "most memory of the manager (VmHWM)", peak, table.MiB(limits.Memory().Value()>>20)*8/10)
	b.sayUsed(t, after.Since(before), took)
	return t.End()
}

// sayHostile prints what the hostile clusters did, and counts those that did not do what they are for.
func sayHostile(t *table.Table) (inert int) {
	for _, name := range slices.Sorted(maps.Keys(hostile)) {
		e := hostile[name]
		t.Say(fmt.Sprintf("hosted cluster %s: requests, MiB said, changes told", name), fmt.Sprintf("%d, %d, %d", e.asked.Load(), e.said.Load()>>20, e.told.Load()))
	}
	for _, name := range []string{"evil1", "evil6"} {
		e := hostile[name]
		t.Say(name+"'s certificate requests: made, read one by one, approvals put", fmt.Sprintf("%d, %d, %d", e.newest.Load(), e.read.Load(), e.taken.Load()))
		if e.taken.Load() == 0 {
			inert++
		}
	}
	serves := hostile["evil5"]
	t.Say("evil5's Services: addresses of each that are kept", serves.each.Load())
	if serves.told.Load() == 0 {
		inert++
	}
	return inert
}

func (b *bench) sayWaits(t *table.Table) {
	table.Below(t, fmt.Sprintf("another cluster's CSR approved, slowest of %d", len(b.csrs.all)), b.csrs.most(), time.Second)
	table.Below(t, fmt.Sprintf("an Infra's change applied, slowest of %d", len(b.applied.all)), b.applied.most(), 5*time.Second)
	table.Below(t, fmt.Sprintf("a bridge's change applied, slowest of %d", len(b.bridged.all)), b.bridged.most(), 5*time.Second)
}

// sayUsed prints what the manager used meanwhile. Each of the good bridge's DPUs costs one list.
func (b *bench) sayUsed(t *table.Table, u audited.Used, took time.Duration) {
	each := func(count int) table.Rate { return table.Rate(float64(count) / took.Seconds()) }
	table.Below(t, "DPU lists a second, but for one of each good CSR", each(u.Lists-len(b.csrs.all)), asking*listsPerBridge)
	table.Below(t, "Events a second", each(u.Events), eventsAtMost)
	t.Say("mutating calls a second, Events among them", each(u.Writes))
	t.Say("seconds of a processor that the manager used in a minute", table.Rate(u.Processor.Seconds()/took.Minutes()))
}

// measure how long others wait, again and again.
func (b *bench) measure(ctx context.Context, length time.Duration) error {
	for until := time.Now().Add(length); time.Now().Before(until); {
		for _, probe := range []struct {
			of   *waits
			take func(context.Context) error
		}{{&b.csrs, b.approves}, {&b.applied, b.appliesInfra}, {&b.bridged, b.appliesBridge}} {
			if err := probe.of.time(ctx, probe.take); err != nil {
				return err
			}
		}
		audited.Progress("%d rounds, the slowest: CSR %s, Infra %s, bridge %s", len(b.csrs.all), b.csrs.most(), b.applied.most(), b.bridged.most())
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * time.Second): // pause between two rounds
		}
	}
	return nil
}

// waits are the durations of one kind of wait.
type waits struct{ all []time.Duration }

// time measures take, for no longer than patience.
func (w *waits) time(ctx context.Context, take func(context.Context) error) error {
	begun := time.Now()
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := take(waiting); err != nil && (waiting.Err() == nil || ctx.Err() != nil) {
		return fmt.Errorf("after %s: %w", time.Since(begun).Round(time.Millisecond), err)
	}
	w.all = append(w.all, time.Since(begun).Round(time.Millisecond))
	return nil
}

func (w *waits) most() (most time.Duration) {
	for _, d := range w.all {
		most = max(most, d)
	}
	return most
}

func address(number int) string { return fmt.Sprintf("198.19.44.%d", number) }

func endpoint(number int) string { return net.JoinHostPort(address(number), "6443") }
