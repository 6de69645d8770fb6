//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cldmnky/oooi/test/lab/scene"
)

// foretold is what `oooi diff -o json` prints of one Infra.
type foretold struct {
	Infras []struct {
		Pods     []struct{ Verb, Workload, IP string }
		Services []struct {
			Component, Effect string
			Seconds           int
		}
		Clients []struct{ Says string }
	}
}

// Each change is foretold and made, and then the pods that were replaced are counted by their UIDs, and the streams through both proxies
// that were cut; each service is asked all the time, and no longer away than foretold.
func TestWhatADiffForetellsIsWhatTheLabShows(t *testing.T) {
	infra := infraOn("told", "192.168.148.0/24", "vlan148")
	d := newForeteller(t, 15*time.Minute, scene.BridgeNAD("vlan148", "br148")+"---\n"+infra)
	const again = "  extraEndpoints: [{name: again, hostnames: [again.example.com], port: 5001, protocol: TLS, target: {service: ignition-server-proxy, namespace: clusters-c1, port: 443}}]\n"
	for _, c := range []struct {
		what, components, more string
		pods                   int
	}{
		{"lease time", "dhcp: {leaseTime: 2h}", "", 6},
		{"resources of dhcp", "dhcp: {leaseTime: 2h, resources: {requests: {memory: 40Mi}}}", "", 6},
		{"resources of dns", "dns: {resources: {requests: {memory: 40Mi}}}", "", 6},
		{"endpoint", "dns: {resources: {requests: {memory: 40Mi}}}", again, 6},
		{"endpoint goes", "dns: {resources: {requests: {memory: 40Mi}}}", "", 6},
		{"resources of the proxy", "proxy: {resources: {requests: {memory: 70Mi}}}", "", 6},
		{"one dns instance", "dns: {replicas: 1}, proxy: {resources: {requests: {memory: 70Mi}}}", "", 5},
		{"resources of the only dns instance", "dns: {replicas: 1, resources: {requests: {memory: 41Mi}}}, proxy: {resources: {requests: {memory: 70Mi}}}", "", 5},
	} {
		d.changes(c.what, infra+"  infraComponents: {"+c.components+"}\n"+c.more, c.pods)
	}
}

type foreteller struct {
	*testing.T
	ctx context.Context
	// client has streams and looks names up; second asks for its lease again and again.
	client, second *scene.Neighbour
}

// newForeteller has an Infra told on VLAN 148 that serves a client.
func newForeteller(t *testing.T, takes time.Duration, manifests string) foreteller {
	t.Helper()
	d := foreteller{T: t, ctx: within(t, takes)}
	_, err := lab.Lab(d.ctx, "vlan", "148")
	must(t, err)
	apply(t, d.ctx, manifests)
	d.serve(6)
	d.client, d.second = neighbour(t, d.ctx, "told", "br148", ""), neighbour(t, d.ctx, "told2", "br148", "")
	_, err = d.client.Lease(d.ctx)
	must(t, err)
	return d
}

// serve waits until each component that is on serves, with so many pods in all.
func (d foreteller) serve(pods int) {
	d.Helper()
	must(d.T, scene.Until(d.ctx, fmt.Sprintf("%d pods serve", pods), func(ctx context.Context) error {
		for _, component := range []string{"dhcp", "dns", "proxy"} {
			if field(d.T, ctx, "infra/told", ".spec.infraComponents."+component+".enabled") == "false" {
				continue
			}
			part := map[string]string{"dhcp": "DHCPReady", "dns": "DNSReady", "proxy": "ProxyReady"}[component]
			if c, err := conditionOf(ctx, "clusters", "infra/told", part); err != nil || c.Status != "True" {
				return fmt.Errorf("%s: %s %s: %w", part, c.Reason, c.Message, err)
			}
		}
		if n := len(d.uids()); n != pods {
			return fmt.Errorf("there are %d pods", n)
		}
		return nil
	}))
}

// uids of the pods that are Ready, by their workloads.
func (d foreteller) uids() map[string]string {
	d.Helper()
	out := kubectl(d.T, d.ctx, "-n", "clusters", "get", "pods", "-l", "hostedcluster.densityops.com/infra=told", "-o",
		`jsonpath={range .items[*]}{.metadata.labels.app\.kubernetes\.io/instance} {.metadata.uid} {.status.conditions[?(@.type=="Ready")].status} {.metadata.labels.hostedcluster\.densityops\.com/ordinal}{"\n"}{end}`)
	all := map[string]string{}
	for line := range strings.Lines(out) {
		words := strings.Fields(line)
		if len(words) < 3 || words[2] != "True" {
			continue
		}
		workload := words[0] + "-deployment"
		if len(words) > 3 {
			workload += "-" + words[3]
		}
		all[workload] = words[1]
	}
	return all
}

// changes foretells a change, makes it, and compares.
func (d foreteller) changes(what, infra string, pods int) {
	d.Helper()
	out, failed := lab.Pipe(d.ctx, infra, "oooi", "diff", "-f", "-", "-o", "json") // exit code 1: something changes
	var says foretold
	if err := json.Unmarshal([]byte(out), &says); err != nil || len(says.Infras) != 1 {
		d.Fatalf("%s: foretold is %q: %v %v", what, out, err, failed)
	}
	var replaced, cut []string
	for _, p := range says.Infras[0].Pods {
		if p.Verb == "replace" {
			replaced = append(replaced, p.Workload)
		}
	}
	proxies, streams := addressesOf(d.T, d.ctx, "told", "proxy"), map[string]func() error{}
	for _, at := range proxies {
		streams[at] = keepsAsking(d.ctx, dial(d.client, net.JoinHostPort(at, "6443")))
		for _, c := range says.Infras[0].Clients {
			if endsStreams(c.Says, at) {
				cut = append(cut, at)
			}
		}
	}
	was := d.uids()
	judge := d.away(what, says)
	must(d.T, lab.Apply(d.ctx, infra))
	must(d.T, scene.Until(d.ctx, "the change is made", func(context.Context) error {
		is := d.uids()
		for _, workload := range replaced {
			if is[workload] == "" || is[workload] == was[workload] {
				return fmt.Errorf("%s has its pod of before", workload)
			}
		}
		return nil
	}))
	d.serve(pods)
	passes(d.ctx, 5*time.Second) // what was not foretold would begin
	d.serve(pods)
	judge()
	var did, ended []string
	is := d.uids()
	for _, workload := range slices.Sorted(maps.Keys(was)) {
		if is[workload] != "" && is[workload] != was[workload] {
			did = append(did, workload)
		}
	}
	for _, at := range proxies {
		if streams[at]() != nil {
			ended = append(ended, at)
		}
	}
	slices.Sort(replaced)
	d.Logf("%s: replaced %v, streams cut %v; foretold %v", what, did, ended, says.Infras[0].Services)
	if !slices.Equal(did, replaced) {
		d.Errorf("%s: replaced were %v, foretold %v", what, did, replaced)
	}
	if !slices.Equal(ended, cut) {
		d.Errorf("%s: streams were cut through %v, foretold %v", what, ended, cut)
	}
}

// endsStreams says whether clients are told that streams through a proxy's address end.
func endsStreams(says, at string) bool {
	return strings.HasPrefix(says, "every stream through "+at+" ends") || strings.HasPrefix(says, "the proxy moves from "+at+" ") ||
		strings.HasPrefix(says, "nobody answers at "+at+" (proxy)") || strings.HasPrefix(says, "all streams of workers to the control plane end")
}

// clientWaits is how long a client may be without an answer from a service of which one instance serves all the time: its time-out of a second at
// the other, three of udhcpc's where that had offered something, and what all wait for two processors that two labs share. 4.7 s were seen so.
const clientWaits = 12 * time.Second

// mayBeAway is how long a client may be without an answer from a component, as far as that is judged. Nothing is where something ends or begins: the
// name that is asked for leads to the proxy.
func (f foretold) mayBeAway(component string) (longest time.Duration, judged bool) {
	longest = clientWaits
	for _, s := range f.Infras[0].Services {
		if s.Effect == "ends" || s.Effect == "begins" {
			return 0, false
		}
		if s.Component == component {
			longest += time.Duration(s.Seconds) * time.Second
		}
	}
	return longest, true
}

// away asks each service all the time, as clients do, until what it returns is called, which fails the test for a service that was away for longer
// than foretold, and logs how long each was.
func (d foreteller) away(what string, says foretold) (judge func()) {
	d.Helper()
	dns, proxies, began := addressesOf(d.T, d.ctx, "told", "dns"), addressesOf(d.T, d.ctx, "told", "proxy"), time.Now()
	asked := map[string]func() time.Duration{
		"dns":   d.asks(func(ctx context.Context) error { return d.resolvesAt(ctx, dns) }),
		"proxy": d.asks(func(context.Context) error { return d.connectsTo(proxies) }),
		"dhcp": d.asks(func(ctx context.Context) error {
			_, err := d.second.Lease(ctx)
			return err
		}),
	}
	return func() {
		d.Helper()
		for _, component := range slices.Sorted(maps.Keys(asked)) {
			gap := asked[component]()
			d.Logf("%s: %s without an answer for %.1f s", what, component, gap.Seconds())
			if longest, judged := says.mayBeAway(component); judged && gap-stood(began) > longest {
				d.Errorf("%s: %s was away for %s, foretold %+v", what, component, gap, says.Infras[0].Services)
			}
		}
	}
}

// asks asks all the time until what it returns is called: the longest time without an answer.
func (d foreteller) asks(once func(context.Context) error) func() time.Duration {
	ctx, stop := context.WithCancel(d.ctx)
	longest := make(chan time.Duration, 1)
	go func() {
		gap, last := time.Duration(0), time.Now()
		for ctx.Err() == nil {
			if once(ctx) == nil {
				gap, last = max(gap, time.Since(last)), time.Now()
			}
			passes(ctx, 100*time.Millisecond)
		}
		longest <- max(gap, time.Since(last)) // also of a service that has not come back
	}()
	return func() time.Duration {
		stop()
		return <-longest
	}
}

// resolvesAt asks the servers in turn, as a resolver does.
func (d foreteller) resolvesAt(ctx context.Context, servers []string) (err error) {
	for _, server := range servers {
		once, done := context.WithTimeout(ctx, time.Second)
		_, err = d.client.Resolve(once, server, "ignition-server-clusters-c1.apps.mgmt.example.com")
		done()
		if err == nil {
			return nil
		}
	}
	return err
}

// connectsTo connects to the first proxy that accepts.
func (d foreteller) connectsTo(proxies []string) (err error) {
	for _, at := range proxies {
		var conn net.Conn
		if conn, err = d.client.Dial(net.JoinHostPort(at, "6443"), time.Second); err == nil {
			return conn.Close()
		}
	}
	return err
}
