//go:build e2e && upgrade

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cldmnky/oooi/test/lab/scene"
)

// before is the commit of the operator that is upgraded: main when issue 14 began.
const before = "b6c9098"

func init() { deploysFirst = deployBefore }

// deployBefore builds the operator of commit before, and deploys it by its own manifests.
func deployBefore(ctx context.Context) error {
	tree, err := os.MkdirTemp("", "oooi-before")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tree)
	if _, err := lab.Run(ctx, "bash", "-c", `set -o pipefail; git archive "$0" | tar -x -C "$1"`, before, tree); err != nil {
		return err
	}
	if err := build(ctx, tree, "oooi-before"); err != nil {
		return err
	}
	return lab.DeployFrom(ctx, tree, "oooi-before:1")
}

// makeNext makes a possible successor of this tree: the proxy's bootstrap has a field that only its own sidecar understands.
func makeNext(ctx context.Context, tree string) error {
	const source = "internal/proxy/bootstrap/bootstrap.go"
	text, err := os.ReadFile(filepath.Join(scene.Root(), source))
	if err != nil {
		return err
	}
	for _, change := range [][2]string{
		{"import (", "import (\n\t\"strings\""},
		{"return string(out)", "return fieldOfNext + string(out)"},
		{"YAMLToJSON([]byte(template))", "YAMLToJSON([]byte(strings.TrimPrefix(template, fieldOfNext)))"},
		{"const (", "const fieldOfNext = \"next: {}\\n\"\n\nconst ("},
	} {
		if n := bytes.Count(text, []byte(change[0])); n != 1 {
			return fmt.Errorf("%s has %q %d times, want 1", source, change[0], n)
		}
		text = bytes.Replace(text, []byte(change[0]), []byte(change[1]), 1)
	}
	if _, err := lab.Run(ctx, "bash", "-c", `set -o pipefail; git ls-files -z | tar -c --null -T - | tar -x -C "$0"`, tree); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(tree, source), text, 0o644); err != nil {
		return err
	}
	return build(ctx, tree, "oooi-next")
}

// build builds an image of a tree's operator.
func build(ctx context.Context, tree, image string) error {
	_, err := lab.Run(ctx, "env", "CGO_ENABLED=0", "go", "-C", tree, "build", "-trimpath", "-buildvcs=false", "-o", tree+"/bin/oooi", ".")
	if err == nil {
		_, err = lab.Lab(ctx, "image", image, "1", "--", tree+"/bin/oooi=/oooi")
	}
	return err
}

// An upgrade of the manager leaves the last one's pods running. Each of their containers may be restarted during the upgrade, and long
// after, with the next one's ConfigMaps, Roles and CRDs, and serves again. Once updates are released, the next one's pods replace all of
// them.
func TestPodsOfTheLastManagerServeBesideTheNext(t *testing.T) {
	next, n := t.TempDir(), neighbour(t, within(t, time.Minute), "upgraded", "br100", "")
	afterwards(t, lab.DeployOperator)
	must(t, makeNext(within(t, 3*time.Minute), next))
	for _, c := range []struct {
		name, before string
		dhcp         string // the reason of DHCPReady before the release: a daemon of before knows of no second one
		upgrade      func(context.Context) error
	}{
		{"from " + before + " to this tree", "oooi-before", "SecondInstanceWaits", lab.DeployOperator},
		{"from this tree to the next", "oooi:dev", "InstancesShareNode", func(ctx context.Context) error { return lab.DeployFrom(ctx, next, "oooi-next:1") }},
	} {
		if !t.Run(c.name, func(t *testing.T) {
			ctx := within(t, 6*time.Minute)
			servesThrough(t, ctx, n, c.upgrade)
			awaitCondition(t, ctx, "clusters", "infra/c1", "DHCPReady", "True", c.dhcp)
			kubectl(t, ctx, "annotate", "statefulset,deployment", "-A", "-l", "app.kubernetes.io/managed-by=oooi", "hostedcluster.densityops.com/released-")
			must(t, scene.Until(ctx, "all pods are the new manager's", func(ctx context.Context) error {
				images, err := lab.Kubectl(ctx, "-n", "clusters", "get", "pods", "-l", "hostedcluster.densityops.com/infra=c1", "-o", "jsonpath={.items[*].spec.containers[*].image}")
				if err == nil && strings.Contains(images, c.before) {
					progressing, _ := lab.Kubectl(ctx, "-n", "clusters", "get", "infra", "c1", "-o", "jsonpath={.status.conditions[?(@.type=='Progressing')].message}")
					err = fmt.Errorf("images are %s; Progressing: %s", images, progressing)
				}
				return err
			}))
			ready(t, ctx)
			awaitCondition(t, ctx, "clusters", "infra/c1", "DHCPReady", "True", "InstancesShareNode")
			comesUp(t, ctx, n, "after the release")
		}) {
			return
		}
	}
}

func comesUp(t *testing.T, ctx context.Context, n *scene.Neighbour, when string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	must(t, scene.Until(ctx, "a client joins "+when, func(ctx context.Context) error { return boots(ctx, n) }))
}

// servesThrough has a client join after each container of our pods was killed, one after another during the upgrade, and then each once
// more. None is killed more often, because the kubelet's back-off doubles each time.
func servesThrough(t *testing.T, ctx context.Context, n *scene.Neighbour, upgrade func(context.Context) error) {
	t.Helper()
	ready(t, ctx)
	comesUp(t, ctx, n, "before the upgrade")
	containers, old := containersOf(t, ctx), instances(t, ctx)
	kill := func(at []string, when string) {
		t.Helper()
		restarts(t, ctx, at[0], at[1])
		comesUp(t, ctx, n, fmt.Sprintf("after %s of %s was killed %s the upgrade", at[1], at[0], when))
	}

	ctxOfUpgrade, stop := context.WithCancel(ctx)
	upgraded, took, ended := error(nil), time.Duration(0), make(chan struct{})
	go func() {
		defer close(ended)
		began := time.Now()
		upgraded = upgrade(ctxOfUpgrade)
		took = time.Since(began)
	}()
	t.Cleanup(func() { stop(); <-ended })
	killed := 0
	for going := true; going && killed < len(containers); {
		select {
		case <-ended:
			going = false
		default:
			kill(containers[killed], "during")
			killed++
		}
	}
	<-ended
	must(t, upgraded)
	t.Logf("%d containers were killed during the upgrade, which took %.0f s", killed, took.Seconds())

	for _, at := range containers {
		kill(at, "after")
	}
	ready(t, ctx)
	now := strings.Fields(instances(t, ctx))
	for _, pod := range strings.Fields(old) { // a newer manager may add one
		if !slices.Contains(now, pod) {
			t.Fatalf("pods were replaced:\n%v\n%v", old, now)
		}
	}
}

// containersOf are the containers of Infra c1's pods, each with its pod.
func containersOf(t *testing.T, ctx context.Context) (all [][]string) {
	t.Helper()
	for _, pod := range servers(t, ctx) {
		for _, container := range strings.Fields(kubectl(t, ctx, "-n", "clusters", "get", pod, "-o", "jsonpath={.spec.containers[*].name}")) {
			all = append(all, []string{pod, container})
		}
	}
	return all
}

// instances are the names and UIDs of Infra c1's pods; a StatefulSet's next pod has the same name.
func instances(t *testing.T, ctx context.Context) string {
	t.Helper()
	return kubectl(t, ctx, "-n", "clusters", "get", "pods", "-l", "hostedcluster.densityops.com/infra=c1", "-o", `jsonpath={range .items[*]}{.metadata.name} {.metadata.uid}{"\n"}{end}`)
}

// restarts kills a container and waits until it is Ready again.
func restarts(t *testing.T, ctx context.Context, pod, container string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	status := func(ctx context.Context) (ready string, count int, err error) {
		out, err := lab.Kubectl(ctx, "-n", "clusters", "get", pod, "-o",
			fmt.Sprintf(`jsonpath={range .status.containerStatuses[?(@.name==%q)]}{.ready} {.restartCount}{end}`, container))
		if err == nil {
			_, err = fmt.Sscan(out, &ready, &count)
		}
		return ready, count, err
	}
	_, was, err := status(ctx)
	must(t, err)
	signal(t, ctx, pod, container, "SIGKILL")
	must(t, scene.Until(ctx, container+" of "+pod, func(ctx context.Context) error {
		ready, count, err := status(ctx)
		if err == nil && (count <= was || ready != "true") {
			err = fmt.Errorf("restarted %d times, ready: %s", count-was, ready)
		}
		return err
	}))
}
