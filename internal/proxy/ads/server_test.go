package ads

import (
	"net"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestASocketIsServedByOneProxy(t *testing.T) {
	g, socket := NewWithT(t), filepath.Join(t.TempDir(), "run", "xds.sock")
	first, err := Listen(socket)
	g.Expect(err).NotTo(HaveOccurred())

	_, err = Listen(socket)
	g.Expect(err).To(MatchError(ContainSubstring("another oooi proxy serves this socket")))
	conn, err := net.Dial("unix", socket)
	g.Expect(err).NotTo(HaveOccurred(), "the first proxy serves on")
	g.Expect(conn.Close()).To(Succeed())

	g.Expect(first.Close()).To(Succeed())
	next, err := Listen(socket)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(next.Close()).To(Succeed())
}

func TestTheSocketOfADeadProxyIsTakenOver(t *testing.T) {
	g, socket := NewWithT(t), filepath.Join(t.TempDir(), "xds.sock")
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket})
	g.Expect(err).NotTo(HaveOccurred())
	dead.SetUnlinkOnClose(false)
	g.Expect(dead.Close()).To(Succeed())

	listener, err := Listen(socket)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(listener.Close()).To(Succeed())
}
