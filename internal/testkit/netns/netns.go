//go:build netns

// Package netns gives a test hosts of its own: network namespaces with veth pairs between them, in which programs run as in a pod.
package netns

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netns"
)

// Hosts are those of one test, by short names.
type Hosts struct {
	t       *testing.T
	id, dir string
}

// New adds hosts with only a loopback device. They are removed when the test ends.
func New(t *testing.T, hosts ...string) *Hosts {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("these tests make network namespaces: run them as root (make test does)")
	}
	dir, err := os.MkdirTemp("", "oooi-netns-") // not t.TempDir, whose parent only root may enter
	if err == nil {
		err = os.Chmod(dir, 0o777)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	h := &Hosts{t: t, id: fmt.Sprintf("oooi%d", os.Getpid()), dir: dir}
	for _, host := range hosts {
		h.Add(host)
	}
	return h
}

// Add adds one more host.
func (h *Hosts) Add(host string) {
	h.t.Helper()
	h.Run("ip", "netns", "add", h.id+host)
	h.t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", h.id+host).Run() })
	h.In(host, "ip", "link", "set", "lo", "up")
}

// End is one end of a veth pair; its address is optional.
type End struct{ Host, Device, MAC, Address string }

// Join adds a veth pair.
func (h *Hosts) Join(a, b End) {
	h.t.Helper()
	h.In(a.Host, "ip", "link", "add", a.Device, "type", "veth", "peer", "name", b.Device, "netns", h.id+b.Host)
	for _, end := range []End{a, b} {
		if end.MAC != "" {
			h.In(end.Host, "ip", "link", "set", end.Device, "address", end.MAC)
		}
		if end.Address != "" {
			h.In(end.Host, "ip", "address", "add", end.Address, "dev", end.Device)
		}
		h.In(end.Host, "ip", "link", "set", end.Device, "up")
	}
	h.awaitUp(a)
	h.awaitUp(b)
}

// awaitUp: a device that has just got its carrier drops every packet until the kernel's workqueue has activated it
// (net/core/link_watch.c), which takes a while beside a load.
func (h *Hosts) awaitUp(end End) {
	h.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		state := strings.TrimSpace(h.In(end.Host, "cat", "/sys/class/net/"+end.Device+"/operstate"))
		if state == "up" {
			return
		}
		if time.Now().After(deadline) {
			h.t.Fatalf("device %s of host %s is %s, want up", end.Device, end.Host, state)
		}
	}
}

// Path is that of a file in a directory that every user may enter.
func (h *Hosts) Path(name string) string { return filepath.Join(h.dir, name) }

// Run runs a command to its end and returns its output; if it fails, so does the test.
func (h *Hosts) Run(name string, args ...string) string {
	h.t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		h.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// In runs a command on a host to its end.
func (h *Hosts) In(host string, command ...string) string {
	h.t.Helper()
	return h.Run("ip", append([]string{"netns", "exec", h.id + host}, command...)...)
}

// Command is a command on a host, to be started.
func (h *Hosts) Command(host string, command ...string) *exec.Cmd {
	return exec.Command("ip", append([]string{"netns", "exec", h.id + host}, command...)...)
}

// Pod is a command on a host as a pod runs it: without root and without any capability.
func (h *Hosts) Pod(host string, command ...string) *exec.Cmd {
	return h.Command(host, append([]string{
		"setpriv", "--reuid=65532", "--regid=65532", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs",
	}, command...)...)
}

// Start runs a program on a host as a pod runs it, with more in its environment, until the test ends.
func (h *Hosts) Start(host, program string, env ...string) *exec.Cmd {
	h.t.Helper()
	cmd := h.Pod(host, program)
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), h.t.Output()
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed just now
	})
	return cmd
}

// Self is this test's binary, in a directory where every user may run it: with configuration in its environment, it runs the daemon.
func (h *Hosts) Self() string {
	h.t.Helper()
	self, err := os.Executable()
	if err != nil {
		h.t.Fatal(err)
	}
	h.Run("install", "-m", "755", self, h.Path("oooi"))
	return h.Path("oooi")
}

// Enter runs a function on a host; sockets that it opens stay there.
func (h *Hosts) Enter(host string, do func()) {
	h.t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked, so that the thread, which stays in the namespace, ends with the goroutine
		handle, err := netns.GetFromName(h.id + host)
		if err == nil {
			defer handle.Close()
			err = netns.Set(handle)
		}
		if err != nil {
			h.t.Errorf("entering the namespace of %s: %v", host, err)
			return
		}
		do()
	}()
	<-done
}
