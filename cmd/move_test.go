package cmd

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestAnInfraMovesToAnotherClusterOnly(t *testing.T) {
	g, path := NewWithT(t), filepath.Join(t.TempDir(), "kubeconfig")
	g.Expect(os.WriteFile(path, []byte(`apiVersion: v1
kind: Config
current-context: east
clusters: [{name: one, cluster: {server: "https://127.0.0.1:1"}}, {name: two, cluster: {server: "https://127.0.0.1:2"}}]
contexts: [{name: east, context: {cluster: one}}, {name: west, context: {cluster: one}}, {name: south, context: {cluster: two}}]
`), 0o600)).To(Succeed())
	for says, args := range map[string][]string{
		"--to west is this cluster, https://127.0.0.1:1: name the context of the other one":                                    {"c1", "--to", "west"},
		`--to north: finding the cluster: the kubeconfig ` + path + ` has no context "north": choose one of east, south, west`: {"c1", "--to", "north"},
		"reading Infra default/c1: nobody takes connections at https://127.0.0.1:1: ":                                          {"c1", "--to", "south", "--cut-over"},
		`required flag(s) "to" not set`: {"c1"},
	} {
		root := Root()
		root.SetOut(&bytes.Buffer{})
		root.SetArgs(append([]string{"move", "--kubeconfig", path}, args...))
		err := root.Execute()
		g.Expect(err).To(MatchError(ContainSubstring(says)))
		g.Expect(ExitCode(err)).To(Equal(unusable))
	}
}
