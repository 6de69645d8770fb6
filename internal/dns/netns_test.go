//go:build netns

package dns

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/testkit/netns"
)

// These tests run dig against a daemon as in a pod: dual-homed, in its own network namespace, without root or capabilities. The test binary is
// also the daemon: with a configuration in the environment it serves instead of testing.
const (
	envConfig  = "OOOI_TEST_DNS_CONFIG"
	envMetrics = "OOOI_TEST_DNS_METRICS"
)

func init() {
	config := os.Getenv(envConfig)
	if config == "" {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	d := &Daemon{
		Flags: &daemon.Flags{ConfigFile: config, PodIP: netip.MustParseAddr(podIP)}, Now: time.Now,
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}
	if metrics := os.Getenv(envMetrics); metrics != "" { // one of two instances, which have no pod network
		d.Flags.PodIP, d.Flags.MetricsAddress = netip.Addr{}, metrics
		if d.Instance, d.probePause = 0, quick; metrics == secondMetrics {
			d.Instance = 1
		}
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
	*netns.Hosts
	t *testing.T
}

func newNetwork(t *testing.T) *network {
	t.Helper()
	n := &network{netns.New(t, "pod", "worker", "node"), t}
	for _, host := range []string{"pod", "worker", "node"} {
		n.In(host, "sysctl", "-qw", "net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.default.rp_filter=0")
	}
	n.Join(netns.End{Host: "pod", Device: "net1", Address: vip + "/24"}, netns.End{Host: "worker", Device: "vlan", Address: "192.168.100.57/24"})
	n.Join(netns.End{Host: "pod", Device: "eth0", Address: podIP + "/16"}, netns.End{Host: "node", Device: "eth0", Address: "10.128.0.1/16"})
	n.In("worker", "ip", "address", "add", "10.20.0.7/32", "dev", "vlan")
	n.In("worker", "ip", "address", "add", "10.99.0.7/32", "dev", "vlan")
	n.In("pod", "ip", "route", "add", "10.20.0.0/16", "dev", "net1")
	n.In("pod", "ip", "route", "add", "10.99.0.0/16", "dev", "net1")
	n.In("worker", "ip", "route", "add", podIP+"/32", "via", vip)
	n.In("pod", "sysctl", "-qw", "net.ipv4.ip_unprivileged_port_start=0")
	return n
}

func (n *network) config() string { return n.Path("dns.yaml") }

// example returns the configuration in docs/DNS_SETUP.md, so that these tests keep it valid.
func example(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/DNS_SETUP.md")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(page)
	NewWithT(t).Expect(block).To(HaveLen(2))
	return string(block[1])
}

func (n *network) serves(yaml string) {
	n.t.Helper()
	NewWithT(n.t).Expect(daemon.WriteFile(n.config(), []byte(yaml))).To(Succeed())
	NewWithT(n.t).Expect(os.Chmod(n.config(), 0o644)).To(Succeed())
}

// starts runs a test binary in the pod as nobody.
func (n *network) starts(env ...string) {
	n.t.Helper()
	g := NewWithT(n.t)
	cmd := n.Pod("pod", n.Self())
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), n.t.Output()
	g.Expect(cmd.Start()).To(Succeed())
	n.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
}

// digs returns dig's answer in one line: its response code, then its data.
func (n *network) digs(host string, args ...string) string {
	out, err := n.Command(host, append([]string{"dig", "+time=2", "+tries=1"}, args...)...).Output()
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
	n.starts(envConfig + "=" + n.config())
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
		// If a socket were bound to its address alone, these would be answered (Linux' weak host model).
		"the pod's address through the VIP":          {"worker", "@10.128.0.17 api.c1.example.com", "no answer"},
		"the pod's address through the VIP over TCP": {"worker", "@10.128.0.17 +tcp api.c1.example.com", "no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(n.digs(c.host, strings.Fields(c.dig)...)).To(Equal(c.said))
		})
	}
	t.Run("health through the VIP", func(t *testing.T) {
		url := "http://" + podIP + ":8081/readyz"
		NewWithT(t).Eventually(func() error {
			return n.Command("node", "curl", "-fsS", "-m", "2", url).Run()
		}, 5*time.Second).Should(Succeed())
		NewWithT(t).Expect(n.Command("worker", "curl", "-sS", "-m", "2", url).Run()).NotTo(Succeed())
	})
}

func TestAChangedRecordReachesDigWithinASecond(t *testing.T) {
	g, n := NewWithT(t), newNetwork(t)
	n.serves(example(t))
	n.starts(envConfig + "=" + n.config())
	api := func() string { return n.digs("worker", "@"+vip, "api.c1.example.com") }
	g.Eventually(api, 10*time.Second).Should(Equal("NOERROR A 192.168.100.4"))
	n.serves(strings.Replace(example(t), "192.168.100.4}", "192.168.100.44}", 1))
	g.Eventually(api, time.Second).Should(Equal("NOERROR A 192.168.100.44"))
}
