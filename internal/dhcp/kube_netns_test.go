//go:build netns

package dhcp_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	acmeta "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	ac "github.com/cldmnky/oooi/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/dhcp"
	"github.com/cldmnky/oooi/internal/dhcp/clock"
	dhcplease "github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/leasecli"
	"github.com/cldmnky/oooi/internal/moving/leasefile"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/testkit/envtest"
)

// daemonInCluster is the daemon with its leases in a real API server, on the loopback device: clients there have their
// addresses already and are adopted, which needs no broadcast.
type daemonInCluster struct {
	*WithT
	t        *testing.T
	api      client.WithWatch // the test's own view
	config   *rest.Config
	cut      atomic.Bool // the daemon's connection to the API server
	stateDir string
	number   int // of the instance
	stop     func()
}

func newDaemonInCluster(t *testing.T) *daemonInCluster {
	cluster := envtest.For(t, true)
	api, err := client.NewWithWatch(cluster.Admin, client.Options{Scheme: daemon.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	d := &daemonInCluster{WithT: NewWithT(t), t: t, api: api, config: rest.CopyConfig(cluster.Admin), stateDir: t.TempDir()}
	d.config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &scissors{next, &d.cut} })
	return d
}

type scissors struct {
	next http.RoundTripper
	cut  *atomic.Bool
}

func (s *scissors) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.cut.Load() {
		return nil, errors.New("no route to the API server")
	}
	return s.next.RoundTrip(r)
}

func dhcpServer() *v1alpha1.DHCPServer {
	return &v1alpha1.DHCPServer{
		ObjectMeta: metav1.ObjectMeta{Name: "c1-dhcp", Namespace: "default", Labels: map[string]string{
			names.LabelInfra: "c1", names.LabelInfraNamespace: "default", names.LabelOwnerUID: "uid-1",
		}},
		Spec: v1alpha1.DHCPServerSpec{
			NetworkConfig: v1alpha1.DHCPNetworkConfig{
				Attachment: v1alpha1.Attachment{NetworkAttachmentDefinition: "vlan100"}, CIDR: "127.0.0.0/24", ServerIP: "127.0.0.1",
			},
			LeaseConfig: v1alpha1.DHCPLeaseConfig{RangeStart: "127.0.0.10", RangeEnd: "127.0.0.100", LeaseTime: metav1.Duration{Duration: time.Hour}},
		},
	}
}

// starts runs the daemon as its pod does.
func (d *daemonInCluster) starts() {
	d.t.Helper()
	ctx, stop := context.WithCancel(d.t.Context())
	tells := clock.New()
	config := rest.CopyConfig(d.config)
	config.Wrap(tells.Listen)
	c, err := client.NewWithWatch(config, client.Options{Scheme: daemon.Scheme()})
	d.Expect(err).NotTo(HaveOccurred())
	ended := make(chan error, 1)
	go func() {
		ended <- dhcp.Run(ctx, dhcp.Options{
			Flags: daemon.Flags{Namespace: "default", StateDir: d.stateDir, HealthAddress: "127.0.0.1:8081", MetricsAddress: "127.0.0.1:9402"},
			Name:  "c1-dhcp", Number: d.number, Clock: tells, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		}, c)
	}()
	d.stop = func() {
		stop()
		d.Eventually(ended).WithTimeout(10 * time.Second).Should(Receive(BeNil()))
		d.stop = func() {}
	}
	d.t.Cleanup(func() { d.stop() })
}

func get(url string) string {
	answer, err := http.Get(url)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	var body strings.Builder
	_ = answer.Write(&body)
	return body.String()
}

func (d *daemonInCluster) isReady() {
	d.t.Helper()
	d.Eventually(func() string { return get("http://127.0.0.1:8081/readyz") }).WithTimeout(15 * time.Second).Should(HaveSuffix("ok\n"))
}

// asks sends a client's REQUEST for the address that it has, and returns the reply; nil is silence.
func (d *daemonInCluster) asks(ip, mac string, with ...dhcpv4.Modifier) *dhcpv4.DHCPv4 {
	d.t.Helper()
	shared := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error { // with the daemon's own ear on this port
		return raw.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1) })
	}}
	socket, err := shared.ListenPacket(d.t.Context(), "udp4", ip+":68")
	d.Expect(err).NotTo(HaveOccurred())
	conn := socket.(*net.UDPConn)
	defer conn.Close()
	hardware, err := net.ParseMAC(mac)
	d.Expect(err).NotTo(HaveOccurred())
	message, err := dhcpv4.New(append([]dhcpv4.Modifier{dhcpv4.WithHwAddr(hardware), dhcpv4.WithMessageType(dhcpv4.MessageTypeRequest), dhcpv4.WithClientIP(net.ParseIP(ip))}, with...)...)
	d.Expect(err).NotTo(HaveOccurred())
	_, err = conn.WriteTo(message.ToBytes(), &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 67})
	d.Expect(err).NotTo(HaveOccurred())
	d.Expect(conn.SetReadDeadline(time.Now().Add(3 * time.Second))).To(Succeed())
	octets := make([]byte, 1500)
	n, err := conn.Read(octets)
	if err != nil {
		return nil
	}
	reply, err := dhcpv4.FromBytes(octets[:n])
	d.Expect(err).NotTo(HaveOccurred())
	return reply
}

// answered asks until there is a reply, as clients do (RFC 2131 §4.1): the API server may take longer to write than the daemon waits.
func (d *daemonInCluster) answered(ip, mac string) (reply *dhcpv4.DHCPv4) {
	d.t.Helper()
	d.Eventually(func() *dhcpv4.DHCPv4 {
		reply = d.asks(ip, mac)
		return reply
	}).WithTimeout(15 * time.Second).ShouldNot(BeNil())
	return reply
}

// copies waits until the daemon has a copy of a lease, and of the time in this boot.
func (d *daemonInCluster) copies(ip string) {
	d.t.Helper()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	d.Expect(err).NotTo(HaveOccurred())
	d.Eventually(func() (string, error) {
		content, err := os.ReadFile(filepath.Join(d.stateDir, "leases.db"))
		return string(content), err
	}).WithTimeout(10 * time.Second).Should(And(ContainSubstring(`"ip":"`+ip+`"`), ContainSubstring(strings.TrimSpace(string(boot)))))
}

func (d *daemonInCluster) lease(ip string) (*v1alpha1.DHCPLease, error) {
	l := &v1alpha1.DHCPLease{}
	return l, d.api.Get(d.t.Context(), client.ObjectKey{Namespace: "default", Name: "c1-dhcp-" + ip}, l)
}

func (d *daemonInCluster) status() v1alpha1.DHCPServerStatus {
	s := &v1alpha1.DHCPServer{}
	d.Expect(d.api.Get(d.t.Context(), client.ObjectKey{Namespace: "default", Name: "c1-dhcp"}, s)).To(Succeed())
	return s.Status
}

const (
	one = "52:54:00:00:00:01"
	two = "52:54:00:00:00:02"
)

func TestTheDaemonInACluster(t *testing.T) {
	d := newDaemonInCluster(t)
	d.Expect(d.api.Create(t.Context(), dhcpServer())).To(Succeed())
	before, err := net.ListenPacket("udp4", "127.0.0.1:67") // a pod that is about to end
	d.Expect(err).NotTo(HaveOccurred())
	d.starts()
	d.Eventually(d.status).WithTimeout(10 * time.Second).Should(HaveField("Conditions", ContainElement(And(
		HaveField("Type", v1alpha1.ConditionConfigAccepted), HaveField("Status", metav1.ConditionFalse),
		HaveField("Message", And(HavePrefix("nothing is served: "), ContainSubstring("address already in use: `ss -lunp 'sport = :67'`")))))))
	d.Expect(before.Close()).To(Succeed())
	d.isReady()

	t.Run("a lease is an object, labelled with its Infra, owned by nobody", func(t *testing.T) {
		g := NewWithT(t)
		reply := d.answered("127.0.0.10", one)
		g.Expect(reply.IPAddressLeaseTime(0)).To(Equal(time.Hour))
		l, err := d.lease("127.0.0.10")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(l.Spec.MAC).To(Equal(v1alpha1.MACAddress(one)))
		g.Expect(l.Spec.State).To(Equal(v1alpha1.LeaseBound))
		g.Expect(l.Spec.DurableUntilTime.Time).To(BeTemporally("~", time.Now().Add(2*time.Hour), 10*time.Second))
		g.Expect(l.Labels).To(And(HaveKeyWithValue(names.LabelInfra, "c1"), HaveKeyWithValue(names.LabelOwnerUID, "uid-1"), HaveKeyWithValue(names.LabelServer, "c1-dhcp")))
		g.Expect(l.OwnerReferences).To(BeEmpty())
	})
	t.Run("status says what is served", func(t *testing.T) {
		NewWithT(t).Eventually(d.status).WithTimeout(10 * time.Second).Should(And(
			HaveField("PoolSize", int32(91)),
			HaveField("Instances", ConsistOf(And(HaveField("IP", v1alpha1.IPAddress("127.0.0.1")), HaveField("Ready", true)))),
			HaveField("Conditions", ContainElements(
				And(HaveField("Type", v1alpha1.ConditionConfigAccepted), HaveField("Status", metav1.ConditionTrue), HaveField("ObservedGeneration", int64(1))),
				And(HaveField("Type", v1alpha1.ConditionClockSteady), HaveField("Status", metav1.ConditionTrue))))))
	})
	t.Run("an event tells of it", func(t *testing.T) {
		NewWithT(t).Eventually(func() []string { return d.events("LeaseBound") }).WithTimeout(5 * time.Second).
			Should(ContainElement("127.0.0.10 is bound to " + one))
	})
	t.Run("metrics count it", func(t *testing.T) {
		NewWithT(t).Expect(get("http://127.0.0.1:9402/metrics")).To(And(
			ContainSubstring(`oooi_dhcp_packets_received_total{kind="renewing",outcome="ack/bound"} 1`), ContainSubstring("oooi_dhcp_addresses_assigned 1")))
	})
	t.Run("a lease deleted by hand is written again", func(t *testing.T) {
		g := NewWithT(t)
		l, err := d.lease("127.0.0.10")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(d.api.Delete(t.Context(), l)).To(Succeed())
		g.Eventually(func() error { _, err := d.lease("127.0.0.10"); return err }).WithTimeout(10 * time.Second).Should(Succeed())
	})
	t.Run("who holds an address keeps it from others", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(d.asks("127.0.0.10", two)).To(BeNil()) // a NAK is broadcast, which the loopback device does not carry
		g.Expect(get("http://127.0.0.1:9402/metrics")).To(ContainSubstring(`oooi_dhcp_packets_received_total{kind="renewing",outcome="nak/held-by-another"} 1`))
	})
	t.Run("what somebody releases by hand is free for another", func(t *testing.T) {
		g := NewWithT(t)
		pools, err := leasecli.InCluster(t.Context(), d.api, "default", "")
		g.Expect(err).NotTo(HaveOccurred())
		store, done, err := pools[0].Open()
		g.Expect(err).NotTo(HaveOccurred())
		d.answered("127.0.0.11", one)
		var told []string
		r := leasecli.Releasing{Store: store, Now: time.Now(), IP: netip.MustParseAddr("127.0.0.11"), Instances: pools[0].Instances}
		g.Expect(r.Release(t.Context(), func(what string) { told = append(told, what) })).To(Succeed())
		g.Expect(told).To(HaveLen(2))
		g.Expect(d.answered("127.0.0.11", two).MessageType()).To(Equal(dhcpv4.MessageTypeAck))
		g.Expect(done()).To(Succeed())
		l, err := d.lease("127.0.0.11")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(l.Spec.LastTransitionTime.Time).To(BeTemporally("~", time.Now(), 5*time.Second))
		g.Expect(l.Spec.History).To(ConsistOf(And(HaveField("MAC", v1alpha1.MACAddress(one)), HaveField("Ended", v1alpha1.LeaseEndReleased),
			HaveField("FromTime.Time", BeTemporally("~", time.Now(), 10*time.Second)))))
	})
	t.Run("a lease that somebody imports is its client's alone", func(t *testing.T) {
		g := NewWithT(t)
		pools, err := leasecli.InCluster(t.Context(), d.api, "default", "c1-dhcp")
		g.Expect(err).NotTo(HaveOccurred())
		store, _, err := pools[0].Open()
		g.Expect(err).NotTo(HaveOccurred())
		e := leasefile.Entry{IP: netip.MustParseAddr("127.0.0.12"), Client: dhcplease.Client{MAC: "52:54:00:00:00:03"}, Ends: time.Now().Add(time.Hour)}
		var count leasecli.Count
		g.Expect(leasecli.Importing{Store: store, Config: pools[0].Config, Now: time.Now()}.All(t.Context(), []leasefile.Entry{e}, &count, nil)).To(Succeed())
		g.Expect(count).To(Equal(leasecli.Count{Leased: 1}))
		g.Expect(d.asks("127.0.0.12", two)).To(BeNil()) // a NAK, as above
		g.Expect(d.answered("127.0.0.12", "52:54:00:00:00:03").MessageType()).To(Equal(dhcpv4.MessageTypeAck))
		g.Expect(d.lease("127.0.0.12")).To(HaveField("Labels", HaveKeyWithValue(names.LabelInfra, "c1")))
	})
	t.Run("a configuration that cannot be served changes nothing and is reported", func(t *testing.T) {
		g := NewWithT(t)
		d.change(func(s *v1alpha1.DHCPServer) { s.Spec.NetworkConfig.ServerIP = "127.0.0.250" }) // no device carries it
		g.Eventually(d.status).WithTimeout(10 * time.Second).Should(HaveField("Conditions", ContainElement(And(
			HaveField("Type", v1alpha1.ConditionConfigAccepted), HaveField("Status", metav1.ConditionFalse), HaveField("ObservedGeneration", int64(2)),
			HaveField("Message", ContainSubstring("no network device carries 127.0.0.250"))))))
		d.answered("127.0.0.10", one)
		d.change(func(s *v1alpha1.DHCPServer) { s.Spec.NetworkConfig.ServerIP = "127.0.0.1" })
	})
	t.Run("with the API server away holders are renewed, even after a restart, and nobody else is served", func(t *testing.T) {
		g := NewWithT(t)
		d.stop()
		d.stateDir = t.TempDir() // as a new pod has one, which has written no lease yet
		d.starts()
		d.isReady()
		d.copies("127.0.0.10")
		d.cut.Store(true)
		d.answered("127.0.0.10", one)
		d.stop()
		d.starts()
		d.answered("127.0.0.10", one)
		g.Expect(d.asks("127.0.0.20", two)).To(BeNil())
		g.Expect(get("http://127.0.0.1:8081/livez")).To(HaveSuffix("ok\n"))
		g.Expect(get("http://127.0.0.1:8081/readyz")).To(ContainSubstring("no route to the API server"))
		d.cut.Store(false)
		d.isReady()
		g.Eventually(func() *dhcpv4.DHCPv4 { return d.asks("127.0.0.20", two) }).WithTimeout(15 * time.Second).ShouldNot(BeNil())
	})
	t.Run("a lease of a restored backup is relabelled", func(t *testing.T) {
		g := NewWithT(t)
		d.change(func(s *v1alpha1.DHCPServer) { s.Labels[names.LabelOwnerUID] = "uid-2" })
		g.Eventually(func() map[string]string { l, _ := d.lease("127.0.0.10"); return l.Labels }).WithTimeout(20 * time.Second).
			Should(HaveKeyWithValue(names.LabelOwnerUID, "uid-2"))
	})
	t.Run("idle, it writes nothing", func(t *testing.T) {
		g := NewWithT(t)
		version := func() string {
			l, err := d.lease("127.0.0.10")
			g.Expect(err).NotTo(HaveOccurred())
			s := &v1alpha1.DHCPServer{}
			g.Expect(d.api.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "c1-dhcp"}, s)).To(Succeed())
			return l.ResourceVersion + " " + s.ResourceVersion
		}
		g.Eventually(func() bool { before := version(); <-time.After(3 * time.Second); return before == version() }).WithTimeout(90 * time.Second).Should(BeTrue())
		before := version()
		g.Consistently(version).WithTimeout(10 * time.Second).Should(Equal(before))
	})
	t.Run("deleted in the background, it lets its leases go", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(d.api.Delete(t.Context(), dhcpServer(), client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
		l, err := d.lease("127.0.0.10")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(d.api.Delete(t.Context(), l)).To(Succeed())
		g.Consistently(func() error { _, err := d.lease("127.0.0.10"); return err }).WithTimeout(3 * time.Second).Should(MatchError(apierrors.IsNotFound, "IsNotFound"))
	})
}

// says plays the first instance's daemon, which knows of these instances; none for one of an older release.
func (d *daemonInCluster) says(knows ...v1alpha1.IPAddress) {
	d.t.Helper()
	accepted := acmeta.Condition().WithType(v1alpha1.ConditionConfigAccepted).WithStatus(metav1.ConditionTrue).WithReason("Serving").WithMessage("").WithLastTransitionTime(metav1.Now())
	status := ac.DHCPServerStatus().WithConditions(accepted).WithInstances(ac.Instance().WithIP("127.0.0.2").WithReady(true).WithServesWith(knows...))
	d.Expect(d.api.Status().Apply(d.t.Context(), ac.DHCPServer("c1-dhcp", "default").WithStatus(status), client.FieldOwner(names.DHCPFieldOwner))).To(Succeed())
}

// Until the first instance knows of the second, an address that the second releases could go to another client while the first still renews it.
func TestASecondInstanceWaitsForTheFirst(t *testing.T) {
	d := newDaemonInCluster(t)
	d.number = 1
	shared := dhcpServer()
	shared.Spec.NetworkConfig.ServerIP = "127.0.0.2"
	shared.Spec.NetworkConfig.AdditionalServerIPs = []v1alpha1.IPv4Address{"127.0.0.1"}
	d.Expect(d.api.Create(t.Context(), shared)).To(Succeed())
	d.says()
	d.starts()
	d.Eventually(func() string { return get("http://127.0.0.1:8081/readyz") }).WithTimeout(15 * time.Second).Should(ContainSubstring("leases: the first instance is of an older release"))
	d.Expect(d.asks("127.0.0.10", one)).To(BeNil())
	second := func(fields ...types.GomegaMatcher) types.GomegaMatcher {
		return HaveField("Instances", ContainElement(And(append(fields, HaveField("IP", v1alpha1.IPAddress("127.0.0.1")))...)))
	}
	both := HaveField("ServesWith", Equal([]v1alpha1.IPAddress{"127.0.0.1", "127.0.0.2"}))
	d.Eventually(d.status).Should(second(both, HaveField("Ready", false)))

	d.says("127.0.0.2", "127.0.0.1")
	d.isReady()
	reply := d.answered("127.0.0.10", one)
	d.Expect(reply.ServerIdentifier().String()).To(Equal("127.0.0.1"))
	d.Eventually(d.status).WithTimeout(10 * time.Second).Should(And(second(both, HaveField("Ready", true)), HaveField("Conditions", ContainElements(
		And(HaveField("Type", "ConfigAccepted1"), HaveField("Status", metav1.ConditionTrue)), HaveField("Type", "AddressesLeft1"), HaveField("Type", "ClockSteady1")))))

	d.cut.Store(true)
	d.stop()
	d.starts()
	d.answered("127.0.0.10", one)
	d.Expect(get("http://127.0.0.1:8081/readyz")).To(ContainSubstring("no route to the API server"))
	d.cut.Store(false)
	d.isReady()

	d.change(func(s *v1alpha1.DHCPServer) { s.Spec.NetworkConfig.AdditionalServerIPs = nil })
	d.answered("127.0.0.10", one)
	d.Eventually(d.status).Should(second(both)) // until the manager takes that back
}

func (d *daemonInCluster) change(change func(*v1alpha1.DHCPServer)) {
	d.t.Helper()
	d.Eventually(func() error {
		s := &v1alpha1.DHCPServer{}
		if err := d.api.Get(d.t.Context(), client.ObjectKey{Namespace: "default", Name: "c1-dhcp"}, s); err != nil {
			return err
		}
		change(s)
		return d.api.Update(d.t.Context(), s)
	}).WithTimeout(15 * time.Second).Should(Succeed())
}

func (d *daemonInCluster) events(reason string) []string {
	list := &corev1.EventList{}
	d.Expect(d.api.List(d.t.Context(), list, client.InNamespace("default"))).To(Succeed())
	var messages []string
	for _, e := range list.Items {
		if e.Reason == reason && e.InvolvedObject.Kind == "DHCPServer" {
			messages = append(messages, e.Message)
		}
	}
	return messages
}

// If the API server refuses leases, a machine that boots waits in vain. Readiness must return without another client's request.
func TestALeaseThatTheAPIServerRefusesEndsReadiness(t *testing.T) {
	d := newDaemonInCluster(t)
	d.Expect(d.api.Create(t.Context(), dhcpServer())).To(Succeed())
	d.starts()
	d.isReady()
	d.answered("127.0.0.10", one)
	none := corev1.ResourceList{"count/dhcpleases.hostedcluster.densityops.com": resource.MustParse("1")}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "none"}, Spec: corev1.ResourceQuotaSpec{Hard: none}}
	d.Expect(d.api.Create(t.Context(), quota)).To(Succeed())
	quota.Status = corev1.ResourceQuotaStatus{Hard: none, Used: none}
	d.Expect(d.api.Status().Update(t.Context(), quota)).To(Succeed())
	d.Eventually(func() error { // the API server has the quota by a watch of its own
		l, err := d.lease("127.0.0.10")
		if err != nil {
			return err
		}
		l.ObjectMeta = metav1.ObjectMeta{Namespace: "default", Name: "trial"}
		return d.api.Create(t.Context(), l, client.DryRunAll)
	}).WithTimeout(10 * time.Second).Should(MatchError(ContainSubstring("exceeded quota: none")))
	d.Eventually(func() string {
		d.asks("127.0.0.11", two)
		return get("http://127.0.0.1:8081/readyz")
	}).WithTimeout(20 * time.Second).Should(And(ContainSubstring("leases: the API server accepts no lease, so new machines get no address: "), ContainSubstring("exceeded quota: none")))
	d.answered("127.0.0.10", one)
	d.Expect(get("http://127.0.0.1:8081/readyz")).To(ContainSubstring("accepts no lease"), "a renewal is another thing")
	d.Eventually(d.status).WithTimeout(10 * time.Second).Should(HaveField("Instances", ConsistOf(HaveField("Ready", false))))
	d.Expect(d.api.Delete(t.Context(), quota)).To(Succeed())
	d.isReady()
	all := &v1alpha1.DHCPLeaseList{}
	d.Expect(d.api.List(t.Context(), all)).To(Succeed())
	d.Expect(all.Items).To(HaveLen(1), "a trial leaves nothing")
	d.answered("127.0.0.11", two)
}

// Cut off from the API server we could not acknowledge what we offer, and whoever chose us would wait in vain, while another instance serves.
func TestNothingIsOfferedWhileTheAPIServerIsAway(t *testing.T) {
	d := newDaemonInCluster(t)
	d.Expect(d.api.Create(t.Context(), dhcpServer())).To(Succeed())
	d.starts()
	d.isReady()
	d.answered("127.0.0.10", one)
	discover := dhcpv4.WithMessageType(dhcpv4.MessageTypeDiscover)
	offered := func() *dhcpv4.DHCPv4 { return d.asks("127.0.0.11", two, discover) }
	d.Eventually(offered).WithTimeout(15 * time.Second).Should(HaveField("MessageType()", dhcpv4.MessageTypeOffer))

	d.cut.Store(true)
	d.Expect(d.asks("127.0.0.11", two)).To(BeNil(), "who was offered an address finds that out")
	d.Expect(offered()).To(BeNil())
	d.answered("127.0.0.10", one)
	d.Expect(d.asks("127.0.0.10", one, discover)).To(HaveField("MessageType()", dhcpv4.MessageTypeOffer), "of a holder the lease stands")

	d.cut.Store(false)
	d.Eventually(offered).WithTimeout(15 * time.Second).ShouldNot(BeNil())
	d.answered("127.0.0.11", two)
}
