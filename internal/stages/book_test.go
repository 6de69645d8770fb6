package stages

import (
	"bytes"
	"context"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/dhcp/lease"
	"github.com/cldmnky/oooi/internal/dhcp/leasekube"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/testkit/envtest"
)

var api client.WithWatch

func TestMain(m *testing.M) {
	envtest.Main(m, true, func(cluster *envtest.Cluster) (err error) {
		scheme := daemon.Scheme()
		_ = apiextensionsv1.AddToScheme(scheme) // fails for a malformed type only
		api, err = client.NewWithWatch(cluster.Admin, client.Options{Scheme: scheme})
		return err
	})
}

// site is an Infra's leases, as DHCP keeps them, and the books of two daemons.
type site struct {
	*testing.T
	store *leasekube.Store
	books []*Book
	log   *said
	since lease.Seconds // when DHCP gave the address
}

// said is a log.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) times(words string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(s.text.String(), words)
}

const (
	mac   = "52:54:00:00:00:01"
	other = "52:54:00:00:00:02"
)

var at = netip.MustParseAddr("192.168.100.10")

func newSite(t *testing.T, infra string) *site {
	s := &site{T: t, log: &said{}}
	log := slog.New(slog.NewTextHandler(s.log, nil))
	s.store = &leasekube.Store{Client: api, Namespace: "default", Server: infra + "-dhcp", Log: log, Labels: func() map[string]string { return map[string]string{names.LabelInfra: infra} }}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for range 2 {
		b := New(api, "default", log)
		running.Go(func() { b.Follow(ctx, infra) })
		running.Go(func() { _ = b.Run(ctx) }) // it returns no error
		s.books = append(s.books, b)
	}
	t.Cleanup(func() { stop(); running.Wait() })
	return s
}

// leased is what DHCP stores, once both daemons know it.
func (s *site) leased() lease.Record {
	s.Helper()
	r, err := s.store.Create(s.Context(), lease.Record{IP: at, Client: lease.Client{MAC: mac}, State: lease.Bound, Horizon: time.Now().Add(time.Hour), Since: s.since})
	NewWithT(s.T).Expect(err).NotTo(HaveOccurred())
	s.Cleanup(func() {
		l := s.lease()
		NewWithT(s.T).Expect(api.Delete(context.Background(), l)).To(Succeed())
	})
	s.allKnow(mac)
	return r
}

func (s *site) allKnow(mac string) {
	s.Helper()
	for _, b := range s.books {
		NewWithT(s.T).Eventually(func() string {
			b.mu.Lock()
			defer b.mu.Unlock()
			if w := b.workers[at]; w != nil {
				return w.client
			}
			return ""
		}, 20*time.Second).Should(Equal(mac))
	}
}

func (s *site) lease() *v1alpha1.DHCPLease {
	l := &v1alpha1.DHCPLease{}
	NewWithT(s.T).Expect(api.Get(context.Background(), client.ObjectKey{Namespace: "default", Name: names.Lease(s.store.Server, at)}, l)).To(Succeed())
	return l
}

func (s *site) stage(name v1alpha1.StageName) func() v1alpha1.Stage {
	return func() v1alpha1.Stage { return s.lease().Stages()[name] }
}

func value(of prometheus.Counter) float64 {
	m := &dto.Metric{}
	_ = of.Write(m) // a counter fails for a malformed label only
	return m.Counter.GetValue()
}

func sight(name v1alpha1.StageName, result v1alpha1.StageResult, bytes int64) v1alpha1.Stage {
	return v1alpha1.Stage{Name: name, FirstTime: metav1.NowMicro(), ServerName: "ignition.c1.example.com", Result: result, ReceivedBytes: bytes}
}

func TestWhatIsSeenIsWrittenOnceAndAsFarAsItCame(t *testing.T) {
	g, s := NewWithT(t), newSite(t, "once")
	s.leased()
	before, generation := value(written), s.lease().Generation
	asked := sight(v1alpha1.StageNameAsked, "", 0)
	s.books[0].Saw(at, asked)
	g.Eventually(s.stage(v1alpha1.StageNameAsked), 20*time.Second).Should(HaveField("ServerName", asked.ServerName))
	first := sight(v1alpha1.StageIgnitionHello, v1alpha1.StageNoTarget, 0)
	for _, each := range []struct {
		sees  v1alpha1.Stage
		bytes int64
	}{{first, 0}, {sight(first.Name, v1alpha1.StageForwarded, 0), 0}, {sight(first.Name, v1alpha1.StageForwarded, 5000), 5000}, {sight(first.Name, v1alpha1.StageForwarded, 70000), 70000}} {
		for n := range 1000 {
			s.books[n%2].Saw(at, each.sees)
			s.books[n%2].Saw(at.Next(), each.sees)
			s.books[n%2].Saw(at, asked)
		}
		g.Eventually(s.stage(first.Name), 20*time.Second).Should(And(HaveField("Result", each.sees.Result), HaveField("ReceivedBytes", each.bytes)))
	}
	g.Expect(s.stage(first.Name)().FirstTime.UnixMicro()).To(Equal(first.FirstTime.UnixMicro()))
	s.books[1].Saw(at, sight(v1alpha1.StageAPIHello, v1alpha1.StageForwarded, 0))
	g.Eventually(s.stage(v1alpha1.StageAPIHello), 20*time.Second).Should(HaveField("Result", v1alpha1.StageForwarded))
	g.Eventually(func() float64 { return value(written) - before }, 20*time.Second).Should(Equal(6.0), "NameAsked, four of Ignition, the API; counted once the API server has answered")
	g.Expect(s.lease().Generation).To(Equal(generation))
	g.Expect(s.lease().Status.Stages).To(HaveLen(3))
}

// Two daemons that see different things at once keep what the other wrote.
func TestDaemonsDoNotOverwriteEachOther(t *testing.T) {
	g, s := NewWithT(t), newSite(t, "both")
	s.leased()
	for n, name := range v1alpha1.BootStages {
		s.books[n%2].Saw(at, sight(name, "", 0))
	}
	g.Eventually(func() []v1alpha1.Stage { return s.lease().Status.Stages }, 20*time.Second).Should(HaveLen(len(v1alpha1.BootStages)))
}

// What DHCP decided before a stage was written it writes by no version but that (dhcp-rules.md#lease-1): it reads, and decides anew, and a
// RELEASE is lost. Its next write leaves the stages.
func TestAStageCostsDHCPAReadAndNothingElse(t *testing.T) {
	g, s := NewWithT(t), newSite(t, "release")
	r := s.leased()
	s.books[0].Saw(at, sight(v1alpha1.StageAPIHello, v1alpha1.StageForwarded, 0))
	g.Eventually(s.stage(v1alpha1.StageAPIHello), 20*time.Second).ShouldNot(BeZero())
	released := r
	released.State = lease.Released
	_, err := s.store.Update(t.Context(), released)
	g.Expect(err).To(MatchError(lease.ErrConflict))
	now, err := s.store.Get(t.Context(), at)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(now.Version).To(BeNumerically(">", r.Version))
	now.Version = r.Version
	g.Expect(now).To(Equal(r), "to DHCP it is the same")
	now, err = s.store.Get(t.Context(), at)
	g.Expect(err).NotTo(HaveOccurred())
	now.Hostname = "worker-1"
	_, err = s.store.Update(t.Context(), now)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.stage(v1alpha1.StageAPIHello)()).NotTo(BeZero())
}

func TestAnAddressThatChangesHandsBeginsAnew(t *testing.T) {
	g, s := NewWithT(t), newSite(t, "hands")
	s.leased()
	s.books[0].Saw(at, sight(v1alpha1.StageAPIHello, v1alpha1.StageForwarded, 0))
	g.Eventually(s.stage(v1alpha1.StageAPIHello), 20*time.Second).ShouldNot(BeZero())
	r, err := s.store.Get(t.Context(), at)
	g.Expect(err).NotTo(HaveOccurred())
	r.Client.MAC = other
	_, err = s.store.Update(t.Context(), r)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.lease().Stages()).To(BeEmpty(), "the former holder's are none of its own")
	s.allKnow(other)
	s.books[1].Saw(at, sight(v1alpha1.StageNameAsked, "", 0))
	g.Eventually(s.stage(v1alpha1.StageNameAsked), 20*time.Second).ShouldNot(BeZero())
	g.Expect(s.lease().Status).To(And(HaveField("Client", other), HaveField("Stages", HaveLen(1))))
}

// Whose machine a new holder is may be known after its first stage.
func TestANewHolderIsNotTheLastOnesMachine(t *testing.T) {
	l := &v1alpha1.DHCPLease{Spec: v1alpha1.DHCPLeaseSpec{MAC: other}, Status: v1alpha1.DHCPLeaseStatus{Client: mac, VMUID: "last"}}
	status, news := merged(l, []v1alpha1.Stage{sight(v1alpha1.StageNameAsked, "", 0)})
	g := NewWithT(t)
	g.Expect(news).To(BeTrue())
	g.Expect(status.VMUID).To(BeEmpty())
	l.Status = status
	l.Spec.VMRef = &v1alpha1.VMReference{UID: "new"}
	g.Expect(l.Stages()).To(HaveLen(1))
}

// What was seen of a holder is not written once the address is another's, though the watch has not told yet.
func TestWhatWasSeenOfAnotherIsNotWritten(t *testing.T) {
	g, s := NewWithT(t), newSite(t, "late")
	s.leased()
	b := New(api, "default", slog.New(slog.DiscardHandler))
	b.Learn(s.lease())
	b.Saw(at, sight(v1alpha1.StageAPIHello, v1alpha1.StageForwarded, 0))
	r, err := s.store.Get(t.Context(), at)
	g.Expect(err).NotTo(HaveOccurred())
	r.Client.MAC = other
	_, err = s.store.Update(t.Context(), r)
	g.Expect(err).NotTo(HaveOccurred())
	_, w, waits := b.next()
	g.Expect(waits).To(BeTrue())
	g.Expect(b.write(t.Context(), w)).To(Succeed())
	g.Expect(s.lease().Status.Stages).To(BeEmpty())
}

// A release of daemons that is newer than the CRD says so once, and writes as soon as it can.
func TestACRDWithoutStatusIsSaidOnce(t *testing.T) {
	g := NewWithT(t)
	was := refusedPause
	refusedPause = 10 * time.Millisecond
	s := newSite(t, "older")
	t.Cleanup(func() { refusedPause = was }) // runs before newSite's, which nothing of this test needs by then
	s.leased()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	hasStatus := func(has bool) {
		t.Helper()
		g.Expect(api.Get(t.Context(), client.ObjectKey{Name: "dhcpleases.hostedcluster.densityops.com"}, crd)).To(Succeed())
		crd.Spec.Versions[0].Subresources = nil
		if has {
			crd.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
		}
		g.Expect(api.Update(t.Context(), crd)).To(Succeed())
	}
	seen := func() v1alpha1.Stage {
		s.books[0].Saw(at, sight(v1alpha1.StageNameAsked, "", 0))
		return s.stage(v1alpha1.StageNameAsked)()
	}
	hasStatus(false)
	defer hasStatus(true)
	g.Eventually(func() int { seen(); return s.log.times("has no status") }, 30*time.Second).Should(Equal(1))
	tried := value(dropped)
	g.Eventually(func() float64 { seen(); return value(dropped) - tried }, 30*time.Second).Should(BeNumerically(">", 2), "it is tried again")
	g.Expect(s.log.times("has no status")).To(Equal(1))
	hasStatus(true)
	g.Eventually(seen, 30*time.Second).ShouldNot(BeZero())
}

func TestMoreThanMayWaitAreGivenUpAndNoticedAgain(t *testing.T) {
	g := NewWithT(t)
	b := New(nil, "default", slog.New(slog.DiscardHandler))
	before, ip := value(dropped), netip.MustParseAddr("10.0.0.1")
	for range waitingWorkers + 10 {
		b.Learn(&v1alpha1.DHCPLease{ObjectMeta: metav1.ObjectMeta{Name: ip.String()}, Spec: v1alpha1.DHCPLeaseSpec{IP: v1alpha1.IPv4Address(ip.String()), MAC: mac, State: v1alpha1.LeaseBound}})
		b.Saw(ip, sight(v1alpha1.StageNameAsked, "", 0))
		b.Saw(ip, sight(v1alpha1.StageNameAsked, "", 0))
		ip = ip.Next()
	}
	g.Expect(b.queue).To(HaveLen(waitingWorkers))
	g.Expect(value(dropped) - before).To(Equal(10.0))
	first := netip.MustParseAddr("10.0.0.1")
	g.Expect(b.workers[first].saw).To(BeEmpty())
	b.Saw(first, sight(v1alpha1.StageNameAsked, "", 0))
	g.Expect(b.workers[first].saw).To(HaveLen(1))
}

func TestOnlyNamesAreTold(t *testing.T) {
	g := NewWithT(t)
	for sent, told := range map[string]string{
		"API.c1.example.com.": "api.c1.example.com", "_x.example.com": "_x.example.com", "": "", "a b": "", "a\x1b[31m": "", strings.Repeat("a", 254): "", "-a": "", "192.168.1.1": "192.168.1.1",
	} {
		g.Expect(Name(sent)).To(Equal(told), "%q", sent)
	}
}
