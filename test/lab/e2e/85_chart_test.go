//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cldmnky/oooi/test/lab/scene"
)

const crdOfInfras = "config/crd/bases/hostedcluster.densityops.com_infras.yaml"

// release runs helm on the operator's release, with the lab's images, and waits until its pods run.
func release(ctx context.Context, verb, chart string, more ...string) error {
	_, err := lab.Run(ctx, "helm", append([]string{verb, "oooi", chart, "--namespace", "oooi-system", "--wait", "--timeout", "2m", "--set",
		"image.repository=e2e.local/oooi,image.tag=dev,envoyImage.repository=e2e.local/envoy,envoyImage.tag=lab,appsIngress.namespaces={clusters}"}, more...)...)
	return err
}

// The operator that `make deploy` deployed becomes a release, is upgraded to a chart whose Infras have one field more, and is uninstalled:
// nothing of it is left, and what it created still serves. It is then installed again, over the CRDs that were kept.
func TestTheOperatorIsAReleaseOfTheChart(t *testing.T) {
	ctx := within(t, 8*time.Minute)
	ready(t, ctx)
	afterwards(t, func(ctx context.Context) error {
		// The watcher of --wait may miss immediate deletions, and wait for five minutes (helm/helm#31766).
		_, err := lab.Run(ctx, "helm", "uninstall", "oooi", "--namespace", "oooi-system", "--ignore-not-found", "--wait=legacy")
		return errors.Join(err, lab.DeployOperator(ctx))
	})
	before := servers(t, ctx)
	must(t, release(ctx, "install", "charts/oooi", "--take-ownership"))
	corrects(t, ctx)

	next := filepath.Join(t.TempDir(), "oooi")
	must(t, exec.Command("cp", "-rL", filepath.Join(scene.Root(), "charts/oooi"), next).Run())
	must(t, addNote(filepath.Join(next, crdOfInfras)))
	note := func(patch string) error {
		_, err := lab.Kubectl(ctx, "-n", "clusters", "patch", "infra", "c1", "--type=merge", "-p", `{"spec":{"note":`+patch+`}}`)
		return err
	}
	must(t, note(`"before"`))
	if got := kubectl(t, ctx, "-n", "clusters", "get", "infra", "c1", "-o", "jsonpath={.spec.note}"); got != "" {
		t.Fatalf("spec.note is kept before there is such a field: %q", got)
	}
	must(t, release(ctx, "upgrade", next))
	must(t, note(`"after"`))
	if got := kubectl(t, ctx, "-n", "clusters", "get", "infra", "c1", "-o", "jsonpath={.spec.note}"); got != "after" {
		t.Fatalf("spec.note is %q after the upgrade that brought it", got)
	}
	corrects(t, ctx)
	must(t, note("null"))
	must(t, release(ctx, "upgrade", "charts/oooi"))

	_, err := lab.Run(ctx, "helm", "uninstall", "oooi", "--namespace", "oooi-system", "--wait=legacy")
	must(t, err)
	kubectl(t, ctx, "-n", "oooi-system", "wait", "--for=delete", "pod", "-l", "app.kubernetes.io/component=manager", "--timeout=60s")
	must(t, scene.Until(ctx, "nothing is left", func(context.Context) error {
		left := slices.DeleteFunc(everyObject(t, ctx), func(o string) bool {
			everyNamespaceHasIt := strings.HasSuffix(o, "/kube-root-ca.crt") || strings.HasSuffix(o, "/default")
			return everyNamespaceHasIt || o == "Namespace//oooi-system" || !strings.Contains(o, "/oooi-system/") && !strings.Contains(o, "//oooi-")
		})
		if len(left) > 0 {
			return fmt.Errorf("still there: %v", left)
		}
		return nil
	}))
	kubectl(t, ctx, "-n", "clusters", "get", "infra", "c1")
	if after := servers(t, ctx); !slices.Equal(before, after) {
		t.Errorf("the servers on the VLAN were not left alone:\n%v\n%v", before, after)
	}

	must(t, release(ctx, "install", "charts/oooi"))
	corrects(t, ctx)
}

// `make undeploy` removes what `make deploy` deployed, with all that Infras and bridges created, while its operator still runs.
func TestUndeployTakesAllAway(t *testing.T) {
	ctx := within(t, 5*time.Minute)
	aroundBridges(t, ctx, "undeployed")
	bridge(t, ctx, bridgeYAML(t, ctx, "undeployed", "undeployed"), "undeployed")
	isMade(t, ctx, "undeployed")
	afterwards(t, func(ctx context.Context) error {
		return errors.Join(lab.DeployOperator(ctx), lab.Apply(ctx, infraC1))
	})
	_, err := lab.Run(ctx, "make", "undeploy")
	must(t, err)
	if left := kubectl(t, ctx, "api-resources", "-o", "name"); strings.Contains(left, "densityops.com") || strings.Contains(left, "dpu.hcp.io") {
		t.Errorf("kinds of ours are left: %s", left)
	}
	for _, kind := range []string{"hostedcluster/undeployed", "nodepool/undeployed"} {
		if left := kubectl(t, ctx, "-n", "clusters", "get", "--ignore-not-found", kind, "-o", "name"); left != "" {
			t.Errorf("left of the bridge: %s", left)
		}
	}
	if left := kubectl(t, ctx, "get", "namespace", "oooi-system", "--ignore-not-found", "-o", "name"); left != "" {
		t.Errorf("left of the operator: %s", left)
	}
}

// servers are the running pods of Infra c1.
func servers(t *testing.T, ctx context.Context) []string {
	t.Helper()
	pods := strings.Fields(kubectl(t, ctx, "-n", "clusters", "get", "pods", "-l", "hostedcluster.densityops.com/infra=c1", "--field-selector=status.phase=Running", "-o", "name"))
	if len(pods) < 3 {
		t.Fatalf("Infra c1 has too few pods to tell anything: %v", pods)
	}
	slices.Sort(pods)
	return pods
}

// corrects checks that the running operator works: it restores an object of c1 that was deleted.
func corrects(t *testing.T, ctx context.Context) {
	t.Helper()
	budgets := func(ctx context.Context) (string, error) {
		return lab.Kubectl(ctx, "-n", "clusters", "get", "poddisruptionbudgets", "-l", "hostedcluster.densityops.com/infra=c1", "-o", "name")
	}
	all, err := budgets(ctx)
	must(t, err)
	one := strings.Fields(all)[0]
	kubectl(t, ctx, "-n", "clusters", "delete", one)
	must(t, scene.Until(ctx, one+" is put back", func(ctx context.Context) error {
		now, err := budgets(ctx)
		if err == nil && now != all {
			err = errors.New("it is not there")
		}
		return err
	}))
	ready(t, ctx)
}

// addNote gives the Infra of a CRD's file a field spec.note.
func addNote(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	const fields = "            properties:\n              appsIngress:\n"
	if strings.Count(string(text), fields) != 1 {
		return errors.New("the CRD has not one place where the spec's fields begin")
	}
	return os.WriteFile(file, []byte(strings.Replace(string(text), fields, "            properties:\n              note:\n                type: string\n              appsIngress:\n", 1)), 0o600)
}
