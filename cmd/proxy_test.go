package cmd

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/proxy/bootstrap"
)

// The example of docs/PROXY_SETUP.md works as it is, except for this machine's addresses.
func TestTheExampleOfTheProxySetupServes(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	file, socket := filepath.Join(dir, "proxyserver.yaml"), filepath.Join(dir, "xds.sock")
	api := backendOnThisHost(t)
	example := strings.NewReplacer("192.168.100.10", "127.0.0.1", `"10.0.0.21:6443", "10.0.0.22:6443"`, `"`+api+`"`,
		"port: 6443", "port: 16443", "port: 8443", "port: 18443").Replace(exampleOf(t, "../docs/PROXY_SETUP.md"))
	g.Expect(os.WriteFile(file, []byte(example), 0o600)).To(Succeed())

	sidecar := newProxyCommand()
	sidecar.SetArgs([]string{"--config-file", file, "--xds-socket", socket, "--health-address", "127.0.0.1:18091"})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- sidecar.ExecuteContext(ctx) }()
	t.Cleanup(func() {
		stop()
		NewWithT(t).Expect(<-ended).To(Succeed())
	})

	printer, printed := newProxyCommand(), &bytes.Buffer{}
	printer.SetOut(printed)
	printer.SetArgs([]string{"bootstrap", "--config-file", file, "--xds-socket", socket})
	g.Expect(printer.Execute()).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(dir, "bootstrap.yaml"), printed.Bytes(), 0o600)).To(Succeed())
	startEnvoy(t, filepath.Join(dir, "bootstrap.yaml"))

	g.Eventually(func() (int, error) {
		answer, err := http.Get("http://127.0.0.1:18091/readyz")
		if err != nil {
			return 0, err
		}
		return answer.StatusCode, answer.Body.Close()
	}, 20*time.Second).Should(Equal(http.StatusOK))
	handshake := func(port, name string) error {
		conn, err := tls.Dial("tcp", "127.0.0.1:"+port, &tls.Config{ServerName: name, InsecureSkipVerify: true})
		if err == nil {
			err = conn.Close()
		}
		return err
	}
	g.Eventually(func() error { return handshake("16443", "api.c1.example.com") }).Should(Succeed())
	g.Expect(handshake("16443", "kubernetes.default.svc")).To(Succeed())
	g.Expect(handshake("18443", "elsewhere.example.com")).NotTo(Succeed())
}

// exampleOf is the first YAML block of a page.
func exampleOf(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(text)
	NewWithT(t).Expect(block).To(HaveLen(2))
	return string(block[1])
}

// backendOnThisHost is a TLS server on an address other than loopback, which the proxy refuses to dial.
func backendOnThisHost(t *testing.T) string {
	t.Helper()
	addrs, err := net.InterfaceAddrs()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, a := range addrs {
		p, err := netip.ParsePrefix(a.String())
		if err != nil || !p.Addr().Is4() || !p.Addr().IsGlobalUnicast() {
			continue
		}
		server := httptest.NewUnstartedServer(http.NotFoundHandler())
		NewWithT(t).Expect(server.Listener.Close()).To(Succeed())
		server.Listener, err = net.Listen("tcp", netip.AddrPortFrom(p.Addr(), 0).String())
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		server.StartTLS()
		t.Cleanup(server.Close)
		return server.Listener.Addr().String()
	}
	t.Fatal("this machine has no address but loopback; this test needs one to put a backend on")
	return ""
}

func envoyBinary(t *testing.T) string {
	t.Helper()
	binary := os.Getenv("OOOI_ENVOY")
	if binary == "" {
		t.Fatal("OOOI_ENVOY is not set: run `make test`, or set it to the path of an Envoy 1.40 binary")
	}
	return binary
}

func startEnvoy(t *testing.T, file string) {
	t.Helper()
	envoy := exec.Command(envoyBinary(t), bootstrap.Arguments(file)...)
	output := &bytes.Buffer{}
	envoy.Stdout, envoy.Stderr = output, output
	NewWithT(t).Expect(envoy.Start()).To(Succeed())
	t.Cleanup(func() {
		_ = envoy.Process.Kill()
		_ = envoy.Wait() // it was just killed
		if t.Failed() {
			t.Logf("Envoy said:\n%s", output)
		}
	})
}

func TestTheProxyWantsToKnowItsConfiguration(t *testing.T) {
	cmd := newProxyCommand()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs([]string{"--namespace", "tenants"})
	NewWithT(t).Expect(cmd.Execute()).To(MatchError("name the ProxyServer: set --namespace and --proxy-name, or --config-file"))

	cmd = newProxyCommand()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs([]string{"--config-file", "absent", "--instance", "-1"})
	NewWithT(t).Expect(cmd.Execute()).To(MatchError("--instance=-1: instances are numbered from 0, e.g. --instance=1"))
}

func TestTheBootstrapOfAPodIsReadableByEnvoysUser(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	template, output := filepath.Join(dir, "template.yaml"), filepath.Join(dir, "bootstrap.yaml")
	g.Expect(os.WriteFile(template, []byte(bootstrap.Template("tenants", "c1-proxy")), 0o600)).To(Succeed())
	t.Setenv("ENVOY_MEMORY_LIMIT", "134217728")
	cmd := newProxyCommand()
	cmd.SetArgs([]string{"bootstrap", "--template", template, "--output", output, "--xds-socket", "/xds/xds.sock"})
	g.Expect(cmd.Execute()).To(Succeed())
	info, err := os.Stat(output)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode().Perm()).To(BeEquivalentTo(0o644))
	content, err := os.ReadFile(output)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(content)).To(ContainSubstring(`max_active_downstream_connections: "157"`), "what 64 MiB above Envoy's own hold")
}

func TestABootstrapIsMadeOfSomethingThatIsUnderstood(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "proxyserver.yaml")
	bootstrapOf := func(content, flag string) error {
		g.Expect(os.WriteFile(file, []byte(content), 0o600)).To(Succeed())
		cmd := newProxyCommand()
		cmd.SetOut(&bytes.Buffer{})
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs([]string{"bootstrap", flag, file})
		return cmd.Execute()
	}
	g.Expect(bootstrapOf("", "--config-file")).To(MatchError(ContainSubstring("it is empty")))
	g.Expect(bootstrapOf("\n", "--template")).To(MatchError(ContainSubstring("it is empty")))
	g.Expect(bootstrapOf("kind: DNSServer", "--config-file")).To(MatchError(ContainSubstring("expected a ProxyServer")))
	t.Setenv("ENVOY_MEMORY_LIMIT", "512Mi")
	g.Expect(bootstrapOf("kind: ProxyServer", "--config-file")).To(MatchError(`ENVOY_MEMORY_LIMIT: "512Mi" is not a number of bytes, e.g. 536870912`))
}
