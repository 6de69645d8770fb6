//go:build e2e && faults

package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cldmnky/oooi/test/lab/scene"
)

// besideAHealthyOne are the faults that are shown on an Infra with a second worker, which has joined before: seven that stop one worker, and
// three that stop each new one.
var besideAHealthyOne = []string{
	"csr-pending", "no-discover", "not-running", "not-running.failed", "other-network", "pod-network", "wrong-hostname",
	"dhcp-down", "network-policy", "no-route",
}

// stageOf is where each cause stops a worker. Of an Ignition server that is down, the front is ready for some seconds more.
var stageOf = map[string]string{
	"not-running": "machine", "duplicate-mac": "card", "other-network": "card", "pod-network": "card", "infra-refused": "dhcp", "dhcp-down": "dhcp",
	"no-address": "lease", "foreign-server": "lease", "no-discover": "lease", "lease-ended": "lease", "wrong-hostname": "hostname",
	"dns-down": "names", "endpoint-moved": "names", "name-missing": "names", "proxy-down": "proxy", "no-route": "proxy",
	"network-policy": "backends", "backend-down": "backends", "no-handshake": "backends",
	"certificate-not-yet-valid": "backends", "certificate-expired": "backends", "certificate-for-another-name": "backends",
	"payload-invalid": "ignition", "ignition-down": "backends ignition", "ignition-fails": "ignition", "no-token": "ignition", "token-expired": "ignition",
	"token-refused": "ignition", "no-csr": "certificate", "csr-for-another-name": "certificate", "csr-pending": "certificate", "csr-denied": "certificate",
	"no-node": "node", "kubelet-silent": "node", "node-not-ready": "node", "no-tunnel": "tunnel",
}

// slow are the causes that only silence shows, and how long a script's test of one may take.
var slow = map[string]time.Duration{"no-csr": 20 * time.Minute}

// Each script of test/lab/faults breaks one thing, and has the name of the cause that must be found; what comes after a dot tells two ways
// to one cause apart.
func TestEachFaultIsNamed(t *testing.T) {
	scripts, err := filepath.Glob(filepath.Join(scene.Root(), "test/lab/faults/*"))
	must(t, err)
	scripts = slices.DeleteFunc(scripts, func(s string) bool { return strings.HasSuffix(s, "lib.sh") })
	buildOOOI(t, within(t, 5*time.Minute))
	beside := func(s string) bool { return slices.Contains(besideAHealthyOne, filepath.Base(s)) }
	t.Run("beside a healthy worker", func(t *testing.T) {
		healthy := worker(0x1f)
		bootsUnsuspected(t, within(t, 4*time.Minute), healthy)
		for i, script := range scripts {
			if beside(script) {
				t.Run(filepath.Base(script), func(t *testing.T) { isNamed(t, script, i, &healthy) })
			}
		}
	})
	t.Run("alone", func(t *testing.T) {
		for i, script := range scripts {
			if !beside(script) {
				t.Run(filepath.Base(script), func(t *testing.T) { isNamed(t, script, i, nil) })
			}
		}
	})
}

// isNamed breaks what a script breaks, and waits for the cause of it; a healthy worker of the same Infra stays without a finding.
func isNamed(t *testing.T, script string, number int, healthy *scene.Machine) {
	want, _, _ := strings.Cut(filepath.Base(script), ".")
	ctx := within(t, cmp.Or(slow[want], 8*time.Minute))
	m := worker(0x20 + number)
	m.Name = fmt.Sprintf("faulty-%d", number)
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
	d := awaitFault(t, ctx, m.Name)
	stage, cause := d.stopped()
	t.Logf("FAULT %s: stage %s, cause %s, diagnose took %s", filepath.Base(script), stage, cause, d.took)
	if cause != want || !slices.Contains(strings.Fields(stageOf[want]), stage) {
		t.Errorf("the cause is %q at stage %q, want %q at %q: %s", cause, stage, want, stageOf[want], d)
	}
	t.Log(d)
	if healthy != nil {
		onlyTheSickIsNamed(t, awaitFault(t, ctx, "c1"), want, m, *healthy)
	}
}

// awaitFault asks until something fails.
func awaitFault(t *testing.T, ctx context.Context, name string) (last diagnosis) {
	t.Helper()
	must(t, scene.Until(ctx, "a cause", func(ctx context.Context) (err error) {
		if last, err = diagnoses(t, ctx, name); err == nil && last.Outcome != "fail" {
			err = fmt.Errorf("nothing is broken: %s", last)
		}
		return err
	}))
	return last
}

// onlyTheSickIsNamed looks at what is said of an Infra with two workers: what all need is without a finding, or has the one cause, and so is
// the worker that is stopped; the other has joined.
func onlyTheSickIsNamed(t *testing.T, d diagnosis, want string, sick, healthy scene.Machine) {
	t.Helper()
	t.Logf("of the Infra, in %s: %s", d.took, d)
	var joined bool
	for _, s := range d.Steps {
		_, cause, _ := strings.Cut(s.See, "#")
		switch {
		case strings.HasSuffix(s.Section, " "+healthy.Name):
			joined = s.Outcome == "ok" && strings.Contains(s.Says, "has joined")
			if !joined {
				t.Errorf("%s is healthy, and this is said: %s", healthy.Name, s.Says)
			}
		case s.Outcome != "ok" && s.Outcome != "skip" && cause != want:
			t.Errorf("%s: %s is said, whose cause is %q, want %q", s.Section, s.Says, cause, want)
		}
	}
	if _, cause := d.stopped(); !joined || cause != want {
		t.Errorf("%s has joined: %v; the Infra's cause is %q, want %q, of %s", healthy.Name, joined, cause, want, sick.Name)
	}
}

func TestNothingIsFoundOfTenHealthyBoots(t *testing.T) {
	buildOOOI(t, within(t, 5*time.Minute))
	for i := range 10 {
		t.Run(fmt.Sprint(i+1), func(t *testing.T) { bootsUnsuspected(t, within(t, 4*time.Minute), worker(0x60+i)) })
	}
}
