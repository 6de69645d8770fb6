package link

import (
	"net"
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
)

var loopback = netip.MustParseAddr("127.0.0.1")

// opened is a socket on a port that the kernel chooses, since only a pod (or root) may have 67.
func opened(t *testing.T) (*Socket, netip.AddrPort) {
	t.Helper()
	s, err := listen(t.Context(), loopback, 0)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = s.Close() })
	return s, netip.AddrPortFrom(loopback, uint16(s.conn.LocalAddr().(*net.UDPAddr).Port))
}

func TestTheSocketIsBoundToItsDevice(t *testing.T) {
	s, _ := opened(t)
	raw, err := s.conn.SyscallConn()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	var device string
	NewWithT(t).Expect(raw.Control(func(fd uintptr) {
		device, err = unix.GetsockoptString(int(fd), unix.SOL_SOCKET, unix.SO_BINDTODEVICE)
	})).To(Succeed())
	NewWithT(t).Expect(device, err).To(Equal("lo"))
}

func TestTwoServersCannotShareAPort(t *testing.T) {
	_, at := opened(t)
	_, err := listen(t.Context(), loopback, at.Port())
	NewWithT(t).Expect(err).To(MatchError(unix.EADDRINUSE))
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("`ss -lunp 'sport = :%d'`, run as root, names the process that has the port; stop it", at.Port())))
}

func TestTheServersAddressMovesOnItsDevice(t *testing.T) {
	g := NewWithT(t)
	s, at := opened(t)
	moved := netip.MustParseAddr("127.0.0.2")
	s.Move(moved)
	g.Expect(s.Send([]byte("hello"), at)).To(Succeed())
	p, err := s.Receive()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(p.From.Addr()).To(Equal(moved))
	g.Expect(s.Serves(loopback)).To(BeTrue())
	g.Expect(s.Serves(netip.MustParseAddr("192.0.2.1"))).To(BeFalse(), "no device carries it")
}

func TestPacketsShareABuffer(t *testing.T) {
	g := NewWithT(t)
	s, at := opened(t)
	receives := func(text string) *byte {
		g.Expect(s.Send([]byte(text), at)).To(Succeed())
		p, err := s.Receive()
		g.Expect(string(p.Data), err).To(Equal(text))
		return &p.Data[0]
	}
	g.Expect(receives("hello")).To(BeIdenticalTo(receives("bye")))
}

func TestAPacketCarriesTheKernelsTime(t *testing.T) {
	g := NewWithT(t)
	s, at := opened(t)
	sent := time.Now()
	g.Expect(s.Send([]byte("hello"), at)).To(Succeed())
	p, err := s.Receive()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(p.Data)).To(Equal("hello"))
	g.Expect(p.From.Addr()).To(Equal(loopback))
	g.Expect(p.Received).To(BeTemporally("~", sent, time.Second))
}

func TestAnAddressThatNoDeviceHas(t *testing.T) {
	_, err := Listen(t.Context(), netip.MustParseAddr("192.0.2.1"))
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("no network device carries 192.0.2.1")))
}
