//go:build e2e

// Package e2e has the lab's scenarios. They share one lab, run in the order of the files' names, and each leaves Infra clusters/c1 Ready for
// the next. They need `lab up`; test/lab/e2e/run does everything.
package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/cldmnky/oooi/test/lab/scene"
)

var lab *scene.Scene

func TestMain(m *testing.M) {
	start := time.Now()
	say := func(format string, args ...any) {
		fmt.Printf("[%6.1f s] %s\n", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
	}
	go tellOfStalls(say)
	if err := prepare(say); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// deploysFirst deploys the operator with which the scenarios begin.
var deploysFirst = func(ctx context.Context) error { return lab.DeployOperator(ctx) }

const infraC1 = `apiVersion: hostedcluster.densityops.com/v1alpha1
kind: Infra
metadata: {name: c1, namespace: clusters}
spec:
  hostedClusterRef: {name: c1}
  networkConfig: {cidr: 192.168.100.0/24, networkAttachmentDefinition: vlan100, networkAttachmentNamespace: default}
`

func prepare(say func(string, ...any)) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if lab, err = scene.Open(say); err != nil {
		return err
	}
	steps := []func() error{
		func() error { _, err := lab.Lab(ctx, "vlan", "100"); return err },
		func() error { _, err := lab.Standin(ctx, "apply", "--cluster", "c1"); return err },
		func() error { return deploysFirst(ctx) },
		func() error { return lab.Apply(ctx, scene.BridgeNAD("vlan100", "br100")) },
		func() error { return lab.Apply(ctx, infraC1) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	_, err = lab.Kubectl(ctx, "-n", "clusters", "wait", "--for=condition=Ready", "infra/c1", "--timeout=90s")
	say("hosted control plane c1, operator and Infra c1 are up")
	return err
}

// within ends a scenario that hangs, after twice the time that it may take on a machine of its own: two labs share one. What a scenario
// says about times it measures itself.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*d)
	t.Cleanup(cancel)
	return ctx
}

// afterwards runs do when the test ends, with a new context, because the test's own has ended.
func afterwards(t *testing.T, do func(context.Context) error) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
		defer cancel()
		if err := do(ctx); err != nil {
			t.Error(err)
		}
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// kubectl runs kubectl on the management cluster, and fails the test if it fails.
func kubectl(t *testing.T, ctx context.Context, args ...string) string {
	t.Helper()
	out, err := lab.Kubectl(ctx, args...)
	must(t, err)
	return strings.TrimSpace(out)
}

// apply applies YAML, and deletes its objects when the test ends.
func apply(t *testing.T, ctx context.Context, yaml string) {
	t.Helper()
	must(t, lab.Apply(ctx, yaml))
	afterwards(t, func(ctx context.Context) error {
		_, err := lab.Pipe(ctx, yaml, "kubectl", "delete", "--ignore-not-found", "--wait", "-f", "-")
		return err
	})
}

// condition is one condition of an object.
type condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

func conditionOf(ctx context.Context, namespace, object, kind string) (condition, error) {
	is, err := read(ctx, namespace, object)
	if err != nil {
		return condition{}, err
	}
	var o struct {
		Status struct {
			Conditions []condition `json:"conditions"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(is.Object, &o); err != nil {
		return condition{}, err
	}
	for _, c := range o.Status.Conditions {
		if c.Type == kind {
			return c, nil
		}
	}
	return condition{}, fmt.Errorf("%s has no condition %s yet", object, kind)
}

// awaitCondition waits until a condition has status and, if given, reason; it returns the message.
func awaitCondition(t *testing.T, ctx context.Context, namespace, object, kind, status, reason string) string {
	t.Helper()
	return awaitMessage(t, ctx, namespace, object, kind, status, reason, "").Message
}

// awaitMessage also waits for words in the message.
func awaitMessage(t *testing.T, ctx context.Context, namespace, object, kind, status, reason, says string) (last condition) {
	t.Helper()
	must(t, scene.Until(ctx, object, func(ctx context.Context) (err error) {
		if last, err = conditionOf(ctx, namespace, object, kind); err != nil {
			return err
		}
		if last.Status != status || reason != "" && last.Reason != reason || !strings.Contains(last.Message, says) {
			return fmt.Errorf("%s is %s/%s (%s), want %s/%s (%s)", kind, last.Status, last.Reason, last.Message, status, reason, says)
		}
		return nil
	}))
	return last
}

// ready waits until Infra c1 is Ready.
func ready(t *testing.T, ctx context.Context) {
	t.Helper()
	awaitCondition(t, ctx, "clusters", "infra/c1", "Ready", "True", "")
}

// signal sends a signal to the first process of a container of one of our pods.
func signal(t *testing.T, ctx context.Context, pod, container, signal string) {
	t.Helper()
	id := kubectl(t, ctx, "-n", "clusters", "get", pod, "-o", fmt.Sprintf(`jsonpath={.status.containerStatuses[?(@.name==%q)].containerID}`, container))
	_, err := lab.Lab(ctx, "exec", "ctr", "-n", "k8s.io", "tasks", "kill", "--signal", signal, strings.TrimPrefix(id, "containerd://"))
	must(t, err)
}

// inventory lists every object of every listable type that belongs to the Infra, including cluster-scoped ones.
func inventory(t *testing.T, ctx context.Context, infra string) []string {
	t.Helper()
	types := strings.Fields(kubectl(t, ctx, "api-resources", "--verbs=list", "-o", "name"))
	types = slices.DeleteFunc(types, func(s string) bool { return strings.HasPrefix(s, "events") })
	out := kubectl(t, ctx, "get", strings.Join(types, ","), "-A", "--ignore-not-found", "-l", "hostedcluster.densityops.com/infra="+infra,
		"-o", `jsonpath={range .items[*]}{.kind}/{.metadata.namespace}/{.metadata.name}{"\n"}{end}`)
	found := strings.Fields(out)
	slices.Sort(found)
	return slices.Compact(found)
}

// worker is machine number n of a cluster on VLAN 100.
func worker(n int) scene.Machine {
	return scene.Machine{Name: fmt.Sprintf("worker-%d", n), MAC: fmt.Sprintf("52:54:00:00:01:%02x", n), Cluster: "c1", Bridge: "br100", NAD: "default/vlan100"}
}

// hosted runs kubectl on a hosted cluster.
func hosted(ctx context.Context, cluster string, args ...string) (string, error) {
	kubeconfig, err := lab.Standin(ctx, "kubeconfig", "--cluster", cluster)
	if err != nil {
		return "", err
	}
	return lab.Lab(ctx, append([]string{"exec", "kubectl", "--kubeconfig", kubeconfig}, args...)...)
}

// joins powers a machine on, and waits until its Node is Ready. It is powered off when the test ends.
func joins(t *testing.T, ctx context.Context, m scene.Machine) time.Duration {
	t.Helper()
	console, err := lab.PowerOn(ctx, m)
	must(t, err)
	afterwards(t, func(ctx context.Context) error { return leaves(ctx, m) })
	for _, stage := range []string{"lease", "names", "ignition", "api", "certificate"} {
		at, err := console.Await(ctx, stage)
		must(t, err)
		t.Logf("%s: %5.1f s %s %s", m.Name, at.Uptime.Seconds(), stage, at.Detail)
	}
	_, err = hosted(ctx, m.Cluster, "wait", "--for=create", "node/"+m.Name, "--timeout=60s")
	must(t, err)
	_, err = hosted(ctx, m.Cluster, "wait", "--for=condition=Ready", "node/"+m.Name, "--timeout=60s")
	must(t, err)
	return time.Since(console.PoweredOn)
}

func leaves(ctx context.Context, m scene.Machine) error {
	_, err := hosted(ctx, m.Cluster, "delete", "node", m.Name, "--ignore-not-found")
	return errors.Join(lab.PowerOff(ctx, m), err)
}

// logged is the log of a pod in a hosted cluster, through konnectivity, where a request may hang for ever.
func logged(ctx context.Context, cluster, pod string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	return hosted(ctx, cluster, "logs", pod)
}

// runsPod starts a pod on a node of the hosted cluster, and waits until its log arrives through konnectivity.
func runsPod(t *testing.T, ctx context.Context, cluster, name, node string) {
	t.Helper()
	overrides := fmt.Sprintf(`{"spec":{"nodeName":%q,"terminationGracePeriodSeconds":0}}`, node)
	must(t, scene.Until(ctx, "creating pod "+name, func(ctx context.Context) error {
		_, err := hosted(ctx, cluster, "run", name, "--image=e2e.local/testapp:1", "--image-pull-policy=Never", "--restart=Never", "--overrides", overrides)
		return err
	}))
	must(t, scene.Until(ctx, "logs of "+name, func(ctx context.Context) error {
		out, err := logged(ctx, cluster, name)
		if err == nil && !strings.Contains(out, "ready") {
			err = fmt.Errorf("the log is %q", out)
		}
		return err
	}))
	afterwards(t, func(ctx context.Context) error {
		_, err := hosted(ctx, cluster, "delete", "pod", name, "--now", "--ignore-not-found")
		return err
	})
}

// podsAndRestarts has a line for each selected pod, which does not change unless the pod is replaced or a container restarts.
func podsAndRestarts(t *testing.T, ctx context.Context, of ...string) string {
	t.Helper()
	return kubectl(t, ctx, append([]string{"get", "pods", "-o", `jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} {.status.containerStatuses[*].restartCount}{"\n"}{end}`}, of...)...)
}
