package proxy

import (
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/api/v1alpha1"
)

// newFlood makes a target that sends without end.
func newFlood(t *testing.T) target {
	t.Helper()
	return newPlainTarget(t, "flood", func(conn net.Conn) {
		var err error
		for block := make([]byte, 4<<10); err == nil; {
			_, err = conn.Write(block)
		}
	})
}

// readsNothing connects and lets data pile up in Envoy, not in the kernel. An error means that Envoy refused the connection.
func readsNothing(source string, port v1alpha1.Port) (net.Conn, error) {
	dialer := from(source)
	dialer.Control = func(_, _ string, c syscall.RawConn) (err error) {
		_ = c.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<10) })
		return err
	}
	conn, err := dialer.Dial("tcp", at(port))
	if err != nil {
		return nil, err
	}
	if err := conn.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return nil, err
	}
	_, err = conn.Read(make([]byte, 1))
	return conn, err
}

func TestClientsThatReadNothingDoNotEndEnvoy(t *testing.T) {
	g := NewWithT(t)
	a, port, plain := newTarget(t, "a"), freePort(t), freePort(t)
	l := prepareLab(t, route("a", port, a, "a.example.com"),
		v1alpha1.ProxyBackend{Name: "flood", Port: plain, TargetAddresses: []string{newFlood(t).address()}})
	l.memory, l.descriptors = 64<<20, 1<<14 // its heap is full before it has too many connections
	l.startSidecar(nil)
	l.startEnvoy()
	l.awaitReady()
	s := mustOpen(t, port, "a.example.com")
	var kept []net.Conn
	const most = 2000
	g.Eventually(func() bool { // what piles up may come later than the connections
		n := len(kept)
		conn, err := readsNothing(fmt.Sprintf("127.0.%d.%d", 1+n/250, 1+n%250), plain)
		switch {
		case err == nil && n < most:
			kept = append(kept, conn)
		case err == nil:
			_ = conn.Close()
		}
		return err != nil && l.counts("envoy_listener_downstream_cx_overload_reject")
	}).WithTimeout(time.Minute).WithPolling(time.Microsecond).Should(BeTrue(), "Envoy takes connections until its heap is full")
	t.Logf("%d connections were open when one was refused", len(kept))
	g.Expect(len(kept)).To(BeNumerically(">", 20))
	g.Expect(s.alive()).To(Succeed(), "what is there is not cut")
	for _, conn := range kept {
		g.Expect(conn.SetReadDeadline(time.Now().Add(10 * time.Second))).To(Succeed())
		_, err := conn.Read(make([]byte, 1))
		g.Expect(err).NotTo(HaveOccurred(), "what is there is not cut")
		g.Expect(conn.Close()).To(Succeed())
	}
	g.Eventually(func() (string, error) { return reached(port, "a.example.com") }, 20*time.Second).Should(Equal("a"))
	g.Expect(l.envoy.ProcessState).To(BeNil(), "Envoy lives")
}
