//go:build e2e && faults

package e2e

import (
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
