package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// The page's commands run, and end with the exit codes that it says.
func TestADiffSaysWhatAnApplyChanges(t *testing.T) {
	if args := os.Getenv("OOOI_TEST_ARGS"); args != "" {
		asProcess(t, args)
	}
	s := newShell(t)
	example, err := os.ReadFile(preflightExamples + "good/control-plane-is-up.yaml")
	s.Expect(err).NotTo(HaveOccurred())
	var infra string
	for _, document := range strings.Split(string(example), "\n---\n") {
		if strings.Contains(document, "kind: Infra\n") {
			infra = document
		}
	}
	s.Expect(os.WriteFile(filepath.Join(s.dir, "infra.yaml"), []byte(infra), 0o600)).To(Succeed())
	repository, err := filepath.Abs("..")
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(os.Symlink(filepath.Join(repository, "charts"), filepath.Join(s.dir, "charts"))).To(Succeed())
	s.Expect(s.runs("kubectl create namespace clusters; oooi diff -f infra.yaml || echo code $?")).To(And(
		ContainSubstring("create Infra clusters/c1"), ContainSubstring("no operator runs in namespace oooi-system"), HaveSuffix("something changes\ncode 1\n")))
	s.Expect(s.runs("oooi diff -f infra.yaml -o json 2>/dev/null || echo code $?")).To(And(ContainSubstring(`"verb": "create"`), HaveSuffix("code 1\n")))
	s.Expect(s.runs("kubectl apply -f infra.yaml; oooi diff -f infra.yaml; echo code $?")).To(And(ContainSubstring("Nothing changes."), HaveSuffix("code 0\n")))
	s.Expect(s.runs("oooi diff -f infra.yaml --as anna || echo code $?")).To(And(Not(ContainSubstring("create")), Not(ContainSubstring("Nothing changes")), HaveSuffix("code 2\n"),
		ContainSubstring("Not read\n  infra.yaml: whether Infra c1 exists, and what becomes of it, is not known: you may not get infras.hostedcluster.densityops.com in namespace clusters\n")))
	for command, says := range map[string]string{
		"sed 's/cidr: .*/cidr: nonsense/' infra.yaml | oooi diff -f -": "the API server would refuse Infra c1",
		"sed 's/cidr: /cidrs: /' infra.yaml | oooi diff -f -":          "the API server would refuse Infra c1: unknown field \"spec.networkConfig.cidrs\"",
		"oooi diff":                       "say what you want to apply, with -f FILE",
		"oooi diff -f infra.yaml -o yaml": "write table or json",
		"oooi diff -f missing.yaml":       "missing.yaml: no such file",
		"oooi diff --manager infra.yaml":  "there is no Deployment of the operator",
		"oooi diff --nonsense":            "unknown flag: --nonsense",
		"echo 'a: 1' | oooi diff -f -":    "document 1 is no Kubernetes object",
		"echo '# none' | oooi diff -f -":  "-: there is no object in it",
	} {
		s.Expect(s.runs(command+" || echo code $?")).To(And(ContainSubstring(says), HaveSuffix("code 2\n")), command)
	}
	s.Expect(s.runs("helm template oooi charts/oooi --namespace oooi-system | oooi diff --manager -")).To(ContainSubstring("Nothing changes."))
}
