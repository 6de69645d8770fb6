// Command floods shows whether a hostile guest of the VLAN is noticed by anybody else. It runs our pods in network namespaces, one service at
// a time, within the limits that they have in a cluster, and beside each attack measures another guest: its DNS queries, its TLS handshakes
// through the proxy, its leases.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/cldmnky/oooi/test/bench/internal/audited"
	"github.com/cldmnky/oooi/test/bench/internal/table"
)

func main() {
	length := flag.Duration("for", time.Minute, "how long each attack lasts")
	only := flag.String("only", "", "one attack's name; all without it")
	attacks := flag.String("attack", "", "on the hostile guest: attack, and print what it did")
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := error(nil)
	if *attacks != "" {
		err = attackAs(ctx, *attacks, *length)
	} else {
		err = run(ctx, *length, *only)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "floods:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, length time.Duration, only string) error {
	cluster, err := audited.Start()
	if err != nil {
		return err
	}
	defer cluster.Stop()
	t := table.New()
	for _, s := range services() {
		for _, a := range s.attacks {
			if only != "" && only != a.name {
				continue
			}
			f := &flood{service: s, attack: a, length: length, cluster: cluster}
			peer := *f
			peer.ofPeer = true
			for _, one := range []*flood{&peer, f} {
				if err := one.run(ctx); err != nil {
					return fmt.Errorf("%s: %w", a.name, err)
				}
			}
			f.tell(t, &peer)
		}
	}
	return t.End()
}

// attackAs attacks as the guest whose host this process runs on.
func attackAs(ctx context.Context, name string, length time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	for _, s := range services() {
		for _, a := range s.attacks {
			if a.name == name {
				did, err := a.run(ctx)
				fmt.Println(did)
				return err
			}
		}
	}
	return fmt.Errorf("no attack %s", name)
}

// services are attacked in this order.
func services() []service { return []service{dns, proxy, dhcp} }
