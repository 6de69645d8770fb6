//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
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
	comesBack             = 6 * time.Minute  // kubelet starts what was killed often after five minutes only
	clock                 = "15:04:05.000"

	// soakComponents: a pool of few addresses, which come round, and an instance more of each component than one that is away.
	soakComponents = "  infraComponents: {dhcp: {leaseTime: 2m, rangeStart: 192.168.162.50, rangeEnd: 192.168.162.69}}\n"
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
	faults, acks, released := r.journal.Faults()
	t.Logf("seed %d: %d leases acknowledged and %d released, %d names asked for, %d requests on streams", r.seed, acks, released, r.asked.Load(), r.streamed.Load())
	for _, f := range faults {
		t.Error(f)
	}
	if acks == 0 || released == 0 || r.asked.Load() == 0 || r.streamed.Load() == 0 {
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
	proxies         []string       // their addresses, with which names are answered
	full            map[string]int // containers of each component
	stop            func()
	clients         sync.WaitGroup
	cutUntil        atomic.Int64 // when streams that may be cut have noticed it, in nanoseconds of Unix
	asked, streamed atomic.Int64
	asking          sync.RWMutex // read while a client waits for a name
}

// fault is something that goes wrong, and is over when does returns.
type fault struct {
	name string
	cuts bool // streams through the proxy
	does func()
}

func rehearse(t *testing.T) *rehearsal {
	t.Helper()
	r := &rehearsal{T: t, length: 5 * time.Minute, seed: uint64(time.Now().UnixNano()), journal: new(soak.Journal), full: map[string]int{}}
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
	for _, component := range []string{"dhcp", "dns", "proxy"} {
		running, err := running(r.ctx, component)
		must(t, err)
		r.full[component] = len(running)
	}
	r.faults = append(r.lifecycle(), r.around()...)
	r.begin()
	return r
}

// serves waits until all three services say so, each instance on its own node, but for a proxy that was moved from a lost one, and all their
// containers are ready; the machines of c1 are on another VLAN, so Ready it is not.
func (r *rehearsal) serves(after string) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.ctx, comesBack)
	defer cancel()
	for part, reasons := range map[string][]string{"DHCPReady": {"Serving"}, "DNSReady": {"Serving"}, "ProxyReady": {"Serving", "InstancesShareNode"}} {
		must(r.T, scene.Until(ctx, part+" "+after, func(ctx context.Context) error {
			c, err := conditionOf(ctx, "clusters", "infra/soak", part)
			if err == nil && (c.Status != "True" || !slices.Contains(reasons, c.Reason)) {
				err = errors.New(c.Message)
			}
			return err
		}))
	}
	for component := range r.full {
		r.isWhole(ctx, component, nil)
	}
}

// isWhole waits until all containers of a component are ready, and they are not those of before: until Kubernetes has seen that one is gone,
// all still looks well, and the next fault would meet what this one has left.
func (r *rehearsal) isWhole(ctx context.Context, component string, before []string) {
	r.Helper()
	must(r.T, scene.Until(ctx, "containers of "+component, func(ctx context.Context) error {
		now, err := running(ctx, component)
		if err == nil && (len(now) != r.full[component] || slices.Equal(now, before)) {
			err = fmt.Errorf("%d are ready, %d were: %q", len(now), r.full[component], now)
		}
		return err
	}))
}

// running are the IDs of a component's containers that are ready.
func running(ctx context.Context, component string) ([]string, error) {
	return ofPods(ctx, component, `{{range .status.containerStatuses}}{{if .ready}}{{.containerID}} {{end}}{{end}}`)
}

// ofPods is what a template prints of a component's pods. One that is being deleted is none of them: on a node that was cut off it may end at any
// time, and says that it is ready until then.
func ofPods(ctx context.Context, component, template string) ([]string, error) {
	out, err := lab.Kubectl(ctx, "-n", "clusters", "get", "pods", "-l", "app.kubernetes.io/instance=soak-"+component, "-o",
		"go-template={{range .items}}{{if not .metadata.deletionTimestamp}}"+template+"{{end}}{{end}}")
	all := strings.Fields(out)
	slices.Sort(all)
	return all, err
}

// replaced has something done that ends containers of a component, and waits for their successors.
func (r *rehearsal) replaced(component string, do func(context.Context)) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.ctx, comesBack)
	defer cancel()
	before, err := running(ctx, component)
	must(r.T, err)
	do(ctx)
	r.isWhole(ctx, component, before)
}

func (r *rehearsal) goesWrong(f fault) {
	r.Helper()
	began := time.Now()
	if f.cuts {
		r.cutUntil.Store(math.MaxInt64)
	}
	f.does()
	r.serves("after: " + f.name)
	r.isAnswered()
	if f.cuts {
		r.cutUntil.Store(time.Now().Add(streamAnswers).UnixNano())
	}
	r.Logf("%s %s: %.1f s", began.Format(clock), f.name, time.Since(began).Seconds())
}

// isAnswered waits until whoever asks has an answer: a client that asked what was away needs its time for the other, before that may be away.
func (r *rehearsal) isAnswered() {
	r.asking.Lock()
	defer r.asking.Unlock()
}

// lifecycle of our own pods: a process is killed or stands still, and a pod is made anew.
func (r *rehearsal) lifecycle() (all []fault) {
	for component, containers := range map[string][]string{"dhcp": {"dhcp"}, "dns": {"dns"}, "proxy": {"envoy", "proxy"}} {
		for _, container := range containers {
			all = append(all,
				fault{container + " is killed", container == "envoy", func() {
					r.replaced(component, func(ctx context.Context) { r.inContainer(ctx, component, container, "kill -KILL $pid") })
				}},
				fault{container + " stands still for 3 s", false, func() { r.inContainer(r.ctx, component, container, standsStill) }})
		}
		all = append(all, fault{component + " is made anew", component == "proxy", func() {
			r.replaced(component, func(ctx context.Context) {
				pod, err := r.pod(ctx, component, r.chance.Int())
				must(r.T, err)
				kubectl(r.T, ctx, "-n", "clusters", "delete", pod)
			})
		}})
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
func (r *rehearsal) pod(ctx context.Context, component string, chance int) (string, error) {
	all, err := ofPods(ctx, component, "pod/{{.metadata.name}} ")
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%s has no pod", component)
	}
	if err != nil {
		return "", err
	}
	return all[chance%len(all)], nil
}

// standsStill is one command, for beside a load a second one would come much later.
const standsStill = "kill -STOP $pid && sleep 3 && kill -CONT $pid"

// inContainer runs a command of the shell in one of a component's pods, with the first process of a container as $pid, once that runs, on
// whichever node the pod is.
func (r *rehearsal) inContainer(ctx context.Context, component, container, command string) {
	r.Helper()
	ctx, cancel := context.WithTimeout(ctx, comesBack)
	defer cancel()
	which := fmt.Sprintf(`jsonpath={.spec.nodeName} {.status.containerStatuses[?(@.name==%q)].containerID}`, container)
	const withPID = `pid=$(ctr -n k8s.io tasks ls | awk -v id="$0" '$1 == id && $3 == "RUNNING" { print $2 }') && [ -n "$pid" ] && `
	chance := r.chance.Int()
	must(r.T, scene.Until(ctx, container, func(ctx context.Context) error {
		pod, err := r.pod(ctx, component, chance)
		if err != nil {
			return err
		}
		out, err := lab.Kubectl(ctx, "-n", "clusters", "get", pod, "-o", which)
		node, id, _ := strings.Cut(out, " ")
		if err == nil {
			_, err = lab.InNode(ctx, node, "exec", "sh", "-c", withPID+command, strings.TrimPrefix(id, "containerd://"))
		}
		return err
	}))
}
