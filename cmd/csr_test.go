package cmd

import (
	"bytes"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestACSRIsNotExplainedWithoutABridgeOrACluster(t *testing.T) {
	for says, args := range map[string][]string{
		"give one name":                      {"--bridge", "dpu1"},
		`"bridge" not set`:                   {"csr-1"},
		"write table or json":                {"csr-1", "--bridge", "dpu1", "-o", "yaml"},
		"unknown flag: --nonsense":           {"csr-1", "--nonsense"},
		"no configuration has been provided": {"csr-1", "--bridge", "dpu1"},
	} {
		t.Run(says, func(t *testing.T) {
			g := NewWithT(t)
			t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
			var out bytes.Buffer
			root := Root()
			root.SetOut(&out)
			root.SetErr(&out)
			root.SetArgs(append([]string{"csr", "explain"}, args...))
			err := root.Execute()
			g.Expect(err).To(MatchError(ContainSubstring(says)))
			g.Expect(ExitCode(err)).To(Equal(unusable))
			g.Expect(out.String()).To(BeEmpty(), "nothing is said in place of a report")
		})
	}
}
