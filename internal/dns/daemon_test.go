package dns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	mdns "github.com/miekg/dns"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/testkit/ports"
)

// CoreDNS' goroutine of a retired upstream ends by itself, when the garbage collector finalizes the upstream.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/coredns/coredns/plugin/pkg/proxy.(*Transport).connManager"))
}

// running is a daemon with the loopback device as VLAN, and ::1 as pod network.
type running struct {
	*Daemon
	t     *testing.T
	state string
	port  uint16
	stop  func()
}

func start(t *testing.T, state string, flags daemon.Flags, cluster client.WithWatch) *running {
	t.Helper()
	return startAt(t, ports.Free(t), state, flags, cluster)
}

func startAt(t *testing.T, port uint16, state string, flags daemon.Flags, cluster client.WithWatch) *running {
	t.Helper()
	return startInstance(t, 0, port, state, flags, cluster)
}

func startInstance(t *testing.T, instance int, port uint16, state string, flags daemon.Flags, cluster client.WithWatch) *running {
	t.Helper()
	return startProbing(t, daemon.ProbePause, instance, port, state, flags, cluster)
}

func startProbing(t *testing.T, pause time.Duration, instance int, port uint16, state string, flags daemon.Flags, cluster client.WithWatch) *running {
	t.Helper()
	flags.StateDir, flags.PodIP = state, netip.MustParseAddr("::1")
	flags.HealthAddress, flags.MetricsAddress = cmp.Or(flags.HealthAddress, "[::1]:0"), "[::1]:0" // any free ports
	resolvConf := filepath.Join(t.TempDir(), "resolv.conf")
	NewWithT(t).Expect(os.WriteFile(resolvConf, []byte("nameserver 192.0.2.53\n"), 0o600)).To(Succeed())
	r := &running{t: t, state: state, port: port}
	r.Daemon = &Daemon{
		Flags: &flags, Name: "c1-dns", Instance: instance, Kube: cluster, Now: time.Now,
		Log: slog.New(slog.DiscardHandler), port: r.port, resolvConf: resolvConf, probePause: pause,
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	r.stop = func() {
		if cancel != nil {
			cancel()
			cancel = nil
			NewWithT(t).Expect(<-ended).To(Succeed())
		}
	}
	t.Cleanup(r.stop)
	return r
}

// says queries the VLAN's view and returns the address, the host, or the response code.
func (r *running) says(name string, qtype uint16) func() string {
	return r.asks("127.0.0.1", name, qtype)
}

func (r *running) asks(server, name string, qtype uint16) func() string {
	return func() string {
		at := netip.AddrPortFrom(netip.MustParseAddr(server), r.port).String()
		answer, err := mdns.Exchange(new(mdns.Msg).SetQuestion(name, qtype), at)
		switch {
		case err != nil:
			return err.Error()
		case len(answer.Answer) == 0:
			return mdns.RcodeToString[answer.Rcode]
		case qtype == mdns.TypePTR:
			return answer.Answer[0].(*mdns.PTR).Ptr
		}
		return answer.Answer[0].(*mdns.A).A.String()
	}
}

func object(api string) *v1alpha1.DNSServer {
	return &v1alpha1.DNSServer{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c1-dns", Labels: map[string]string{names.LabelInfra: "c1"}, Generation: 1},
		Spec: v1alpha1.DNSServerSpec{
			NetworkConfig:       v1alpha1.DNSNetworkConfig{ServerIP: "127.0.0.1", SecondaryNetworkCIDR: "127.0.0.0/8"},
			HostedClusterDomain: "c1.example.com",
			StaticEntries:       []v1alpha1.DNSEntry{{Hostname: "api.c1.example.com", IP: v1alpha1.IPAddress(api)}},
			InternalEntries:     []v1alpha1.DNSEntry{{Hostname: "api.c1.example.com", IP: "172.30.0.9"}},
		},
	}
}

func lease(host, ip string, until time.Time) *v1alpha1.DHCPLease {
	return &v1alpha1.DHCPLease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c1-dhcp-" + ip, Labels: map[string]string{names.LabelInfra: "c1"}},
		Spec: v1alpha1.DHCPLeaseSpec{
			IP: v1alpha1.IPv4Address(ip), Hostname: host, State: v1alpha1.LeaseBound, DurableUntilTime: metav1.NewMicroTime(until),
		},
	}
}

func cluster(objects ...client.Object) client.WithWatch {
	return fake.NewClientBuilder().WithScheme(daemon.Scheme()).WithObjects(objects...).WithStatusSubresource(&v1alpha1.DNSServer{}, &v1alpha1.DHCPLease{}).
		WithIndex(&v1alpha1.DNSServer{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).Build()
}

// away is a cluster whose API server does not answer.
func away() client.WithWatch {
	return interceptor.NewClient(cluster(), interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("the API server is away")
	}})
}

func file(t *testing.T, path, server, api string) {
	t.Helper()
	NewWithT(t).Expect(os.WriteFile(path, fmt.Appendf(nil, `
spec:
  networkConfig: {serverIP: %s, secondaryNetworkCIDR: 127.0.0.0/8, networkAttachmentDefinition: vlan}
  hostedClusterDomain: c1.example.com
  staticEntries: [{hostname: api.c1.example.com, ip: "%s"}]
  internalEntries: [{hostname: api.c1.example.com, ip: 172.30.0.9}]
`, server, api), 0o600)).To(Succeed())
}

func TestAFileIsServedAndFollowedWithinASecond(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "dns.yaml")
	file(t, path, "127.0.0.1", "192.168.100.4")
	d := start(t, "", daemon.Flags{ConfigFile: path}, nil)
	api := d.says("api.c1.example.com.", mdns.TypeA)
	g.Eventually(api, 5*time.Second).Should(Equal("192.168.100.4"))
	g.Expect(d.asks("::1", "api.c1.example.com.", mdns.TypeA)()).To(Equal("172.30.0.9"))

	file(t, path, "127.0.0.1", "not an address")
	g.Consistently(api, 300*time.Millisecond).Should(Equal("192.168.100.4"))
	file(t, path, "127.0.0.2", "192.168.100.5")
	g.Consistently(api, 300*time.Millisecond).Should(Equal("192.168.100.4"), "another serverIP is another pod's to serve")
	file(t, path, "127.0.0.1", "192.168.100.6")
	g.Eventually(api, time.Second).Should(Equal("192.168.100.6"))
}

func TestABadFileAtTheStartIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dns.yaml")
	file(t, path, "127.0.0.1", "192.168.100.4")
	g := NewWithT(t)
	content, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	elsewhere := strings.NewReplacer("127.0.0.1", "192.0.2.1", "127.0.0.0/8", "192.0.2.0/24").Replace(string(content))
	g.Expect(os.WriteFile(path, []byte(elsewhere), 0o600)).To(Succeed())
	d := &Daemon{Flags: &daemon.Flags{ConfigFile: path}, Now: time.Now, Log: slog.New(slog.DiscardHandler)}
	g.Expect(d.Run(t.Context())).To(MatchError(ContainSubstring("no network device carries 192.0.2.1")))
}

func TestLeasesAreNamedAsTheyComeAndGo(t *testing.T) {
	g := NewWithT(t)
	now := time.Now().Add(time.Hour)
	foreign := lease("worker-2", "192.168.100.60", now)
	foreign.Labels[names.LabelInfra] = "c2"
	c := cluster(object("192.168.100.4"), lease("worker-1", "192.168.100.57", now), foreign)
	d := start(t, "", daemon.Flags{Namespace: "ns"}, c)
	worker := d.says("worker-1.c1.example.com.", mdns.TypeA)
	g.Eventually(worker, 5*time.Second).Should(Equal("192.168.100.57"))
	g.Expect(d.says("57.100.168.192.in-addr.arpa.", mdns.TypePTR)()).To(Equal("worker-1.c1.example.com."))

	replacement := lease("worker-1", "192.168.100.58", now.Add(time.Hour))
	g.Expect(c.Create(t.Context(), replacement)).To(Succeed())
	g.Eventually(worker, time.Second).Should(Equal("192.168.100.58"), "the one promised longer is the one in use")
	g.Expect(c.Delete(t.Context(), replacement)).To(Succeed())
	g.Eventually(worker, time.Second).Should(Equal("192.168.100.57"))

	released := lease("worker-3", "192.168.100.61", now)
	released.Spec.State = v1alpha1.LeaseReleased
	g.Expect(c.Create(t.Context(), released)).To(Succeed())
	g.Expect(c.Create(t.Context(), lease("last", "192.168.100.62", now))).To(Succeed())
	g.Eventually(d.says("last.c1.example.com.", mdns.TypeA), time.Second).Should(Equal("192.168.100.62"))
	g.Expect(d.says("worker-2.c1.example.com.", mdns.TypeA)()).To(Equal("NXDOMAIN"), "a lease of another Infra")
	g.Expect(d.says("worker-3.c1.example.com.", mdns.TypeA)()).To(Equal("NXDOMAIN"), "given back")
}

// What a worker asks of its hosted cluster's names is in its lease; what it asks of others' is not, nor what is asked on the pod network.
func TestANameThatAWorkerAsksForIsInItsLease(t *testing.T) {
	g := NewWithT(t)
	of := func(ip string) *v1alpha1.DHCPLease {
		l := lease("worker", ip, time.Now().Add(time.Hour))
		l.Spec.MAC = "52:54:00:00:00:01"
		return l
	}
	c := cluster(object("192.168.100.4"), of("127.0.0.1"))
	d := start(t, "", daemon.Flags{Namespace: "ns"}, c)
	g.Eventually(d.says("worker.c1.example.com.", mdns.TypePTR), 5*time.Second).Should(Equal("NOERROR"), "the leases are known, and no address was asked for")
	g.Expect(d.says("elsewhere.c1.example.com.", mdns.TypeA)()).To(Equal("NXDOMAIN"))
	stages := func() map[v1alpha1.StageName]v1alpha1.Stage {
		l := of("127.0.0.1")
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(l), l)).To(Succeed())
		return l.Stages()
	}
	g.Eventually(func() map[v1alpha1.StageName]v1alpha1.Stage {
		g.Expect(d.says("API.c1.example.com.", mdns.TypeA)()).To(Equal("192.168.100.4"))
		return stages()
	}, 10*time.Second).Should(HaveKeyWithValue(v1alpha1.StageNameAsked, HaveField("ServerName", "api.c1.example.com")))
	g.Expect(stages()).To(HaveLen(1))
}

func TestALeaseIsNamedUntilItsHorizonPasses(t *testing.T) {
	g := NewWithT(t)
	horizon := time.Now().Add(2 * time.Second)
	d := start(t, "", daemon.Flags{Namespace: "ns"}, cluster(object("192.168.100.4"), lease("worker-1", "192.168.100.57", horizon), lease("worker-2", "192.168.100.58", horizon.Add(time.Hour))))
	worker := d.says("worker-1.c1.example.com.", mdns.TypeA)
	g.Eventually(worker, time.Until(horizon)).Should(Equal("192.168.100.57"))
	g.Eventually(worker, time.Until(horizon)+time.Second).Should(Equal("NXDOMAIN"))
	g.Expect(time.Now()).To(BeTemporally(">=", horizon))
	g.Expect(d.says("worker-2.c1.example.com.", mdns.TypeA)()).To(Equal("192.168.100.58"))
}

func TestARestartWithTheAPIAwayServesAsBefore(t *testing.T) {
	g := NewWithT(t)
	state := t.TempDir()
	d := start(t, state, daemon.Flags{Namespace: "ns"}, cluster(object("192.168.100.4"), lease("worker-1", "192.168.100.57", time.Now().Add(time.Hour))))
	g.Eventually(filepath.Join(state, "leases.json"), 5*time.Second).Should(BeARegularFile())
	d.stop()

	d = start(t, state, daemon.Flags{Namespace: "ns"}, away())
	g.Eventually(d.says("api.c1.example.com.", mdns.TypeA), 5*time.Second).Should(Equal("192.168.100.4"))
	g.Expect(d.says("worker-1.c1.example.com.", mdns.TypeA)()).To(Equal("192.168.100.57"))
	d.stop()

	d = start(t, state, daemon.Flags{Namespace: "ns"}, cluster(object("192.168.100.5")))
	g.Eventually(d.says("api.c1.example.com.", mdns.TypeA), 5*time.Second).Should(Equal("192.168.100.5"))
	g.Eventually(d.says("worker-1.c1.example.com.", mdns.TypeA)).Should(Equal("NXDOMAIN"), "its lease went while we were away")
}

func TestStatusSaysWhatIsServedAndWhyNotTheRest(t *testing.T) {
	g := NewWithT(t)
	served := object("192.168.100.4")
	c := cluster(served)
	start(t, "", daemon.Flags{Namespace: "ns"}, c)
	status := func() string {
		seen := &v1alpha1.DNSServer{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(served), seen); err != nil || len(seen.Status.Conditions) == 0 || len(seen.Status.Instances) == 0 {
			return fmt.Sprint("no status: ", err)
		}
		said, instance := seen.Status.Conditions[0], seen.Status.Instances[0]
		return fmt.Sprintf("%s=%s/%s %s; %s ready=%v", said.Type, said.Status, said.Reason, said.Message, instance.IP, instance.Ready)
	}
	g.Eventually(status, 5*time.Second).Should(Equal("ConfigAccepted=True/Served the newest configuration is served; 127.0.0.1 ready=true"))

	seen := &v1alpha1.DNSServer{}
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(served), seen)).To(Succeed())
	seen.Spec.UpstreamDNS = []v1alpha1.IPAddress{"127.0.0.1"}
	g.Expect(c.Update(t.Context(), seen)).To(Succeed())
	g.Eventually(status, 5*time.Second).Should(Equal("ConfigAccepted=False/Refused spec.upstreamDNS[0]: 127.0.0.1 is this server itself; " +
		"name the resolver behind it; 127.0.0.1 ready=true"))
}

// A second instance serves its own address. Only an API server shows that it keeps the first one's status (internal/controller,
// TestAnInstanceComesAndGoesWithItsAddress).
func TestASecondInstanceServesItsAddressAndSaysSo(t *testing.T) {
	g := NewWithT(t)
	served := object("192.168.100.4")
	served.Spec.NetworkConfig.ServerIP, served.Spec.NetworkConfig.AdditionalServerIPs = "127.0.0.2", []v1alpha1.IPAddress{"127.0.0.1"}
	c := cluster(served)
	d := startInstance(t, 1, ports.Free(t), "", daemon.Flags{Namespace: "ns"}, c)
	answers := d.says("api.c1.example.com.", mdns.TypeA)
	g.Eventually(answers, 5*time.Second).Should(Equal("192.168.100.4"))
	seen := func() v1alpha1.DNSServerStatus {
		now := &v1alpha1.DNSServer{}
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(served), now)).To(Succeed())
		return now.Status
	}
	g.Eventually(seen, 5*time.Second).Should(And(
		HaveField("Instances", ConsistOf(v1alpha1.Instance{IP: "127.0.0.1", Ready: true})), HaveField("Conditions", ConsistOf(HaveField("Type", "ConfigAccepted1")))))

	now := &v1alpha1.DNSServer{}
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(served), now)).To(Succeed())
	now.Spec.NetworkConfig.AdditionalServerIPs = nil
	g.Expect(c.Update(t.Context(), now)).To(Succeed())
	g.Consistently(answers, 300*time.Millisecond).Should(Equal("192.168.100.4"), "until its pod goes")
	g.Expect(seen()).To(HaveField("Conditions", ConsistOf(And(HaveField("Type", "ConfigAccepted1"), HaveField("Status", metav1.ConditionTrue)))), "of what it was not asked to do it says nothing")
}

// The manager removes the status of an instance that is to be removed; if the instance wrote it again, the two would take turns.
func TestAnInstanceThatIsToGoSaysNothing(t *testing.T) {
	g := NewWithT(t)
	asked := object("192.168.100.4")
	asked.Spec.NetworkConfig.AdditionalServerIPs = []v1alpha1.IPAddress{"127.0.0.2"}
	s := newStatus(nil, daemon.NewReadiness(), 1)
	s.consider(asked)
	s.judge(nil)
	g.Expect(s.wanted()).NotTo(BeNil())
	s.consider(object("192.168.100.4"))
	s.judge(errors.New("not set"))
	g.Expect(s.wanted()).To(BeNil())
	s.consider(asked)
	s.judge(nil)
	g.Expect(s.wanted()).NotTo(BeNil(), "it stays after all")
}

// If the node's resolver were the other instance, a query would loop between the two.
func TestAnInstanceAsksNeitherItselfNorTheOther(t *testing.T) {
	g := NewWithT(t)
	served := object("192.168.100.4")
	served.Spec.NetworkConfig.AdditionalServerIPs = []v1alpha1.IPAddress{"127.0.0.2"}
	resolvConf := filepath.Join(t.TempDir(), "resolv.conf")
	g.Expect(os.WriteFile(resolvConf, []byte("nameserver 127.0.0.1\nnameserver 127.0.0.2\nnameserver 192.0.2.53\n"), 0o600)).To(Succeed())
	for instance := range 2 {
		d := &Daemon{Flags: &daemon.Flags{}, Instance: instance, resolvConf: resolvConf}
		g.Expect(d.othersOfNode(served)).To(Equal([]netip.AddrPort{netip.MustParseAddrPort("192.0.2.53:53")}))
	}
	served.Spec.UpstreamDNS = []v1alpha1.IPAddress{"127.0.0.2"}
	_, err := IntentOf(served, nil)
	g.Expect(err).To(MatchError(ContainSubstring("127.0.0.2 is this server itself")))
}

func TestSocketsThatFailAtFirstAreOpenedLater(t *testing.T) {
	g := NewWithT(t)
	before, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(ports.Free(t))}) // the previous pod, which ends
	g.Expect(err).NotTo(HaveOccurred())
	c := cluster(object("192.168.100.4"))
	d := startAt(t, netip.MustParseAddrPort(before.Addr().String()).Port(), "", daemon.Flags{Namespace: "ns"}, c)
	refusal := func() (string, error) {
		seen := &v1alpha1.DNSServer{}
		err := c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "c1-dns"}, seen)
		if len(seen.Status.Conditions) != 1 {
			return "", err
		}
		return seen.Status.Conditions[0].Message, err
	}
	g.Eventually(refusal, 5*time.Second).Should(ContainSubstring("address already in use"))
	g.Expect(before.Close()).To(Succeed())
	g.Eventually(d.says("api.c1.example.com.", mdns.TypeA), 10*time.Second).Should(Equal("192.168.100.4"))
	g.Eventually(refusal, 5*time.Second).Should(Equal("the newest configuration is served"))
}

func TestReadyOnlyWhenBothViewsAnswer(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "dns.yaml")
	file(t, path, "127.0.0.1", "192.168.100.4")
	health := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), ports.Free(t)).String()
	d := start(t, "", daemon.Flags{ConfigFile: path, HealthAddress: health}, nil)
	g.Eventually(func() (string, error) {
		c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		answer, err := c.Get("http://" + health + "/readyz")
		if err != nil {
			return "", err
		}
		return answer.Status, answer.Body.Close()
	}, 5*time.Second).Should(Equal("200 OK"))
	g.Expect(ask(t.Context(), netip.AddrPortFrom(netip.MustParseAddr("::1"), d.port), "not.ours.example.")).
		To(MatchError(ContainSubstring("without authority")))
}

// Guests of the VLAN share its TCP, and may take it all: here nobody listens there.
func TestReadinessAsksByUDPAlone(t *testing.T) {
	g := NewWithT(t)
	socket, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	view := &mdns.Server{PacketConn: socket, Handler: mdns.HandlerFunc(func(w mdns.ResponseWriter, asked *mdns.Msg) {
		answer := new(mdns.Msg).SetReply(asked)
		answer.Authoritative = true
		_ = w.WriteMsg(answer)
	})}
	go func() { _ = view.ActivateAndServe() }()
	t.Cleanup(func() { _ = socket.Close() })
	said := make(chan error, 9)
	go probe(t.Context(), netip.MustParseAddrPort(socket.LocalAddr().String()), func() string { return "c1.example.com." }, func(err error) { said <- err })
	g.Eventually(said, 30*time.Second).Should(Receive(Succeed()))
}
