//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
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
}

// cause is the anchor of the step that fails; empty if none does.
func (d diagnosis) cause() string {
	for _, s := range d.Steps {
		if s.Outcome == "fail" {
			_, cause, _ := strings.Cut(s.See, "#")
			return cause
		}
	}
	return ""
}

func (d diagnosis) String() string {
	text := d.Outcome
	for _, s := range d.Steps {
		text += fmt.Sprintf("\n  %-6s  %-11s %s", s.Outcome, s.Name, s.Says)
	}
	return text
}

// diagnoses runs the command inside the node, from where the hosted API's address is reached. It fails if that takes 10 s.
func diagnoses(ctx context.Context, flags ...string) (d diagnosis, err error) {
	began := time.Now()
	args := append([]string{"exec", filepath.Join(lab.State, "oooi"), "diagnose", "-n", "clusters", "-o", "json", "--kubeconfig", os.Getenv("KUBECONFIG")}, flags...)
	text, failed := lab.Lab(ctx, args...)
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return d, fmt.Errorf("%w: %w", failed, err)
	}
	if took := time.Since(began); took > 10*time.Second {
		return d, fmt.Errorf("it took %s", took)
	}
	return d, nil
}

// buildOOOI builds the command from this tree: what is in $PATH is shared by labs of other trees.
func buildOOOI(t *testing.T, ctx context.Context) {
	t.Helper()
	_, err := lab.Run(ctx, "go", "build", "-trimpath", "-o", filepath.Join(lab.State, "oooi"), ".")
	must(t, err)
}

// Of a worker that has joined nothing is found, neither by its name nor as one of its Infra, while another is stopped.
func TestNothingIsFoundOfAHealthyWorker(t *testing.T) {
	ctx := within(t, 4*time.Minute)
	buildOOOI(t, ctx)
	healthy, stopped := worker(0x11), worker(0x12)
	joins(t, ctx, healthy)
	_, err := lab.Standin(ctx, "worker", "--cluster", "c1", "--name", stopped.Name, "--mac", stopped.MAC, "--nad", "default/vlan77")
	must(t, err)
	afterwards(t, func(ctx context.Context) error {
		_, err := lab.Standin(ctx, "worker", "--cluster", "c1", "--name", stopped.Name, "--mac", stopped.MAC, "--nad", "default/vlan77", "--remove")
		return err
	})
	must(t, scene.Until(ctx, "nothing wrong", func(ctx context.Context) error { // konnectivity's agent starts after its Node is Ready
		d, err := diagnoses(ctx, healthy.Name)
		if err == nil && d.Outcome != "ok" {
			err = fmt.Errorf("%s", d)
		}
		return err
	}))
	d, err := diagnoses(ctx, "c1")
	must(t, err)
	t.Log(d)
	if d.cause() != "other-network" {
		t.Errorf("of the Infra's two workers one is on another network, and the cause is %q", d.cause())
	}
	for _, s := range d.Steps {
		if s.Outcome != "ok" && !strings.HasSuffix(s.Section, stopped.Name) {
			t.Errorf("%s is healthy: %s", s.Section, s.Says)
		}
	}
}
