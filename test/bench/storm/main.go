// Command storm boots machines on a network of its own, in network namespaces, and measures how soon each has its lease: one at a time on an
// idle network, and a thousand within one second. It does the same with oooi, its leases in a file and in an API server, and with Kea. All
// servers are new, so oooi probes each address before it is offered; Kea does not, nor does it sync its leases to disk.
//
// With -full each address of a /16 is leased, and 5,000 strangers in a second ask for one, while 50 clients renew, one after the other. Their leases
// are about to end, so that the first renewal of each is written. Kea 2.2 looks at all 65,532 leases for each stranger; its allocator flq, which
// would not, came later. Clients and server share the processors (two, where we measure): the server's time is counted alone, and it waits for
// its turn with all others.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/cldmnky/oooi/test/bench/internal/table"
)

func main() {
	machines := flag.Int("machines", 1000, "how many machines boot within one second")
	alone := flag.Int("alone", 20, "how many boot one after the other")
	isFull := flag.Bool("full", false, "send DISCOVERs to servers whose pool is leased, instead")
	strangers := flag.Int("strangers", 100_000, "how many DISCOVERs")
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	measures := func() error { return run(ctx, *machines, *alone) }
	if *isFull {
		measures = func() error { return full(ctx, *strangers) }
	}
	if err := measures(); err != nil {
		fmt.Fprintln(os.Stderr, "storm:", err)
		os.Exit(1)
	}
}

// What is wanted: a machine that boots alone has its lease soon, and one in a storm before it asks again.
const (
	soon  = 50 * time.Millisecond
	storm = 3 * time.Second
)

// idle is how long a server runs before machines boot: oooi has found out by then which addresses are free.
const idle = 30 * time.Second

func run(ctx context.Context, machines, alone int) error {
	t := table.New()
	var kea result
	for _, s := range []server{isKea{}, isOooi{}, isOooi{inCluster: true}} {
		r, err := measure(ctx, s, machines, alone)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name(), err)
		}
		fmt.Fprintf(os.Stderr, "%s measured: slowest alone %s, in the storm %s\n", s.name(), slices.Max(r.alone), slices.Max(r.storm))
		if _, is := s.(isKea); is {
			kea = r
		}
		r.tell(t, s, kea)
	}
	return t.End()
}

// result of one server: how long after its first DISCOVER each machine had its ACK.
type result struct {
	alone, storm []time.Duration
	bare         time.Duration // for as many leases, by a client that does nothing else; 0 without an API server
}

func measure(ctx context.Context, s server, machines, alone int) (r result, err error) {
	net, err := newSegment()
	if err != nil {
		return r, err
	}
	defer net.Remove()
	process, err := s.start(ctx, net)
	if err != nil {
		return r, err
	}
	defer process.Stop()
	c, err := clients(net)
	if err != nil {
		return r, err
	}
	defer c.Close()
	select {
	case <-ctx.Done():
		return r, context.Cause(ctx)
	case <-time.After(idle):
	}
	for range alone {
		took, err := c.Boot(ctx, 1, 0)
		if err != nil {
			return r, err
		}
		r.alone = append(r.alone, took...)
	}
	if r.storm, err = c.Boot(ctx, machines, time.Second); err == nil && process.bare != nil {
		r.bare, err = process.bare(machines)
	}
	return r, err
}

func (r result) tell(t *table.Table, s server, kea result) {
	late := len(r.storm)
	for _, took := range r.storm {
		if took < storm {
			late--
		}
	}
	one := fmt.Sprintf("%s: one machine on an idle network, slowest of %d", s.name(), len(r.alone))
	many := fmt.Sprintf("%s: of %d machines, those without a lease after %s", s.name(), len(r.storm), storm)
	if _, peer := s.(isKea); peer {
		t.Say(one, slices.Max(r.alone))
		t.Say(many, late)
	} else {
		table.Below(t, one, slices.Max(r.alone), soon)
		t.None(many, late)
	}
	t.Say(s.name()+": median and slowest of the storm", fmt.Sprint(median(r.storm), ", ", slices.Max(r.storm)))
	t.Say(s.name()+": the same, Kea's being 1", fmt.Sprintf("%.1f, %.1f", ratio(median(r.storm), median(kea.storm)), ratio(slices.Max(r.storm), slices.Max(kea.storm))))
	if r.bare != 0 {
		t.Say(fmt.Sprintf("%d leases written by a client that does nothing else; the slowest of the storm, that being 1", len(r.storm)),
			fmt.Sprintf("%s, %.1f", r.bare, ratio(slices.Max(r.storm), r.bare)))
	}
}

func median(all []time.Duration) time.Duration { return table.Percentile(all, 50) }

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }
