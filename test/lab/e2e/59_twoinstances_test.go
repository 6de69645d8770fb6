//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cldmnky/oooi/test/lab/scene"
)

// Of two instances of each component one dies with its node, without notice. No lookup of a client with both name servers in its resolv.conf
// fails, and soon none has the proxy that is lost; new connections by name are answered again, a stream through the other proxy goes on, and
// the address of the one that is lost comes up on the other node; a client that is new gets an address, one that is bound keeps its own; and
// the Infra says which does not serve. With one node both run there, and DNSReady, DHCPReady and ProxyReady say so.
func TestANodeDiesAndTheOtherInstancesServe(t *testing.T) {
	ctx := within(t, 10*time.Minute)
	_, err := lab.Lab(ctx, "vlan", "139")
	must(t, err)
	apply(t, ctx, scene.BridgeNAD("vlan139", "br139")+"---\n"+infraOn("twin", "192.168.139.0/24", "vlan139"))
	onOneNode(t, ctx, "twin")
	secondNode(t, ctx)
	second, serve := apart(t, ctx, "twin")

	bound := neighbour(t, ctx, "twin", "br139", "")
	lease, err := bound.Lease(ctx)
	must(t, err)
	if len(lease.Resolvers) != 2 {
		t.Fatalf("option 6 has %v", lease.Resolvers)
	}
	proxies := addressesOf(t, ctx, "twin", "proxy")
	look := lookups{T: t, client: bound, resolvers: lease.Resolvers, proxies: proxies, begun: time.Now()}
	must(t, scene.Until(ctx, "names have both proxies", func(ctx context.Context) error {
		if look.once(ctx); len(look.seen) != 2 {
			return fmt.Errorf("they have %v", look.seen)
		}
		return nil
	}))
	mayBeMoved(t, ctx, second("proxy"))
	goesOn := keepsAsking(ctx, dial(bound, net.JoinHostPort(proxies[0], "6443")))
	connected := connects(t, ctx, neighbour(t, ctx, "caller", "br139", ""), proxies[1])
	_, err = lab.Lab(ctx, "cut", "all")
	must(t, err)
	look.lost, look.begun = proxies[1], time.Now()
	for time.Since(look.begun) < leavesAnswers+time.Second {
		look.once(ctx)
	}
	look.lost = ""
	must(t, scene.Until(ctx, "the address that was lost answers", func(context.Context) error {
		_, err := answers(bound, net.JoinHostPort(proxies[1], "6443"), "")
		return err
	}))
	moved := time.Since(look.begun)
	t.Logf("%s answers again %.1f s after its node was lost", proxies[1], moved.Seconds())
	if moved-stood(look.begun) > comesUpElsewhere {
		t.Fail()
	}
	leasesOf := map[string]string{"bound": lease.Address}
	for n := range 3 {
		name := fmt.Sprintf("new%d", n)
		client, began := neighbour(t, ctx, name, "br139", ""), time.Now()
		lease, err := client.Lease(ctx)
		must(t, err)
		leasesOf[name] = lease.Address
		t.Logf("%s, whom no instance knew, has %s after %.1f s", name, lease.Address, time.Since(began).Seconds())
	}
	again, err := bound.Lease(ctx)
	must(t, err)
	if again.Address != lease.Address {
		t.Errorf("who had %s is given %s", lease.Address, again.Address)
	}
	for told := false; !told; {
		look.once(ctx)
		ready, _ := lab.Kubectl(ctx, "-n", "clusters", "get", "infra", "twin", "-o", `jsonpath={.status.conditions[?(@.type=="DNSReady")].reason}`)
		told = strings.TrimSpace(ready) == "InstanceDown"
	}
	awaitCondition(t, ctx, "clusters", "infra/twin", "DHCPReady", "True", "InstanceDown")
	awaitMessage(t, ctx, "clusters", "infra/twin", "ProxyReady", "True", "InstancesShareNode", "on node node1: its failure stops both")
	must(t, goesOn())
	if gap := connected(); gap-stood(look.begun) > answeredAgain {
		t.Errorf("no connection by name for %s", gap)
	}
	awaitCondition(t, ctx, "clusters", "infra/twin", "Degraded", "True", "InstanceDown")
	kubectl(t, ctx, "-n", "clusters", "patch", "infra", "twin", "--type=merge", "-p", `{"spec":{"infraComponents":{"proxy":{"priorityClassName":"system-cluster-critical"}}}}`)
	awaitMessage(t, ctx, "clusters", "infra/twin", "Progressing", "True", "WaitingForLostPod", "kubectl taint nodes node2 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute")
	if _, err := answers(bound, net.JoinHostPort(proxies[1], "6443"), ""); err != nil {
		t.Errorf("an edit while node2 is lost ended the successor: %v", err)
	}
	_, err = lab.Lab(ctx, "mend")
	must(t, err)
	back := time.Now()
	must(t, scene.Until(ctx, "the pod that was lost ends", func(ctx context.Context) error {
		pods := kubectl(t, ctx, append([]string{"get", "pod", "-o", "name"}, second("proxy")...)...)
		if n := len(strings.Fields(pods)); n != 1 {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	}))
	t.Logf("the pod that was lost has ended %.1f s after its node came back", time.Since(back).Seconds())
	must(t, scene.Until(ctx, "node2 takes pods", func(ctx context.Context) error {
		if taints := kubectl(t, ctx, "get", "node", "node2", "-o", "jsonpath={.spec.taints}"); taints != "" {
			return errors.New(taints)
		}
		return nil
	}))
	kubectl(t, ctx, append([]string{"delete", "pod"}, second("proxy")...)...)
	serve()
	look.once(ctx)
	last, err := neighbour(t, ctx, "last", "br139", "").Lease(ctx)
	must(t, err)
	leasesOf["last"] = last.Address
	signal(t, ctx, "pod/twin-dhcp-deployment-0", "dhcp", "SIGSTOP")
	alone, err := neighbour(t, ctx, "alone", "br139", "").Lease(ctx)
	must(t, err) // by the second alone
	leasesOf["alone"] = alone.Address
	signal(t, ctx, "pod/twin-dhcp-deployment-0", "dhcp", "SIGCONT")
	for name, at := range leasesOf {
		for other, its := range leasesOf {
			if name != other && at == its {
				t.Errorf("%s and %s have %s", name, other, at)
			}
		}
	}
	t.Logf("%d of %d lookups failed; the last with the proxy that was lost was %.1f s after", look.failed, look.all, look.late.Seconds())
	if look.failed > 0 || look.late > leavesAnswers {
		t.Fail()
	}
}

// onOneNode waits until both instances of each component of an Infra serve on node1.
func onOneNode(t *testing.T, ctx context.Context, infra string) {
	t.Helper()
	for _, part := range []string{"DHCPReady", "DNSReady", "ProxyReady"} {
		awaitMessage(t, ctx, "clusters", "infra/"+infra, part, "True", "InstancesShareNode", "on node node1: its failure stops both")
	}
}

// apart puts the second instance of each component of an Infra on node2. serve waits until both serve and are so; second are kubectl's arguments
// for the second's pod.
func apart(t *testing.T, ctx context.Context, infra string) (second func(component string) []string, serve func()) {
	t.Helper()
	second = func(component string) []string {
		return []string{"-n", "clusters", "-l", "hostedcluster.densityops.com/ordinal=1,app.kubernetes.io/instance=" + infra + "-" + component}
	}
	serve = func() {
		t.Helper()
		for component, part := range map[string]string{"dhcp": "DHCPReady", "dns": "DNSReady", "proxy": "ProxyReady"} {
			awaitCondition(t, ctx, "clusters", "infra/"+infra, part, "True", "Serving")
			if node := kubectl(t, ctx, append([]string{"get", "pod", "-o", "jsonpath={.items[*].spec.nodeName}"}, second(component)...)...); node != "node2" {
				t.Fatalf("the second instance of %s is on %s", component, node)
			}
		}
	}
	for _, component := range []string{"dhcp", "dns", "proxy"} {
		kubectl(t, ctx, append([]string{"delete", "pod"}, second(component)...)...) // as InstancesShareNode says
	}
	serve()
	return second, serve
}

// mayBeMoved waits until a pod has been ready for ten seconds, as its address must be to be moved.
func mayBeMoved(t *testing.T, ctx context.Context, pod []string) {
	t.Helper()
	must(t, scene.Until(ctx, "a pod that is settled", func(ctx context.Context) error {
		ready, err := time.Parse(time.RFC3339, kubectl(t, ctx, append([]string{"get", "pod", "-o", `jsonpath={.items[*].status.conditions[?(@.type=="Ready")].lastTransitionTime}`}, pod...)...))
		if err == nil && time.Since(ready) < 10*time.Second {
			err = fmt.Errorf("it has been ready for %s", time.Since(ready))
		}
		return err
	}))
}

// leavesAnswers: an address is left out within a second; a lookup begins before, and ends after, on a machine with two processors.
const leavesAnswers = 3 * time.Second

// comesUpElsewhere: two seconds until a DNS instance says that an address is silent, two until it is lost, and as long as a pod takes to
// start, on a machine with two processors.
const comesUpElsewhere = 15 * time.Second

// keepsAsking asks on a stream every second, until what it returns is called: whether it was cut.
func keepsAsking(ctx context.Context, s *stream) func() error {
	ctx, stop := context.WithCancel(ctx)
	cut := make(chan error, 1)
	go func() {
		err := s.answers()
		for err == nil && ctx.Err() == nil {
			passes(ctx, time.Second)
			err = s.answers()
		}
		cut <- err
	}()
	return func() error {
		stop()
		return <-cut
	}
}

// connects makes TLS handshakes by name, as a client does that resolves it anew each time and has one proxy first if it has it at all, until
// what it returns is called: the longest time without one.
func connects(t *testing.T, ctx context.Context, n *scene.Neighbour, first string) func() time.Duration {
	t.Helper()
	lease, err := n.Lease(ctx)
	must(t, err)
	const host = "ignition-server-clusters-c1.apps.mgmt.example.com"
	ctx, stop := context.WithCancel(ctx)
	longest := make(chan time.Duration, 1)
	go func() {
		gap, last := time.Duration(0), time.Now()
		for ctx.Err() == nil {
			for _, server := range lease.Resolvers {
				once, done := context.WithTimeout(ctx, time.Second)
				at, err := n.Resolve(once, server, host)
				done()
				if err != nil || len(at) == 0 {
					continue
				}
				if slices.Contains(at, first) {
					at[0] = first
				}
				if _, err := answers(n, net.JoinHostPort(at[0], "443"), host); err == nil {
					gap, last = max(gap, time.Since(last)), time.Now()
				}
				break
			}
		}
		longest <- max(gap, time.Since(last))
	}()
	return func() time.Duration {
		stop()
		gap := <-longest
		t.Logf("longest time without a connection by name: %s", gap)
		return gap
	}
}

// lookups of a client that has two name servers.
type lookups struct {
	*testing.T
	client      *scene.Neighbour
	resolvers   []string
	proxies     []string
	lost        string        // the one that does not answer
	begun       time.Time     // since when
	late        time.Duration // after begun, the last answer with it
	seen        map[string]bool
	failed, all int
}

// once looks a name up, by a resolv.conf with the name servers in either order.
func (l *lookups) once(ctx context.Context) {
	for i := range l.resolvers {
		first, second := l.resolvers[i], l.resolvers[1-i]
		script := fmt.Sprintf("dig +short +time=2 +tries=2 @%[1]s %[3]s || dig +short +time=2 +tries=2 @%[2]s %[3]s", first, second, "ignition-server-clusters-c1.apps.mgmt.example.com")
		out, err := l.client.Run(ctx, "sh", "-c", script)
		addresses := slices.DeleteFunc(strings.Fields(out), func(word string) bool { return !slices.Contains(l.proxies, word) })
		if l.all++; err != nil || len(addresses) == 0 {
			l.failed++
			l.Logf("lookup %d: %q %v", l.all, out, err)
		}
		l.seen = map[string]bool{}
		for _, a := range addresses {
			l.seen[a] = true
		}
		if l.seen[l.lost] {
			l.late = time.Since(l.begun)
		}
	}
}
