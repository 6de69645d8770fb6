package bridgecli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/bridgecli"
	"github.com/cldmnky/oooi/internal/testkit/golden"
)

func TestAStandingIsPrinted(t *testing.T) {
	golden.Cases(t, "testdata", []string{"in.yaml", "seen.yaml"}, func(t *testing.T, dir string) map[string]string {
		g := NewWithT(t)
		text, err := os.ReadFile(filepath.Join(dir, "in.yaml"))
		g.Expect(err).NotTo(HaveOccurred())
		b := &dpuv1.DPUHCPBridge{}
		g.Expect(yaml.UnmarshalStrict(text, b)).To(Succeed())
		seen := bridgecli.Seen{}
		if text, err := os.ReadFile(filepath.Join(dir, "seen.yaml")); err == nil {
			g.Expect(yaml.UnmarshalStrict(text, &seen)).To(Succeed())
		}
		standing := bridgecli.Of(b, seen)
		g.Expect(standing.Ready).To(Equal(slices.Contains([]string{"ready", "dpus"}, filepath.Base(dir))))
		now := time.Date(2026, 11, 27, 4, 0, 0, 0, time.UTC)
		var table, json bytes.Buffer
		g.Expect(bridgecli.Table(&table, standing, now)).To(Succeed())
		g.Expect(bridgecli.JSON(&json, standing, now)).To(Succeed())
		return map[string]string{"table.txt": table.String(), "out.json": json.String()}
	})
}
