//go:build netns

package dhcp_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/dhcp"
	"github.com/cldmnky/oooi/internal/testkit/envtest"
)

// inCluster, in place of a configuration, has the test binary be one of two instances whose leases are in an API server. It reaches that
// through a socket, as a daemon in a pod does; this one works from any network namespace.
const (
	inCluster   = "cluster"
	envInstance = "OOOI_TEST_DHCP_INSTANCE"
	envSocket   = "OOOI_TEST_DHCP_SOCKET"
)

// probesEvery has these daemons probe more often than a pod does.
const probesEvery = time.Second

var instanceIPs = []string{"192.168.77.2", "192.168.77.3"}

func runOneOfTwo(ctx context.Context, o dhcp.Options) error {
	number, err := strconv.Atoi(os.Getenv(envInstance))
	if err != nil {
		return err
	}
	o.Name, o.Number = "c1-dhcp", number
	o.Flags = daemon.Flags{Namespace: "default", APISocket: os.Getenv(envSocket), HealthAddress: instanceIPs[number] + ":8081", MetricsAddress: instanceIPs[number] + ":9402"}
	c, err := o.Kube(func(config *rest.Config) { config.Wrap(o.Clock.Listen) })
	if err != nil {
		return err
	}
	return dhcp.RunProbing(ctx, o, c, probesEvery)
}

// pair is two instances in pods of their own on a segment.
type pair struct {
	*segment
	api       client.WithWatch
	processes []*exec.Cmd
	cut       []func() // from the API server
}

func newPair(t *testing.T) *pair {
	t.Helper()
	g, cluster := NewWithT(t), envtest.For(t, true)
	api, err := client.NewWithWatch(cluster.Admin, client.Options{Scheme: daemon.Scheme()})
	g.Expect(err).NotTo(HaveOccurred())
	server := dhcpServer()
	server.Spec.NetworkConfig.CIDR, server.Spec.NetworkConfig.ServerIP = "192.168.77.0/24", v1alpha1.IPv4Address(instanceIPs[0])
	server.Spec.NetworkConfig.AdditionalServerIPs = []v1alpha1.IPv4Address{v1alpha1.IPv4Address(instanceIPs[1])}
	server.Spec.LeaseConfig.RangeStart, server.Spec.LeaseConfig.RangeEnd = "192.168.77.100", "192.168.77.150"
	server.Spec.UnknownClients, server.Spec.VMNamespace = v1alpha1.UnknownClientsIgnore, "clusters-c1"
	g.Expect(api.Create(t.Context(), server)).To(Succeed())
	p := &pair{segment: newSegment(t), api: api}
	p.attach("second", "02:00:00:00:00:03")
	p.In("second", "ip", "addr", "add", instanceIPs[1]+"/24", "dev", "net1")
	p.In("second", "sh", "-c", "echo 0 > /proc/sys/net/ipv4/ip_unprivileged_port_start")
	self := p.Self()
	for number, host := range []string{"srv", "second"} {
		socket := p.Path(fmt.Sprint("api", number))
		ctx, cut := context.WithCancel(t.Context())
		go func() {
			_ = (&daemon.APIProxy{Socket: socket, Cluster: cluster.Admin, Log: slog.New(slog.DiscardHandler)}).Run(ctx)
		}()
		g.Eventually(func() error { return os.Chmod(socket, 0o777) }, 10*time.Second).Should(Succeed())
		cmd := p.Start(host, self, envConfig+"="+inCluster, fmt.Sprint(envInstance, "=", number), envSocket+"="+socket)
		p.processes, p.cut = append(p.processes, cmd), append(p.cut, cut)
	}
	return p
}

// metrics of an instance, as its own host reads them.
func (p *pair) metrics(number int) string {
	out, _ := p.Command([]string{"srv", "second"}[number], "curl", "-fsS", "-m", "2", "http://"+instanceIPs[number]+":9402/metrics").Output()
	return string(out)
}

// finds is what an instance finds at the addresses of both.
func (p *pair) finds(number int) func() string {
	return func() string {
		var all []string
		for line := range strings.Lines(p.metrics(number)) {
			if said, is := strings.CutPrefix(strings.TrimSpace(line), `oooi_dhcp_probe_success{address="192.168.77.`); is {
				all = append(all, strings.Replace(said, `",protocol="dhcp"}`, ":", 1))
			}
		}
		return strings.Join(all, ", ")
	}
}

// Each instance finds itself at its own address and the other across the VLAN, though only known clients are served. One that is cut off from
// the API server answers still; one that stands still or is gone is told of by the other. No probe is taken for a client.
func TestInstancesProbeEachOtherAcrossTheVLAN(t *testing.T) {
	p := newPair(t)
	await := func(number int, what, why string) {
		t.Helper()
		NewWithT(t).Eventually(p.finds(number), 40*time.Second, 200*time.Millisecond).Should(Equal(what), why)
	}
	await(0, "2: 1, 3: 1", "both serve")
	await(1, "2: 1, 3: 1", "both serve")

	NewWithT(t).Expect(p.processes[1].Process.Signal(syscall.SIGSTOP)).To(Succeed())
	await(0, "2: 1, 3: 0", "the second stands still")
	NewWithT(t).Expect(p.processes[1].Process.Signal(syscall.SIGCONT)).To(Succeed())
	await(0, "2: 1, 3: 1", "it goes on")

	p.cut[1]()
	const answered = `oooi_dhcp_packets_received_total{kind="probe",outcome="ack/informed"}`
	before := count(p.metrics(1), answered)
	NewWithT(t).Eventually(func() int { return count(p.metrics(1), answered) }, 20*time.Second).Should(BeNumerically(">", before+4), "two rounds of both")
	NewWithT(t).Expect(p.finds(0)()).To(Equal("2: 1, 3: 1"), "the second is cut off from the API server")

	NewWithT(t).Expect(p.processes[1].Process.Kill()).To(Succeed())
	await(0, "2: 1, 3: 0", "the second is gone")

	metrics := p.metrics(0)
	NewWithT(t).Expect(metrics).To(And(Not(ContainSubstring(`kind="inform"`)), Not(ContainSubstring("oooi_dhcp_packets_sent_total{")), Not(ContainSubstring("oooi_dhcp_events_total{"))))
	leases := &v1alpha1.DHCPLeaseList{}
	NewWithT(t).Expect(p.api.List(t.Context(), leases)).To(Succeed())
	NewWithT(t).Expect(leases.Items).To(BeEmpty())
}

// count is the value of a series.
func count(metrics, series string) (n int) {
	for line := range strings.Lines(metrics) {
		if value, is := strings.CutPrefix(line, series+" "); is {
			n, _ = strconv.Atoi(strings.TrimSpace(value))
		}
	}
	return n
}
