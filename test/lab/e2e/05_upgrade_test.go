//go:build e2e && upgrade

package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cldmnky/oooi/test/lab/scene"
)

// before is the commit of the operator that is upgraded: what was on main when issue 14 began.
const before = "b6c9098"

func init() { deploysFirst = deployBefore }

// deployBefore builds the operator as it was from its commit, and deploys it by its own manifests.
func deployBefore(ctx context.Context) error {
	tree, err := os.MkdirTemp("", "oooi-before")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tree)
	for _, step := range [][]string{
		{"bash", "-c", `set -o pipefail; git archive "$0" | tar -x -C "$1"`, before, tree},
		{"env", "CGO_ENABLED=0", "go", "-C", tree, "build", "-trimpath", "-buildvcs=false", "-o", tree + "/bin/oooi", "."},
		{"test/lab/lab", "image", "oooi-before", "1", "--", tree + "/bin/oooi=/oooi"},
		{"make", "-C", tree, "deploy", "IMG=e2e.local/oooi-before:1", "ENVOY_IMG=e2e.local/envoy:lab"},
	} {
		if _, err := lab.Run(ctx, step[0], step[1:]...); err != nil {
			return err
		}
	}
	return nil
}

// An upgrade of the manager leaves the pods of the last one running. Each of their containers may be restarted long after, beside the
// new manager's ConfigMaps, Roles and CRDs, and serves again; released, all are replaced by what the new one makes.
func TestPodsOfTheLastManagerServeBesideTheNext(t *testing.T) {
	ctx := within(t, 8*time.Minute)
	ready(t, ctx)
	n := neighbour(t, ctx, "upgraded", "br100", "")
	joined := func(when string) {
		t.Helper()
		must(t, scene.Until(ctx, "a client joins "+when, func(ctx context.Context) error { return boots(ctx, n) }))
	}
	joined("before the upgrade")
	old := servers(t, ctx)

	must(t, lab.DeployOperator(ctx))
	ready(t, ctx)
	joined("after the upgrade")
	if now := servers(t, ctx); !slices.Equal(now, old) {
		t.Fatalf("the upgrade replaced pods:\n%v\n%v", old, now)
	}

	for _, pod := range old {
		for _, container := range strings.Fields(kubectl(t, ctx, "-n", "clusters", "get", pod, "-o", "jsonpath={.spec.containers[*].name}")) {
			restarts(t, ctx, pod, container)
			joined(fmt.Sprintf("after %s of %s was killed", container, pod))
		}
	}
	ready(t, ctx)
	if now := servers(t, ctx); !slices.Equal(now, old) {
		t.Fatalf("a container's restart replaced pods:\n%v\n%v", old, now)
	}

	kubectl(t, ctx, "annotate", "statefulset,deployment", "-A", "-l", "app.kubernetes.io/managed-by=oooi", "hostedcluster.densityops.com/released-")
	must(t, scene.Until(ctx, "all pods are the new manager's", func(ctx context.Context) error {
		images, err := lab.Kubectl(ctx, "-n", "clusters", "get", "pods", "-l", "hostedcluster.densityops.com/infra=c1", "-o", "jsonpath={.items[*].spec.containers[*].image}")
		if err == nil && strings.Contains(images, "oooi-before") {
			err = fmt.Errorf("images are %s", images)
		}
		return err
	}))
	ready(t, ctx)
	joined("after the release")
}

// restarts kills a container and waits until it is Ready again.
func restarts(t *testing.T, ctx context.Context, pod, container string) {
	t.Helper()
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
