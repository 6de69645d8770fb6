//go:build netns

package leasecli_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/dhcp"
	"github.com/cldmnky/oooi/internal/dhcp/clock"
	"github.com/cldmnky/oooi/internal/leasecli"
	"github.com/cldmnky/oooi/internal/moving/leasefile"
	"github.com/cldmnky/oooi/internal/testkit/netns"
)

const envConfig, envLeases = "OOOI_TEST_DHCP_CONFIG", "OOOI_TEST_DHCP_LEASES"

// TestMain is `oooi dhcp` when its environment says so.
func TestMain(m *testing.M) {
	if config := os.Getenv(envConfig); config != "" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		o := dhcp.Options{Flags: daemon.Flags{ConfigFile: config}, LeaseFile: os.Getenv(envLeases), Clock: clock.New(), Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
		if err := dhcp.Run(ctx, o, nil); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// The pool of oooi has none of the addresses that the peers lease: who has one afterwards has it by its lease.
const ours = `spec:
  networkConfig: {cidr: 192.168.77.0/24, serverIP: 192.168.77.2}
  leaseConfig: {rangeStart: 192.168.77.200, rangeEnd: 192.168.77.250, leaseTime: 1h}
`

// peer is another DHCP server that leases from 192.168.77.100.
type peer struct {
	kind, leases, config string
	command              []string
}

var peers = []peer{
	{"dnsmasq", "dnsmasq.leases", "interface=net1\nbind-interfaces\nport=0\ndhcp-range=192.168.77.100,192.168.77.110,1h\ndhcp-leasefile=@/dnsmasq.leases\n",
		[]string{"dnsmasq", "-k", "-C", "@/config", "--user=root"}},
	{"isc-dhcpd", "dhcpd.leases", "authoritative; default-lease-time 3600; subnet 192.168.77.0 netmask 255.255.255.0 { range 192.168.77.100 192.168.77.110; }\n",
		[]string{"dhcpd", "-f", "-4", "-cf", "@/config", "-lf", "@/dhcpd.leases", "-pf", "@/pid", "-user", "root", "net1"}},
	{"kea", "kea.csv", `{"Dhcp4": {"interfaces-config": {"interfaces": ["net1"]}, "valid-lifetime": 3600,
  "lease-database": {"type": "memfile", "persist": true, "name": "@/kea.csv"},
  "subnet4": [{"id": 1, "subnet": "192.168.77.0/24", "pools": [{"pool": "192.168.77.100 - 192.168.77.110"}]}]}}`,
		[]string{"env", "KEA_PIDFILE_DIR=@", "KEA_LOCKFILE_DIR=@", "kea-dhcp4", "-c", "@/config"}},
}

func TestAClientOfAnotherServerKeepsItsAddress(t *testing.T) {
	for _, p := range peers {
		t.Run(p.kind, func(t *testing.T) {
			v := newVLAN(t)
			v.writes("config", strings.ReplaceAll(p.config, "@", v.Path("")))
			v.writes(p.leases, "")
			stop := v.starts("peer", strings.Split(strings.ReplaceAll(strings.Join(p.command, "\n"), "@", v.Path("")), "\n"))
			had := v.leases("client", "-x", "hostname:worker-1")
			v.Expect(had).To(HavePrefix("192.168.77.1"))
			stop()

			v.imports(p)
			v.starts("server", []string{"env", envConfig + "=" + v.Path("ours.yaml"), envLeases + "=" + v.Path("ours.leases"), v.Self()})
			v.Expect(v.leases("client")).To(Equal(had))
			v.Expect(v.leases("other")).To(HavePrefix("192.168.77.2"))
		})
	}
}

type vlan struct {
	*WithT
	*netns.Hosts
	t *testing.T
}

// newVLAN has a switch, two servers with an address each, and two clients.
func newVLAN(t *testing.T) vlan {
	v := vlan{NewWithT(t), netns.New(t, "sw"), t}
	v.In("sw", "ip", "link", "add", "br0", "type", "bridge", "forward_delay", "0")
	v.In("sw", "ip", "link", "set", "br0", "up")
	for n, host := range []string{"peer", "server", "client", "other"} {
		v.Add(host)
		v.Join(netns.End{Host: "sw", Device: host}, netns.End{Host: host, Device: "net1", MAC: fmt.Sprintf("52:54:00:00:00:%02x", n)})
		v.In("sw", "ip", "link", "set", host, "master", "br0")
	}
	v.In("peer", "ip", "addr", "add", "192.168.77.3/24", "dev", "net1")
	v.In("server", "ip", "addr", "add", "192.168.77.2/24", "dev", "net1")
	v.writes("ours.yaml", ours)
	return v
}

func (v vlan) writes(name, content string) {
	v.t.Helper()
	v.Expect(os.WriteFile(v.Path(name), []byte(content), 0o600)).To(Succeed())
}

// starts a server, and returns what ends it.
func (v vlan) starts(host string, command []string) (stop func()) {
	v.t.Helper()
	server := v.Command(host, command...)
	log, err := os.Create(v.Path(host + ".log"))
	v.Expect(err).NotTo(HaveOccurred())
	server.Stdout, server.Stderr = log, log
	v.Expect(server.Start()).To(Succeed())
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			_ = server.Process.Signal(syscall.SIGTERM)
			_ = server.Wait()
		}
	}
	v.t.Cleanup(func() {
		stop()
		if v.t.Failed() {
			content, _ := os.ReadFile(v.Path(host + ".log"))
			v.t.Logf("%s:\n%s", host, content)
		}
	})
	return stop
}

// leases asks as a machine that has just booted until there is a lease, and returns the address.
func (v vlan) leases(host string, args ...string) (ip string) {
	v.t.Helper()
	v.Expect(os.WriteFile(v.Path("script"), []byte("#!/bin/sh\n[ \"$1\" = bound ] && echo \"leased $ip\"\nexit 0\n"), 0o755)).To(Succeed())
	client := v.Command(host, append([]string{"busybox", "udhcpc", "-i", "net1", "-n", "-q", "-t", "15", "-T", "2", "-s", v.Path("script")}, args...)...)
	out, err := client.CombinedOutput()
	v.Expect(err).NotTo(HaveOccurred(), string(out))
	_, ip, _ = strings.Cut(string(out), "leased ")
	ip, _, _ = strings.Cut(ip, "\n")
	return ip
}

func (v vlan) imports(p peer) {
	v.t.Helper()
	content, err := os.ReadFile(v.Path(p.leases))
	v.Expect(err).NotTo(HaveOccurred())
	entries, problems := leasefile.Kinds[p.kind](string(content))
	v.Expect(problems).To(BeEmpty())
	v.Expect(entries).To(ConsistOf(HaveField("Hostname", "worker-1")), string(content))
	pool, err := leasecli.InFile(v.Path("ours.leases"), v.Path("ours.yaml"), nil)
	v.Expect(err).NotTo(HaveOccurred())
	store, done, err := pool.Open()
	v.Expect(err).NotTo(HaveOccurred())
	var count leasecli.Count
	v.Expect(leasecli.Importing{Store: store, Config: pool.Config, Now: time.Now()}.All(v.t.Context(), entries, &count, nil)).To(Succeed())
	v.Expect(count).To(Equal(leasecli.Count{Leased: 1}))
	v.Expect(done()).To(Succeed())
}
