//go:build e2e && outages

package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cldmnky/oooi/test/lab/scene"
)

// The clients of an Infra that goes through outages.

// asker is a client that wants one thing again and again.
type asker struct {
	wants string
	every time.Duration
	once  func(context.Context) error

	mu sync.Mutex
	met
}

// met is what it met since it was last asked for that.
type met struct {
	asked, failed int
	slowest       time.Duration // of its tries
	gap           time.Duration // the longest time between two that succeeded
	answered      time.Time     // when the last one did
	last          error
}

func (a *asker) asks(ctx context.Context) {
	for ctx.Err() == nil {
		began := time.Now()
		if err := a.once(ctx); ctx.Err() == nil {
			a.notes(began, err)
			passes(ctx, a.every-time.Since(began))
		}
	}
}

func (a *asker) notes(began time.Time, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	a.asked, a.slowest = a.asked+1, max(a.slowest, now.Sub(began))
	if err != nil {
		a.failed, a.last = a.failed+1, err
		return
	}
	a.gap, a.answered = max(a.gap, now.Sub(a.answered)), now
}

// begins to count anew, and returns what it met until now.
func (a *asker) begins() met {
	a.mu.Lock()
	defer a.mu.Unlock()
	was, now := a.met, time.Now()
	was.gap = max(was.gap, now.Sub(was.answered))
	a.met = met{answered: now}
	return was
}

// hasAnAnswer since then.
func (a *asker) hasAnAnswer(since time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.answered.After(since)
}

func (m met) String() string {
	s := fmt.Sprintf("%d of %d failed, slowest %.1f s, longest without %.1f s", m.failed, m.asked, m.slowest.Seconds(), m.gap.Seconds())
	if m.last != nil {
		s += fmt.Sprintf(" (%v)", m.last)
	}
	return s
}

// The clients, by what they want. Only the first is kubectl: it costs a fifth of a second of a processor each time.
const (
	byName    = "kubectl get, the API by name"
	byLiteral = "handshake, the API at its captured address"
	byHAProxy = "handshake, the API through the worker's HAProxy"
	names     = "dig +time=2 +tries=2"
	leases    = "udhcpc, a new machine"

	handshakes = "handshake, the API by name, resolved each time" // at whichever of its addresses answers first
)

// The API has a name, too, at a port of its own: c1 is published at the literal alone.
const (
	hostOfAPI = "api.outage.example.com"
	portOfAPI = "7443"
	namedAPI  = `{"name": "byname", "hostnames": ["` + hostOfAPI + `"], "port": ` + portOfAPI + `, "protocol": "TLS", "target": {"service": "kube-apiserver", "namespace": "clusters-c1", "port": 6443}}`
	literal   = "203.0.113.10:6443"
)

func (o *outages) clients(ctx context.Context) []*asker {
	o.Helper()
	kubectl, at, worker, dig := o.bound(ctx, "kubectl"), o.bound(ctx, "at"), o.bound(ctx, "haproxy"), o.bound(ctx, "dig")
	get := append([]string{"kubectl", "--cache-dir", o.TempDir()}, o.kubeconfig(ctx)...)
	return []*asker{
		{wants: byName, every: time.Second, once: func(ctx context.Context) error {
			_, err := kubectl.Run(ctx, append(get, "get", "namespace", "default")...)
			return err
		}},
		{wants: byLiteral, every: 100 * time.Millisecond, once: func(context.Context) error { _, err := answers(at, literal, ""); return err }},
		{wants: byHAProxy, every: 100 * time.Millisecond, once: o.throughHAProxy(ctx, worker)},
		{wants: names, every: 100 * time.Millisecond, once: func(ctx context.Context) error {
			out, err := dig.Run(ctx, "dig", "+short", "+time=2", "+tries=2", hostOfAPI)
			if err == nil && !slices.ContainsFunc(strings.Fields(out), func(a string) bool { return slices.Contains(o.proxies, a) }) {
				err = fmt.Errorf("the answer is %q", out)
			}
			return err
		}},
		{wants: handshakes, every: 50 * time.Millisecond, once: o.byName(dig)},
		{wants: leases, every: 500 * time.Millisecond, once: o.newMachine(o.client(ctx, "new"), 0)},
	}
}

// client is one without a lease, whose frames the journal has.
func (o *outages) client(ctx context.Context, name string) *scene.Neighbour {
	o.Helper()
	n := neighbour(o.T, ctx, name, "br"+outageVLAN, "")
	o.running.Go(func() {
		if err := n.Capture(ctx, o.journal.Frame); err != nil && ctx.Err() == nil {
			o.Errorf("capturing: %v", err)
		}
	})
	return n
}

// bound is a client with a lease.
func (o *outages) bound(ctx context.Context, name string) *scene.Neighbour {
	o.Helper()
	n := o.client(ctx, name)
	lease, err := n.Lease(ctx)
	must(o.T, err)
	must(o.T, n.Asks(lease.Resolvers...))
	return n
}

// resolves a name as resolv.conf(5) has it: the next server when one is silent.
func (o *outages) resolves(ctx context.Context, n *scene.Neighbour) (all []string, err error) {
	for _, server := range o.resolvers {
		once, done := context.WithTimeout(ctx, 2*time.Second)
		all, err = n.Resolve(once, server, hostOfAPI)
		if done(); err == nil {
			break
		}
	}
	return all, err
}

// byName connects to whichever address of the API answers first.
func (o *outages) byName(n *scene.Neighbour) func(context.Context) error {
	return func(ctx context.Context) error {
		all, err := o.resolves(ctx, n)
		for _, address := range all {
			if _, err = answers(n, net.JoinHostPort(address, portOfAPI), hostOfAPI); err == nil {
				break
			}
		}
		return err
	}
}

// many are clients that ask a hundred times a second, and machines that come as fast as they can.
type many struct {
	client *scene.Neighbour
	askers []*asker
	stop   func()
}

const manyNames = "a name, without a pause"

func (o *outages) many(ctx context.Context) *many {
	o.Helper()
	ctx, stop := context.WithCancel(ctx)
	m := &many{client: o.bound(ctx, "many"), stop: stop}
	for range 2 {
		m.askers = append(m.askers, &asker{wants: manyNames, every: 20 * time.Millisecond, once: func(ctx context.Context) error {
			_, err := o.resolves(ctx, m.client)
			return err
		}})
	}
	for i := range 3 {
		m.askers = append(m.askers, &asker{wants: leases, once: o.newMachine(o.client(ctx, fmt.Sprintf("many%d", i)), i+1)})
	}
	for _, a := range m.askers {
		o.starts(ctx, a)
	}
	return m
}

// counts of lookups and of machines.
func (m *many) counts() (lookups, machines int) {
	for _, a := range m.askers {
		a.mu.Lock()
		if a.wants == manyNames {
			lookups += a.asked
		} else {
			machines += a.asked
		}
		a.mu.Unlock()
	}
	return lookups, machines
}

// kubeconfig are the flags of a kubectl that reaches the hosted cluster by name. The certificate of c1's API server lacks that name.
func (o *outages) kubeconfig(ctx context.Context) []string {
	o.Helper()
	of, err := lab.Standin(ctx, "kubeconfig", "--cluster", "c1")
	must(o.T, err)
	text, err := os.ReadFile(of)
	must(o.T, err)
	file := filepath.Join(o.TempDir(), "kubeconfig")
	must(o.T, os.WriteFile(file, text, 0o600))
	_, err = lab.Run(ctx, "kubectl", "--kubeconfig", file, "config", "set-cluster", "cluster", "--server=https://"+net.JoinHostPort(hostOfAPI, portOfAPI), "--insecure-skip-tls-verify=true")
	must(o.T, err)
	return []string{"--kubeconfig", file}
}

// newMachine leases as a machine whom no server knows, and gives the address back; machines of one kind come from one card.
func (o *outages) newMachine(n *scene.Neighbour, kind int) func(context.Context) error {
	made := 0
	return func(ctx context.Context) error {
		made++
		if err := n.Becomes(ctx, fmt.Sprintf("02:00:56:%02x:%02x:%02x", kind, made>>8&255, made&255)); err != nil {
			return err
		}
		if _, err := n.Lease(ctx); err != nil {
			return err
		}
		_ = n.Release(ctx) // a server that is lost hears nothing of it
		return nil
	}
}

// ofHAProxy has the directives of HyperShift's (hypershift-operator/controllers/nodepool/apiserver-haproxy/assets/haproxy.cfg, 4.20): no
// check of the one server, whose address is what its name had first when HAProxy began.
const ofHAProxy = `global
  maxconn 7000
defaults
  mode tcp
  timeout connect 10s
  timeout client 10m
  timeout server 10m
  timeout client-fin 5s
  timeout server-fin 5s
  timeout queue 5s
  retries 3
frontend local
  bind 172.20.0.1:6443
  default_backend remote
backend remote
  server api %s
`

// throughHAProxy starts the worker's HAProxy before the proxy whose node dies.
func (o *outages) throughHAProxy(ctx context.Context, worker *scene.Neighbour) func(context.Context) error {
	o.Helper()
	file := filepath.Join(o.TempDir(), "haproxy.cfg")
	must(o.T, os.WriteFile(file, fmt.Appendf(nil, ofHAProxy, net.JoinHostPort(o.proxies[0], "6443")), 0o600))
	_, err := worker.Run(ctx, "ip", "addr", "add", "172.20.0.1/32", "dev", "lo")
	must(o.T, err)
	o.running.Go(func() {
		if out, err := worker.Run(ctx, "haproxy", "-db", "-f", file); ctx.Err() == nil {
			o.Errorf("HAProxy ended: %v: %s", err, out)
		}
	})
	once := func(context.Context) error { _, err := answers(worker, "172.20.0.1:6443", ""); return err }
	must(o.T, scene.Until(ctx, "HAProxy", once))
	return once
}
