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
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	audit   string
	process *exec.Cmd
}

func run(ctx context.Context, infras int, idle time.Duration, binary string) error {
	dir, err := os.MkdirTemp("", "oooi-scale")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	env, b, err := start(dir)
	if err != nil {
		return err
	}
	defer env.Stop() //nolint:errcheck // it ends with us
	if err := b.create(ctx, infras); err != nil {
		return err
	}
	begin := time.Now()
	if err := b.startManager(ctx, dir, binary); err != nil {
		return err
	}
	defer b.process.Process.Kill() //nolint:errcheck // it ends with us
	if err := b.awaitChildren(ctx, infras); err != nil {
		return err
	}
	applied := time.Since(begin)
	if err := b.awaitSilence(ctx, time.Minute); err != nil {
		return err
	}
	from, err := os.Stat(b.audit)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(idle): // the measurement itself
	}
	writes, err := b.writes(from.Size())
	if err != nil {
		return err
	}
	memory, err := rss(b.process.Process.Pid)
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "WHAT\tVALUE\tWANTED\n%d Infras: all children applied\t%.1f s\t< 60 s\nmanager RSS\t%d MiB\t< 150 MiB\nmutating calls in %s after\t%d\t0\n",
		infras, applied.Seconds(), memory/1024, idle, len(writes))
	for _, w := range writes {
		fmt.Fprintln(t, "\t"+w+"\t")
	}
	return t.Flush()
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
	return env, &bench{client: c, audit: audit}, errors.Join(err, os.WriteFile(filepath.Join(dir, "kubeconfig"), env.KubeConfig, 0o600))
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
		"--image=e2e.local/oooi:dev", "--envoy-image=e2e.local/envoy:1.40.0")
	b.process.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(dir, "kubeconfig"))
	log, err := os.Create(filepath.Join(os.TempDir(), "oooi-scale-manager.log"))
	if err != nil {
		return err
	}
	b.process.Stdout, b.process.Stderr = log, log
	return b.process.Start()
}

// awaitChildren waits until each Infra's three children have their workloads.
func (b *bench) awaitChildren(ctx context.Context, infras int) error {
	kinds := map[string]schema.GroupVersionKind{
		"StatefulSets": {Group: "apps", Version: "v1", Kind: "StatefulSetList"},
		"Deployments":  {Group: "apps", Version: "v1", Kind: "DeploymentList"},
	}
	wanted := map[string]int{"StatefulSets": 2 * infras, "Deployments": infras}
	for ctx.Err() == nil {
		done := true
		for what, kind := range kinds {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(kind)
			if err := b.client.List(ctx, list, client.InNamespace("clusters")); err != nil {
				return err
			}
			done = done && len(list.Items) == wanted[what]
		}
		if done {
			return nil
		}
		if b.process.ProcessState != nil {
			return errors.New("the manager ended; see its log")
		}
		time.Sleep(200 * time.Millisecond) // counting objects is cheaper than watching 1,500 of them
	}
	return ctx.Err()
}

// awaitSilence waits until the audit log has not grown for five seconds.
func (b *bench) awaitSilence(ctx context.Context, limit time.Duration) error {
	var size int64
	quiet, end := time.Now(), time.Now().Add(limit)
	for ctx.Err() == nil && time.Now().Before(end) {
		info, err := os.Stat(b.audit)
		if err != nil {
			return err
		}
		if info.Size() != size {
			size, quiet = info.Size(), time.Now()
		}
		if time.Since(quiet) > 5*time.Second {
			return nil
		}
		time.Sleep(200 * time.Millisecond)
	}
	return fmt.Errorf("the manager still wrote %s after everything was applied", limit)
}

// writes are the mutating calls in the audit log from an offset, leader election and the API server's own excepted.
func (b *bench) writes(offset int64) ([]string, error) {
	f, err := os.Open(b.audit)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := f.Seek(offset, 0); err != nil {
		return nil, err
	}
	var all []string
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct {
			Verb, UserAgent string
			ObjectRef       struct{ Resource, Namespace, Name string }
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, err
		}
		if e.ObjectRef.Resource != "leases" && !strings.HasPrefix(e.UserAgent, "kube-apiserver") {
			all = append(all, e.Verb+" "+e.ObjectRef.Resource+" "+e.ObjectRef.Namespace+"/"+e.ObjectRef.Name)
		}
	}
	return all, lines.Err()
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
