//go:build netns

package dns

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/daemon"
)

// These tests put dig before the daemon as it runs in a pod: dual-homed, in a network namespace of its own, with no root and
// no capability. The test binary is the daemon too: with a configuration in the environment it serves instead of testing.
const envConfig = "OOOI_TEST_DNS_CONFIG"

func init() {
	config := os.Getenv(envConfig)
	if config == "" {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	d := &Daemon{
		Flags: &daemon.Flags{ConfigFile: config, HealthAddress: podIP + ":8081"}, PodIP: netip.MustParseAddr(podIP),
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}
	if err := d.Run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

const (
	vip   = "192.168.100.3"
	podIP = "10.128.0.17"
)

// network is a pod between a worker on the VLAN (net1) and a node on the pod network (eth0).
type network struct {
	t      *testing.T
	id     string
	config string
}

func newNetwork(t *testing.T) *network {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("these tests make network namespaces: run them as root (make test does)")
	}
	dir, err := os.MkdirTemp("", "oooi-dns-") // not t.TempDir, whose parent only root may enter
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	NewWithT(t).Expect(os.Chmod(dir, 0o755)).To(Succeed())
	n := &network{t: t, id: fmt.Sprintf("dns%d", os.Getpid()), config: filepath.Join(dir, "dns.yaml")}
	for _, host := range []string{"pod", "worker", "node"} {
		n.run("ip", "netns", "add", n.id+host)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", n.id+host).Run() })
		n.in(host, "ip", "link", "set", "lo", "up")
		n.in(host, "sysctl", "-qw", "net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.default.rp_filter=0")
	}
	n.wire("net1", vip+"/24", "worker", "192.168.100.57/24")
	n.wire("eth0", podIP+"/16", "node", "10.128.0.1/16")
	n.in("worker", "ip", "address", "add", "10.20.0.7/32", "dev", "vlan")
	n.in("worker", "ip", "address", "add", "10.99.0.7/32", "dev", "vlan")
	n.in("pod", "ip", "route", "add", "10.20.0.0/16", "dev", "net1")
	n.in("pod", "ip", "route", "add", "10.99.0.0/16", "dev", "net1")
	n.in("worker", "ip", "route", "add", podIP+"/32", "via", vip)
	n.in("pod", "sysctl", "-qw", "net.ipv4.ip_unprivileged_port_start=0")
	return n
}

// wire joins a device of the pod to a peer.
func (n *network) wire(device, addr, peer, peerAddr string) {
	n.in("pod", "ip", "link", "add", device, "type", "veth", "peer", "name", "vlan", "netns", n.id+peer)
	n.in("pod", "ip", "address", "add", addr, "dev", device)
	n.in("pod", "ip", "link", "set", device, "up")
	n.in(peer, "ip", "address", "add", peerAddr, "dev", "vlan")
	n.in(peer, "ip", "link", "set", "vlan", "up")
}

func (n *network) run(name string, args ...string) {
	n.t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	NewWithT(n.t).Expect(err).NotTo(HaveOccurred(), "%s %v: %s", name, args, out)
}

func (n *network) in(host string, command ...string) {
	n.t.Helper()
	n.run("ip", append([]string{"netns", "exec", n.id + host}, command...)...)
}

// example is the configuration of docs/DNS_SETUP.md: an example that tests run cannot describe what does not exist.
func example(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/DNS_SETUP.md")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(page)
	NewWithT(t).Expect(block).To(HaveLen(2))
	return string(block[1])
}

// serves writes a configuration.
func (n *network) serves(yaml string) {
	n.t.Helper()
	NewWithT(n.t).Expect(daemon.WriteFile(n.config, []byte(yaml))).To(Succeed())
	NewWithT(n.t).Expect(os.Chmod(n.config, 0o644)).To(Succeed())
}

// starts runs a test binary in the pod as nobody.
func (n *network) starts(env ...string) {
	n.t.Helper()
	g := NewWithT(n.t)
	binary := filepath.Join(filepath.Dir(n.config), "daemon")
	self, err := os.Executable()
	g.Expect(err).NotTo(HaveOccurred())
	n.run("cp", self, binary)
	cmd := exec.Command("ip", "netns", "exec", n.id+"pod", "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups",
		"--bounding-set", "-all", "--inh-caps", "-all", "--no-new-privs", binary)
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), n.t.Output()
	g.Expect(cmd.Start()).To(Succeed())
	n.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
}

// digs is dig's answer in one line: its code, then its data.
func (n *network) digs(host string, args ...string) string {
	cmd := exec.Command("ip", append([]string{"netns", "exec", n.id + host, "dig", "+time=2", "+tries=1"}, args...)...)
	out, err := cmd.Output()
	if err != nil {
		return "no answer"
	}
	var said []string
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		switch {
		case strings.Contains(line, "->>HEADER<<-"):
			said = append(said, strings.TrimSuffix(fields[5], ","))
		case len(fields) >= 5 && !strings.HasPrefix(line, ";"):
			said = append(said, strings.Join(fields[3:5], " "))
		}
	}
	return strings.Join(said, " ")
}

func TestDigSeesTwoViews(t *testing.T) {
	n := newNetwork(t)
	n.serves(example(t))
	n.starts(envConfig + "=" + n.config)
	NewWithT(t).Eventually(func() string { return n.digs("worker", "@"+vip, "api.c1.example.com") }, 10*time.Second).Should(Equal("NOERROR A 192.168.100.4"))
	for name, c := range map[string]struct{ host, dig, said string }{
		"a worker over UDP":                   {"worker", "@192.168.100.3 console.apps.c1.example.com", "NOERROR A 192.168.100.5"},
		"a worker over TCP":                   {"worker", "@192.168.100.3 +tcp api.c1.example.com", "NOERROR A 192.168.100.4"},
		"NODATA":                              {"worker", "@192.168.100.3 api.c1.example.com AAAA", "NOERROR SOA localhost."},
		"NXDOMAIN":                            {"worker", "@192.168.100.3 api-int.c1.example.com", "NXDOMAIN SOA localhost."},
		"the management cluster's names":      {"worker", "@192.168.100.3 kubernetes.default.svc.cluster.local", "NXDOMAIN SOA localhost."},
		"version.bind":                        {"worker", "@192.168.100.3 version.bind TXT CH", "REFUSED"},
		"an off-link client that is admitted": {"worker", "-b 10.20.0.7 @192.168.100.3 api.c1.example.com", "NOERROR A 192.168.100.4"},
		"a stranger on the VLAN":              {"worker", "-b 10.99.0.7 @192.168.100.3 api.c1.example.com", "REFUSED"},
		"the pod network":                     {"node", "@10.128.0.17 api.c1.example.com", "NOERROR A 172.30.0.9"},
		"the pod network, of other names":     {"node", "@10.128.0.17 www.example.org", "REFUSED"},
		// Linux' weak host model would answer these, were a socket bound to its address alone.
		"the pod's address through the VIP":          {"worker", "@10.128.0.17 api.c1.example.com", "no answer"},
		"the pod's address through the VIP over TCP": {"worker", "@10.128.0.17 +tcp api.c1.example.com", "no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(n.digs(c.host, strings.Fields(c.dig)...)).To(Equal(c.said))
		})
	}
	t.Run("health through the VIP", func(t *testing.T) {
		url := "http://" + podIP + ":8081/readyz"
		n.t = t
		NewWithT(t).Eventually(func() error {
			return exec.Command("ip", "netns", "exec", n.id+"node", "curl", "-fsS", "-m", "2", url).Run()
		}, 5*time.Second).Should(Succeed())
		NewWithT(t).Expect(exec.Command("ip", "netns", "exec", n.id+"worker", "curl", "-sS", "-m", "2", url).Run()).NotTo(Succeed())
	})
}

func TestAChangedRecordReachesDigWithinASecond(t *testing.T) {
	g, n := NewWithT(t), newNetwork(t)
	n.serves(example(t))
	n.starts(envConfig + "=" + n.config)
	api := func() string { return n.digs("worker", "@"+vip, "api.c1.example.com") }
	g.Eventually(api, 10*time.Second).Should(Equal("NOERROR A 192.168.100.4"))
	n.serves(strings.Replace(example(t), "192.168.100.4}", "192.168.100.44}", 1))
	g.Eventually(api, time.Second).Should(Equal("NOERROR A 192.168.100.44"))
}
