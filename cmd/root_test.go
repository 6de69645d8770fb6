package cmd

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// asProcess runs oooi with these arguments in a process of its own, which a signal can end.
func asProcess(t *testing.T, args ...string) (stdin io.Writer, signalled func(os.Signal) error) {
	t.Helper()
	g := NewWithT(t)
	if given := os.Getenv("OOOI_TEST_ARGS"); given != "" {
		root := Root()
		root.SetArgs(strings.Split(given, "\n"))
		if err := root.Execute(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(ExitCode(err))
		}
		os.Exit(0)
	}
	process := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	process.Stderr = t.Output()
	process.Env = append(os.Environ(), "OOOI_TEST_ARGS="+strings.Join(args, "\n"))
	stdin, err := process.StdinPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(process.Start()).To(Succeed())
	ended := make(chan error, 1)
	go func() { ended <- process.Wait() }()
	t.Cleanup(func() { _ = process.Process.Kill() })
	return stdin, func(s os.Signal) (how error) {
		g.Expect(process.Process.Signal(s)).To(Succeed())
		g.Eventually(ended, 20*time.Second).Should(Receive(&how))
		return how
	}
}

// A command that ignores its context ends like any process. The input exceeds a pipe's buffer, so writing it all means that it is being
// read.
func TestRenderEndsAtASignal(t *testing.T) {
	stdin, signalled := asProcess(t, "render", "--image", "oooi:1", "--envoy-image", "envoy:1", "-f", "-")
	g := NewWithT(t)
	_, err := stdin.Write(bytes.Repeat([]byte("# a comment\n"), 1<<16))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(signalled(syscall.SIGTERM)).To(MatchError("signal: terminated"))
}

func TestAServiceFinishesAtASignal(t *testing.T) {
	g, dir := NewWithT(t), t.TempDir()
	file, socket := filepath.Join(dir, "proxyserver.yaml"), filepath.Join(dir, "xds.sock")
	example := strings.ReplaceAll(exampleOf(t, "../docs/PROXY_SETUP.md"), "192.168.100.10", "127.0.0.1")
	g.Expect(os.WriteFile(file, []byte(example), 0o600)).To(Succeed())
	_, signalled := asProcess(t, "proxy", "--config-file", file, "--xds-socket", socket, "--health-address", "127.0.0.1:18092")
	g.Eventually(socket, 20*time.Second).Should(BeAnExistingFile())
	g.Expect(signalled(os.Interrupt)).To(Succeed())
}

// cannotBegin runs oooi without a kubeconfig, which is unusable, and says so in place of a result.
func cannotBegin(t *testing.T, says string, args []string) {
	t.Helper()
	g := NewWithT(t)
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	var out bytes.Buffer
	root := Root()
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	err := root.Execute()
	g.Expect(err).To(MatchError(ContainSubstring(says)))
	g.Expect(ExitCode(err)).To(Equal(unusable))
	g.Expect(out.String()).To(BeEmpty(), "nothing is said in place of a result")
}
