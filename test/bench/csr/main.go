// Command csr has kubelets ask for certificates in a hosted cluster, and tells how soon those that may have one are approved: one
// after the other, and among ten thousand that may not; and what memory those take.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	certv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/guest"
	testenv "github.com/cldmnky/oooi/internal/testkit/envtest"
	"github.com/cldmnky/oooi/test/bench/internal/heap"
	"github.com/cldmnky/oooi/test/bench/internal/table"
)

func main() {
	single := flag.Int("single", 300, "how many good CSRs are sent one after the other")
	all := flag.Int("all", 10000, "how many CSRs there are at once")
	good := flag.Int("good", 50, "how many of those are good")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *single, *all, *good); err != nil {
		fmt.Fprintln(os.Stderr, "csr:", err)
		os.Exit(1)
	}
}

var (
	secret  = types.NamespacedName{Namespace: "default", Name: "kubeconfig"}
	cluster = types.NamespacedName{Namespace: "dpf", Name: "bluefield"}
	bridge  = types.NamespacedName{Namespace: "clusters", Name: "b1"}
)

func run(ctx context.Context, single, all, good int) error {
	env := &envtest.Environment{}
	config, err := env.Start()
	if err != nil {
		return err
	}
	defer env.Stop() //nolint:errcheck // it ends with us
	config.QPS = -1
	b := &bench{config: config, approved: map[string]time.Time{}}
	if err := b.prepare(ctx); err != nil {
		return err
	}
	t := table.New()
	if err := b.oneAfterTheOther(ctx, t, single); err != nil {
		return err
	}
	if err := b.atOnce(ctx, t, all, good); err != nil {
		return err
	}
	return t.End()
}

type bench struct {
	config   *rest.Config
	kube     kubernetes.Interface // as node-bootstrapper
	admin    kubernetes.Interface
	key      *ecdsa.PrivateKey
	mu       sync.Mutex
	cards    []dpf.DPU
	approved map[string]time.Time
}

// DPUs makes the bench the management API.
func (b *bench) DPUs(context.Context, types.NamespacedName) ([]dpf.DPU, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cards, nil
}

// prepare writes the kubeconfig, and lets node-bootstrapper ask.
func (b *bench) prepare(ctx context.Context) (err error) {
	if b.admin, err = kubernetes.NewForConfig(b.config); err != nil {
		return err
	}
	kubelet := rest.CopyConfig(b.config)
	kubelet.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper",
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:openshift-machine-config-operator", "system:authenticated"},
	}
	if b.kube, err = kubernetes.NewForConfig(kubelet); err != nil {
		return err
	}
	if b.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return err
	}
	text, err := yaml.Marshal(testenv.Kubeconfig("https://api.c1.example.com:6443", b.config.CAData, b.config))
	if err != nil {
		return err
	}
	kubeconfig := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secret.Name}, Data: map[string][]byte{guest.KubeconfigKey: text}}
	if _, err := b.admin.CoreV1().Secrets(secret.Namespace).Create(ctx, kubeconfig, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err = b.admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "may-ask"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:node-bootstrapper"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:authenticated"}},
	}, metav1.CreateOptions{})
	return err
}

// has makes DPUs whose OS is installed.
func (b *bench) has(prefix string, count int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range count {
		name := fmt.Sprintf("%s-%d", prefix, i)
		b.cards = append(b.cards, dpf.DPU{
			ObjectMeta: metav1.ObjectMeta{Namespace: "dpf", Name: name, UID: types.UID("uid-" + name)},
			Spec:       dpf.DPUSpec{Cluster: dpf.Reference{Name: cluster.Name, Namespace: cluster.Namespace}},
			Status:     dpf.DPUStatus{Conditions: []metav1.Condition{{Type: dpf.ConditionOSInstalled, Status: metav1.ConditionTrue}}},
		})
	}
}

// begin has an approver work; what it returns ends it.
func (b *bench) begin(ctx context.Context) (see func() guest.ApprovalState, end func()) {
	approvals := guest.NewApprovals(b.admin.CoreV1(), b, func(_ types.NamespacedName, a guest.Approved) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.approved[a.Name] = time.Now()
	}, func(types.NamespacedName) {})
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = approvals.Start(ctx) // it returns nil
	}()
	want := guest.ApproveWant{Secret: secret, Server: "https://" + strings.Trim(strings.TrimPrefix(b.config.Host, "https:"), "/"), Cluster: cluster}
	see = func() guest.ApprovalState {
		cards, _ := b.DPUs(ctx, cluster) // it returns no error
		return approvals.See(bridge, want, cards)
	}
	return see, func() { cancel(); <-ended }
}

func (b *bench) oneAfterTheOther(ctx context.Context, t *table.Table, count int) error {
	b.has("single", count)
	see, end := b.begin(ctx)
	defer end()
	if err := until(ctx, func() bool { return see().Active }); err != nil {
		return err
	}
	var took []time.Duration
	for i := range count {
		name := fmt.Sprintf("single-%d", i)
		sent := time.Now()
		if err := b.asks(ctx, name, name); err != nil {
			return err
		}
		if err := until(ctx, func() bool { return !b.since(name).IsZero() }); err != nil {
			return err
		}
		took = append(took, b.since(name).Sub(sent))
	}
	slices.Sort(took)
	t.Say(fmt.Sprintf("%d CSRs one after the other: sent → approved, p50", count), took[count/2].Round(time.Millisecond))
	table.Below(t, "… p99", took[count*99/100].Round(time.Millisecond), 500*time.Millisecond)
	return nil
}

// atOnce has all CSRs there, then an approver begins.
func (b *bench) atOnce(ctx context.Context, t *table.Table, all, good int) error {
	b.has("good", good)
	group, making := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for i := range all {
		name, host := fmt.Sprintf("forged-%d", i), fmt.Sprintf("stranger-%d", i)
		if i%(all/good) == 0 {
			host = fmt.Sprintf("good-%d", i/(all/good))
			name = host
		}
		group.Go(func() error { return b.asks(making, name, host) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	before, began := heap.Live(), time.Now()
	see, end := b.begin(ctx)
	defer end()
	last := func() (at time.Time) {
		for i := range good {
			one := b.since(fmt.Sprintf("good-%d", i))
			if one.IsZero() {
				return one
			}
			if one.After(at) {
				at = one
			}
		}
		return at
	}
	if err := until(ctx, func() bool { see(); return !last().IsZero() }); err != nil {
		return err
	}
	if err := until(ctx, func() bool { return see().Pending == all-good }); err != nil {
		return err
	}
	table.Below(t, fmt.Sprintf("%d CSRs at once, %d good: the last good one is approved after", all, good), last().Sub(began).Round(time.Millisecond), 10*time.Second)
	table.Below(t, "memory that the others, which wait, take", heap.Live()-before, 16)
	return nil
}

func (b *bench) since(name string) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.approved[name]
}

// asks sends a CSR as a kubelet does.
func (b *bench) asks(ctx context.Context, name, host string) error {
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{Organization: []string{"system:nodes"}, CommonName: "system:node:" + host}}, b.key)
	if err != nil {
		return err
	}
	_, err = b.kube.CertificatesV1().CertificateSigningRequests().Create(ctx, &certv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: certv1.CertificateSigningRequestSpec{
		Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: certv1.KubeAPIServerClientKubeletSignerName,
		Usages: []certv1.KeyUsage{certv1.UsageDigitalSignature, certv1.UsageClientAuth},
	}}, metav1.CreateOptions{})
	return err
}

func until(ctx context.Context, is func() bool) error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}
