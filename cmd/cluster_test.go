package cmd

import (
	"io"
	"net"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
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

// A load balancer with nobody behind it takes connections and never answers: each command ends, and says where to look.
func TestAnAPIServerThatNeverAnswersIsNamed(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { silent.Close() })
	at := "http://" + silent.Addr().String()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	NewWithT(t).Expect(clientcmd.WriteToFile(api.Config{
		Clusters: map[string]*api.Cluster{"a": {Server: at}}, Contexts: map[string]*api.Context{"a": {Cluster: "a"}}, CurrentContext: "a",
	}, file)).To(Succeed())
	for _, command := range [][]string{{"status", "c1"}, {"diagnose", "c1"}, {"leases", "list"}, {"sysdump", "-o", filepath.Join(t.TempDir(), "dump")}, {"bridge", "status", "b"}} {
		t.Run(command[0], func(t *testing.T) {
			t.Parallel()
			root := Root()
			root.SetOut(io.Discard)
			root.SetErr(io.Discard)
			root.SetArgs(append(command, "--kubeconfig", file))
			ended := make(chan error, 1)
			go func() { ended <- root.ExecuteContext(t.Context()) }()
			NewWithT(t).Eventually(ended).WithTimeout(5 * tellsKindsWithin).Should(Receive(MatchError(ContainSubstring("no answer from " + at + " in time"))))
		})
	}
}
