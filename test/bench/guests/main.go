// Command guests reads many hosted clusters at once, all played by one kube-apiserver, and measures what each costs: requests once
// everything has settled, from the hosted cluster's audit log, and memory beyond the first cluster's.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	accore "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/guest/appsingress"
	"github.com/cldmnky/oooi/internal/guest/bounded"
	"github.com/cldmnky/oooi/internal/names"
	"github.com/cldmnky/oooi/internal/plan/apps"
	testenv "github.com/cldmnky/oooi/internal/testkit/envtest"
	"github.com/cldmnky/oooi/test/bench/internal/heap"
	"github.com/cldmnky/oooi/test/bench/internal/table"
)

func main() {
	guests := flag.Int("guests", 50, "how many Infras with apps ingress, each with a connection of its own")
	idle := flag.Duration("idle", 10*time.Minute, "how long to count requests after everything is settled")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *guests, *idle); err != nil {
		fmt.Fprintln(os.Stderr, "guests:", err)
		os.Exit(1)
	}
}

const namespace = "openshift-ingress"

func run(ctx context.Context, guests int, idle time.Duration) error {
	dir, err := os.MkdirTemp("", "oooi-guests")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is the system's for temporary files
	env, config, err := start(dir)
	if err != nil {
		return err
	}
	defer env.Stop() //nolint:errcheck // it ends with us
	b := &bench{config: config, audit: filepath.Join(dir, "audit.log")}
	if b.kube, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	b.clusters = appsingress.NewClusters(b.kube.CoreV1(), func(types.NamespacedName) {})
	b.clusters.Dial = new(net.Dialer).DialContext // the test's API server is on this machine
	if err := b.prepare(ctx); err != nil {
		return err
	}
	return b.measure(ctx, guests, idle)
}

// measure what a hosted cluster costs; the first one also has what all share.
func (b *bench) measure(ctx context.Context, guests int, idle time.Duration) error {
	if err := b.look(ctx, 0, 1); err != nil {
		return err
	}
	one := heap.Live()
	if err := b.look(ctx, 1, guests); err != nil {
		return err
	}
	settled, err := b.requests()
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(idle): // the measurement itself
	}
	all := heap.Live()
	now, err := b.requests()
	if err != nil {
		return err
	}
	t := table.New()
	t.Say(fmt.Sprintf("%d hosted clusters: requests of each until settled", guests), fmt.Sprintf("%.1f", float64(settled.all())/float64(guests)))
	t.None(fmt.Sprintf("requests in %s after, but watches", idle), now.all()-now["watch"]-settled.all()+settled["watch"])
	t.None(fmt.Sprintf("watches begun anew in %s after (an API server ends none before 30m)", idle), now["watch"]-settled["watch"])
	table.Below(t, "memory of each beyond the first", (all-one)/table.MiB(guests-1), 1)
	return t.End()
}

// start is a hosted cluster with an audit log of what our connections request.
func start(dir string) (*envtest.Environment, *rest.Config, error) {
	policy := filepath.Join(dir, "policy.yaml")
	err := os.WriteFile(policy, []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [ResponseComplete, ResponseStarted]\nrules: [{level: Metadata}]\n"), 0o600)
	if err != nil {
		return nil, nil, err
	}
	env := &envtest.Environment{}
	env.ControlPlane.GetAPIServer().Configure().Set("audit-policy-file", policy).Set("audit-log-path", filepath.Join(dir, "audit.log"))
	config, err := env.Start()
	if err != nil {
		return nil, nil, err
	}
	config.QPS = -1
	return env, config, nil
}

type bench struct {
	config   *rest.Config
	kube     kubernetes.Interface
	clusters *appsingress.Clusters
	audit    string
}

// prepare writes one kubeconfig for all, and creates the namespace of the Services.
func (b *bench) prepare(ctx context.Context) error {
	text, err := yaml.Marshal(testenv.Kubeconfig("https://api.c1.example.com:6443", b.config.CAData, b.config))
	if err != nil {
		return err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "kubeconfig"}, Data: map[string][]byte{"kubeconfig": text}}
	if _, err := b.kube.CoreV1().Secrets("default").Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err = b.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	return err
}

// look begins to read hosted clusters, and waits until each one's Service is seen.
func (b *bench) look(ctx context.Context, from, to int) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for i := from; i < to; i++ {
		infra := types.NamespacedName{Namespace: "clusters", Name: fmt.Sprintf("t%d", i)}
		want := apps.Access{
			Secret: types.NamespacedName{Namespace: "default", Name: "kubeconfig"}, Server: "https://" + strings.Trim(strings.TrimPrefix(b.config.Host, "https:"), "/"),
			Service: types.NamespacedName{Namespace: namespace, Name: infra.Name + "-apps"}, Mode: v1alpha1.AppsLoadBalancer,
		}
		service := accore.Service(want.Service.Name, namespace).WithLabels(map[string]string{names.LabelInfra: infra.Name, names.LabelInfraNamespace: infra.Namespace}).
			WithSpec(accore.ServiceSpec().WithType(corev1.ServiceTypeLoadBalancer).WithLoadBalancerClass("metallb.io/metallb").WithPorts(accore.ServicePort().WithPort(443)))
		for {
			seen := b.clusters.See(infra, want)
			if err := b.clusters.Apply(infra, service); err != nil {
				return err
			}
			if seen != nil && seen.Service != nil {
				break
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-tick.C:
			}
		}
	}
	return nil
}

// counted are numbers of requests, by verb.
type counted map[string]int

func (c counted) all() (sum int) {
	for _, n := range c {
		sum += n
	}
	return sum
}

// requests of each verb that hosted clusters got so far from our connections, which have a user agent of their own.
func (b *bench) requests() (counted, error) {
	log, err := os.Open(b.audit)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	all := counted{}
	lines := bufio.NewScanner(log)
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		var e struct{ UserAgent, Verb string }
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("audit log: %w", err)
		}
		if e.UserAgent == bounded.UserAgent {
			all[e.Verb]++
		}
	}
	return all, lines.Err()
}
