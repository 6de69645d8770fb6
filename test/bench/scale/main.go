// Command scale measures the manager with many Infras against a real kube-apiserver: how long until every child is applied,
// how much memory it holds, and how often it writes afterwards, when nothing changes.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	testkit "github.com/cldmnky/oooi/internal/testkit/envtest"
)

func main() {
	infras := flag.Int("infras", 500, "how many Infras, each of a HostedCluster of its own")
	idle := flag.Duration("idle", 10*time.Minute, "how long to count writes after everything is applied")
	manager := flag.String("oooi", "bin/oooi", "the binary")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *infras, *idle, *manager); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// bench is a kube-apiserver of our own with the manager beside it.
type bench struct {
	client  client.Client
	process *exec.Cmd
	ended   chan error // the manager's end

	audit   *bufio.Reader
	line    string         // of the audit log, as far as it is there
	created map[string]int // by resource, and whether it lies in a control plane's namespace
	writes  []string       // every mutating call of the manager
	last    time.Time      // when it was read
}

// children and workloads are what is awaited for one Infra, by resource: what plan.Infra wants, and what runs them.
var (
	children = map[string]int{"dhcpservers": 1, "dnsservers": 1, "proxyservers": 1, "network-attachment-definitions": 3,
		"networkpolicies in the control plane": 3, "roles in the control plane": 2, "rolebindings in the control plane": 2}
	workloads = map[string]int{"statefulsets": 2, "deployments": 1}
)

func run(ctx context.Context, infras int, idle time.Duration, binary string) error {
	dir, err := os.MkdirTemp("", "oooi-scale")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is the system's for temporary files
	env, b, err := start(dir)
	if err != nil {
		return err
	}
	defer env.Stop() //nolint:errcheck // it ends with us
	progress("creating %d hosted clusters", infras)
	if err := b.create(ctx, infras); err != nil {
		return err
	}
	begin := time.Now()
	if err := b.startManager(ctx, dir, binary); err != nil {
		return err
	}
	defer b.process.Process.Kill() //nolint:errcheck // it ends with us
	if err := b.awaitCreated(ctx, children, infras); err != nil {
		return err
	}
	applied := time.Since(begin)
	progress("all children after %.1f s", applied.Seconds())
	if err := b.awaitCreated(ctx, workloads, infras); err != nil {
		return err
	}
	deployed := time.Since(begin)
	progress("all workloads after %.1f s", deployed.Seconds())
	if err := b.awaitSilence(ctx, time.Minute); err != nil {
		return err
	}
	peak, err := rss(b.process.Process.Pid)
	if err != nil {
		return err
	}
	settled := len(b.writes)
	progress("settled after %d mutating calls; counting for %s", settled, idle)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(idle): // the measurement itself
	}
	if err := b.readAudit(); err != nil {
		return err
	}
	memory, err := rss(b.process.Process.Pid)
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "WHAT\tVALUE\tWANTED")
	fmt.Fprintf(t, "%d Infras: all children applied\t%.1f s\t< 60 s\n", infras, applied.Seconds())
	fmt.Fprintf(t, "and their workloads\t%.1f s\t\n", deployed.Seconds())
	fmt.Fprintf(t, "mutating calls of one Infra until then\t%.1f\t\n", float64(settled)/float64(infras))
	fmt.Fprintf(t, "manager RSS\t%d MiB, then %d MiB\t< 150 MiB\n", peak/1024, memory/1024)
	fmt.Fprintf(t, "mutating calls in %s after\t%d\t0\n", idle, len(b.writes)-settled)
	for _, w := range b.writes[settled:] {
		fmt.Fprintln(t, "\t"+w+"\t")
	}
	return t.Flush()
}

func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format(time.TimeOnly)+" "+format+"\n", args...)
}

func start(dir string) (*envtest.Environment, *bench, error) {
	foreign, err := testkit.Foreign()
	if err != nil {
		return nil, nil, err
	}
	policy, audit := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	err = os.WriteFile(policy, []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata, verbs: [create, update, patch, delete, deletecollection]}, {level: None}]\n"), 0o600)
	if err != nil {
		return nil, nil, err
	}
	env := &envtest.Environment{CRDDirectoryPaths: []string{"config/crd/bases"}, CRDs: foreign, ErrorIfCRDPathMissing: true}
	env.ControlPlane.GetAPIServer().Configure().Set("audit-policy-file", policy).Set("audit-log-path", audit).
		Set("service-cluster-ip-range", "10.96.0.0/12").Set("max-requests-inflight", "2000").Set("max-mutating-requests-inflight", "1000")
	config, err := env.Start()
	if err != nil {
		return nil, nil, err
	}
	config.QPS, config.Burst = 2000, 2000
	c, err := client.New(config, client.Options{})
	if err != nil {
		return nil, nil, err
	}
	log, err := os.Open(audit)
	if err != nil {
		return nil, nil, err
	}
	b := &bench{client: c, audit: bufio.NewReader(log), created: map[string]int{}}
	return env, b, os.WriteFile(filepath.Join(dir, "kubeconfig"), env.KubeConfig, 0o600)
}

// create makes n hosted clusters with all that an Infra reads of each.
func (b *bench) create(ctx context.Context, n int) error {
	template, err := os.ReadFile("internal/controller/testdata/hosted.yaml")
	if err != nil {
		return err
	}
	const infra = `
---
apiVersion: hostedcluster.densityops.com/v1alpha1
kind: Infra
metadata: {name: CLUSTER, namespace: NAMESPACE}
spec:
  hostedClusterRef: {name: CLUSTER}
  networkConfig: {cidr: CIDR, networkAttachmentDefinition: CLUSTER-vlan}
`
	for i := range n {
		name := fmt.Sprintf("t%d", i)
		text := strings.NewReplacer("CLUSTER", name, "NAMESPACE", "clusters", "CIDR", fmt.Sprintf("10.%d.%d.0/24", i/250, i%250),
			"LITERAL", fmt.Sprintf("203.0.%d.%d", 113+i/250, 1+i%250)).Replace(string(template) + infra)
		if err := b.createAll(ctx, text); err != nil {
			return fmt.Errorf("hosted cluster %s: %w", name, err)
		}
	}
	return nil
}

func (b *bench) createAll(ctx context.Context, text string) error {
	for dec := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096); ; {
		o := &unstructured.Unstructured{}
		if err := dec.Decode(o); err != nil {
			return nil // the end of the text
		}
		if len(o.Object) == 0 {
			continue
		}
		o.SetUID("")
		status := o.DeepCopy()
		if err := b.client.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) { // all share one namespace
			return err
		}
		if _, has := status.Object["status"]; !has || o.GetKind() == "EndpointSlice" {
			continue
		}
		status.SetResourceVersion(o.GetResourceVersion())
		if err := b.client.Status().Update(ctx, status); err != nil {
			return err
		}
	}
}

func (b *bench) startManager(ctx context.Context, dir, binary string) error {
	b.process = exec.CommandContext(ctx, binary, "manager", "--metrics-bind-address=0", "--health-probe-bind-address=0",
		"--image=e2e.local/oooi:dev", "--envoy-image=e2e.local/envoy:lab")
	b.process.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(dir, "kubeconfig"))
	log, err := os.Create(filepath.Join(os.TempDir(), "oooi-scale-manager.log")) //nolint:gosec // it is to be found where the last run left it
	if err != nil {
		return err
	}
	b.process.Stdout, b.process.Stderr = log, log
	if err := b.process.Start(); err != nil {
		return err
	}
	b.ended = make(chan error, 1)
	go func() { b.ended <- b.process.Wait() }()
	return nil
}

// awaitCreated waits until the audit log has so many of each resource: to list them would keep the API server busier than
// the manager does.
func (b *bench) awaitCreated(ctx context.Context, wanted map[string]int, infras int) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := b.readAudit(); err != nil {
			return err
		}
		done := true
		for resource, each := range wanted {
			done = done && b.created[resource] >= each*infras
		}
		if done {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-b.ended:
			return fmt.Errorf("the manager ended, see its log: %w", err)
		case <-tick.C:
		}
	}
}

// awaitSilence waits until the manager has written nothing for five seconds.
func (b *bench) awaitSilence(ctx context.Context, limit time.Duration) error {
	tick, end := time.NewTicker(200*time.Millisecond), time.After(limit)
	defer tick.Stop()
	for {
		if err := b.readAudit(); err != nil || time.Since(b.last) > 5*time.Second {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-end:
			return fmt.Errorf("the manager still wrote %s after everything was applied", limit)
		case <-tick.C:
		}
	}
}

// readAudit reads what was added to the audit log: what the manager wrote, leader election excepted.
func (b *bench) readAudit() error {
	for {
		line, err := b.audit.ReadString('\n')
		if b.line += line; errors.Is(err, io.EOF) {
			return nil // the rest of the line comes
		}
		if err != nil {
			return err
		}
		var e struct {
			UserAgent, Verb string
			ObjectRef       struct{ Resource, Subresource, Namespace, Name string }
			ResponseStatus  struct{ Code int }
		}
		if err := json.Unmarshal([]byte(b.line), &e); err != nil {
			return fmt.Errorf("audit log: %w", err)
		}
		b.line = ""
		if e.ObjectRef.Resource == "leases" || !strings.HasPrefix(e.UserAgent, "oooi/") {
			continue
		}
		b.last = time.Now()
		where := map[bool]string{true: " in the control plane"}
		b.writes = append(b.writes, strings.Join([]string{e.Verb, e.ObjectRef.Resource, e.ObjectRef.Subresource, e.ObjectRef.Namespace + "/" + e.ObjectRef.Name}, " "))
		if e.ResponseStatus.Code == http.StatusCreated {
			b.created[e.ObjectRef.Resource+where[e.ObjectRef.Namespace != "clusters"]]++
		}
	}
}

// rss is a process's resident memory in KiB.
func rss(pid int) (kib int, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "VmRSS:") {
			_, err = fmt.Sscan(strings.TrimPrefix(line, "VmRSS:"), &kib)
		}
	}
	return kib, err
}
