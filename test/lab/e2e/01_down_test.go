//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/cldmnky/oooi/test/lab/scene"
)

// A run that was aborted leaves its neighbours and their processes, which the next one's `lab down` removes: in CI, the names of two of an
// earlier run were taken.
func TestWhatABrokenOffRunHasLeftGoesWithItsLab(t *testing.T) {
	ctx := within(t, time.Minute)
	const left = "oooi-lab8-left" // nothing else uses lab 8
	run := func(command ...string) {
		t.Helper()
		if _, err := lab.Run(ctx, command[0], command[1:]...); err != nil {
			t.Fatal(err)
		}
	}
	run("ip", "netns", "add", left)
	run("mkdir", "-p", "/etc/netns/"+left)
	server := exec.CommandContext(ctx, "ip", "netns", "exec", left, "sleep", "infinity")
	must(t, server.Start())
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()

	run("env", "LAB_NUMBER=8", filepath.Join(scene.Root(), "test/lab/lab"), "down")

	if err := <-ended; ctx.Err() != nil {
		t.Fatalf("what ran in it still ran after a minute: %v", err)
	}
	for _, path := range []string{"/run/netns/" + left, "/etc/netns/" + left} {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", path, err)
		}
	}
}
