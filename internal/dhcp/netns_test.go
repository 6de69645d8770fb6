//go:build netns

package dhcp_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/dhcp"
	"github.com/cldmnky/oooi/internal/dhcp/clock"
	"github.com/cldmnky/oooi/internal/testkit/netns"
)

// These tests run real clients against the daemon as it runs in a pod: its own network namespace, no capability, no root,
// ports by sysctl. The test binary is the daemon too: with its configuration in the environment it serves instead of testing.
const (
	envConfig = "OOOI_TEST_DHCP_CONFIG"
	envLeases = "OOOI_TEST_DHCP_LEASES"
)

func TestMain(m *testing.M) {
	if config := os.Getenv(envConfig); config != "" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		o := dhcp.Options{Clock: clock.New(), Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))}
		var err error
		if config == inCluster {
			err = runOneOfTwo(ctx, o)
		} else {
			o.Flags, o.LeaseFile = daemon.Flags{ConfigFile: config, HealthAddress: os.Getenv("OOOI_TEST_HEALTH")}, os.Getenv(envLeases)
			err = dhcp.Run(ctx, o, nil)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

const vlanYAML = `
apiVersion: hostedcluster.densityops.com/v1alpha1
kind: DHCPServer
metadata: {name: c1-dhcp, namespace: clusters}
spec:
  networkConfig:
    networkAttachmentDefinition: vlan100
    cidr: 192.168.77.0/24
    serverIP: 192.168.77.2
    gateway: 192.168.77.1
    dnsServers: [192.168.77.3]
    ntpServers: [192.168.77.4]
    mtu: 1400
    domain: c1.example.com
    searchDomains: [c1.example.com, example.com]
    routes: [{destination: 172.20.0.9/32, gateway: 192.168.77.5}]
  leaseConfig: {rangeStart: 192.168.77.100, rangeEnd: 192.168.77.150, leaseTime: 2m}
  reservations: [{ip: 192.168.77.200, mac: "52:54:00:00:02:00", hostname: worker-200}]
`

// segment is a switch with a server and clients around it.
type segment struct {
	*netns.Hosts
	t      *testing.T
	daemon *exec.Cmd
}

func newSegment(t *testing.T) *segment {
	t.Helper()
	s := &segment{Hosts: netns.New(t, "sw"), t: t}
	s.In("sw", "ip", "link", "add", "br0", "type", "bridge", "forward_delay", "0")
	s.In("sw", "ip", "link", "set", "br0", "up")
	s.attach("srv", "02:00:00:00:00:02")
	s.In("srv", "ip", "addr", "add", "192.168.77.2/24", "dev", "net1")
	s.In("srv", "sh", "-c", "echo 0 > /proc/sys/net/ipv4/ip_unprivileged_port_start")
	return s
}

// attach makes a host with one device, net1, on the switch.
func (s *segment) attach(host, mac string) {
	s.Add(host)
	s.Join(netns.End{Host: "sw", Device: host}, netns.End{Host: host, Device: "net1", MAC: mac})
	s.In("sw", "ip", "link", "set", host, "master", "br0")
}

func (s *segment) configure(yaml string) {
	NewWithT(s.t).Expect(os.WriteFile(s.Path("dhcpserver.yaml"), []byte(yaml), 0o644)).To(Succeed())
}

// serve starts the daemon without root and without a single capability, and waits until it is ready.
func (s *segment) serve() {
	s.t.Helper()
	g := NewWithT(s.t)
	s.daemon = s.Pod("srv", s.Self())
	s.daemon.Env = append(os.Environ(), envConfig+"="+s.Path("dhcpserver.yaml"), envLeases+"="+s.Path("leases.db"), "OOOI_TEST_HEALTH=192.168.77.2:8081")
	log, err := os.OpenFile(s.Path("daemon.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	g.Expect(err).NotTo(HaveOccurred())
	s.daemon.Stdout, s.daemon.Stderr = log, log
	g.Expect(s.daemon.Start()).To(Succeed())
	s.t.Cleanup(func() {
		s.kill()
		if s.t.Failed() {
			content, _ := os.ReadFile(s.Path("daemon.log"))
			s.t.Logf("daemon:\n%s", content)
		}
	})
	g.Eventually(func() string {
		out, _ := s.Command("srv", "busybox", "wget", "-qO-", "http://192.168.77.2:8081/readyz").CombinedOutput()
		return string(out)
	}).WithTimeout(10 * time.Second).Should(Equal("ok\n"))
}

// kill ends the daemon as a crash does.
func (s *segment) kill() {
	if s.daemon != nil && s.daemon.Process != nil {
		_ = s.daemon.Process.Kill()
		_ = s.daemon.Wait()
	}
	s.daemon = nil
}

func (s *segment) says(event string) {
	s.t.Helper()
	NewWithT(s.t).Eventually(func() string {
		content, _ := os.ReadFile(s.Path("daemon.log"))
		return string(content)
	}).WithTimeout(15 * time.Second).Should(ContainSubstring(event))
}

// udhcpc runs BusyBox's client until it has a lease, and returns what its script was told.
func (s *segment) udhcpc(host string, args ...string) map[string]string {
	s.t.Helper()
	script := s.Path("udhcpc.sh")
	content := "#!/bin/sh\nif [ \"$1\" = bound ] || [ \"$1\" = renew ]; then env; ip addr flush dev net1; ip addr add $ip/$mask dev net1; fi\n"
	NewWithT(s.t).Expect(os.WriteFile(script, []byte(content), 0o755)).To(Succeed())
	out := s.In(host, append([]string{"busybox", "udhcpc", "-i", "net1", "-n", "-t", "5", "-T", "3", "-s", script}, args...)...)
	told := map[string]string{}
	for line := range strings.Lines(out) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			told[key] = value
		}
	}
	return told
}

func TestUdhcpcGetsItsAddressAndEveryOption(t *testing.T) {
	s, g := newSegment(t), NewWithT(t)
	s.configure(vlanYAML)
	s.serve()
	s.attach("c1", "52:54:00:00:00:01")
	told := s.udhcpc("c1", "-q", "-O", "staticroutes", "-O", "mtu", "-O", "ntpsrv", "-O", "search")
	ip := netip.MustParseAddr(told["ip"])
	g.Expect(ip.Compare(netip.MustParseAddr("192.168.77.100"))).To(BeNumerically(">=", 0))
	g.Expect(ip.Compare(netip.MustParseAddr("192.168.77.150"))).To(BeNumerically("<=", 0))
	for key, value := range map[string]string{
		"mask": "24", "router": "192.168.77.1", "dns": "192.168.77.3", "ntpsrv": "192.168.77.4", "mtu": "1400", "domain": "c1.example.com",
		"search": "c1.example.com example.com", "serverid": "192.168.77.2", "lease": "120",
		"staticroutes": "172.20.0.9/32 192.168.77.5 0.0.0.0/0 192.168.77.1",
	} {
		g.Expect(told).To(HaveKeyWithValue(key, value))
	}

	t.Run("and the same one after the daemon was killed and the client has forgotten", func(t *testing.T) {
		s.kill()
		s.serve()
		NewWithT(t).Expect(s.udhcpc("c1", "-q")).To(HaveKeyWithValue("ip", told["ip"]))
	})
	t.Run("another client gets another", func(t *testing.T) {
		s.attach("c2", "52:54:00:00:00:02")
		NewWithT(t).Expect(s.udhcpc("c2", "-q")["ip"]).NotTo(Equal(told["ip"]))
	})
	t.Run("a reserved client its own, with its hostname", func(t *testing.T) {
		s.attach("c3", "52:54:00:00:02:00")
		NewWithT(t).Expect(s.udhcpc("c3", "-q")).To(And(HaveKeyWithValue("ip", "192.168.77.200"), HaveKeyWithValue("hostname", "worker-200")))
	})
}

// machine is a client's process and its output so far.
type machine struct {
	*segment
	process *exec.Cmd
	output  string
}

// runs starts a client and lets it run.
func (s *segment) runs(host string, args ...string) *machine {
	s.t.Helper()
	c := &machine{segment: s, output: s.Path(host + ".log")}
	log, err := os.Create(c.output)
	NewWithT(s.t).Expect(err).NotTo(HaveOccurred())
	c.process = s.Command(host, args...)
	c.process.Stdout, c.process.Stderr = log, log
	NewWithT(s.t).Expect(c.process.Start()).To(Succeed())
	s.t.Cleanup(c.ends)
	return c
}

// until waits for a text in the client's output, and returns all output.
func (c *machine) until(said string) string {
	c.t.Helper()
	var output string
	NewWithT(c.t).Eventually(func() string {
		content, _ := os.ReadFile(c.output)
		output = string(content)
		return output
	}).WithTimeout(20 * time.Second).Should(ContainSubstring(said))
	return output
}

func (c *machine) ends() {
	_ = c.process.Process.Kill()
	_ = c.process.Wait()
}

func (c *machine) signal(s syscall.Signal) {
	NewWithT(c.t).Expect(c.process.Process.Signal(s)).To(Succeed())
}

// holds attaches a machine whose udhcpc runs on, bound to ip.
func (s *segment) holds(host, mac string) (ip string, c *machine) {
	s.t.Helper()
	s.attach(host, mac)
	ip = s.udhcpc(host, "-q")["ip"]
	c = s.runs(host, "busybox", "udhcpc", "-f", "-i", "net1", "-s", s.Path("udhcpc.sh"))
	c.until("lease of " + ip + " obtained")
	return ip, c
}

// releases has a machine's udhcpc give its address back, and end.
func (s *segment) releases(c *machine, ip, mac string) {
	s.t.Helper()
	c.signal(syscall.SIGUSR2)
	s.says("state=Released ip=" + ip + " client=" + mac)
	c.ends()
}

func TestUdhcpcRenewsAndReleases(t *testing.T) {
	s := newSegment(t)
	s.configure(vlanYAML)
	s.serve()
	ip, c := s.holds("c1", "52:54:00:00:00:01")
	c.signal(syscall.SIGUSR1)
	s.says("kind=renewing client=52:54:00:00:00:01 about=" + ip + " outcome=ack")
	s.releases(c, ip, "52:54:00:00:00:01")
	NewWithT(t).Expect(s.udhcpc("c1", "-q")["ip"]).To(Equal(ip), "who comes back gets the same address")
}

// dhclient runs ISC's client until it is bound, and returns what it said. Its lease file is kept between runs, so that the
// second begins with INIT-REBOOT.
func (s *segment) dhclient(host, script string) string {
	s.t.Helper()
	conf := s.Path("dhclient.conf")
	NewWithT(s.t).Expect(os.WriteFile(conf, []byte("timeout 20;\nretry 2;\nreboot 5;\ninitial-interval 1;\nrequest subnet-mask, routers, host-name;\n"), 0o644)).To(Succeed())
	c := s.runs(host, "dhclient", "-4", "-d", "-sf", script, "-cf", conf, "-lf", s.Path(host+".leases"), "-pf", s.Path(host+".pid"), "net1")
	defer c.ends()
	return c.until("bound to ")
}

// The kernel remembers a host that it heard at an address, and knows only after eight seconds that the host has left. The client asks for
// four: beside a load, the daemon may find no time for its first question.
func TestWhoAsksForAnAddressThatAnotherLeftIsAnsweredAtOnce(t *testing.T) {
	s := newSegment(t)
	s.configure(vlanYAML)
	s.serve()
	ip, c := s.holds("c1", "52:54:00:00:00:01")
	s.releases(c, ip, "52:54:00:00:00:01")
	s.In("c1", "ip", "link", "set", "net1", "down")
	s.attach("c2", "52:54:00:00:00:02")
	NewWithT(t).Expect(s.udhcpc("c2", "-q", "-r", ip, "-t", "4", "-T", "1")["ip"]).NotTo(Or(BeEmpty(), Equal(ip)))
}

func TestDhclientRebootsAndIsTurnedAway(t *testing.T) {
	s, g := newSegment(t), NewWithT(t)
	s.configure(vlanYAML)
	s.serve()
	s.attach("c1", "52:54:00:00:00:11")
	ip := between(s.dhclient("c1", "/bin/true"), "bound to ", " ")

	again := s.dhclient("c1", "/bin/true")
	g.Expect(again).To(And(ContainSubstring("DHCPREQUEST for "+ip), Not(ContainSubstring("DHCPDISCOVER")), ContainSubstring("bound to "+ip)), "INIT-REBOOT")

	remembered, err := os.ReadFile(s.Path("c1.leases"))
	g.Expect(err).NotTo(HaveOccurred())
	elsewhere := strings.ReplaceAll(string(remembered), "fixed-address "+ip, "fixed-address 10.9.8.7")
	g.Expect(os.WriteFile(s.Path("c1.leases"), []byte(elsewhere), 0o644)).To(Succeed())
	g.Expect(s.dhclient("c1", "/bin/true")).To(And(ContainSubstring("DHCPNAK"), ContainSubstring("bound to "+ip)), "another network's address")
}

func TestDhclientDeclinesOnceAndGetsAnotherAddress(t *testing.T) {
	s, g := newSegment(t), NewWithT(t)
	s.configure(vlanYAML)
	s.serve()
	s.attach("c1", "52:54:00:00:00:12")
	// dhclient declines what its script refuses; this one refuses the first address.
	script := s.Path("refuse-first.sh")
	content := "#!/bin/sh\n[ \"$reason\" = BOUND ] && [ ! -e " + s.Path("refused") + " ] && { touch " + s.Path("refused") + "; exit 1; }\nexit 0\n"
	g.Expect(os.WriteFile(script, []byte(content), 0o755)).To(Succeed())
	out := s.dhclient("c1", script)
	declined := between(out, "DHCPDECLINE of ", " ")
	g.Expect(declined).NotTo(BeEmpty())
	g.Expect(between(out, "bound to ", " ")).NotTo(Equal(declined))
	s.says("found " + declined + " in use by another host and declined it")
}

func TestAClientBehindAConfiguredRelay(t *testing.T) {
	for name, c := range map[string]struct {
		relays string
		served bool
	}{
		"that is configured":     {"[192.168.77.9]", true},
		"that is not configured": {"[192.168.77.8/32]", false},
	} {
		t.Run(name, func(t *testing.T) {
			s, g := newSegment(t), NewWithT(t)
			s.configure(vlanYAML + "  relays: " + c.relays + "\n")
			s.serve()
			s.attach("rly", "52:54:00:00:00:09")
			s.In("rly", "ip", "addr", "add", "192.168.77.10/24", "dev", "net1")
			s.Add("far")
			s.Join(netns.End{Host: "rly", Device: "lan0", Address: "192.168.77.9/32"}, netns.End{Host: "far", Device: "net1", MAC: "52:54:00:00:00:31"})
			s.runs("rly", "dhcrelay", "-4", "-d", "-pf", s.Path("relay.pid"), "-id", "lan0", "-iu", "net1", "192.168.77.2")
			if c.served {
				g.Expect(s.udhcpc("far", "-q", "-t", "8", "-T", "2")).To(HaveKeyWithValue("serverid", "192.168.77.2"))
				return
			}
			s.runs("far", "busybox", "udhcpc", "-f", "-i", "net1", "-s", "/bin/true")
			s.says("why=relay-not-configured")
		})
	}
}

func TestAnAddressThatSomebodyUsesIsNotOffered(t *testing.T) {
	s, g := newSegment(t), NewWithT(t)
	s.configure(strings.Replace(vlanYAML, "rangeEnd: 192.168.77.150", "rangeEnd: 192.168.77.101", 1))
	s.serve()
	s.attach("squat", "52:54:00:00:00:66")
	s.In("squat", "ip", "addr", "add", "192.168.77.100/24", "dev", "net1")
	for i, host := range []string{"c1", "c2"} { // between them they try both addresses
		s.attach(host, fmt.Sprintf("52:54:00:00:00:4%d", i))
	}
	g.Expect(s.udhcpc("c1", "-q")).To(HaveKeyWithValue("ip", "192.168.77.101"))
	s.runs("c2", "busybox", "udhcpc", "-f", "-i", "net1", "-s", "/bin/true")
	s.says("a host that has no lease answers at 192.168.77.100")
}

// Linux sends three ARP requests, one a second. A host that takes the address meanwhile answers before any client comes, whose own probe would
// only find an old neighbour.
func TestWhoTakesAnAddressWhileItIsProbedAheadIsHeard(t *testing.T) {
	s, g := newSegment(t), NewWithT(t)
	s.configure(strings.Replace(vlanYAML, "rangeEnd: 192.168.77.150", "rangeEnd: 192.168.77.100", 1))
	s.attach("late", "52:54:00:00:00:66")
	s.serve()
	g.Eventually(func() string { return s.In("srv", "ip", "-s", "neigh", "show", "192.168.77.100") }).WithTimeout(20 * time.Second).WithPolling(20 * time.Millisecond).
		Should(ContainSubstring("probes 5")) // which begin at three, as if all unicast questions had been asked (neighbour.c, neigh_event_send)
	s.In("late", "ip", "addr", "add", "192.168.77.100/24", "dev", "net1")
	s.says("a host that has no lease answers at 192.168.77.100")
}

func TestAnAddressOfAnEarlierServersTimeGoesToWhoHasIt(t *testing.T) {
	s, g := newSegment(t), NewWithT(t)
	s.configure(strings.Replace(vlanYAML, "rangeEnd: 192.168.77.150", "rangeEnd: 192.168.77.102", 1))
	s.serve()
	ips := map[string]string{}
	for i, host := range []string{"c1", "c2"} {
		s.attach(host, fmt.Sprintf("52:54:00:00:00:4%d", i))
		ips[host] = between(s.dhclient(host, "/bin/true"), "bound to ", " ")
		s.In(host, "ip", "addr", "add", ips[host]+"/24", "dev", "net1")
	}
	s.kill()
	g.Expect(os.Remove(s.Path("leases.db"))).To(Succeed())
	s.In("srv", "ip", "neigh", "flush", "dev", "net1") // as on another node
	s.serve()
	for _, ip := range ips {
		s.says("a host that has no lease answers at " + ip)
	}
	g.Expect(s.dhclient("c1", "/bin/true")).To(And(Not(ContainSubstring("DHCPDISCOVER")), ContainSubstring("bound to "+ips["c1"])))

	remembered, err := os.ReadFile(s.Path("c2.leases"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(s.Path("c3.leases"), remembered, 0o644)).To(Succeed())
	s.attach("c3", "52:54:00:00:00:43")
	g.Expect(s.dhclient("c3", "/bin/true")).To(And(ContainSubstring("DHCPREQUEST for "+ips["c2"]), Not(ContainSubstring("bound to "+ips["c2"]))))
}

func TestTheConfigurationChangesUnderARunningServer(t *testing.T) {
	s, g := newSegment(t), NewWithT(t)
	s.configure(vlanYAML)
	s.serve()
	s.attach("c1", "52:54:00:00:00:01")
	ip := s.udhcpc("c1", "-q")["ip"]
	s.configure(strings.Replace(vlanYAML, "mtu: 1400", "mtu: 1300", 1))
	g.Eventually(func() map[string]string { return s.udhcpc("c1", "-q", "-O", "mtu") }).WithTimeout(10 * time.Second).
		Should(And(HaveKeyWithValue("mtu", "1300"), HaveKeyWithValue("ip", ip)))
	s.configure("spec: {networkConfig: {cidr: nonsense}}")
	s.says("configuration refused; what serves stays")
	g.Expect(s.udhcpc("c1", "-q", "-O", "mtu")).To(HaveKeyWithValue("mtu", "1300"))
}

func TestTheServersAddressMovesOnItsDevice(t *testing.T) {
	s, g := newSegment(t), NewWithT(t)
	s.configure(vlanYAML)
	s.serve()
	s.attach("c1", "52:54:00:00:00:01")
	ip := s.udhcpc("c1", "-q")["ip"]
	s.In("srv", "ip", "addr", "add", "192.168.77.12/24", "dev", "net1")
	s.configure(strings.Replace(vlanYAML, "serverIP: 192.168.77.2", "serverIP: 192.168.77.12", 1))
	s.says("device=net1 server=192.168.77.12")
	g.Expect(s.udhcpc("c1", "-q")).To(And(HaveKeyWithValue("serverid", "192.168.77.12"), HaveKeyWithValue("ip", ip)))
}

func TestAReservationWaitsForTheMachineThatHasItsAddress(t *testing.T) {
	s, g := newSegment(t), NewWithT(t)
	s.In("srv", "sysctl", "-qw", "net.ipv4.neigh.net1.base_reachable_time_ms=500", "net.ipv4.neigh.net1.delay_first_probe_time=1") // until c1 counts as gone
	s.configure(vlanYAML)
	s.serve()
	s.attach("c1", "52:54:00:00:00:01")
	s.attach("c2", "52:54:00:00:00:02")
	ip := s.udhcpc("c1", "-q")["ip"]
	s.configure(strings.Replace(vlanYAML, "reservations: [", "reservations: [{ip: "+ip+`, mac: "52:54:00:00:00:02"}, `, 1))
	s.says(ip + " is reserved for 52:54:00:00:00:02, and 52:54:00:00:00:01 has it; restart that machine")
	g.Expect(s.udhcpc("c2", "-q")["ip"]).NotTo(Equal(ip))
	g.Expect(s.udhcpc("c1", "-q")["ip"]).NotTo(Equal(ip), "it has booted again")
	g.Expect(s.udhcpc("c2", "-q")["ip"]).To(Equal(ip))
}

func TestAForeignServerIsReported(t *testing.T) {
	s := newSegment(t)
	// The one address of the range is reserved for another machine: the client can choose the foreign server's OFFER only.
	s.configure(strings.Replace(vlanYAML, "rangeStart: 192.168.77.100, rangeEnd: 192.168.77.150", "rangeStart: 192.168.77.200, rangeEnd: 192.168.77.200", 1))
	s.serve()
	s.attach("rogue", "52:54:00:00:00:99")
	s.In("rogue", "ip", "addr", "add", "192.168.77.99/24", "dev", "net1")
	foreign := s.Path("rogue.yaml")
	NewWithT(t).Expect(os.WriteFile(foreign, []byte(strings.Replace(vlanYAML, "serverIP: 192.168.77.2", "serverIP: 192.168.77.99", 1)), 0o644)).To(Succeed())
	s.runs("rogue", "env", envConfig+"="+foreign, envLeases+"="+s.Path("rogue.db"), s.Path("oooi"))
	s.attach("c1", "52:54:00:00:00:01")
	s.runs("c1", "busybox", "udhcpc", "-f", "-i", "net1", "-t", "20", "-T", "1", "-s", "/bin/false")
	s.says("another DHCP server answers on this VLAN: 192.168.77.99")
}

func between(text, before, after string) string {
	_, rest, _ := strings.Cut(text, before)
	value, _, _ := strings.Cut(rest, after)
	return value
}
