//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// checked is what `oooi check -o json` prints.
type checked struct {
	Version int
	Outcome string
	Steps   []struct{ Name, Outcome, Says, Do, See string }
}

// named is the first step of this name.
func (c checked) named(t *testing.T, name string) (outcome, says, do string) {
	t.Helper()
	for _, s := range c.Steps {
		if s.Name == name {
			return s.Outcome, s.Says, s.Do
		}
	}
	t.Fatalf("no step is called %s: %+v", name, c)
	return "", "", ""
}

func checks(t *testing.T, ctx context.Context, flags ...string) (checked, error) {
	t.Helper()
	out, failed := lab.Run(ctx, "oooi", append([]string{"check", "-o", "json"}, flags...)...)
	var c checked
	if err := json.Unmarshal([]byte(out), &c); err != nil {
		t.Fatalf("%v in %q: %v", err, out, failed)
	}
	return c, failed
}

// The check finds nothing of an operator that works, by the certificate that its pod shows and the version that its leader says; when it is
// away, that is the first cause, and the hint brings it back.
func TestTheCheckSeesAnOperatorComeAndGo(t *testing.T) {
	ctx := within(t, 5*time.Minute)
	well := func() {
		t.Helper()
		ready(t, ctx)
		awaitCondition(t, ctx, "clusters", "infra/c1", "Degraded", "False", "") // the scenario before may have left a pod that starts; --wait is for failures
		c, err := checks(t, ctx, "--wait=2m")
		if err != nil {
			t.Error(err)
		}
		for _, s := range c.Steps {
			t.Logf("%s %s: %s", s.Outcome, s.Name, s.Says)
			if s.Outcome == "fail" || s.Outcome == "unread" || s.Outcome == "warn" && s.Name != "dpf" { // of which the lab has a part
				t.Errorf("%s: %s: %s", s.Name, s.Outcome, s.Says)
			}
		}
		for _, name := range []string{"crds", "operator", "operator-rights", "leader", "webhook-certificate", "cli-version", "daemon-images", "nodes", "infra"} {
			if outcome, says, _ := c.named(t, name); outcome != "ok" {
				t.Errorf("%s was not looked at: %s", name, says)
			}
		}
	}
	well()
	afterwards(t, func(ctx context.Context) error {
		_, err := lab.Kubectl(ctx, "-n", "oooi-system", "scale", "deployment/oooi-controller-manager", "--replicas=1")
		return err
	})
	kubectl(t, ctx, "-n", "oooi-system", "scale", "deployment/oooi-controller-manager", "--replicas=0")
	kubectl(t, ctx, "-n", "oooi-system", "wait", "--for=delete", "pod", "-l", "app.kubernetes.io/component=manager", "--timeout=60s")
	c, err := checks(t, ctx)
	if err == nil {
		t.Error("a check that fails does not say so by its exit code")
	}
	outcome, says, do := c.named(t, "operator")
	if outcome != "fail" || !strings.Contains(says, "is scaled to 0") {
		t.Errorf("operator: %s: %s", outcome, says)
	}
	for _, s := range c.Steps {
		if s.Outcome == "fail" && s.Name != "operator" {
			t.Errorf("%s fails too: %s", s.Name, s.Says)
		}
	}
	command := strings.Fields(do)
	kubectl(t, ctx, command[1:]...)
	// --wait is for failures: one pod of the two that the hint asks for is a warning, and ends it.
	kubectl(t, ctx, "-n", "oooi-system", "rollout", "status", "deployment/oooi-controller-manager", "--timeout=60s")
	well()
	kubectl(t, ctx, "-n", "oooi-system", "scale", "deployment/oooi-controller-manager", "--replicas=1")
	kubectl(t, ctx, "-n", "oooi-system", "rollout", "status", "deployment/oooi-controller-manager", "--timeout=60s")
}
