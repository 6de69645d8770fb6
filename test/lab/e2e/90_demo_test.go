//go:build e2e

package e2e

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// With one service sabotaged the demo exits non-zero and names the step that broke.
func TestTheDemoNamesTheStepThatBroke(t *testing.T) {
	demo := filepath.Join(lab.State, "demo")
	for sabotage, step := range map[string]string{"dhcp": "lease", "dns": "names", "proxy": "ignition", "policy": "ignition"} {
		t.Run(sabotage, func(t *testing.T) {
			ctx := within(t, 4*time.Minute)
			ready(t, ctx)
			afterwards(t, func(ctx context.Context) error { return leaves(ctx, worker(1)) })
			afterwards(t, func(ctx context.Context) error {
				_, err := lab.Kubectl(ctx, "-n", "clusters", "annotate", "infra,dhcpserver,dnsserver,proxyserver", "--all", "hostedcluster.densityops.com/paused-")
				return err
			})
			out, err := exec.CommandContext(ctx, demo, "--sabotage", sabotage).CombinedOutput()
			if err == nil {
				t.Fatalf("the demo ended well with %s sabotaged:\n%s", sabotage, out)
			}
			if want := `the step that broke is "` + step + `"`; !strings.Contains(string(out), want) {
				t.Errorf("want %q in:\n%s", want, out)
			}
		})
	}
}
