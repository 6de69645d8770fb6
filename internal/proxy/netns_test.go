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
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/proxy/bootstrap"
	"github.com/cldmnky/oooi/internal/testkit/netns"
)

// These tests run the sidecar and the real Envoy as in a pod: a network namespace with a device on each network, no root, no capabilities, low
// ports by sysctl. The test binary is also the sidecar: with a directory in the environment it serves instead of testing.
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
	p := newProxy(Options{
		Flags:       daemon.Flags{ConfigFile: filepath.Join(dir, "proxy.yaml"), StateDir: dir, PodIP: netip.MustParseAddr(podAddress)},
		XDSSocket:   filepath.Join(dir, "xds.sock"),
		Connections: 100,
		Log:         slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}, nil)
	p.probes.pause = quick
	if err := p.run(ctx, nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// site is a pod with a device on the pod network, where its node is, and one on the VLAN, where a VM is.
type site struct {
	*netns.Hosts
	t *testing.T
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{netns.New(t, "pod", "node", "vm"), t}
	s.Join(netns.End{Host: "pod", Device: "eth0", Address: podAddress + "/24"}, netns.End{Host: "node", Device: "eth0", Address: nodeAddress + "/24"})
	s.Join(netns.End{Host: "pod", Device: "net1", Address: vlanVIP + "/24"}, netns.End{Host: "vm", Device: "eth0", Address: "192.168.77.50/24"})
	s.In("pod", "sysctl", "-qw", "net.ipv4.ip_unprivileged_port_start=0", "net.ipv4.conf.net1.forwarding=0")
	s.In("vm", "ip", "route", "add", podAddress+"/32", "via", vlanVIP)
	return s
}

// start runs a command in the pod, without root or capabilities.
func (s *site) start(name string, env []string, command ...string) {
	s.t.Helper()
	cmd := s.Pod("pod", command...)
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
	s.Enter("node", func() { api = newTargetAt(s.t, "api", netip.MustParseAddrPort(nodeAddress+":6443")) })
	g.Expect(os.WriteFile(s.Path("proxy.yaml"), []byte(`
metadata: {namespace: tenants, name: c1-proxy}
spec:
  networkConfig: {serverIP: `+vlanVIP+`, networkAttachmentDefinition: vlan77}
  backends: [{name: api, protocol: TLS, port: 443, catchAll: true, views: VLANAndPods, targetAddresses: ["`+api.address()+`"]}]
`), 0o644)).To(Succeed())
	content, err := bootstrap.Complete(bootstrap.Template("tenants", "c1-proxy"), bootstrap.Machine{XDSSocket: s.Path("xds.sock"), Connections: 100})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(s.Path("bootstrap.yaml"), content, 0o644)).To(Succeed())
	s.start("the sidecar", append(env, envDir+"="+s.Path("")), s.Self())
	s.start("Envoy", nil, append([]string{envoyBinary(s.t)}, bootstrap.Arguments(s.Path("bootstrap.yaml"))...)...)
	g.Eventually(s.readyz, 20*time.Second).Should(Equal("ok\n"))
}

func (s *site) readyz() string { return s.page("node", podAddress+":8081", "/readyz") }

// page fetches a page as a host; a failure is returned as text.
func (s *site) page(from, address, path string) (body string) {
	s.Enter(from, func() {
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

// tries connects as a host; nil means that the API answered.
func (s *site) tries(from, address string) (err error) {
	s.Enter(from, func() {
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

func TestAPodThatLacksACapturedAddressIsNotReady(t *testing.T) {
	g, s := NewWithT(t), newSite(t)
	s.serve()
	spec, err := os.ReadFile(s.Path("proxy.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	captured := strings.Replace(string(spec), "networkConfig: {", "networkConfig: {capturedAddresses: [{ip: 203.0.113.8, ports: [443]}], ", 1)
	g.Expect(os.WriteFile(s.Path("proxy.yaml"), []byte(captured), 0o644)).To(Succeed())
	g.Eventually(s.readyz, 10*time.Second).Should(ContainSubstring("203.0.113.8 is on no network device of this pod"))
	g.Expect(s.tries("vm", vlanVIP+":443")).To(Succeed(), "what it has it serves on")
}

func TestAPodThatForwardsIsNotReady(t *testing.T) {
	g, s := NewWithT(t), newSite(t)
	s.serve("OOOI_VLAN_TUNED=true")
	s.In("pod", "sysctl", "-qw", "net.ipv4.conf.net1.forwarding=1")
	g.Eventually(s.readyz, 3*time.Second).Should(ContainSubstring("forwarding: device net1 forwards packets"))
	s.In("pod", "sysctl", "-qw", "net.ipv4.conf.net1.forwarding=0")
	g.Eventually(s.readyz, 3*time.Second).Should(Equal("ok\n"))
}

// The pod reaches its own address on the VLAN through the socket that is bound to the VLAN's device, and another's from its own.
func TestAPodProbesItselfAndTheOtherInstance(t *testing.T) {
	g, s := NewWithT(t), newSite(t)
	s.serve()
	success := func() (all []string) {
		for line := range strings.SplitSeq(s.page("node", podAddress+":9402", "/metrics"), "\n") {
			if strings.HasPrefix(line, "oooi_proxy_probe_success") {
				all = append(all, line)
			}
		}
		return all
	}
	g.Eventually(success, 20*time.Second).Should(ConsistOf(`oooi_proxy_probe_success{address="192.168.77.10",backend="api"} 1`))

	sources := make(chan string, 100)
	s.Enter("vm", func() {
		other, err := net.Listen("tcp", "192.168.77.50:443")
		g.Expect(err).NotTo(HaveOccurred())
		answering(t, "other", other, func(c net.Conn) { sources <- c.RemoteAddr().(*net.TCPAddr).IP.String() })
	})
	spec, err := os.ReadFile(s.Path("proxy.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	two := strings.Replace(string(spec), "networkConfig: {", "networkConfig: {additionalServerIPs: [192.168.77.50], ", 1)
	g.Expect(os.WriteFile(s.Path("proxy.yaml"), []byte(two), 0o644)).To(Succeed())
	g.Eventually(success, 20*time.Second).Should(ConsistOf(
		`oooi_proxy_probe_success{address="192.168.77.10",backend="api"} 1`, `oooi_proxy_probe_success{address="192.168.77.50",backend="api"} 0`))
	g.Expect(sources).To(Receive(Equal(vlanVIP)))
}
