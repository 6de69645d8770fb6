package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/cldmnky/oooi/internal/component"
	"github.com/cldmnky/oooi/internal/nad"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/input"
	"github.com/cldmnky/oooi/internal/plan/workload"
	"github.com/cldmnky/oooi/internal/proxy/bootstrap"
	testenv "github.com/cldmnky/oooi/internal/testkit/envtest"
	"github.com/cldmnky/oooi/test/bench/internal/audited"
	"github.com/cldmnky/oooi/test/bench/internal/daemons"
	"github.com/cldmnky/oooi/test/bench/internal/process"
	"github.com/cldmnky/oooi/test/bench/internal/segment"
	"github.com/cldmnky/oooi/test/bench/internal/table"
)

// The hosts: our pod on the VLAN and on the pod network, the node there, and two guests on the VLAN, of which one is hostile.
const ours, node, hostile, other = "pod", "node", "hostile", "other"

// The addresses are documented as free for benchmarks (RFC 2544).
const (
	vlan, vip           = "198.18.0.0/16", "198.18.0.2"
	podIP, nodeIP       = "198.19.0.2", "198.19.0.1"
	hostileIP, otherIP  = "198.18.0.6", "198.18.0.7"
	namespace           = "default"
	attachedToLocalnet  = `{"cniVersion":"0.3.1","name":"vlan","type":"ovn-k8s-cni-overlay","topology":"localnet","netAttachDefName":"default/vlan","vlanID":100}`
	apiProxyOfEveryPod  = "api-proxy"
	envoyBesideASidecar = "envoy"
)

func newSegment() (*segment.Segment, error) {
	lines := []string{"-n wire: link add switch type bridge", "-n wire: link set switch up",
		"-n pod: link add eth0 type veth peer name eth0 netns node:",
		"-n pod: address add " + podIP + "/24 dev eth0", "-n pod: link set eth0 up",
		"-n node: address add " + nodeIP + "/24 dev eth0", "-n node: link set eth0 up"}
	for host, ip := range map[string]string{ours: vip, hostile: hostileIP, other: otherIP} {
		lines = append(lines, "-n "+host+": link add "+names.VLANInterface+" type veth peer name "+host+" netns wire:",
			"-n wire: link set "+host+" master switch up", "-n "+host+": address add "+ip+"/16 dev "+names.VLANInterface, "-n "+host+": link set "+names.VLANInterface+" up")
	}
	return segment.New("floods", []string{"wire", ours, node, hostile, other}, lines...)
}

// pod runs the containers of a server's pod template, within their limits.
type pod struct {
	*segment.Segment
	containers []container
	stops      []func()
}

type container struct {
	name   string
	pid    int
	memory table.MiB // its limit
}

// template of the pod that the operator makes for a server.
func template(kind component.Name, server component.Server) (corev1.PodTemplateSpec, error) {
	in := workload.Surroundings{Settings: input.Settings{Image: "oooi", EnvoyImage: "envoy", ExtraEndpointCIDRs: []netip.Prefix{netip.MustParsePrefix(nodeIP + "/32")}}}
	in.NAD = &nad.NetworkAttachmentDefinition{}
	in.NAD.Namespace, in.NAD.Name, in.NAD.Spec.Config = namespace, "vlan", attachedToLocalnet
	in.AllowedNamespace = namespace
	p := workload.Of(kind, workload.Child[component.Server]{Server: server, Surroundings: in})
	for _, o := range p.Objects {
		var made struct {
			Spec struct{ Template corev1.PodTemplateSpec }
		}
		text, err := json.Marshal(o)
		if err != nil {
			return made.Spec.Template, err
		}
		if json.Unmarshal(text, &made) == nil && len(made.Spec.Template.Spec.Containers) > 0 {
			return made.Spec.Template, nil
		}
	}
	return corev1.PodTemplateSpec{}, fmt.Errorf("%s becomes no pod: %v", server.GetName(), p.Findings)
}

// startServer starts the pod of a server, whose requests reach the API server as from a pod, and waits until it is ready.
func (p *pod) startServer(ctx context.Context, cluster *rest.Config, kind component.Name, server component.Server) error {
	made, err := template(kind, server)
	if err != nil {
		return err
	}
	socket := filepath.Join(p.Dir, "api.sock")
	forwards, err := daemons.Forward(ctx, cluster, p.Dir, socket)
	if err != nil {
		return err
	}
	p.stops = append(p.stops, forwards.Stop)
	envoy := memoryOf(made, envoyBesideASidecar)
	for _, c := range made.Spec.Containers {
		switch c.Name {
		case apiProxyOfEveryPod: // it runs already, where the API server is
			continue
		case envoyBesideASidecar:
			if err := p.completesBootstrap(server, envoy); err != nil {
				return err
			}
			c.Command[0] = os.Getenv("OOOI_ENVOY")
		default:
			c.Command = []string{"bin/oooi"}
			c.Args = append(c.Args, "--api-socket="+socket) // a second time where the template has it
		}
		if err := p.start(ctx, c, envoy); err != nil {
			return err
		}
	}
	return p.becomesReady(ctx)
}

func (p *pod) stop() {
	for i := range p.stops {
		p.stops[len(p.stops)-1-i]()
	}
}

func memoryOf(t corev1.PodTemplateSpec, name string) int64 {
	for _, c := range t.Spec.Containers {
		if c.Name == name {
			return c.Resources.Limits.Memory().Value()
		}
	}
	return 0
}

// here is a container's argument, with its paths in our directory.
func (p *pod) here(argument string) string {
	for _, mount := range []string{"/state", "/xds/", "/api/", "/etc/envoy/"} {
		if at := strings.Index(argument, mount); at == 0 || at > 0 && argument[at-1] == '=' {
			argument = argument[:at] + filepath.Join(p.Dir, argument[at:])
		}
	}
	return strings.NewReplacer("$(POD_NAMESPACE)", namespace, "$(POD_IP)", podIP).Replace(argument)
}

// start a container on the pod's host; it serves as soon as its process runs.
func (p *pod) start(ctx context.Context, c corev1.Container, envoyMemory int64) error {
	var dirs []string
	var err error
	if len(c.Resources.Limits) > 0 {
		dirs, err = audited.Confine(c.Name, c.Resources.Limits)
	}
	for _, dir := range dirs {
		p.stops = append(p.stops, func() { _ = os.Remove(dir) }) // it is empty by then
	}
	if err != nil {
		return err
	}
	script, command := "", []string{}
	for _, dir := range dirs {
		script += "echo $$ > " + dir + "/cgroup.procs && "
	}
	for _, argument := range append(c.Command, c.Args...) {
		command = append(command, p.here(argument))
	}
	// ip hides cgroups from what it runs, so it is limited as well; then it becomes the container's process.
	runs := exec.Command("sh", append([]string{"-c", script + `exec "$0" "$@"`}, p.On(ours, command...).Args...)...) //nolint:gosec // all of it is ours
	runs.Env = append(testenv.Environ(), "POD_IP="+podIP, "POD_NAMESPACE="+namespace, bootstrap.MemoryLimitVariable+"="+strconv.FormatInt(envoyMemory, 10))
	running, err := daemons.Begin(ctx, runs, filepath.Join(os.TempDir(), "floods-"+c.Name+".log"), func([]byte) bool { return true })
	if err != nil {
		return err
	}
	p.stops = append(p.stops, running.Stop)
	p.containers = append(p.containers, container{c.Name, running.PID, table.MiB(c.Resources.Limits.Memory().Value()) / (1 << 20)})
	return nil
}

// completesBootstrap does what the sidecar's postStart hook does.
func (p *pod) completesBootstrap(server component.Server, memory int64) error {
	in := filepath.Join(p.Dir, "template.yaml")
	if err := errors.Join(os.MkdirAll(filepath.Join(p.Dir, "xds"), 0o700), os.WriteFile(in, []byte(bootstrap.Template(namespace, server.GetName())), 0o600)); err != nil {
		return err
	}
	hook := p.On(ours, "bin/oooi", "proxy", "bootstrap", "--template="+in, "--output="+p.here("/xds/bootstrap.yaml"), "--xds-socket="+p.here(bootstrap.DefaultSocket))
	hook.Env = append(os.Environ(), bootstrap.MemoryLimitVariable+"="+strconv.FormatInt(memory, 10))
	if out, err := hook.CombinedOutput(); err != nil {
		return fmt.Errorf("completing Envoy's bootstrap: %w: %s", err, out)
	}
	return nil
}

// becomesReady waits until the pod is, or its patience ends.
func (p *pod) becomesReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, testenv.Patience)
	defer cancel()
	for {
		err := p.ready()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the pod is not ready, see %s: %w", filepath.Join(os.TempDir(), "floods-*.log"), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// ready asks as the kubelet does, from the pod's node.
func (p *pod) ready() error {
	return p.Enter(node, func() error {
		conn, err := net.DialTimeout("tcp", fmt.Sprintf("%s:%d", podIP, names.HealthPort), time.Second)
		if err != nil {
			return err
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(conn, "GET /readyz HTTP/1.0\r\n\r\n"); err != nil {
			return err
		}
		status, err := bufio.NewReader(conn).ReadString('\n')
		if strings.Contains(status, " 200 ") {
			return nil
		}
		return cmp.Or(err, errors.New(status))
	})
}

// used is what a container uses at one moment: its memory but for pages of files, which the kernel can take back; and a processor, so far.
type used struct {
	anonymous   table.MiB
	descriptors int
	processor   time.Duration
}

func (u used) String() string { return fmt.Sprintf("%s and %d", u.anonymous, u.descriptors) }

func (c container) used() (u used, err error) {
	if u.anonymous, err = process.Anonymous(c.pid); err != nil {
		return u, fmt.Errorf("container %s ended: %w", c.name, err)
	}
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", c.pid))
	if err != nil {
		return u, err
	}
	u.descriptors = len(open)
	u.processor, err = process.Processor(c.pid)
	return u, err
}
