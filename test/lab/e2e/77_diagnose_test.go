//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cldmnky/oooi/test/lab/scene"
)

// diagnosis is what `oooi diagnose -o json` prints.
type diagnosis struct {
	Outcome string `json:"outcome"`
	Steps   []struct {
		Name    string `json:"name"`
		Section string `json:"section"`
		Outcome string `json:"outcome"`
		Says    string `json:"says"`
		See     string `json:"see"`
	} `json:"steps"`
	// took is how long the command did.
	took time.Duration
}

// stopped is the stage of the step that fails, and cause that step's anchor; empty if none does.
func (d diagnosis) stopped() (stage, cause string) {
	for _, s := range d.Steps {
		if s.Outcome == "fail" {
			_, cause, _ := strings.Cut(s.See, "#")
			return s.Name, cause
		}
	}
	return "", ""
}

func (d diagnosis) String() string {
	text := d.Outcome
	for _, s := range d.Steps {
		text += fmt.Sprintf("\n  %-6s  %-11s %s", s.Outcome, s.Name, s.Says)
	}
	return text
}

// diagnoses runs the command inside the node, from where the hosted API's address is reached.
func diagnoses(t *testing.T, ctx context.Context, name string) (d diagnosis, err error) {
	t.Helper()
	began := time.Now()
	text, failed := lab.Lab(ctx, "exec", filepath.Join(lab.State, "oooi"), "diagnose", "-n", "clusters", "-o", "json", "--kubeconfig", os.Getenv("KUBECONFIG"), name)
	d.took = time.Since(began).Round(10 * time.Millisecond)
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return d, fmt.Errorf("%w: %w", failed, err)
	}
	return d, nil
}

// buildOOOI builds the command from this tree: what is in $PATH is shared by labs of other trees.
func buildOOOI(t *testing.T, ctx context.Context) {
	t.Helper()
	_, err := lab.Run(ctx, "go", "build", "-trimpath", "-o", filepath.Join(lab.State, "oooi"), ".")
	must(t, err)
}

// bootsUnsuspected powers a machine on and asks, of it and of its Infra, until there is nothing to say: before that, all that is said is at
// which stage it is. It is powered off when the test ends.
func bootsUnsuspected(t *testing.T, ctx context.Context, m scene.Machine) {
	t.Helper()
	console, err := lab.PowerOn(ctx, m)
	must(t, err)
	afterwards(t, func(ctx context.Context) error { return leaves(ctx, m) })
	var stood []string
	answers, slowest := 0, time.Duration(0)
	must(t, scene.Until(ctx, "nothing to say", func(ctx context.Context) error {
		outcome := "ok"
		for _, of := range []string{m.Name, "c1"} {
			d, err := diagnoses(t, ctx, of)
			if err != nil {
				return err
			}
			answers, slowest = answers+1, max(slowest, d.took)
			for _, s := range d.Steps {
				boots := s.Outcome == "warn" && strings.HasSuffix(s.See, "#booting")
				if s.Outcome != "ok" && s.Outcome != "skip" && !boots {
					t.Errorf("%s after power-on, diagnose %s says: %s %s: %s", time.Since(console.PoweredOn).Round(time.Second), of, s.Outcome, s.Name, s.Says)
				}
				if boots && !slices.Contains(stood, s.Name) {
					stood = append(stood, s.Name)
				}
			}
			if d.Outcome != "ok" {
				outcome = d.Outcome
			}
		}
		if outcome != "ok" {
			return fmt.Errorf("%s has come to %v", m.Name, stood)
		}
		return nil
	}))
	t.Logf("BOOT %s: joined %s after power-on; %d answers, the slowest in %s; it was seen at %v", m.Name, time.Since(console.PoweredOn).Round(time.Second), answers, slowest, stood)
	if !slices.Contains(stood, "lease") || !slices.Contains(stood, "certificate") {
		t.Errorf("%s was not seen on its way, only at %v", m.Name, stood)
	}
}

// hasStages awaits in a worker's lease what DNS and Envoy saw of its boot, and what its Machine says of its Node.
func hasStages(t *testing.T, ctx context.Context, m scene.Machine) {
	t.Helper()
	const of = "{range .items[?(@.spec.mac==%q)].status.stages[*]}{.name}:{.result} {end}"
	want := []string{"APIHello:Forwarded", "IgnitionHello:Forwarded", "KonnectivityHello:Forwarded", "NameAsked:", "NodeReady:"}
	must(t, scene.Until(ctx, "the stages of "+m.Name, func(context.Context) error {
		got := strings.Fields(kubectl(t, ctx, "-n", "clusters", "get", "dhcplease", "-o", "jsonpath="+fmt.Sprintf(of, m.MAC)))
		if slices.Sort(got); !slices.Equal(got, want) {
			return fmt.Errorf("the lease says %q", got)
		}
		return nil
	}))
	t.Log("\n" + kubectl(t, ctx, "-n", "clusters", "get", "olease", "-o", "wide"))
}

// Of a worker that boots and joins nothing is found, neither by its name nor as one of its Infra; nor later, while another is stopped.
func TestNothingIsFoundOfAHealthyWorker(t *testing.T) {
	ctx := within(t, 4*time.Minute)
	buildOOOI(t, ctx)
	healthy, stopped := worker(0x11), worker(0x12)
	bootsUnsuspected(t, ctx, healthy)
	_, err := lab.Standin(ctx, "worker", "--cluster", "c1", "--name", stopped.Name, "--mac", stopped.MAC, "--nad", "default/vlan77")
	must(t, err)
	afterwards(t, func(ctx context.Context) error {
		_, err := lab.Standin(ctx, "worker", "--cluster", "c1", "--name", stopped.Name, "--mac", stopped.MAC, "--nad", "default/vlan77", "--remove")
		return err
	})
	hasStages(t, ctx, healthy)
	d, err := diagnoses(t, ctx, "c1")
	must(t, err)
	t.Log(d)
	if _, cause := d.stopped(); cause != "other-network" {
		t.Errorf("of the Infra's two workers one is on another network, and the cause is %q", cause)
	}
	for _, s := range d.Steps {
		if s.Outcome != "ok" && !strings.HasSuffix(s.Section, stopped.Name) {
			t.Errorf("%s is healthy: %s", s.Section, s.Says)
		}
	}
}
