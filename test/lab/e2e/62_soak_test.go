//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cldmnky/oooi/test/lab/scene"
	"github.com/cldmnky/oooi/test/lab/soak"
)

const (
	soakVLAN, soakClients = "162", 4
	streamAnswers         = 15 * time.Second // or it is cut
	clock                 = "15:04:05.000"

	// soakComponents: a pool of few addresses, which come round, and a name server more than one that is away.
	soakComponents = "  infraComponents: {dns: {replicas: 2}, dhcp: {leaseTime: 2m, rangeStart: 192.168.162.50, rangeEnd: 192.168.162.69}}\n"
)

// Clients lease, release, ask for names and hold streams while one thing after another goes wrong, by chance: OOOI_SOAK says for how long
// (5m), OOOI_SOAK_SEED repeats an order. What may not happen is judged by the packets: an address twice, an acknowledged lease lost; by
// dig: a name that is not answered; by a stream: that it is cut by what does not concern it.
func TestNothingIsLostInARehearsal(t *testing.T) {
	r := rehearse(t)
	for end := time.Now().Add(r.length); time.Now().Before(end); {
		r.goesWrong(r.faults[r.chance.IntN(len(r.faults))])
	}
	r.stop()
	r.clients.Wait()
	faults, acks := r.journal.Faults()
	t.Logf("seed %d: %d leases acknowledged, %d names asked for, %d requests on streams", r.seed, acks, r.asked.Load(), r.streamed.Load())
	for _, f := range faults {
		t.Error(f)
	}
	if acks == 0 || r.asked.Load() == 0 || r.streamed.Load() == 0 {
		t.Error("some of it never happened, so that nothing is shown")
	}
}

type rehearsal struct {
	*testing.T
	ctx             context.Context
	length          time.Duration
	seed            uint64
	chance          *rand.Rand
	journal         *soak.Journal
	faults          []fault
	proxy           string // its address, which names are answered with
	stop            func()
	clients         sync.WaitGroup
	cutUntil        atomic.Int64 // when streams that may be cut have noticed it, in nanoseconds of Unix
	asked, streamed atomic.Int64
}

// fault is something that goes wrong, and is over when does returns.
type fault struct {
	name string
	cuts bool // streams through the proxy
	does func()
}

func rehearse(t *testing.T) *rehearsal {
	t.Helper()
	r := &rehearsal{T: t, length: 5 * time.Minute, seed: uint64(time.Now().UnixNano()), journal: new(soak.Journal)}
	if told := os.Getenv("OOOI_SOAK"); told != "" {
		var err error
		r.length, err = time.ParseDuration(told)
		must(t, err)
	}
	if told := os.Getenv("OOOI_SOAK_SEED"); told != "" {
		var err error
		r.seed, err = strconv.ParseUint(told, 10, 64)
		must(t, err)
	}
	r.chance = rand.New(rand.NewPCG(r.seed, 0))
	r.ctx = within(t, r.length+10*time.Minute)
	_, err := lab.Lab(r.ctx, "vlan", soakVLAN)
	must(t, err)
	secondNode(t, r.ctx)
	apply(t, r.ctx, scene.BridgeNAD("vlan"+soakVLAN, "br"+soakVLAN)+"---\n"+
		strings.Replace(infraOn("soak", "192.168.162.0/24", "vlan"+soakVLAN), "spec:\n", "spec:\n"+soakComponents, 1))
	r.serves("at first")
	r.faults = append(r.lifecycle(), r.around()...)
	r.begin()
	return r
}

// serves waits until all three services say so, each instance of DNS on its own node; the machines of c1 are on another VLAN, so Ready it
// is not.
func (r *rehearsal) serves(after string) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.ctx, 6*time.Minute) // kubelet starts what was killed often after five minutes only
	defer cancel()
	for part, reason := range map[string]string{"DHCPReady": "", "DNSReady": "Serving", "ProxyReady": ""} {
		must(r.T, scene.Until(ctx, part+" "+after, func(ctx context.Context) error {
			c, err := conditionOf(ctx, "clusters", "infra/soak", part)
			if err == nil && (c.Status != "True" || reason != "" && c.Reason != reason) {
				err = errors.New(c.Message)
			}
			return err
		}))
	}
}

func (r *rehearsal) goesWrong(f fault) {
	r.Helper()
	began := time.Now()
	if f.cuts {
		r.cutUntil.Store(math.MaxInt64)
	}
	f.does()
	r.serves("after: " + f.name)
	if f.cuts {
		r.cutUntil.Store(time.Now().Add(streamAnswers).UnixNano())
	}
	r.Logf("%s %s: %.1f s", began.Format(clock), f.name, time.Since(began).Seconds())
}

// lifecycle of our own pods: a process is killed or stands still, and a pod is made anew.
func (r *rehearsal) lifecycle() (all []fault) {
	for component, containers := range map[string][]string{"dhcp": {"dhcp"}, "dns": {"dns"}, "proxy": {"envoy", "proxy"}} {
		for _, container := range containers {
			all = append(all,
				fault{container + " is killed", container == "envoy", func() { r.inContainer(r.pod(component), container, "kill -KILL $pid") }},
				fault{container + " stands still for 3 s", false, func() { r.inContainer(r.pod(component), container, standsStill) }})
		}
		all = append(all, fault{component + " is made anew", component == "proxy", func() { kubectl(r.T, r.ctx, "-n", "clusters", "delete", r.pod(component)) }})
	}
	return all
}

// around them: the manager, the API server, the link to it, and what admins write.
func (r *rehearsal) around() []fault {
	patch := func(spec string) func() {
		return func() {
			kubectl(r.T, r.ctx, "-n", "clusters", "patch", "infra", "soak", "--type=merge", "-p", `{"spec":`+spec+`}`)
		}
	}
	inNode := func(command ...string) {
		_, err := lab.Lab(r.ctx, append([]string{"exec"}, command...)...)
		must(r.T, err)
	}
	cut := func(from string, d time.Duration) {
		_, err := lab.Lab(r.ctx, "cut", from)
		must(r.T, err)
		passes(r.ctx, d)
		_, err = lab.Lab(r.ctx, "mend")
		must(r.T, err)
	}
	return []fault{
		{"the manager is made anew", false, func() { kubectl(r.T, r.ctx, "-n", "oooi-system", "delete", "pod", "--all") }},
		{"the API server stands still for 5 s", false, func() {
			inNode("sh", "-c", "busybox killall -STOP kube-apiserver && sleep 5; busybox killall -CONT kube-apiserver")
		}},
		{"node2 has no API server for 10 s", false, func() { cut("api", 10*time.Second) }},
		{"node2 has no network for 15 s", true, func() { cut("all", 15*time.Second) }},
		{"another lease time", false, patch(fmt.Sprintf(`{"infraComponents":{"dhcp":{"leaseTime":"%dm"}}}`, 2+r.chance.IntN(5)))},
		{"a reservation", false, patch(`{"infraComponents":{"dhcp":{"reservations":[{"mac":"02:00:00:00:00:77","ip":"192.168.162.77"}]}}}`)},
		{"no reservation", false, patch(`{"infraComponents":{"dhcp":{"reservations":null}}}`)},
		{"another resolver", false, patch(`{"networkConfig":{"dnsServers":["192.168.162.79"]}}`)},
		{"no other resolver", false, patch(`{"networkConfig":{"dnsServers":null}}`)},
		{"another route", false, patch(`{"extraEndpoints":[{"name":"again","hostnames":["again.example.com"],"port":5001,"protocol":"TLS","target":{"service":"ignition-server-proxy","namespace":"clusters-c1","port":443}}]}`)},
		{"no other route", false, patch(`{"extraEndpoints":null}`)},
	}
}

// passes: how long something lasts, or how often a client asks, is what is rehearsed.
func passes(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// pod is one of a component's, by chance.
func (r *rehearsal) pod(component string) string {
	r.Helper()
	all := strings.Fields(kubectl(r.T, r.ctx, "-n", "clusters", "get", "pods", "-l", "app.kubernetes.io/instance=soak-"+component, "-o", "name"))
	return all[r.chance.IntN(len(all))]
}

// standsStill is one command, for beside a load a second one would come much later.
const standsStill = "kill -STOP $pid && sleep 3 && kill -CONT $pid"

// inContainer runs a command of the shell with the first process of a container as $pid, once that runs, on whichever node its pod is.
func (r *rehearsal) inContainer(pod, container, command string) {
	r.Helper()
	which := fmt.Sprintf(`jsonpath={.spec.nodeName} {.status.containerStatuses[?(@.name==%q)].containerID}`, container)
	const withPID = `pid=$(ctr -n k8s.io tasks ls | awk -v id="$0" '$1 == id && $3 == "RUNNING" { print $2 }') && [ -n "$pid" ] && `
	must(r.T, scene.Until(r.ctx, container, func(ctx context.Context) error {
		out, err := lab.Kubectl(ctx, "-n", "clusters", "get", pod, "-o", which)
		node, id, _ := strings.Cut(out, " ")
		if err == nil {
			_, err = lab.InNode(ctx, node, "exec", "sh", "-c", withPID+command, strings.TrimPrefix(id, "containerd://"))
		}
		return err
	}))
}

// begin starts the clients; stop ends what they do.
func (r *rehearsal) begin() {
	r.Helper()
	ctx, stop := context.WithCancel(r.ctx)
	r.stop = stop
	r.Cleanup(func() { stop(); r.clients.Wait() })
	r.proxy = vip(r.T, ctx, "soak")
	for i := range soakClients {
		n := neighbour(r.T, r.ctx, fmt.Sprintf("soak%d", i), "br"+soakVLAN, "")
		r.clients.Go(func() {
			if err := n.Capture(ctx, r.journal.Frame); err != nil {
				r.Errorf("capturing: %v", err)
			}
		})
		var first scene.Lease
		must(r.T, scene.Until(ctx, "a lease", func(ctx context.Context) (err error) { first, err = n.Lease(ctx); return err }))
		must(r.T, n.Asks(first.Resolvers...))
		if i%2 == 0 {
			r.clients.Go(func() { r.leases(ctx, n, i) })
			continue
		}
		r.clients.Go(func() { r.boots(ctx, n, first.Address) })
		r.clients.Go(func() { r.asks(ctx, n) })
		r.clients.Go(func() { r.streams(ctx, n, net.JoinHostPort(r.proxy, "6443")) })
	}
}

// boots asks for a lease again and again, as a machine does, and has the same address each time: connections end with it. Whether a server
// is away is its own matter: the journal has the replies.
func (r *rehearsal) boots(ctx context.Context, n *scene.Neighbour, address string) {
	for ctx.Err() == nil {
		if now, err := n.Lease(ctx); err == nil && now.Address != address {
			r.Errorf("%s a client that had %s was given %s", time.Now().Format(clock), address, now.Address)
			address = now.Address
		}
		passes(ctx, 5*time.Second)
	}
}

// leases as machines do that come and go: each gives its address back, and another of three takes its place.
func (r *rehearsal) leases(ctx context.Context, n *scene.Neighbour, client int) {
	for machine := 1; ctx.Err() == nil; passes(ctx, 3*time.Second) {
		if _, err := n.Lease(ctx); err != nil || n.Release(ctx) != nil {
			continue
		}
		if err := n.Becomes(ctx, fmt.Sprintf("02:00:00:62:%02x:%02x", client, machine%3)); err != nil && ctx.Err() == nil {
			r.Error(err)
		}
		machine++
	}
}

// asks for a name as resolv.conf(5) has it: 5 s for an answer, and once more.
func (r *rehearsal) asks(ctx context.Context, n *scene.Neighbour) {
	for ctx.Err() == nil {
		out, err := n.Run(ctx, "dig", "+short", "+time=5", "+tries=2", "ignition-server-clusters-c1.apps.mgmt.example.com")
		if ctx.Err() == nil && (err != nil || !strings.HasSuffix(strings.TrimSpace(out), r.proxy)) {
			r.Errorf("%s dig has %q: %v", time.Now().Format(clock), strings.TrimSpace(out), err)
		}
		r.asked.Add(1)
		passes(ctx, 500*time.Millisecond)
	}
}

// streams holds a connection to the API server and says when it is cut. After what may cut it, another is made.
func (r *rehearsal) streams(ctx context.Context, n *scene.Neighbour, address string) {
	var held *stream
	for ctx.Err() == nil {
		was := held
		if held == nil {
			held = dial(n, address)
		}
		if err := held.answers(); err != nil {
			if ctx.Err() == nil && was != nil && time.Now().UnixNano() > r.cutUntil.Load() {
				r.Errorf("%s a stream was cut: %v", time.Now().Format(clock), err)
			}
			held.close()
			held = nil
		}
		r.streamed.Add(1)
		passes(ctx, 500*time.Millisecond)
	}
	held.close()
}

// stream is one connection. http.Transport makes another in silence, and closes one whose request took more than 50 ms to be written.
type stream struct {
	conn    net.Conn
	replies *bufio.Reader
	err     error // of the dial
}

func dial(n *scene.Neighbour, address string) *stream {
	conn, err := n.Dial(address, 5*time.Second)
	if err != nil {
		return &stream{err: err}
	}
	conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
	return &stream{conn: conn, replies: bufio.NewReader(conn)}
}

func (s *stream) answers() error {
	if s.err != nil {
		return s.err
	}
	err := s.conn.SetDeadline(time.Now().Add(streamAnswers))
	if err == nil {
		_, err = io.WriteString(s.conn, "GET /version HTTP/1.1\r\nHost: kubernetes\r\n\r\n")
	}
	if err != nil {
		return err
	}
	reply, err := http.ReadResponse(s.replies, nil)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	_, err = io.Copy(io.Discard, reply.Body)
	return err
}

func (s *stream) close() {
	if s != nil && s.conn != nil {
		_ = s.conn.Close() // it may be cut
	}
}
