//go:build e2e && outages

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cldmnky/oooi/test/lab/scene"
	"github.com/cldmnky/oooi/test/lab/soak"
)

const outageVLAN = "156"

// outages of an Infra whose first instances are on the second node: their addresses are those of HAProxies and of the captured API.
type outages struct {
	*testing.T
	ctx                context.Context
	proxies, resolvers []string
	journal            *soak.Journal
	askers             map[string]*asker
	running            sync.WaitGroup
}

// instance of a component: its first, or its second.
type instance struct {
	component string
	second    bool
}

func (i instance) pods() []string {
	which := "!hostedcluster.densityops.com/ordinal"
	if i.second {
		which = "hostedcluster.densityops.com/ordinal=1"
	}
	return []string{"-n", "clusters", "-l", "app.kubernetes.io/instance=outage-" + i.component + "," + which}
}

// What is on the second node: in most outages the proxy that has the captured address, and a worker's first name server is on the other.
var (
	firstProxy, firstNameServer = instance{component: "proxy"}, instance{component: "dns"}

	mostOutages    = []instance{firstProxy, {component: "dhcp"}, {component: "dns", second: true}}
	nameServerDies = []instance{firstNameServer, {component: "dhcp", second: true}, {component: "proxy", second: true}}
)

func outage(t *testing.T, lasts time.Duration, onNode2 []instance) *outages {
	t.Helper()
	ctx := within(t, lasts)
	_, err := lab.Lab(ctx, "vlan", outageVLAN)
	must(t, err)
	apply(t, ctx, scene.BridgeNAD("vlan"+outageVLAN, "br"+outageVLAN)+"---\n"+infraOn("outage", "192.168.156.0/22", "vlan"+outageVLAN)+"  extraEndpoints: ["+namedAPI+"]\n")
	secondNode(t, ctx)
	o := &outages{T: t, ctx: ctx, journal: new(soak.Journal), askers: map[string]*asker{}}
	o.serves()
	o.proxies, o.resolvers = addressesOf(t, ctx, "outage", "proxy"), addressesOf(t, ctx, "outage", "dns")
	if len(o.proxies) != 2 || len(o.resolvers) != 2 {
		t.Fatalf("the proxies have %v, the DNS instances %v", o.proxies, o.resolvers)
	}
	o.moveToNode2(onNode2)
	t.Cleanup(o.judge) // when the clients have stopped
	asking, stop := context.WithCancel(ctx)
	for _, a := range o.clients(asking) {
		o.askers[a.wants] = a
		o.starts(asking, a)
	}
	t.Cleanup(func() { stop(); o.running.Wait() })
	return o
}

// starts a client.
func (o *outages) starts(ctx context.Context, a *asker) {
	a.begins()
	o.running.Go(func() { a.asks(ctx) })
}

// judge has the packets say what may not happen.
func (o *outages) judge() {
	faults, acks, released := o.journal.Faults()
	if o.Logf("%d leases acknowledged, %d released", acks, released); acks == 0 || released == 0 {
		o.Error("the machines did not lease and release, so that nothing is shown")
	}
	for _, f := range faults {
		o.Error(f)
	}
}

// serves waits until each component says that it serves, and no pod of it ends.
func (o *outages) serves() {
	o.Helper()
	for _, part := range []string{"DHCPReady", "DNSReady", "ProxyReady"} {
		must(o.T, scene.Until(o.ctx, part, func(ctx context.Context) error {
			c, err := conditionOf(ctx, "clusters", "infra/outage", part)
			if err == nil && (c.Status != "True" || c.Reason != "Serving" && c.Reason != "InstancesShareNode") {
				err = fmt.Errorf("%s: %s", c.Reason, c.Message)
			}
			return err
		}))
	}
	must(o.T, scene.Until(o.ctx, "six pods", func(ctx context.Context) error {
		out, err := lab.Kubectl(ctx, "-n", "clusters", "get", "pods", "-l", "hostedcluster.densityops.com/infra=outage", "-o", "name")
		if n := len(strings.Fields(out)); err == nil && n != 6 {
			err = fmt.Errorf("there are %d", n)
		}
		return err
	}))
}

// moveToNode2 moves instances to the second node, as an admin does.
func (o *outages) moveToNode2(all []instance) {
	o.Helper()
	kubectl(o.T, o.ctx, "cordon", "node1")
	for _, i := range all {
		kubectl(o.T, o.ctx, append([]string{"delete", "pod"}, i.pods()...)...)
	}
	o.serves()
	kubectl(o.T, o.ctx, "uncordon", "node1")
	for _, i := range all {
		if node := kubectl(o.T, o.ctx, append([]string{"get", "pod", "-o", "jsonpath={.items[*].spec.nodeName}"}, i.pods()...)...); node != "node2" {
			o.Fatalf("%v is on %s", i, node)
		}
	}
}

// during has something done, and returns what each client met meanwhile.
func (o *outages) during(do func()) map[string]met {
	o.Helper()
	for _, a := range o.askers {
		a.begins()
	}
	do()
	all := map[string]met{}
	for wants, a := range o.askers {
		all[wants] = a.begins()
	}
	return all
}

func (o *outages) lab(args ...string) {
	o.Helper()
	_, err := lab.Lab(o.ctx, args...)
	must(o.T, err)
}

// allHaveAnAnswer waits until each client has one that is younger than that.
func (o *outages) allHaveAnAnswer(since time.Time) {
	o.Helper()
	for wants, a := range o.askers {
		must(o.T, scene.Until(o.ctx, wants, func(context.Context) error {
			if !a.hasAnAnswer(since) {
				return errors.New("no answer yet")
			}
			return nil
		}))
	}
}

// back is within what all instances serve once a node is back.
const back = 60 * time.Second

// wanted of the longest time without an answer when a node dies: the median, and the worst.
type wanted map[string][2]time.Duration

// The node of the proxy with the captured address dies without notice, as often as OOOI_DEATHS says (1), and comes back. Clients by name,
// by a literal and through a worker's HAProxy are answered again, no lookup and no new machine's lease fails, and a stream through the
// other proxy is not cut.
func TestANodeDiesAgainAndAgain(t *testing.T) {
	const second = time.Second
	diesAgain(t, mostOutages, wanted{
		byName: {3 * second, 5 * second}, handshakes: {3 * second, 5 * second}, byLiteral: {10 * second, 10 * second}, byHAProxy: {10 * second, 10 * second},
		names: {second, 2 * second}, leases: {2 * second, 3 * second},
	})
}

// The node of a worker's first name server dies so: who has waited for it asks the second.
func TestAWorkersFirstNameServerDiesAgainAndAgain(t *testing.T) {
	const second = time.Second
	diesAgain(t, nameServerDies, wanted{names: {5 * second, 5 * second}, leases: {2 * second, 3 * second}, byLiteral: {second, 2 * second}, byHAProxy: {second, 2 * second}})
}

func diesAgain(t *testing.T, onNode2 []instance, want wanted) {
	t.Helper()
	deaths := 1
	if told := os.Getenv("OOOI_DEATHS"); told != "" {
		var err error
		deaths, err = strconv.Atoi(told)
		must(t, err)
	}
	o := outage(t, 3*time.Minute+time.Duration(deaths)*3*time.Minute, onNode2)
	proxy := onNode2[slices.IndexFunc(onNode2, func(i instance) bool { return i.component == "proxy" })]
	other := o.proxies[1]
	if proxy.second {
		other = o.proxies[0]
	}
	goesOn := keepsAsking(o.ctx, dial(o.bound(o.ctx, "stream"), net.JoinHostPort(other, "6443")))
	gaps := map[string][]time.Duration{}
	for n := range deaths {
		mayBeMoved(t, o.ctx, proxy.pods())
		o.dies(n, gaps)
		o.moveToNode2([]instance{proxy})
	}
	must(t, goesOn())
	for wants, all := range gaps {
		slices.Sort(all)
		median, worst := all[len(all)/2], all[len(all)-1]
		t.Logf("%-50s median %4.1f s, worst %4.1f s of %d", wants, median.Seconds(), worst.Seconds(), len(all))
		if most, judged := want[wants]; judged && (median > most[0] || worst > most[1]) {
			t.Errorf("%s: wanted are %s and %s", wants, most[0], most[1])
		}
	}
}

func (o *outages) dies(n int, gaps map[string][]time.Duration) {
	o.Helper()
	all := o.during(func() {
		o.lab("cut", "all")
		lost := time.Now()
		o.allHaveAnAnswer(lost.Add(2 * time.Second))
		passes(o.ctx, 20*time.Second-time.Since(lost))
	})
	for wants, m := range all {
		o.Logf("death %d: %-50s %s", n+1, wants, m)
		if gaps[wants] = append(gaps[wants], m.gap); m.failed > 0 && (wants == names || wants == leases) {
			o.Errorf("%s: %d failed", wants, m.failed)
		}
	}
	returned := time.Now()
	for wants, m := range o.during(func() { o.lab("mend"); o.serves() }) {
		o.Logf("return %d: %-50s %s", n+1, wants, m)
	}
	took := time.Since(returned)
	o.Logf("return %d: all serve after %.1f s", n+1, took.Seconds())
	if took > back {
		o.Errorf("a node that came back serves after %s", took)
	}
}

// The node is cut off from the API server for a minute, and from its VLANs for a minute. What still serves goes on, and nothing moves. Of the
// machines that are new, the first one without the API server may find out for all that come after it that one instance cannot serve it.
func TestACutOffNodeKeepsWhatItServes(t *testing.T) {
	o := outage(t, 8*time.Minute, mostOutages)
	mayBeMoved(t, o.ctx, firstProxy.pods())
	before := podsAndRestarts(t, o.ctx, "-n", "clusters", "-l", "hostedcluster.densityops.com/infra=outage")
	for from, unheard := range map[string][]string{"api": nil, "vlan": {byLiteral, byHAProxy}} {
		for wants, m := range o.during(func() {
			o.lab("cut", from)
			if from == "vlan" {
				awaitMessage(t, o.ctx, "clusters", "infra/outage", "DNSReady", "True", "InstancesApart", o.resolvers[1]+", on node node2, finds the proxy "+o.proxies[0])
			}
			passes(o.ctx, time.Minute)
		}) {
			t.Logf("without %s: %-50s %s", from, wants, m)
			if !slices.Contains(unheard, wants) && m.gap > 5*time.Second || m.failed > 0 && wants == names {
				t.Errorf("without %s: %s: %s", from, wants, m)
			}
		}
		began := time.Now()
		o.lab("mend")
		o.serves()
		o.allHaveAnAnswer(time.Now())
		t.Logf("without %s: all serve %.1f s after it is back", from, time.Since(began).Seconds())
	}
	if after := podsAndRestarts(t, o.ctx, "-n", "clusters", "-l", "hostedcluster.densityops.com/infra=outage"); after != before {
		t.Errorf("pods were\n%s\nand are\n%s", before, after)
	}
}

// A machine that is powered on as the node of the first instances dies joins.
func TestAWorkerJoinsWhileANodeDies(t *testing.T) {
	o := outage(t, 6*time.Minute, mostOutages)
	mayBeMoved(t, o.ctx, firstProxy.pods())
	o.lab("cut", "all")
	m := scene.Machine{Name: "worker-56", MAC: "52:54:00:00:01:56", Cluster: "c1", Bridge: "br" + outageVLAN, NAD: "default/vlan" + outageVLAN}
	t.Logf("%s was Ready %s after power-on", m.Name, joins(t, o.ctx, m))
	o.lab("mend")
	o.serves()
}
