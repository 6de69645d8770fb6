package cmd

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

// The real kubectl runs the binary by the name that a release gives it, and completes what the user types.
func TestKubectlRunsOooiAsAPlugin(t *testing.T) {
	if args := os.Getenv("OOOI_TEST_ARGS"); args != "" {
		asProcess(t, args)
	}
	g, dir := NewWithT(t), t.TempDir()
	complete, err := os.ReadFile("../hack/release/pack/kubectl_complete-oooi")
	g.Expect(err).NotTo(HaveOccurred())
	plugin := fmt.Sprintf("#!/bin/bash\nOOOI_TEST_ARGS=\"$(printf '%%s\\n' \"$@\")\" exec -a %s %s -test.run='^%s$'\n", filepath.Join(dir, asPlugin), os.Args[0], t.Name())
	for name, text := range map[string]string{asPlugin: plugin, "kubectl_complete-oooi": string(complete)} {
		g.Expect(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700)).To(Succeed())
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	kubectl := func(args ...string) (string, error) {
		out, err := exec.Command(filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), args...).CombinedOutput()
		return string(out), err
	}
	for says, args := range map[string][]string{
		"  kubectl oooi check [flags]\n":                                               {"oooi", "check", "--help"},
		"  kubectl oooi check --wait=10m && kubectl oooi check -o json\n":              {"oooi", "check", "--help"},
		"  kubectl oooi images --mirror-to registry.example.com/oooi -o mirrorset\n\n": {"oooi", "images", "--help"},
		"  kubectl oooi leases [command]\n":                                            {"oooi", "leases", "--help"},
		"check\tCheck that oooi works":                                                 {"__complete", "oooi", "chec"},
		releasedEnvoyImage + "\n":                                                      {"oooi", "images"},
	} {
		out, err := kubectl(args...)
		g.Expect(err).NotTo(HaveOccurred(), out)
		g.Expect(out).To(ContainSubstring(says))
	}
	_, err = kubectl("oooi", "nonsense")
	ended := &exec.ExitError{}
	g.Expect(errors.As(err, &ended)).To(BeTrue(), "kubectl passes the exit code on")
}
