package proxy

import (
	"log/slog"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/proxy/intent"
)

// newDeaf listens, but answers no connection: its accept queue is full.
func newDeaf(t *testing.T) netip.AddrPort {
	t.Helper()
	g := NewWithT(t)
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = syscall.Close(fd) })
	g.Expect(syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})).To(Succeed())
	g.Expect(syscall.Listen(fd, 0)).To(Succeed())
	bound, err := syscall.Getsockname(fd)
	g.Expect(err).NotTo(HaveOccurred())
	at := netip.AddrPortFrom(netip.MustParseAddr(vip), uint16(bound.(*syscall.SockaddrInet4).Port))
	conn, err := net.Dial("tcp", at.String()) // Linux queues one more than asked for
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = conn.Close() })
	return at
}

func TestNoUpdateWaitsWhileTheListenersAreTried(t *testing.T) {
	g := NewWithT(t)
	l := prepareLab(t)
	p := newProxy(Options{XDSSocket: l.file("xds.sock"), Log: slog.New(slog.DiscardHandler)}, nil)
	for range 5 {
		p.told.Listeners = append(p.told.Listeners, intent.Listener{At: newDeaf(t)})
	}
	begun, ended := time.Now(), make(chan struct{})
	go func() { defer close(ended); p.reportOnce(t.Context()) }()
	longest := time.Duration(0)
	for tried := false; !tried; {
		asked := time.Now()
		p.mu.Lock()
		longest = max(longest, time.Since(asked))
		p.mu.Unlock()
		select {
		case <-ended:
			tried = true
		case <-time.After(time.Millisecond):
		}
	}
	g.Expect(longest).To(BeNumerically("<", dialPatience/2), "what an update waited")
	g.Expect(time.Since(begun)).To(BeNumerically(">=", dialPatience), "the listeners were tried meanwhile")
	g.Expect(time.Since(begun)).To(BeNumerically("<", 3*dialPatience), "all at once")
	g.Expect(p.ready.Problem()).To(MatchError(ContainSubstring("does not answer")))
}
