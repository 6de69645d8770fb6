package bridgecli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	dpuv1 "github.com/cldmnky/oooi/api/provisioning/v1alpha1"
	"github.com/cldmnky/oooi/internal/bridgecli"
	"github.com/cldmnky/oooi/internal/testkit/golden"
)

func TestAStandingIsPrinted(t *testing.T) {
	golden.Cases(t, "testdata", []string{"in.yaml"}, func(t *testing.T, dir string) map[string]string {
		g := NewWithT(t)
		text, err := os.ReadFile(filepath.Join(dir, "in.yaml"))
		g.Expect(err).NotTo(HaveOccurred())
		b := &dpuv1.DPUHCPBridge{}
		g.Expect(yaml.UnmarshalStrict(text, b)).To(Succeed())
		standing := bridgecli.Of(b)
		g.Expect(standing.Ready).To(Equal(filepath.Base(dir) == "ready"))
		var table, json bytes.Buffer
		g.Expect(bridgecli.Table(&table, standing)).To(Succeed())
		g.Expect(bridgecli.JSON(&json, standing)).To(Succeed())
		return map[string]string{"table.txt": table.String(), "out.json": json.String()}
	})
}
