package daemon

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cldmnky/oooi/api/v1alpha1"
	ac "github.com/cldmnky/oooi/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/names"
)

const (
	first  = "spec: {hostedClusterDomain: first.example.com}\n"
	second = "spec: {hostedClusterDomain: second.example.com}\n"
)

// follower serves DNSServers, and reports each domain that it served, or why it did not.
type follower struct {
	*Follower[*v1alpha1.DNSServer]
	served   chan string
	rejected chan error
	deleted  chan bool
}

func newFollower(stateDir string) follower {
	f := follower{served: make(chan string, 16), rejected: make(chan error, 16), deleted: make(chan bool, 1)}
	f.Follower = &Follower[*v1alpha1.DNSServer]{
		New:      func() *v1alpha1.DNSServer { return &v1alpha1.DNSServer{} },
		StateDir: stateDir,
		Log:      slog.New(slog.DiscardHandler),
		Apply: func(_ context.Context, s *v1alpha1.DNSServer) error {
			if s.Spec.HostedClusterDomain == "" {
				return errors.New("no domain")
			}
			f.served <- string(s.Spec.HostedClusterDomain)
			return nil
		},
		Rejected: func(err error) { f.rejected <- err },
		Deleted:  func() { f.deleted <- true },
	}
	return f
}

func TestAChangedFileIsServedAndABadOneLeavesWhatServes(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "dns.yaml")
	g.Expect(WriteFile(path, []byte(first))).To(Succeed())
	f := newFollower("")
	go func() { _ = f.File(t.Context(), path) }()
	g.Eventually(f.served).Should(Receive(Equal("first.example.com")))
	g.Eventually(f.rejected).Should(Receive(BeNil()))

	g.Expect(os.WriteFile(path, []byte("spec: {hostedClusterDomian: typo.example.com}\n"), 0o600)).To(Succeed())
	g.Eventually(f.rejected).Should(Receive(MatchError(ContainSubstring("hostedClusterDomian"))))
	g.Expect(f.served).NotTo(Receive())

	g.Expect(WriteFile(path, []byte(second))).To(Succeed())
	g.Eventually(f.served).Should(Receive(Equal("second.example.com")))
	g.Eventually(f.rejected).Should(Receive(BeNil()))
}

func TestAFileHoldsOneObjectOfTheDaemonsKind(t *testing.T) {
	const dns = "apiVersion: hostedcluster.densityops.com/v1alpha1\nkind: DNSServer\n" + first
	for file, problem := range map[string]string{
		dns:                             "",
		first:                           "",
		"# ours\n---\n" + dns + "---\n": "",
		strings.Replace(dns, "DNSServer", "DHCPServer", 1): "it holds a DHCPServer of hostedcluster.densityops.com/v1alpha1; expected a DNSServer of hostedcluster.densityops.com/v1alpha1",
		strings.Replace(dns, "DNSServer", "Novel", 1):      "it holds a Novel of hostedcluster.densityops.com/v1alpha1; expected a DNSServer",
		strings.Replace(dns, "v1alpha1", "v1beta1", 1):     "it holds a DNSServer of hostedcluster.densityops.com/v1beta1; expected a DNSServer",
		dns + "---\n" + dns:                                "it holds 2 objects; expected one DNSServer",
		"# nothing\n":                                      "it holds 0 objects; expected one DNSServer",
		"spec: {networkConfig: {serverPI: 10.0.0.1}}\n":    `unknown field "spec.networkConfig.serverPI"; docs/reference/api.md has the fields of a DNSServer`,
		"spec: {": "yaml: line 1",
	} {
		problems := BeNil()
		if problem != "" {
			problems = MatchError(ContainSubstring(problem))
		}
		NewWithT(t).Expect(Decode([]byte(file), &v1alpha1.DNSServer{})).To(problems, file)
	}
}

func TestAStateDirectoryIsMade(t *testing.T) {
	g, dir := NewWithT(t), filepath.Join(t.TempDir(), "lib", "oooi")
	g.Expect((&Flags{StateDir: dir}).MakeStateDir()).To(Succeed())
	g.Expect(WriteFile(filepath.Join(dir, "last-good.yaml"), nil)).To(Succeed())
	occupied := filepath.Join(dir, "last-good.yaml")
	g.Expect((&Flags{StateDir: occupied}).MakeStateDir()).To(MatchError(And(HavePrefix("--state-dir: "), ContainSubstring(occupied))))
}

// A DHCP server's lease file may be beside its configuration, and on a busy VLAN is written without a pause.
func TestAChangedFileIsReadBesideOneThatIsWrittenWithoutAPause(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "dns.yaml")
	g.Expect(WriteFile(path, []byte(first))).To(Succeed())
	f := newFollower("")
	go func() { _ = f.File(t.Context(), path) }()
	g.Eventually(f.served).Should(Receive(Equal("first.example.com")))
	go func() {
		for t.Context().Err() == nil {
			_ = os.WriteFile(filepath.Join(dir, "leases.db"), []byte(time.Now().String()), 0o600)
		}
	}()
	g.Expect(WriteFile(path, []byte(second))).To(Succeed())
	g.Eventually(f.served).WithTimeout(5 * time.Second).Should(Receive(Equal("second.example.com")))
}

func TestABadFileAtTheStartIsAnErrorUnlessALastGoodOneServes(t *testing.T) {
	g := NewWithT(t)
	state, path := t.TempDir(), filepath.Join(t.TempDir(), "dns.yaml")
	g.Expect(WriteFile(path, []byte("spec: {}\n"))).To(Succeed())
	refused, said := newFollower(state), &bytes.Buffer{}
	refused.Log = slog.New(slog.NewTextHandler(said, nil))
	g.Expect(refused.File(t.Context(), path)).To(MatchError("no domain"))
	g.Expect(said.String()).To(ContainSubstring("configuration refused; nothing is served"))

	g.Expect(WriteFile(filepath.Join(state, "last-good.yaml"), []byte(first))).To(Succeed())
	f := newFollower(state)
	go func() { _ = f.File(t.Context(), path) }()
	g.Eventually(f.served).Should(Receive(Equal("first.example.com")))
	g.Eventually(f.rejected).Should(Receive(MatchError("no domain")))
}

func TestAPipeIsNoConfiguration(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dns.yaml")
	NewWithT(t).Expect(unix.Mkfifo(path, 0o600)).To(Succeed())
	refused := make(chan error, 1)
	go func() { refused <- newFollower(t.TempDir()).File(t.Context(), path) }()
	NewWithT(t).Eventually(refused).WithTimeout(10 * time.Second).Should(Receive(MatchError(ContainSubstring("is no regular file"))))
}

func TestTheOwnObjectIsFollowedAndItsLastGoodCopyServesWithoutTheAPI(t *testing.T) {
	g := NewWithT(t)
	state := t.TempDir()
	object := &v1alpha1.DNSServer{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mine"}}
	object.Spec.HostedClusterDomain = "first.example.com"
	other := object.DeepCopy()
	other.Name = "other"
	cluster := fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(object, other).
		WithIndex(object, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).Build()
	f := newFollower(state)
	ctx, stop := context.WithCancel(t.Context())
	go func() { _ = f.Object(ctx, cluster, &v1alpha1.DNSServerList{}, client.ObjectKeyFromObject(object)) }()
	g.Eventually(f.served).Should(Receive(Equal("first.example.com")))
	g.Consistently(f.served, 100*time.Millisecond).ShouldNot(Receive(), "the other object is not ours")

	g.Expect(cluster.Get(t.Context(), client.ObjectKeyFromObject(object), object)).To(Succeed())
	object.Spec.HostedClusterDomain = "second.example.com"
	g.Expect(cluster.Update(t.Context(), object)).To(Succeed())
	g.Eventually(f.served).Should(Receive(Equal("second.example.com")))
	g.Eventually(func() (string, error) {
		content, err := os.ReadFile(filepath.Join(state, "last-good.yaml"))
		return string(content), err
	}).Should(ContainSubstring("second.example.com"))

	g.Expect(cluster.Delete(t.Context(), object)).To(Succeed())
	g.Eventually(f.deleted).Should(Receive())
	stop()

	away := interceptor.NewClient(cluster, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("the API server is away")
	}})
	restarted := newFollower(state)
	go func() {
		_ = restarted.Object(t.Context(), away, &v1alpha1.DNSServerList{}, client.ObjectKeyFromObject(object))
	}()
	g.Eventually(restarted.served).Should(Receive(Equal("second.example.com")))
}

// A newer manager may write fields that this daemon does not know: it serves the ones that it knows.
func TestTheObjectOfANewerManagerIsServed(t *testing.T) {
	g := NewWithT(t)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") != "" {
			<-r.Context().Done() // nothing changes
			return
		}
		_, _ = w.Write([]byte(`{"apiVersion":"hostedcluster.densityops.com/v1alpha1","kind":"DNSServerList","metadata":{"resourceVersion":"1"},"items":[
			{"metadata":{"namespace":"ns","name":"mine"},"spec":{"hostedClusterDomain":"first.example.com","novel":{"of":["next","year"]}}}]}`))
	}))
	defer api.Close()
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(v1alpha1.GroupVersion.WithKind("DNSServer"), meta.RESTScopeNamespace)
	cluster, err := client.NewWithWatch(&rest.Config{Host: api.URL}, client.Options{Scheme: Scheme(), Mapper: mapper})
	g.Expect(err).NotTo(HaveOccurred())
	f := newFollower(t.TempDir())
	ctx, stop := context.WithCancel(t.Context())
	defer stop() // before the server waits for its watches
	go func() {
		_ = f.Object(ctx, cluster, &v1alpha1.DNSServerList{}, client.ObjectKey{Namespace: "ns", Name: "mine"})
	}()
	g.Eventually(f.served).Should(Receive(Equal("first.example.com")))
}

func TestAConfigurationThatIsRefusedIsTriedAgain(t *testing.T) {
	g := NewWithT(t)
	object := &v1alpha1.DNSServer{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mine"}}
	cluster := fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(object).
		WithIndex(object, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).Build()
	f := newFollower("")
	var address atomic.Bool
	f.Apply = func(_ context.Context, s *v1alpha1.DNSServer) error {
		if !address.Load() {
			return errors.New("no address yet")
		}
		f.served <- s.Name
		return nil
	}
	go func() {
		_ = f.Object(t.Context(), cluster, &v1alpha1.DNSServerList{}, client.ObjectKeyFromObject(object))
	}()
	g.Eventually(f.rejected).Should(Receive(MatchError("no address yet")))
	address.Store(true)
	g.Eventually(f.served, 2*firstRetry).Should(Receive(Equal("mine")))
	g.Eventually(f.rejected).Should(Receive(BeNil()))
	g.Consistently(f.served, 2*firstRetry).ShouldNot(Receive(), "it serves")
}

func TestAnAbsentKindCountsAsEmptyUntilItAppears(t *testing.T) {
	g := NewWithT(t)
	object := &v1alpha1.DNSServer{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mine"}}
	inner := fake.NewClientBuilder().WithScheme(Scheme()).Build()
	var known atomic.Bool
	unknown := &meta.NoKindMatchError{GroupKind: v1alpha1.GroupVersion.WithKind("DNSServer").GroupKind()}
	cluster := interceptor.NewClient(inner, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, o ...client.ListOption) error {
			if !known.Load() {
				return unknown
			}
			return c.List(ctx, l, o...)
		},
		Watch: func(ctx context.Context, c client.WithWatch, l client.ObjectList, o ...client.ListOption) (watch.Interface, error) {
			if !known.Load() {
				return nil, unknown
			}
			return c.Watch(ctx, l, o...)
		},
	})
	var seen atomic.Int32
	informer := Informer(cluster, object, &v1alpha1.DNSServerList{}, nil, cache.ResourceEventHandlerFuncs{AddFunc: func(any) { seen.Add(1) }})
	go informer.RunWithContext(t.Context())
	g.Eventually(informer.HasSynced).Should(BeTrue())
	g.Expect(seen.Load()).To(BeZero())
	known.Store(true)
	g.Eventually(func() int32 { // the fake watch replays nothing, so something must change while it watches
		created := object.DeepCopy()
		created.ResourceVersion, created.GenerateName, created.Name = "", "mine-", ""
		_ = inner.Create(t.Context(), created)
		return seen.Load()
	}, 2*absentPause, "200ms").ShouldNot(BeZero())
}

func TestAnInformerListsInPages(t *testing.T) {
	g, asked := NewWithT(t), make(chan client.ListOptions, 1)
	cluster := interceptor.NewClient(fake.NewClientBuilder().WithScheme(Scheme()).Build(), interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, _ client.ObjectList, all ...client.ListOption) error {
			var o client.ListOptions
			o.ApplyOptions(all)
			select {
			case asked <- o:
			default: // it tries again
			}
			return errors.New("enough")
		},
	})
	go Informer(cluster, &v1alpha1.DNSServer{}, &v1alpha1.DNSServerList{}, nil, cache.ResourceEventHandlerFuncs{}).RunWithContext(t.Context())
	var first client.ListOptions
	g.Eventually(asked).Should(Receive(&first))
	g.Expect(first.Limit).To(BeNumerically("==", 500))
	g.Expect(first.Raw.ResourceVersion).To(BeEmpty(), "an API server takes no heed of a limit where any version would do")
}

func TestReadinessNamesWhatFails(t *testing.T) {
	g := NewWithT(t)
	ready := NewReadiness("config", "network")
	g.Expect(ready.Problem()).To(MatchError("config: not yet checked\nnetwork: not yet checked"))
	ready.Set("config", nil)
	g.Expect(ready.Changed()).To(Receive())
	ready.Set("config", nil)
	g.Expect(ready.Changed()).NotTo(Receive(), "nothing changed")

	probe := func(path string) (int, string) {
		answer := httptest.NewRecorder()
		Health(ready).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		return answer.Code, answer.Body.String()
	}
	code, body := probe("/readyz")
	g.Expect(code).To(Equal(http.StatusServiceUnavailable))
	g.Expect(body).To(ContainSubstring("network: not yet checked"))
	code, _ = probe("/livez")
	g.Expect(code).To(Equal(http.StatusOK), "a daemon that is not ready still lives")
	ready.Set("network", nil)
	code, _ = probe("/readyz")
	g.Expect(code).To(Equal(http.StatusOK))
}

func TestAForwardingDeviceHoldsReadinessBackOnlyWhereTuned(t *testing.T) {
	unreadable := errors.New("unreadable")
	for name, c := range map[string]struct {
		tuned, forwards bool
		err             error
		problem         string
	}{
		"tuned and quiet":          {tuned: true},
		"tuned and forwarding":     {tuned: true, forwards: true, problem: "set net.ipv4.conf.net1.forwarding to 0"},
		"not tuned and forwarding": {forwards: true},
		"unreadable":               {err: unreadable, problem: "unreadable"},
	} {
		t.Run(name, func(t *testing.T) {
			problem := forwardingProblem("net1", c.tuned, c.forwards, c.err)
			if c.problem == "" {
				NewWithT(t).Expect(problem).NotTo(HaveOccurred())
				return
			}
			NewWithT(t).Expect(problem).To(MatchError(ContainSubstring(c.problem)))
		})
	}
}

func TestStatusIsWrittenOnlyWhenItChanged(t *testing.T) {
	g := NewWithT(t)
	object := &v1alpha1.DNSServer{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mine"}}
	var writes, refusals atomic.Int32
	refusals.Store(1)
	cluster := fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(object).WithStatusSubresource(object).
		WithInterceptorFuncs(interceptor.Funcs{SubResourceApply: func(ctx context.Context, c client.Client, sub string, o runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
			if refusals.Add(-1) >= 0 {
				return errors.New("refused once")
			}
			writes.Add(1)
			return c.SubResource(sub).Apply(ctx, o, opts...)
		}}).Build()
	status := NewStatus(cluster, "oooi-dns", slog.New(slog.DiscardHandler))
	go func() { _ = status.Run(t.Context()) }()
	say := func(ready bool) {
		status.Set(ac.DNSServer("mine", "ns").WithStatus(ac.DNSServerStatus().WithInstances(ac.Instance().WithIP("192.0.2.1").WithReady(ready))))
	}
	seen := func() ([]v1alpha1.Instance, error) {
		err := cluster.Get(t.Context(), client.ObjectKeyFromObject(object), object)
		return object.Status.Instances, err
	}
	say(false)
	g.Eventually(seen, 5*time.Second).Should(ConsistOf(v1alpha1.Instance{IP: "192.0.2.1"}), "a refused write is tried again")
	say(false)
	say(true)
	g.Eventually(seen).Should(ConsistOf(v1alpha1.Instance{IP: "192.0.2.1", Ready: true}))
	g.Expect(writes.Load()).To(BeEquivalentTo(2))
}

// The message is one line, within the API server's limit.
func TestAnInstanceSaysWhatKeepsItFromServing(t *testing.T) {
	g := NewWithT(t)
	ready := NewReadiness("socket", "leases")
	ready.Set("leases", errors.New(strings.Repeat("ä", 2000)))
	i := Instance("192.0.2.1", ready.Problem())
	g.Expect(*i.Ready).To(BeFalse())
	g.Expect(*i.Message).To(And(HavePrefix("leases: ä"), HaveSuffix("…")))
	g.Expect(utf8.RuneCountInString(*i.Message)).To(Equal(1024))
	ready.Set("leases", nil)
	g.Expect(*Instance("192.0.2.1", ready.Problem()).Message).To(Equal("socket: not yet checked"))
	ready.Set("socket", errors.New("a"))
	ready.Set("leases", errors.New("b"))
	g.Expect(*Instance("192.0.2.1", ready.Problem()).Message).To(Equal("leases: b; socket: a"))
	ready.Set("socket", nil)
	ready.Set("leases", nil)
	g.Expect(Instance("192.0.2.1", ready.Problem())).To(Equal(ac.Instance().WithIP("192.0.2.1").WithReady(true)))
}

func TestAConditionThatTurnsIsAnEvent(t *testing.T) {
	g := NewWithT(t)
	object := &v1alpha1.DNSServer{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "mine", UID: "42"}}
	cluster := fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(object).WithStatusSubresource(object).Build()
	status := NewStatus(cluster, "oooi-dns", slog.New(slog.DiscardHandler))
	go func() { _ = status.Run(t.Context()) }()
	long := metav1.NewTime(time.Unix(1000, 0))
	seen := []metav1.Condition{{Type: "ConfigAccepted", Status: metav1.ConditionTrue, LastTransitionTime: long}}
	say := func(state metav1.ConditionStatus, reason string) {
		c := Condition(seen, metav1.Condition{Type: "ConfigAccepted", Status: state, Reason: reason, Message: "so it is"})
		status.Set(ac.DNSServer("mine", "ns").WithStatus(ac.DNSServerStatus().WithConditions(c)))
	}
	events := func() ([]corev1.Event, error) {
		list := &corev1.EventList{}
		err := cluster.List(t.Context(), list)
		return list.Items, err
	}
	say(metav1.ConditionTrue, "Accepted")
	g.Consistently(events, 200*time.Millisecond).Should(BeEmpty(), "nothing turned: the daemon only started again")
	say(metav1.ConditionFalse, "Invalid")
	g.Eventually(events).Should(ConsistOf(And(
		HaveField("Type", "Warning"), HaveField("Reason", "Invalid"), HaveField("Message", "ConfigAccepted: so it is"),
		HaveField("InvolvedObject", And(HaveField("Kind", "DNSServer"), HaveField("UID", object.UID))),
	)))
}

func TestAConditionThatTurnsTwiceWithinASecondIsTwoEvents(t *testing.T) {
	at := metav1.NewTime(time.Unix(1000, 0))
	said := func(state metav1.ConditionStatus, reason string) []metav1.Condition {
		return []metav1.Condition{{Type: "ConfigAccepted", Status: state, Reason: reason, LastTransitionTime: at}}
	}
	accepted, refused, late := said(metav1.ConditionTrue, "Serving"), said(metav1.ConditionFalse, "Refused"), said(metav1.ConditionFalse, "TooLate")
	g, before := NewWithT(t), at.Add(-time.Minute)
	g.Expect(turned(accepted, refused, before)).To(Equal(refused))
	g.Expect(turned(refused, accepted, before)).To(Equal(accepted))
	g.Expect(turned(refused, late, before)).To(Equal(late), "another reason")
	g.Expect(turned(refused, refused, before)).To(BeEmpty())
	g.Expect(turned(nil, refused, before)).To(Equal(refused), "the first that is told")
	g.Expect(turned(nil, refused, at.Add(time.Minute))).To(BeEmpty(), "it was so before we started")
}

func TestATransitionTimeIsKeptUntilTheStatusTurns(t *testing.T) {
	g := NewWithT(t)
	long := metav1.NewTime(time.Unix(1000, 0))
	seen := []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, LastTransitionTime: long}}
	same := Condition(seen, metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Message: "other words"})
	g.Expect(same.LastTransitionTime).To(HaveValue(Equal(long)))
	turned := Condition(seen, metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse})
	g.Expect(turned.LastTransitionTime.After(long.Time)).To(BeTrue())
}

func TestHealthIsServedOnThePodsAddressUnlessAFlagSaysOtherwise(t *testing.T) {
	for _, c := range []struct{ podIP, flag, at string }{
		{"10.128.0.17", "", "10.128.0.17:8081"},
		{"fd00::17", "", "[fd00::17]:8081"},
		{"fd00::17", "192.168.100.3:18081", "192.168.100.3:18081"},
		{"", "[fd00::17]:18081", "[fd00::17]:18081"},
	} {
		f := Flags{HealthAddress: c.flag}
		if c.podIP != "" {
			f.PodIP = netip.MustParseAddr(c.podIP)
		}
		at, err := f.at("--health-address", f.HealthAddress, names.HealthPort)
		NewWithT(t).Expect(at.String(), err).To(Equal(c.at))
	}
	nowhere, err := (&Flags{}).at("--health-address", "", names.HealthPort)
	NewWithT(t).Expect(nowhere.IsValid(), err).To(BeFalse())
}

func TestHealthAndMetricsAnswerOnTheirAddresses(t *testing.T) {
	g := NewWithT(t)
	flags := Flags{HealthAddress: "127.0.0.1:18081", MetricsAddress: "127.0.0.1:19402"}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- flags.Serve(ctx, NewReadiness(), http.NotFoundHandler()) }()
	g.Eventually(func() error { _, err := http.Get("http://127.0.0.1:18081/readyz"); return err }).Should(Succeed())
	g.Eventually(func() error { _, err := http.Get("http://127.0.0.1:19402/metrics"); return err }).Should(Succeed())
	stop()
	g.Eventually(ended).Should(Receive(BeNil()))

	taken, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	defer taken.Close()
	for says, f := range map[string]Flags{
		`--health-address "8081" must be an IP address and a port, e.g. 192.168.100.2:8081`: {HealthAddress: "8081"},
		`--metrics-address "fd00::17:9402" must be an IP address and a port`:                {MetricsAddress: "fd00::17:9402"},
		"--health-address: listening on 0.0.0.0:8081: give one address and a port":          {HealthAddress: "0.0.0.0:8081"},
		"--metrics-address: listen tcp " + taken.Addr().String():                            {MetricsAddress: taken.Addr().String()},
		"address already in use: `ss -ltnp 'sport = :":                                      {HealthAddress: taken.Addr().String()},
	} {
		g.Expect(f.Serve(t.Context(), NewReadiness(), http.NotFoundHandler())).To(MatchError(ContainSubstring("%s", says)))
	}
}
