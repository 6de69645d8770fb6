//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
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

// Each script of test/lab/faults breaks one thing, and has the name of the cause that must be found; what comes after a dot tells two ways
// to one cause apart.
func TestEachFaultIsNamed(t *testing.T) {
	scripts, err := filepath.Glob(filepath.Join(scene.Root(), "test/lab/faults/*"))
	must(t, err)
	buildOOOI(t, within(t, 5*time.Minute))
	scripts = slices.DeleteFunc(scripts, func(s string) bool { return strings.HasSuffix(s, "lib.sh") })
	for i, script := range scripts {
		t.Run(filepath.Base(script), func(t *testing.T) {
			ctx := within(t, 4*time.Minute)
			m := worker(0x20 + i)
			m.Name = fmt.Sprintf("faulty-%d", i)
			act := func(ctx context.Context, phase string) error {
				_, err := lab.Run(ctx, "env", "WORKER="+m.Name, "MAC="+m.MAC, script, phase)
				return err
			}
			on := false
			afterwards(t, func(ctx context.Context) error {
				err := act(ctx, "mend") // first: the hosted API may be what is broken
				if on {
					err = errors.Join(err, leaves(ctx, m))
				}
				return err
			})
			must(t, act(ctx, "before"))
			_, err := lab.PowerOn(ctx, m)
			must(t, err)
			on = true
			must(t, act(ctx, "after"))
			var last diagnosis
			must(t, scene.Until(ctx, "a cause", func(ctx context.Context) (err error) {
				if last, err = diagnoses(ctx, m.Name); err == nil && last.cause() == "" {
					err = fmt.Errorf("nothing is broken: %s", last)
				}
				return err
			}))
			if want, _, _ := strings.Cut(filepath.Base(script), "."); last.cause() != want {
				t.Errorf("the cause is %q, want %q: %s", last.cause(), want, last)
			}
			t.Log(last)
		})
	}
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
