package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/cldmnky/oooi/api/v1alpha1"
	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/proxy/bootstrap"
	"github.com/cldmnky/oooi/internal/testkit/backend"
	"github.com/cldmnky/oooi/internal/testkit/ports"
)

// vip is where the proxies of these tests listen. Their targets have other addresses, since loopback is never dialled.
const vip = "127.0.0.1"

// lab is one proxy with its real Envoy.
type lab struct {
	t      *testing.T
	dir    string
	server *v1alpha1.ProxyServer
	proxy  *Proxy
	stop   func() // stops the sidecar
	logs   *events
	envoy  *exec.Cmd

	xdsPort     int
	descriptors uint64 // that Envoy may have open
	probePause  time.Duration
	memory      int64 // that Envoy may have; 0 is no limit
}

// events are the sidecar's logs, by message.
type events struct {
	mu    sync.Mutex
	lines []map[string]any
}

func (e *events) Write(line []byte) (int, error) {
	var event map[string]any
	if err := json.Unmarshal(line, &event); err != nil {
		return 0, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lines = append(e.lines, event)
	return len(line), nil
}

func (e *events) status() (last map[string]any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, line := range e.lines {
		if line["msg"] == "status" {
			last = line["status"].(map[string]any)["status"].(map[string]any)
		}
	}
	return last
}

func (e *events) said() (all []any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, line := range e.lines {
		all = append(all, line["msg"])
	}
	return all
}

// condition is the newest ConfigAccepted: its status, reason and message.
func (l *lab) condition() string {
	conditions, _ := l.logs.status()["conditions"].([]any)
	for _, c := range conditions {
		c := c.(map[string]any)
		return fmt.Sprint(c["status"], " ", c["reason"], ": ", c["message"])
	}
	return ""
}

// newLab starts a sidecar in file mode and an Envoy, and waits until it is ready.
func newLab(t *testing.T, backends ...v1alpha1.ProxyBackend) *lab {
	l := prepareLab(t, backends...)
	l.startSidecar(nil)
	l.startEnvoy()
	l.awaitReady()
	return l
}

func prepareLab(t *testing.T, backends ...v1alpha1.ProxyBackend) *lab {
	t.Helper()
	l := &lab{t: t, dir: t.TempDir(), logs: &events{}, server: &v1alpha1.ProxyServer{}, descriptors: 4096}
	l.server.Namespace, l.server.Name = "tenants", "c1-proxy"
	l.server.Spec.NetworkConfig.ServerIP = vip
	l.server.Spec.NetworkConfig.NetworkAttachmentDefinition = "none"
	l.serves(backends...)
	return l
}

func (l *lab) serves(backends ...v1alpha1.ProxyBackend) {
	l.t.Helper()
	l.server.Spec.Backends = backends
	content, err := yaml.Marshal(l.server)
	NewWithT(l.t).Expect(err).NotTo(HaveOccurred())
	NewWithT(l.t).Expect(daemon.WriteFile(l.file("proxy.yaml"), content)).To(Succeed())
}

func (l *lab) file(name string) string { return filepath.Join(l.dir, name) }

// startSidecar runs the sidecar from the file, or from a cluster.
func (l *lab) startSidecar(c client.WithWatch) {
	ctx, stop := context.WithCancel(context.Background())
	o := Options{XDSSocket: l.file("xds.sock"), Log: slog.New(slog.NewJSONHandler(l.logs, nil))}
	o.StateDir, o.Connections, o.XDSPort = l.dir, l.connections(), l.xdsPort
	if c == nil {
		o.ConfigFile = l.file("proxy.yaml")
	} else {
		o.Namespace, o.Name = l.server.Namespace, l.server.Name
	}
	l.proxy = newProxy(o, c)
	if l.probePause > 0 {
		l.proxy.probes.pause = l.probePause
	}
	ended := make(chan error, 1)
	go func() { ended <- l.proxy.run(ctx, c) }()
	l.stop = sync.OnceFunc(func() {
		stop()
		if err := <-ended; err != nil {
			l.t.Errorf("the sidecar ended with: %v", err)
		}
	})
	l.t.Cleanup(l.stop)
}

// connections that Envoy may have.
func (l *lab) connections() int64 {
	l.t.Helper()
	n, err := bootstrap.Limits{Descriptors: l.descriptors}.Connections()
	NewWithT(l.t).Expect(err).NotTo(HaveOccurred())
	return n
}

// startEnvoy starts the real Envoy within its number of file descriptors.
func (l *lab) startEnvoy() {
	l.t.Helper()
	g := NewWithT(l.t)
	content, err := bootstrap.Complete(bootstrap.Template(l.server.Namespace, l.server.Name), bootstrap.Machine{XDSSocket: l.file("xds.sock"), Connections: l.connections(), MemoryBytes: l.memory})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(l.file("bootstrap.yaml"), content, 0o600)).To(Succeed())
	limited := fmt.Sprintf("ulimit -n %d && exec \"$0\" \"$@\"", l.descriptors)
	l.envoy = exec.Command("sh", append([]string{"-c", limited, envoyBinary(l.t)}, bootstrap.Arguments(l.file("bootstrap.yaml"))...)...)
	l.envoy.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	output := &tail{}
	l.envoy.Stdout, l.envoy.Stderr = output, output
	g.Expect(l.envoy.Start()).To(Succeed())
	l.t.Cleanup(func() {
		_ = l.envoy.Process.Kill()
		_ = l.envoy.Wait() // killed just now
		if l.t.Failed() {
			l.t.Logf("Envoy said:\n%s", output.text())
		}
	})
}

// tail keeps what a process wrote.
type tail struct {
	mu      sync.Mutex
	content []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.content = append(t.content, p...)
	return len(p), nil
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.content[max(0, len(t.content)-4000):])
}

func envoyBinary(t *testing.T) string {
	t.Helper()
	path := os.Getenv("OOOI_ENVOY")
	if path == "" {
		t.Fatal("OOOI_ENVOY is not set: run `make test`, or set it to the path of an Envoy 1.40 binary")
	}
	return path
}

func (l *lab) awaitReady() {
	l.t.Helper()
	NewWithT(l.t).Eventually(func() error {
		l.proxy.ready.Set(daemon.CheckForwarding, nil) // this machine's loopback device is no VLAN
		return l.proxy.ready.Problem()
	}, 20*time.Second).Should(Succeed())
}

// awaitAccepted waits until Envoy has accepted the newest file.
func (l *lab) awaitAccepted() {
	l.t.Helper()
	want := len(l.server.Spec.Backends)
	NewWithT(l.t).Eventually(func() bool {
		l.proxy.mu.Lock()
		defer l.proxy.mu.Unlock()
		return l.proxy.ads.Verdict().Accepted && len(l.proxy.told.Backends) == want && l.proxy.refused == nil
	}, 10*time.Second).Should(BeTrue())
}

// hostAddress is an address of this machine that the proxy may dial.
func hostAddress(t *testing.T) netip.Addr {
	t.Helper()
	addrs, err := net.InterfaceAddrs()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && p.Addr().IsGlobalUnicast() {
			return p.Addr()
		}
	}
	t.Fatal("this machine has no address but loopback; these tests need one to put backends on")
	return netip.Addr{}
}

// target is a TLS server with its name in its certificate, which echoes lines.
type target struct {
	name     string
	listener net.Listener
}

func newTarget(t *testing.T, name string) target {
	t.Helper()
	return newTargetAt(t, name, netip.AddrPortFrom(hostAddress(t), 0))
}

func newTargetAt(t *testing.T, name string, at netip.AddrPort) target {
	t.Helper()
	listener, err := tls.Listen("tcp", at.String(), &tls.Config{Certificates: []tls.Certificate{backend.Certificate(t, name, nil)}})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return answering(t, name, listener, func(conn net.Conn) { _, _ = io.Copy(conn, conn) }) // until the client hangs up
}

// newPlainTarget makes a target without TLS. A connection is closed after answer.
func newPlainTarget(t *testing.T, name string, answer func(net.Conn)) target {
	t.Helper()
	listener, err := net.Listen("tcp", netip.AddrPortFrom(hostAddress(t), 0).String())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return answering(t, name, listener, answer)
}

func answering(t *testing.T, name string, listener net.Listener, answer func(net.Conn)) target {
	backend.Serve(t, listener, answer)
	return target{name, listener}
}

func (t target) address() string { return t.listener.Addr().String() }

func freePort(t *testing.T) v1alpha1.Port {
	t.Helper()
	return v1alpha1.Port(ports.Free(t))
}

// stream is one client's connection through the proxy.
type stream struct {
	*tls.Conn
	lines *bufio.Reader
}

// open connects through the proxy with a server name ("" sends none).
func open(port v1alpha1.Port, serverName string) (*stream, error) {
	return openFrom(vip, port, serverName)
}

// from dials from a source address: this machine has all of 127.0.0.0/8.
func from(source string) *net.Dialer {
	return &net.Dialer{Timeout: 5 * time.Second, LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}}
}

func openFrom(source string, port v1alpha1.Port, serverName string) (*stream, error) {
	dialer := from(source)
	conn, err := tls.DialWithDialer(dialer, "tcp", net.JoinHostPort(vip, fmt.Sprint(port)), &tls.Config{ServerName: serverName, InsecureSkipVerify: true})
	if err != nil {
		return nil, err
	}
	return &stream{conn, bufio.NewReader(conn)}, nil
}

func mustOpen(t *testing.T, port v1alpha1.Port, serverName string) *stream {
	t.Helper()
	s, err := open(port, serverName)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// reaches returns the name of the target that answered.
func (s *stream) reaches() string { return s.ConnectionState().PeerCertificates[0].Subject.CommonName }

// alive sends a line and reads it back.
func (s *stream) alive() error {
	if err := s.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return err
	}
	if _, err := s.Write([]byte("alive\n")); err != nil {
		return err
	}
	_, err := s.lines.ReadString('\n')
	return err
}

// reached opens a connection and returns the name of the target that answered.
func reached(port v1alpha1.Port, serverName string) (string, error) {
	s, err := open(port, serverName)
	if err != nil {
		return "", err
	}
	defer s.Close()
	return s.reaches(), nil
}

// route leads server names on a port to a target.
func route(name string, port v1alpha1.Port, to target, hostnames ...v1alpha1.DNSNameOrWildcard) v1alpha1.ProxyBackend {
	b := v1alpha1.ProxyBackend{Name: name, Port: port, Protocol: v1alpha1.ProtocolTLS, TargetAddresses: []string{to.address()}}
	if len(hostnames) > 0 {
		b.Hostname, b.AlternateHostnames = hostnames[0], hostnames[1:]
	}
	return b
}

func catchAll(b v1alpha1.ProxyBackend) v1alpha1.ProxyBackend {
	b.CatchAll = true
	return b
}
