// Command csr lets kubelets request certificates in a hosted cluster, and measures how soon the ones that may have one get it: one after
// the other, and among ten thousand that may not; and how much memory those take.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/internal/controller"
	"github.com/cldmnky/oooi/internal/dpf"
	"github.com/cldmnky/oooi/internal/guest/approve"
	"github.com/cldmnky/oooi/internal/guest/kubeconfig"
	"github.com/cldmnky/oooi/internal/observe"
	"github.com/cldmnky/oooi/internal/plan/bridge"
	testenv "github.com/cldmnky/oooi/internal/testkit/envtest"
	"github.com/cldmnky/oooi/test/bench/internal/heap"
	"github.com/cldmnky/oooi/test/bench/internal/objects"
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
	by      = types.NamespacedName{Namespace: "clusters", Name: "b1"}
)

func run(ctx context.Context, single, all, good int) error {
	foreign, err := testenv.Foreign()
	if err != nil {
		return err
	}
	env := &envtest.Environment{CRDs: foreign} // it is the management API server too
	config, err := env.Start()
	if err != nil {
		return err
	}
	defer env.Stop() //nolint:errcheck // it ends with us
	config.QPS = -1
	b := &bench{config: config, approved: map[string]time.Time{}}
	if b.management, err = client.New(config, client.Options{Scheme: controller.Scheme()}); err != nil {
		return err
	}
	b.Bridges.Live = b.management
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
	observe.Bridges // reads DPUs from the management API server
	management      client.Client
	config          *rest.Config
	kube            kubernetes.Interface // as node-bootstrapper
	admin           kubernetes.Interface
	key             *ecdsa.PrivateKey
	cards           []dpf.DPU // as in a cache
	mu              sync.Mutex
	approved        map[string]time.Time
}

// prepare writes the kubeconfig, and lets node-bootstrapper create CSRs.
func (b *bench) prepare(ctx context.Context) (err error) {
	if b.admin, b.kube, err = objects.Clients(ctx, b.config); err != nil {
		return err
	}
	if b.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return err
	}
	text, err := yaml.Marshal(testenv.Kubeconfig("https://api.c1.example.com:6443", b.config.CAData, b.config))
	if err != nil {
		return err
	}
	return objects.Create(ctx, b.management, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster.Namespace}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: secret.Namespace, Name: secret.Name}, Data: map[string][]byte{kubeconfig.SecretKey: text}})
}

// has creates DPUs with an installed OS, and waits until their requests no longer count as those of an earlier DPU (internal/csr).
func (b *bench) has(ctx context.Context, prefix string, count int) (err error) {
	group, making := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for i := range count {
		name := fmt.Sprintf("%s-%d", prefix, i)
		group.Go(func() error { return objects.CreateDPU(making, b.management, name, cluster) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	made := time.Now()
	if b.cards, err = b.DPUs(ctx, cluster); err != nil {
		return err
	}
	return until(ctx, func() bool { return time.Since(made) > 6*time.Second })
}

// begin starts an approver; end stops it.
func (b *bench) begin(ctx context.Context) (see func() approve.State, end func()) {
	approvals := approve.NewApprovals(b.admin.CoreV1(), b, func(_ types.NamespacedName, a approve.Notice) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.approved[a.Name] = time.Now()
	}, func(types.NamespacedName) {})
	approvals.Dial = new(net.Dialer).DialContext // the test's API server is on this machine
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = approvals.Start(ctx) // it returns nil
	}()
	want := bridge.Approval{Secret: secret, Server: "https://" + strings.Trim(strings.TrimPrefix(b.config.Host, "https:"), "/"), Cluster: cluster}
	see = func() approve.State {
		return approvals.See(by, want, b.cards)
	}
	return see, func() { cancel(); <-ended }
}

func (b *bench) oneAfterTheOther(ctx context.Context, t *table.Table, count int) error {
	if err := b.has(ctx, "single", count); err != nil {
		return err
	}
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
	t.Say(fmt.Sprintf("%d CSRs one after the other: sent → approved, p50", count), table.Percentile(took, 50).Round(time.Millisecond))
	table.Below(t, "… p99", table.Percentile(took, 99).Round(time.Millisecond), 500*time.Millisecond)
	return nil
}

// atOnce creates all CSRs before an approver begins.
func (b *bench) atOnce(ctx context.Context, t *table.Table, all, good int) error {
	if err := b.has(ctx, "good", good); err != nil {
		return err
	}
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

// asks creates a CSR as a kubelet does.
func (b *bench) asks(ctx context.Context, name, host string) error {
	r, err := objects.CSR(b.key, name, host)
	if err != nil {
		return err
	}
	_, err = b.kube.CertificatesV1().CertificateSigningRequests().Create(ctx, r, metav1.CreateOptions{})
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
