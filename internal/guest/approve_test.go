package guest_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	certv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/cldmnky/oooi/internal/csr"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/guest/approve"
	"github.com/cldmnky/oooi/internal/guest/kubeconfig"
	"github.com/cldmnky/oooi/internal/plan/bridge"
	"github.com/cldmnky/oooi/internal/plan/input"
)

// gate is a bridge that lets DPUs into its hosted cluster.
type gate struct {
	*world
	approvals *approve.Approvals
	bridge    types.NamespacedName
	approving bridge.Approval
	end       func()

	mu     sync.Mutex
	cards  []dpf.DPU // the management API's
	away   error     // why it does not answer
	reads  int       // how often it was read
	judged []dpf.DPU // the controller's cache's; nil: as cards
	told   []approve.Notice
}

var cardCluster = types.NamespacedName{Namespace: "dpf", Name: "bluefield"}

func newGate(t *testing.T) *gate {
	t.Helper()
	w := newWorld(t, "LoadBalancer")
	for _, err := range []error{
		w.kube.CertificatesV1().CertificateSigningRequests().DeleteCollection(w.ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
		w.kube.CoreV1().Nodes().DeleteCollection(w.ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
	} {
		w.Expect(err).NotTo(HaveOccurred())
	}
	// MCO grants this to node-bootstrapper, and Kubernetes to nodes.
	_, err := w.kube.RbacV1().ClusterRoleBindings().Create(w.ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "may-ask"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:node-bootstrapper"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:authenticated"}},
	}, metav1.CreateOptions{})
	w.Expect(err == nil || apierrors.IsAlreadyExists(err)).To(BeTrue(), "%v", err)
	g := &gate{world: w, bridge: types.NamespacedName{Namespace: w.infra.Namespace, Name: "b1"}}
	g.approving = bridge.Approval{Secret: w.want.Secret, Server: w.want.Server, Cluster: cardCluster}
	g.begins()
	t.Cleanup(func() { g.end() })
	return g
}

// begins to approve, and knows nothing of an earlier time.
func (g *gate) begins() {
	g.approvals = approve.NewApprovals(g.kube.CoreV1(), g, func(_ types.NamespacedName, a approve.Notice) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.told = append(g.told, a)
	}, func(types.NamespacedName) {})
	g.approvals.Dial = new(net.Dialer).DialContext // the test's hosted cluster is on the loopback
	ctx, leave := context.WithCancel(context.Background())
	left := make(chan error, 1)
	approvals := g.approvals
	go func() { left <- approvals.Start(ctx) }()
	g.end = sync.OnceFunc(func() {
		leave()
		g.Expect(<-left).To(Succeed())
	})
}

// DPUs makes the gate a FactSource.
func (g *gate) DPUs(context.Context, types.NamespacedName) ([]dpf.DPU, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reads++
	return g.cards, g.away
}

func (g *gate) readings() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.reads
}

func (g *gate) set(change func()) {
	g.mu.Lock()
	change()
	g.mu.Unlock()
	g.see()
}

func (g *gate) see() approve.State {
	g.mu.Lock()
	judged := g.judged
	if judged == nil {
		judged = g.cards
	}
	g.mu.Unlock()
	return g.approvals.See(g.bridge, g.approving, judged)
}

func (g *gate) audit() []approve.Notice {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]approve.Notice(nil), g.told...)
}

// open writes the kubeconfig, and awaits that everything is read.
func (g *gate) open() {
	g.t.Helper()
	g.hasKubeconfig(g.kubeconfig())
	g.isActive()
}

func (g *gate) isActive() {
	g.t.Helper()
	g.Eventually(func() bool { return g.see().Active }).Should(BeTrue(), func() string { return fmt.Sprintf("%+v", g.see().Problem) })
}

func (g *gate) isStopped(reason string) {
	g.t.Helper()
	g.Eventually(func() string {
		if s := g.see(); s.Problem != nil && !s.Active {
			return s.Problem.Reason
		}
		return ""
	}).Should(Equal(reason))
}

func card(name string, installed bool) dpf.DPU {
	d := dpf.DPU{
		ObjectMeta: metav1.ObjectMeta{Namespace: "dpf", Name: name, UID: types.UID("uid-" + name)},
		Spec:       dpf.DPUSpec{Cluster: dpf.Reference{Name: cardCluster.Name, Namespace: cardCluster.Namespace}},
	}
	if installed {
		d.Status.Conditions = []metav1.Condition{{Type: dpf.ConditionOSInstalled, Status: metav1.ConditionTrue}}
	}
	return d
}

// asks creates a CSR as a kubelet does, with the user that a kubelet has at that time.
func (g *gate) asks(name, host string, kind string, addresses ...string) *certv1.CertificateSigningRequest {
	g.t.Helper()
	r := requestOf(g.t, name, host, kind, addresses...)
	created, err := as(g.t, kind, host).CertificatesV1().CertificateSigningRequests().Create(g.ctx, r, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	return created
}

var kubeletsKey = sync.OnceValues(func() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) })

func requestOf(t *testing.T, name, host, kind string, addresses ...string) *certv1.CertificateSigningRequest {
	t.Helper()
	key, err := kubeletsKey()
	if err != nil {
		t.Fatal(err)
	}
	return requestWith(t, key, name, host, kind, addresses...)
}

func requestWith(t *testing.T, key *ecdsa.PrivateKey, name, host, kind string, addresses ...string) *certv1.CertificateSigningRequest {
	t.Helper()
	template := &x509.CertificateRequest{Subject: pkix.Name{Organization: []string{"system:nodes"}, CommonName: "system:node:" + host}}
	signer, usage := certv1.KubeAPIServerClientKubeletSignerName, certv1.UsageClientAuth
	if kind == "serving" {
		signer, usage = certv1.KubeletServingSignerName, certv1.UsageServerAuth
		template.DNSNames = []string{host}
		for _, a := range addresses {
			template.IPAddresses = append(template.IPAddresses, net.ParseIP(a))
		}
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		t.Fatal(err)
	}
	return &certv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: certv1.CertificateSigningRequestSpec{
		Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: signer,
		Usages: []certv1.KeyUsage{certv1.UsageDigitalSignature, usage},
	}}
}

// as is a client with the user of a kubelet, or of the token in its Ignition.
func as(t *testing.T, kind, host string) kubernetes.Interface {
	t.Helper()
	config := rest.CopyConfig(cluster.Admin)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper",
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:openshift-machine-config-operator", "system:authenticated"},
	}
	if kind == "serving" {
		config.Impersonate = rest.ImpersonationConfig{UserName: "system:node:" + host, Groups: []string{"system:nodes", "system:authenticated"}}
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return kube
}

func (g *gate) live(name string) *certv1.CertificateSigningRequest {
	g.t.Helper()
	r, err := g.kube.CertificatesV1().CertificateSigningRequests().Get(g.ctx, name, metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	return r
}

func approvalOf(r *certv1.CertificateSigningRequest) *certv1.CertificateSigningRequestCondition {
	for i, c := range r.Status.Conditions {
		if c.Type == certv1.CertificateApproved {
			return &r.Status.Conditions[i]
		}
	}
	return nil
}

func (g *gate) approved(name string) *certv1.CertificateSigningRequestCondition {
	g.t.Helper()
	g.Eventually(func() any { return approvalOf(g.live(name)) }).ShouldNot(BeNil(), func() string {
		return fmt.Sprintf("CSR %s is not approved; state %+v", name, g.see())
	})
	return approvalOf(g.live(name))
}

// waits expects that a CSR is not approved. It awaits the approval of a later one of another DPU: by then this one was decided about too.
func (g *gate) waits(name string) {
	g.t.Helper()
	g.mu.Lock()
	other := fmt.Sprintf("dpu-%d", 1000+len(g.cards))
	g.cards = append(g.cards[:len(g.cards):len(g.cards)], card(other, true))
	if g.judged != nil {
		g.judged = append(g.judged[:len(g.judged):len(g.judged)], card(other, true))
	}
	g.mu.Unlock()
	g.see()
	g.asks(other, other, "bootstrap")
	g.approved(other)
	r := g.live(name)
	g.Expect(r.Status.Conditions).To(BeEmpty(), "it must wait, and never be denied")
}

func (g *gate) joins(host string, ready corev1.ConditionStatus, renewed time.Duration, addresses ...string) {
	g.t.Helper()
	node, err := g.kube.CoreV1().Nodes().Create(g.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: host}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.t.Cleanup(func() {
		g.Expect(g.kube.CoreV1().Nodes().Delete(context.Background(), host, metav1.DeleteOptions{})).To(Or(Succeed(), MatchError(apierrors.IsNotFound, "it is gone")))
	})
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
	for _, a := range addresses {
		node.Status.Addresses = append(node.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a})
	}
	_, err = g.kube.CoreV1().Nodes().UpdateStatus(g.ctx, node, metav1.UpdateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = g.kube.CoreV1().Namespaces().Create(g.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-node-lease"}}, metav1.CreateOptions{})
	g.Expect(err == nil || apierrors.IsAlreadyExists(err)).To(BeTrue(), "%v", err)
	at := metav1.NewMicroTime(time.Now().Add(-renewed))
	leases := g.kube.CoordinationV1().Leases("kube-node-lease")
	_ = leases.Delete(g.ctx, host, metav1.DeleteOptions{}) // one of an earlier test, if any
	_, err = leases.Create(g.ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: host}, Spec: coordinationv1.LeaseSpec{RenewTime: &at}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
}

func TestADPUIsLetInWhenItsOSIsInstalledAndThenServes(t *testing.T) {
	g := newGate(t)
	signs(t)
	g.set(func() { g.cards = []dpf.DPU{card("dpu-1", false)} })
	g.open()
	waited, passed := decisions("waiting", "OSInstalled"), decisions("approved", "")
	g.asks("boot", "dpu-1", "bootstrap")
	g.waits("boot")
	g.Expect(decisions("waiting", "OSInstalled")).To(Equal(waited+1), "once, however often it is decided about")
	g.set(func() { g.cards[0] = card("dpu-1", true) })
	approval := g.approved("boot")
	g.Expect(approval.Reason).To(Equal("DPUMayJoin"))
	g.Expect(approval.Message).To(And(HavePrefix("DPUHCPBridge "+g.bridge.String()), HaveSuffix("DPU dpf/dpu-1, UID uid-dpu-1")))
	g.Eventually(func() []byte { return g.live("boot").Status.Certificate }).ShouldNot(BeEmpty(), "its approval makes a certificate")
	g.Eventually(g.audit).Should(ContainElement(And(HaveField("Name", "boot"), HaveField("Kind", csr.Bootstrap), HaveField("Host", "dpu-1"), HaveField("Warning", false),
		HaveField("Created", Not(BeZero())), HaveField("Reason", approval.Reason), HaveField("Message", approval.Message))))
	g.Expect(decisions("approved", "")).To(Equal(passed+2), "this one and the one that was approved before it")

	g.joins("dpu-1", corev1.ConditionTrue, 0, "192.168.100.1")
	g.asks("serve", "dpu-1", "serving", "192.168.100.1")
	g.approved("serve")
	g.Eventually(func() []byte { return g.live("serve").Status.Certificate }).ShouldNot(BeEmpty())
	g.asks("again", "dpu-1", "bootstrap")
	g.waits("again")
}

// decisions is the metric of decisions about bootstrap CSRs so far.
func decisions(decision, rule string) float64 {
	return counted(map[string]string{"kind": "bootstrap", "decision": decision, "rule": rule})
}

// warned is the metric of warnings so far with a reason.
func warned(reason string) float64 {
	return summed("oooi_csr_warnings_total", map[string]string{"reason": reason})
}

// counted sums the metric of decisions over all labels that are not named.
func counted(want map[string]string) float64 { return summed("oooi_csr_decisions_total", want) }

func summed(metric string, want map[string]string) (n float64) {
	families, err := metrics.Registry.Gather()
	if err != nil {
		panic(err) // the metrics of one registry do not clash
	}
	for _, f := range families {
		for _, m := range f.Metric {
			labels := maps.Clone(want)
			for _, l := range m.Label {
				if _, asked := want[l.GetName()]; asked {
					labels[l.GetName()] = l.GetValue()
				}
			}
			if f.GetName() == metric && maps.Equal(labels, want) {
				n += m.Counter.GetValue()
			}
		}
	}
	return n
}

// CSRs that are for others to decide must not raise an alert of ours.
func TestWhatIsNotOursIsNotCounted(t *testing.T) {
	g := newGate(t)
	g.set(func() { g.cards = []dpf.DPU{card("dpu-1", true)} })
	g.open()
	waited := counted(map[string]string{"decision": "waiting"})
	foreign := requestOf(t, "foreign", "dpu-1", "serving")
	foreign.Spec.SignerName = "example.com/another"
	_, err := g.kube.CertificatesV1().CertificateSigningRequests().Create(g.ctx, foreign, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	renewal := requestOf(t, "renewal", "dpu-2", "bootstrap")
	_, err = as(t, "serving", "dpu-2").CertificatesV1().CertificateSigningRequests().Create(g.ctx, renewal, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.asks("boot", "dpu-1", "bootstrap")
	g.approved("boot")
	g.Expect(counted(map[string]string{"decision": "waiting"})).To(Equal(waited))
	for _, name := range []string{"foreign", "renewal"} {
		g.Expect(g.live(name).Status.Conditions).To(BeEmpty())
	}
}

func TestANodeThatIsLongGoneMayJoinAgain(t *testing.T) {
	for name, c := range map[string]struct {
		ready   corev1.ConditionStatus
		renewed time.Duration
		may     bool
	}{
		"it is Ready":                 {corev1.ConditionTrue, time.Hour, false},
		"its kubelet was just seen":   {corev1.ConditionUnknown, time.Minute, false},
		"its kubelet was seen before": {corev1.ConditionUnknown, time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGate(t)
			g.set(func() { g.cards = []dpf.DPU{card("dpu-1", true)} })
			g.joins("dpu-1", c.ready, c.renewed)
			g.open()
			g.asks("boot", "dpu-1", "bootstrap")
			if c.may {
				g.approved("boot")
			} else {
				g.waits("boot")
			}
		})
	}
}

func TestTheManagementAPIHasTheLastWord(t *testing.T) {
	g := newGate(t)
	g.set(func() { g.cards, g.judged = []dpf.DPU{card("dpu-1", false)}, []dpf.DPU{card("dpu-1", true)} })
	g.open()
	g.asks("boot", "dpu-1", "bootstrap")
	g.waits("boot")
	g.set(func() { g.cards[0] = card("dpu-1", true) })
	g.approved("boot")
}

func TestWhatReadingsRefuseIsReadLessAndLessUntilFactsTurn(t *testing.T) {
	for name, turn := range map[string]func(*gate){
		"a Node joins": func(g *gate) { g.joins("dpu-2", corev1.ConditionTrue, 0) },
		"a DPU comes":  func(g *gate) { g.set(func() { g.judged = append(g.judged[:1:1], card("dpu-2", true)) }) },
	} {
		t.Run(name, func(t *testing.T) {
			g := newGate(t)
			g.cards, g.judged = []dpf.DPU{card("dpu-1", false)}, []dpf.DPU{card("dpu-1", true)}
			g.open()
			begun := time.Now()
			g.asks("boot", "dpu-1", "bootstrap")
			g.Eventually(g.readings).Should(Equal(4))
			g.Expect(time.Since(begun)).To(BeNumerically(">", 6*time.Second), "after 1 s, 2 s and 4 s")
			g.mu.Lock()
			g.cards = []dpf.DPU{card("dpu-1", true)}
			g.mu.Unlock()
			turn(g)
			g.Eventually(func() any { return approvalOf(g.live("boot")) }, "4s").ShouldNot(BeNil(), "long before 8 s are over")
		})
	}
}

// Two hosts share a read of the DPUs, unless the hosted cluster is slow with the second.
func TestADPUThatGoesWhileTheHostedClusterTakesItsTimeIsNotLetIn(t *testing.T) {
	g := newGate(t)
	f := g.behindFront("token")
	g.approving.Server = f.URL
	g.judged = []dpf.DPU{card("dpu-1", true), card("dpu-2", true)}
	g.cards = g.judged
	gone := make(chan struct{})
	goes := sync.OnceFunc(func() {
		g.Eventually(g.audit).Should(HaveLen(1), "dpu-1 is let in meanwhile")
		g.lasts(time.Second)
		g.mu.Lock()
		defer g.mu.Unlock()
		g.cards = g.cards[:1:1]
		close(gone)
	})
	f.before(func(r *http.Request) {
		if r.Method == http.MethodGet && r.URL.Path == "/api/v1/nodes/dpu-2" {
			goes()
		}
	})
	g.asks("one", "dpu-1", "bootstrap")
	g.asks("two", "dpu-2", "bootstrap")
	g.isActive()
	g.Eventually(gone).Should(BeClosed())
	g.waits("two")
}

func (g *gate) lasts(d time.Duration) {
	g.t.Helper()
	until := time.Now().Add(d)
	g.Eventually(time.Now).Should(BeTemporally(">", until))
}

func TestWithoutTheManagementAPINothingIsApproved(t *testing.T) {
	g := newGate(t)
	g.set(func() { g.cards, g.away = []dpf.DPU{card("dpu-1", true)}, errors.New("away") })
	g.open()
	g.asks("boot", "dpu-1", "bootstrap")
	g.isStopped(approve.ManagementUnreachable)
	g.Expect(g.live("boot").Status.Conditions).To(BeEmpty())
	g.set(func() { g.away = nil })
	g.approved("boot")
	g.isActive()
}

func TestApprovingPausesWhileTheHostedClusterIsAway(t *testing.T) {
	g := newGate(t)
	g.set(func() { g.cards = []dpf.DPU{card("dpu-1", true)} })
	g.open()
	g.wire.refuse(true)
	g.wire.drop()
	g.isStopped(input.GuestUnreachable)
	g.asks("boot", "dpu-1", "bootstrap")
	g.wire.refuse(false)
	g.approved("boot")
	g.isActive()
}

func TestAHostedClusterWithTooManyNodesIsNamed(t *testing.T) {
	g := newGate(t)
	f := g.behindFront("token")
	g.approving.Server = f.URL
	var pages atomic.Int64
	f.answers(countless(&pages))
	g.isStopped(input.GuestUnreachable)
	g.Expect(g.see().Problem.Message).To(ContainSubstring("5000 objects of a kind"))
}

// A certificate is still valid when a Service gets the address later.
func TestAnAddressThatAServiceMayGetIsNoNodes(t *testing.T) {
	g := newGate(t)
	g.approving.ServiceNetworks = []netip.Prefix{netip.MustParsePrefix("172.31.0.0/16")}
	g.cards = []dpf.DPU{card("dpu-1", true)}
	g.joins("dpu-1", corev1.ConditionTrue, 0, "172.31.200.1", "192.168.100.1")
	g.open()
	g.asks("greedy", "dpu-1", "serving", "172.31.200.1")
	g.asks("modest", "dpu-1", "serving", "192.168.100.1")
	g.approved("modest")
	g.waits("greedy")
}

// The Node claims each address as its own, so that only its other holder is a reason to refuse.
func TestAnAddressOfAnotherIsNoNodes(t *testing.T) {
	g := newGate(t)
	g.approving.API = []netip.Addr{netip.MustParseAddr("203.0.113.5")}
	g.cards = []dpf.DPU{card("dpu-1", true)}
	service := g.serves("198.51.100.7")
	g.hasEndpoint("192.168.50.5")
	g.joins("another", corev1.ConditionTrue, 0, "192.168.100.2")
	claims := map[string]struct{ address, rule string }{
		"of-a-node":         {"192.168.100.2", "AddressesOfNoOtherNode"},
		"of-a-service":      {service.Spec.ClusterIP, "AddressesOfNoService"},
		"external":          {"198.51.100.7", "AddressesOfNoService"},
		"of-an-endpoint":    {"192.168.50.5", "AddressesOfNoAPI"},
		"of-the-hosted-api": {"203.0.113.5", "AddressesOfNoAPI"},
	}
	own, waited := []string{"192.168.100.1"}, map[string]float64{}
	for _, c := range claims {
		own = append(own, c.address)
		waited[c.rule]++
	}
	for rule := range waited {
		waited[rule] += servingRefused(rule)
	}
	g.joins("dpu-1", corev1.ConditionTrue, 0, own...)
	for name, c := range claims {
		g.asks(name, "dpu-1", "serving", c.address)
	}
	g.asks("modest", "dpu-1", "serving", "192.168.100.1")
	g.open()
	g.approved("modest")
	for rule, n := range waited {
		g.Eventually(func() float64 { return servingRefused(rule) }).Should(Equal(n), rule)
	}
	for name := range claims {
		g.Expect(g.live(name).Status.Conditions).To(BeEmpty(), name)
	}
}

func servingRefused(rule string) float64 {
	return counted(map[string]string{"kind": "serving", "decision": "waiting", "rule": rule})
}

// serves creates a Service with an external address.
func (g *gate) serves(external string) *corev1.Service {
	g.t.Helper()
	services := g.kube.CoreV1().Services("default")
	s, err := services.Create(g.ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "taken"}, Spec: corev1.ServiceSpec{
		Ports: []corev1.ServicePort{{Port: 443}}, ExternalIPs: []string{external},
	}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.t.Cleanup(func() {
		g.Expect(services.Delete(context.Background(), s.Name, metav1.DeleteOptions{})).To(Succeed())
	})
	return s
}

// hasEndpoint has the hosted API publish another address of its own.
func (g *gate) hasEndpoint(address string) {
	g.t.Helper()
	all := g.kube.DiscoveryV1().EndpointSlices("default")
	s, err := all.Create(g.ctx, &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "kubernetes-too", Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"}},
		AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address}}},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.t.Cleanup(func() {
		g.Expect(all.Delete(context.Background(), s.Name, metav1.DeleteOptions{})).To(Succeed())
	})
}

func TestAnApprovalThatIsNotTakenKeepsNoOtherWaiting(t *testing.T) {
	g := newGate(t)
	g.refuses("cursed")
	g.set(func() { g.cards = []dpf.DPU{card("dpu-1", true), card("dpu-2", true)} })
	g.open()
	g.asks("cursed", "dpu-1", "bootstrap")
	g.isStopped(approve.ApprovalRefused)
	g.Expect(g.see().Problem.Message).To(ContainSubstring("cursed by a test"))
	g.asks("good", "dpu-2", "bootstrap")
	g.approved("good")
	g.set(func() { g.cards = g.cards[1:] }) // without its DPU, its CSR needs no approval
	g.isActive()
}

// The watch may show it late: until then no other CSR of the DPU is approved.
func TestAnApprovalThatMayBeThereCounts(t *testing.T) {
	for name, c := range map[string]struct {
		when    string // the verb of the request before which somebody approves the CSR
		answers int    // the status in place of the hosted API's answer, if not 0
	}{
		"ours is said to have timed out":           {http.MethodPut, http.StatusGatewayTimeout},
		"somebody was faster, by a moment":         {http.MethodPut, 0},
		"somebody was faster than we read the CSR": {http.MethodGet, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g, shown := newGate(t), make(chan struct{})
			f := g.behindFront("token")
			g.approving.Server = f.URL
			g.cards = []dpf.DPU{card("dpu-1", true)}
			g.asks("one", "dpu-1", "bootstrap")
			g.asks("two", "dpu-1", "bootstrap")
			approved := make(chan string, 1)
			f.answersSome(func(w http.ResponseWriter, r *http.Request) bool {
				name, ofOne := strings.CutPrefix(r.URL.Path, requests+"/")
				switch {
				case r.URL.Path == requests && r.URL.Query().Get("watch") != "":
					return isLate(w, r, shown)
				case ofOne && r.Method == c.when && len(approved) == 0:
					approved <- strings.TrimSuffix(name, "/approval")
					g.approves(strings.TrimSuffix(name, "/approval"))
					if c.answers != 0 {
						w.WriteHeader(c.answers)
					}
					return c.answers != 0
				}
				return false
			})
			waited, late := decisions("waiting", "OneInFifteenMinutes"), decisions("waiting", csr.RulePending)
			g.isActive()
			g.Eventually(func() float64 { return decisions("waiting", "OneInFifteenMinutes") }).Should(Equal(waited+1), "the other is decided about")
			g.Expect(decisions("waiting", csr.RulePending)).To(Equal(late), "what is approved does not wait")
			close(shown)
			g.waits(map[string]string{"one": "two", "two": "one"}[<-approved])
		})
	}
}

const requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests"

// isLate delays a watch until its objects may be shown.
func isLate(w http.ResponseWriter, r *http.Request, shown <-chan struct{}) bool {
	select {
	case <-shown:
		return false
	default:
	}
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	select {
	case <-shown:
	case <-r.Context().Done():
	}
	return true
}

// approves approves a CSR as a person does.
func (g *gate) approves(name string) {
	r := g.live(name)
	r.Status.Conditions = append(r.Status.Conditions, certv1.CertificateSigningRequestCondition{Type: certv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "KubectlApprove"})
	_, err := g.kube.CertificatesV1().CertificateSigningRequests().UpdateApproval(g.ctx, name, r, metav1.UpdateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
}

// refuses has the hosted cluster's own admission refuse to approve one CSR.
func (g *gate) refuses(name string) {
	g.t.Helper()
	policies, bindings := g.kube.AdmissionregistrationV1().ValidatingAdmissionPolicies(), g.kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	_, err := policies.Create(g.ctx, &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "cursed"}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Update},
			Rule:       admissionv1.Rule{APIGroups: []string{"certificates.k8s.io"}, APIVersions: []string{"v1"}, Resources: []string{"certificatesigningrequests/approval"}},
		}}}},
		Validations: []admissionv1.Validation{{Expression: "object.metadata.name != '" + name + "'", Message: "cursed by a test"}},
	}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = bindings.Create(g.ctx, &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "cursed"}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: "cursed", ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.t.Cleanup(func() {
		_ = bindings.Delete(context.Background(), "cursed", metav1.DeleteOptions{}) // if it fails, the cluster still ends with the tests
		_ = policies.Delete(context.Background(), "cursed", metav1.DeleteOptions{})
	})
	probe := g.asks(name, "nobody", "bootstrap")
	probe.Status.Conditions = []certv1.CertificateSigningRequestCondition{{Type: certv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Probe"}}
	requests := g.kube.CertificatesV1().CertificateSigningRequests()
	g.Eventually(func() error {
		_, err := requests.UpdateApproval(g.ctx, name, probe, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}).Should(MatchError(ContainSubstring("cursed by a test")))
	g.Expect(requests.Delete(g.ctx, name, metav1.DeleteOptions{})).To(Succeed())
}

func TestACSRThatChangesMeanwhileIsDecidedAgain(t *testing.T) {
	g := newGate(t)
	f := g.behindFront("token")
	g.approving.Server = f.URL
	g.set(func() { g.cards = []dpf.DPU{card("dpu-1", true)} })
	g.isActive()
	change := sync.OnceFunc(func() {
		_, err := g.kube.CertificatesV1().CertificateSigningRequests().Patch(context.Background(), "boot", types.MergePatchType, []byte(`{"metadata":{"labels":{"x":"y"}}}`), metav1.PatchOptions{})
		g.Expect(err).NotTo(HaveOccurred())
	})
	f.before(func(r *http.Request) {
		if r.Method == http.MethodPut {
			change()
		}
	})
	g.asks("boot", "dpu-1", "bootstrap")
	g.approved("boot")
	g.Expect(f.writes()).To(HaveLen(2), "the first approval was of what had changed")
	g.Eventually(g.audit).Should(HaveLen(1))
}

func TestACSRThatIsMadeAnewForAnotherHostIsNotDecidedByTheFactsOfTheFirst(t *testing.T) {
	g := newGate(t)
	f := g.behindFront("token")
	g.approving.Server = f.URL
	g.set(func() { g.cards = []dpf.DPU{card("dpu-1", true), card("dpu-2", true)} })
	g.isActive()
	g.asks("first", "dpu-2", "bootstrap")
	g.approved("first")
	made := make(chan struct{})
	anew := sync.OnceFunc(func() {
		defer close(made)
		requests, kubelet := g.kube.CertificatesV1().CertificateSigningRequests(), as(g.t, "bootstrap", "dpu-2").CertificatesV1().CertificateSigningRequests()
		g.Expect(requests.Delete(context.Background(), "boot", metav1.DeleteOptions{})).To(Succeed())
		_, err := kubelet.Create(context.Background(), requestOf(g.t, "boot", "dpu-2", "bootstrap"), metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
	})
	f.before(func(r *http.Request) {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/boot") {
			anew()
		}
	})
	g.asks("boot", "dpu-1", "bootstrap")
	g.Eventually(made).Should(BeClosed())
	g.waits("boot")
}

func TestOfSeveralTheNewestIsApprovedAndNoOtherForALongTime(t *testing.T) {
	g := newGate(t)
	g.set(func() { g.cards = []dpf.DPU{card("dpu-1", false)} })
	g.open()
	first := g.asks("first", "dpu-1", "bootstrap")
	g.isLaterThan(first.CreationTimestamp.Time)
	g.asks("second", "dpu-1", "bootstrap")
	g.Eventually(func() int { return g.see().Pending }).Should(Equal(2))
	g.set(func() { g.cards[0] = card("dpu-1", true) })
	g.approved("second")
	g.waits("first")
	third := g.asks("third", "dpu-1", "bootstrap")
	g.waits("third")
	made := metav1.NewTime(third.CreationTimestamp.Add(-5 * time.Second))            // by a clock that is five seconds behind
	g.set(func() { g.cards[0].UID, g.cards[0].CreationTimestamp = "another", made }) // it was deleted and recreated
	g.isLaterThan(third.CreationTimestamp.Time)
	g.asks("fourth", "dpu-1", "bootstrap")
	g.approved("fourth")
	g.waits("third")
}

// isLaterThan awaits the next second, because an API server's times are whole seconds.
func (g *gate) isLaterThan(t time.Time) {
	g.t.Helper()
	g.Eventually(func() int64 { return time.Now().Unix() }).Should(BeNumerically(">", t.Unix()))
}

func TestForgottenNothingIsApproved(t *testing.T) {
	before := goleak.IgnoreCurrent()
	g := newGate(t)
	g.leave()
	g.set(func() { g.cards = []dpf.DPU{card("dpu-1", true)} })
	g.open()
	g.approvals.Forget(g.bridge)
	g.end()
	g.asks("boot", "dpu-1", "bootstrap")
	g.Expect(g.see()).To(Equal(approve.State{}), "after the end nobody approves")
	g.Expect(g.live("boot").Status.Conditions).To(BeEmpty())
	g.wire.close()
	goleak.VerifyNone(t, before, goleak.IgnoreTopFunction("net/http.(*http2clientConnReadLoop).run"), goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*clientConnReadLoop).run"))
}

// When Forget returns, no approval is in progress, and nobody else has begun to approve.
func TestForgettingWaitsForAnApprovalThatIsUnderWay(t *testing.T) {
	g := newGate(t)
	f := g.behindFront("token")
	g.approving.Server = f.URL
	g.cards = []dpf.DPU{card("dpu-1", true)}
	underWay, answered := make(chan struct{}), make(chan struct{})
	begun := sync.OnceFunc(func() { close(underWay) })
	f.before(func(r *http.Request) {
		if r.Method == http.MethodPut {
			begun()
			<-answered
		}
	})
	g.isActive()
	g.asks("boot", "dpu-1", "bootstrap")
	g.Eventually(underWay).Should(BeClosed())
	forgotten := make(chan struct{})
	go func() {
		defer close(forgotten)
		g.approvals.Forget(g.bridge)
	}()
	g.Consistently(func() bool {
		g.see()
		select {
		case <-forgotten:
			return true
		default:
			return false
		}
	}, "500ms").Should(BeFalse(), "it is not over before the hosted cluster has answered")
	g.Expect(slices.DeleteFunc(f.calls(), func(call string) bool { return call != "get /version" })).To(HaveLen(1), "nobody else has connected")
	close(answered)
	g.Eventually(forgotten).Should(BeClosed())
	g.Expect(g.audit()).To(HaveLen(1))
	g.Expect(approvalOf(g.live("boot"))).NotTo(BeNil())
	g.asks("again", "dpu-2", "bootstrap")
	g.set(func() { g.cards = append(g.cards, card("dpu-2", true)) })
	g.approved("again")
}

func TestAThousandForgeriesKeepAGoodOneNotWaiting(t *testing.T) {
	g := newGate(t)
	g.set(func() {
		for i := range 20 {
			g.cards = append(g.cards, card(fmt.Sprintf("dpu-%d", i), true))
		}
	})
	g.open()
	kube := as(t, "bootstrap", "")
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for i := range 250 {
				r := requestOf(t, fmt.Sprintf("forged-%d-%d", worker, i), fmt.Sprintf("stranger-%d", i), "bootstrap")
				if _, err := kube.CertificatesV1().CertificateSigningRequests().Create(g.ctx, r, metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range 20 {
		g.asks(fmt.Sprintf("good-%d", i), fmt.Sprintf("dpu-%d", i), "bootstrap")
	}
	last := time.Now()
	g.Eventually(g.audit, "10s").Should(HaveLen(20))
	t.Logf("the last good one was approved %s after it was made", time.Since(last))
	all.Wait()
	list, err := g.kube.CertificatesV1().CertificateSigningRequests().List(g.ctx, metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	for _, r := range list.Items {
		if strings.HasPrefix(r.Name, "forged") {
			g.Expect(r.Status.Conditions).To(BeEmpty())
		}
	}
	g.Eventually(func() int { return g.see().Pending }).Should(Equal(1000))
}

// Whoever has a bootstrap token can also write labels. If a CSR were too large to be read with its approval, nobody would know of that, and
// the DPU could get a second one.
func TestARequestOfManyPartsIsNotApproved(t *testing.T) {
	g := newGate(t)
	g.set(func() { g.cards = []dpf.DPU{card("dpu-1", true)} })
	g.open()
	labelled := func(name string, labels int) {
		r := requestOf(t, name, "dpu-1", "bootstrap")
		r.Labels = map[string]string{}
		for i := range labels {
			r.Labels[fmt.Sprint("l", i)] = ""
		}
		_, err := as(t, "bootstrap", "").CertificatesV1().CertificateSigningRequests().Create(g.ctx, r, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
	}
	labelled("large", 9990) // with as many managed fields
	g.waits("large")
	labelled("small", 100)
	g.approved("small")
	g.waits("large")
}

// Root on one DPU can request any number of serving certificates that break no rule.
func TestANodeThatAsksAgainAndAgainGetsFewServingCertificates(t *testing.T) {
	g, begun := newGate(t), time.Now()
	g.set(func() { g.cards = []dpf.DPU{card("dpu-1", true)} })
	g.joins("dpu-1", corev1.ConditionTrue, 0, "192.168.100.21")
	g.open()
	for i := range 40 {
		g.asks(fmt.Sprintf("serve-%d", i), "dpu-1", "serving", "192.168.100.21")
	}
	g.Eventually(func() []string { return g.see().Beyond }).Should(ContainElement(HavePrefix("a Node asks for serving certificates again and again")))
	g.waits("serve-39")
	g.Expect(g.readings()).To(BeNumerically("<=", 3+int(time.Since(begun).Seconds())), "one a second, the first, and one for each DPU that came")
	approved := 0
	for i := range 40 {
		if approvalOf(g.live(fmt.Sprintf("serve-%d", i))) != nil {
			approved++
		}
	}
	g.Expect(approved).To(Equal(10))
}

func TestHugeCSRsKeepNoOtherWaiting(t *testing.T) {
	g := newGate(t)
	g.set(func() { g.cards = []dpf.DPU{card("dpu-1", true)} })
	for i := range 8 {
		r := requestOf(t, fmt.Sprintf("huge-%d", i), "dpu-1", "bootstrap")
		r.Spec.Request = huge(t)
		_, err := as(t, "bootstrap", "").CertificatesV1().CertificateSigningRequests().Create(g.ctx, r, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.asks("boot", "dpu-1", "bootstrap")
	g.open()
	g.approved("boot")
}

// huge is a CSR nearly as large as etcd takes.
func huge(t *testing.T) []byte {
	t.Helper()
	key, err := kubeletsKey()
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject:         pkix.Name{Organization: []string{"system:nodes"}, CommonName: "system:node:dpu-1"},
		ExtraExtensions: []pkix.Extension{{Id: []int{1, 2, 3}, Value: make([]byte, 900<<10)}},
	}, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

func TestOfTwoAtOnceOneIsApproved(t *testing.T) {
	g := newGate(t)
	g.set(func() { g.cards = []dpf.DPU{card("dpu-1", true)} })
	g.asks("one", "dpu-1", "bootstrap")
	g.asks("two", "dpu-1", "bootstrap")
	g.open()
	g.Eventually(g.audit).Should(HaveLen(1))
	one := g.audit()[0].Name
	g.waits(map[string]string{"one": "two", "two": "one"}[one])
}

// signs runs Kubernetes' own signers with a CA of this test.
func signs(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "signer"}, NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Gomega: NewWithT(t), t: t}
	files := map[string][]byte{
		"ca.crt": pemOf(der), "ca.key": pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}),
		"kubeconfig": []byte(strings.ReplaceAll(string(w.kubeconfig()), "https://api.c1.example.com:6443", "https://"+strings.TrimPrefix(cluster.Admin.Host, "https://"))),
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	manager := exec.Command(filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kube-controller-manager"),
		"--kubeconfig="+filepath.Join(dir, "kubeconfig"), "--controllers=certificatesigningrequest-signing-controller", "--leader-elect=false", "--secure-port=0",
		"--cluster-signing-cert-file="+filepath.Join(dir, "ca.crt"), "--cluster-signing-key-file="+filepath.Join(dir, "ca.key"))
	if err := manager.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = manager.Process.Kill()
		_ = manager.Wait() // it was killed
	})
}

// explain connects to the kubeconfig's server at the port of HTTPS.
func (g *gate) explain(name string) (csr.Decision, error) {
	g.t.Helper()
	access, refusal := kubeconfig.Sanitise(g.kubeconfig())
	g.Expect(refusal).To(BeNil())
	access.Server = "https://127.0.0.1" // a name in the certificate of the test's API server
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		g.Expect(address).To(Equal("127.0.0.1:443"))
		return (&net.Dialer{}).DialContext(ctx, network, g.wire.address())
	}
	return approve.Explain(g.ctx, access, dial, name, csr.Facts{Cluster: cardCluster, DPUs: approve.DPUs(g.cards)})
}

func TestADecisionIsExplained(t *testing.T) {
	g := newGate(t)
	g.cards = []dpf.DPU{card("dpu-1", true), card("dpu-2", true)}
	g.joins("dpu-1", corev1.ConditionUnknown, time.Minute, "192.168.100.1")
	g.asks("second", "dpu-1", "bootstrap")
	d, err := g.explain("second")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(d.Broken()).To(Equal("NodeInactive"))
	g.Expect(d.Again).To(BeTemporally("~", time.Now().Add(4*time.Minute), 30*time.Second))

	service, err := g.kube.CoreV1().Services("default").Get(g.ctx, "kubernetes", metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.joins("dpu-2", corev1.ConditionTrue, 0, service.Spec.ClusterIP)
	g.asks("serve", "dpu-2", "serving", service.Spec.ClusterIP)
	d, err = g.explain("serve")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(d.Broken()).To(Equal("AddressesOfNoService"))

	g.open()
	g.asks("first", "dpu-3", "bootstrap")
	g.set(func() { g.cards = append(g.cards[:2:2], card("dpu-3", true)) })
	g.approved("first")
	g.asks("another", "dpu-3", "bootstrap")
	d, err = g.explain("another")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(d.Broken()).To(Equal("OneInFifteenMinutes"))
	_, err = g.explain("none")
	g.Expect(err).To(MatchError(ContainSubstring("it answers 404")))
}

// That is when somebody is most likely to ask why.
func TestADecisionIsExplainedHoweverManyWait(t *testing.T) {
	g := newGate(t)
	f := newFront(t, "token")
	access, refusal := kubeconfig.Sanitise(g.kubeconfigOf(f, "token"))
	g.Expect(refusal).To(BeNil())
	access.Server = f.URL
	asked := requestOf(t, "boot", "dpu-1", "bootstrap")
	var all []any
	for i := range 5001 {
		all = append(all, map[string]any{"metadata": map[string]any{"name": fmt.Sprintf("waits-%d", i)}})
	}
	f.answers(func(w http.ResponseWriter, r *http.Request) {
		answer := map[string]any{requests + "/boot": asked, requests: map[string]any{"items": all}}[r.URL.Path]
		if answer == nil {
			answer = map[string]any{"items": []any{}}
		}
		_ = json.NewEncoder(w).Encode(answer)
	})
	d, err := approve.Explain(g.ctx, access, (&net.Dialer{}).DialContext, "boot", csr.Facts{Cluster: cardCluster})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(d.Host).To(Equal("dpu-1"))
}
