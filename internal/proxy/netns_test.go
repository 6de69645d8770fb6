//go:build netns

package proxy

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/vishvananda/netns"

	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/proxy/bootstrap"
)

// These tests run the sidecar and the real Envoy as in a pod: a namespace with a device on each network, no root, no
// capability, ports by sysctl. The test binary is the sidecar too: with a directory in the environment it serves instead
// of testing.
const envDir = "OOOI_TEST_PROXY_DIR"

const (
	podAddress  = "10.244.77.9"
	nodeAddress = "10.244.77.1"
	vlanVIP     = "192.168.77.10"
)

func TestMain(m *testing.M) {
	dir := os.Getenv(envDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	err := Run(ctx, Options{
		Flags:     daemon.Flags{ConfigFile: filepath.Join(dir, "proxy.yaml"), StateDir: dir, HealthAddress: podAddress + ":8081", MetricsAddress: podAddress + ":9402"},
		XDSSocket: filepath.Join(dir, "xds.sock"),
		Pod:       netip.MustParseAddr(podAddress),
		Log:       slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}, nil)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// site is a pod with a device on the pod network, where its node is, and one on the VLAN, where a VM is.
type site struct {
	t       *testing.T
	id, dir string
}

func newSite(t *testing.T) *site {
	t.Helper()
	g := NewWithT(t)
	if os.Geteuid() != 0 {
		t.Fatal("these tests make network namespaces: run them as root (make test does)")
	}
	dir, err := os.MkdirTemp("", "oooi-proxy-") // not t.TempDir, whose parent only root may enter
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	g.Expect(os.Chmod(dir, 0o777)).To(Succeed())
	s := &site{t: t, id: fmt.Sprintf("px%d", os.Getpid()%10000), dir: dir}
	for _, host := range []string{"pod", "node", "vm"} {
		s.run("ip", "netns", "add", s.ns(host))
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", s.ns(host)).Run() })
		s.in(host, "ip", "link", "set", "lo", "up")
	}
	s.wire("eth0", podAddress+"/24", "node", nodeAddress+"/24")
	s.wire("net1", vlanVIP+"/24", "vm", "192.168.77.50/24")
	s.in("pod", "sysctl", "-qw", "net.ipv4.ip_unprivileged_port_start=0", "net.ipv4.conf.net1.forwarding=0")
	s.in("vm", "ip", "route", "add", podAddress+"/32", "via", vlanVIP)
	return s
}

// wire joins a device of the pod with one of a peer.
func (s *site) wire(device, address, peer, peerAddress string) {
	s.in("pod", "ip", "link", "add", device, "type", "veth", "peer", "name", "eth0", "netns", s.ns(peer))
	s.in("pod", "ip", "addr", "add", address, "dev", device)
	s.in("pod", "ip", "link", "set", device, "up")
	s.in(peer, "ip", "addr", "add", peerAddress, "dev", "eth0")
	s.in(peer, "ip", "link", "set", "eth0", "up")
}

func (s *site) ns(host string) string { return s.id + host }

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

func (s *site) run(name string, args ...string) {
	s.t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		s.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

func (s *site) in(host string, args ...string) {
	s.t.Helper()
	s.run("ip", append([]string{"netns", "exec", s.ns(host)}, args...)...)
}

// enter runs a function in a host's namespace; sockets that it makes stay there.
func (s *site) enter(host string, do func()) {
	s.t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine, in the namespace that it entered
		handle, err := netns.GetFromName(s.ns(host))
		if err == nil {
			defer handle.Close()
			err = netns.Set(handle)
		}
		if err != nil {
			s.t.Errorf("entering the namespace of %s: %v", host, err)
			return
		}
		do()
	}()
	<-done
}

// start runs a command in the pod without root and without a capability.
func (s *site) start(name string, env []string, command ...string) {
	s.t.Helper()
	cmd := exec.Command("ip", append([]string{"netns", "exec", s.ns("pod"), "setpriv", "--reuid=65532", "--regid=65532", "--clear-groups",
		"--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"}, command...)...)
	cmd.Env = append(os.Environ(), env...)
	output := &tail{}
	cmd.Stdout, cmd.Stderr = output, output
	NewWithT(s.t).Expect(cmd.Start()).To(Succeed())
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed just now
		if s.t.Failed() {
			s.t.Logf("%s said:\n%s", name, output.text())
		}
	})
}

// serve offers an API on both networks, with a target on the node.
func (s *site) serve(env ...string) {
	s.t.Helper()
	g := NewWithT(s.t)
	var api target
	s.enter("node", func() { api = newTargetAt(s.t, "api", netip.MustParseAddrPort(nodeAddress+":6443")) })
	g.Expect(os.WriteFile(s.path("proxy.yaml"), []byte(`
metadata: {namespace: tenants, name: c1-proxy}
spec:
  networkConfig: {serverIP: `+vlanVIP+`, networkAttachmentDefinition: vlan77}
  backends: [{name: api, protocol: TLS, port: 443, catchAll: true, views: VLANAndPods, targetAddresses: ["`+api.address()+`"]}]
`), 0o644)).To(Succeed())
	content, err := bootstrap.Complete(bootstrap.Template("tenants", "c1-proxy"), bootstrap.Machine{XDSSocket: s.path("xds.sock"), Connections: 100})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(s.path("bootstrap.yaml"), content, 0o644)).To(Succeed())
	self, err := os.Executable()
	g.Expect(err).NotTo(HaveOccurred())
	s.run("install", "-m", "755", self, s.path("oooi"))
	s.start("the sidecar", append(env, envDir+"="+s.dir), s.path("oooi"))
	s.start("Envoy", nil, append([]string{envoyBinary(s.t)}, bootstrap.Arguments(s.path("bootstrap.yaml"))...)...)
	g.Eventually(s.readyz, 20*time.Second).Should(Equal("ok\n"))
}

func (s *site) readyz() string { return s.page("node", podAddress+":8081", "/readyz") }

// page fetches from a host; what went wrong is its text.
func (s *site) page(from, address, path string) (body string) {
	s.enter(from, func() {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			body = err.Error()
			return
		}
		client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil }}}
		response, err := client.Get("http://" + address + path)
		if err != nil {
			body = err.Error()
			return
		}
		defer response.Body.Close()
		content := make([]byte, 4096)
		n, _ := response.Body.Read(content)
		body = string(content[:n])
	})
	return body
}

// tries connects from a host; nil means that the API answered.
func (s *site) tries(from, address string) (err error) {
	s.enter(from, func() {
		var conn *tls.Conn
		conn, err = tls.DialWithDialer(&net.Dialer{Timeout: 2 * time.Second}, "tcp", address, &tls.Config{InsecureSkipVerify: true})
		if err == nil {
			_ = conn.Close() // it answered
		}
	})
	return err
}

func TestAVMThatRoutesToThePodsAddressGetsNoAnswer(t *testing.T) {
	g, s := NewWithT(t), newSite(t)
	s.serve()
	g.Expect(s.tries("vm", vlanVIP+":443")).To(Succeed(), "the VIP is there for it")
	g.Expect(s.tries("node", podAddress+":443")).To(Succeed(), "the pod network is served")
	g.Expect(s.readyz()).To(Equal("ok\n"))
	for _, address := range []string{podAddress + ":443", podAddress + ":8081", podAddress + ":9402"} {
		g.Expect(s.tries("vm", address)).To(MatchError(ContainSubstring("connection refused")), "%s through the VIP", address)
	}
}

func TestAPodThatForwardsIsNotReady(t *testing.T) {
	g, s := NewWithT(t), newSite(t)
	s.serve("OOOI_VLAN_TUNED=true")
	s.in("pod", "sysctl", "-qw", "net.ipv4.conf.net1.forwarding=1")
	g.Eventually(s.readyz, 3*time.Second).Should(ContainSubstring("forwarding: device net1 forwards packets"))
	s.in("pod", "sysctl", "-qw", "net.ipv4.conf.net1.forwarding=0")
	g.Eventually(s.readyz, 3*time.Second).Should(Equal("ok\n"))
}
