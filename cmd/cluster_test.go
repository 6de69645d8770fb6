package cmd

import (
	"testing"

	. "github.com/onsi/gomega"
)

// Whoever has no kubeconfig is told where it was looked for, and nothing that does not help.
func TestAMissingKubeconfigIsNamed(t *testing.T) {
	for _, command := range [][]string{{"status", "c1"}, {"diff", "-f", preflightExamples + "good/isolated.yaml"}, {"leases", "list"}, {"check", "-n", "a"}} {
		cannotBegin(t, "/none: give one with --kubeconfig or $KUBECONFIG", command)
	}
	t.Setenv("KUBECONFIG", "")
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	root := Root()
	root.SetArgs([]string{"status", "c1", "--kubeconfig", "missing"})
	err := root.Execute()
	NewWithT(t).Expect(err).To(MatchError(And(HavePrefix("finding the cluster: "), ContainSubstring("missing"))))
}
