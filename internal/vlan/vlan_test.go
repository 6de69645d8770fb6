package vlan

import (
	"context"
	"net"
	"net/netip"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
)

func TestAnAddressLeadsToItsDevice(t *testing.T) {
	g := NewWithT(t)
	g.Expect(InterfaceOf(netip.MustParseAddr("127.0.0.1"))).To(Equal("lo"))
	g.Expect(InterfaceOf(netip.MustParseAddr("::ffff:127.0.0.1"))).To(Equal("lo"))
	_, err := InterfaceOf(netip.MustParseAddr("192.0.2.1"))
	g.Expect(err).To(MatchError(ContainSubstring("no network device carries 192.0.2.1")))
}

func TestSocketsAreBoundToAddressAndDevice(t *testing.T) {
	at := netip.MustParseAddrPort("127.0.0.1:0")
	tcp, err := ListenTCP(t.Context(), at)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	defer tcp.Close()
	udp, err := ListenUDP(t.Context(), at)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	defer udp.Close()
	for name, socket := range map[string]syscall.Conn{"tcp": tcp.(*net.TCPListener), "udp": udp} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(deviceOf(t, socket)).To(Equal("lo")) })
	}
}

func TestAWildcardIsRefused(t *testing.T) {
	for _, at := range []netip.AddrPort{{}, netip.MustParseAddrPort("0.0.0.0:8081"), netip.MustParseAddrPort("[::]:8081")} {
		t.Run(at.String(), func(t *testing.T) {
			_, err := ListenTCP(context.Background(), at)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring("give one address and a port")))
		})
	}
}

func TestForwardingNeedsADevice(t *testing.T) {
	g := NewWithT(t)
	_, err := Forwarding("lo")
	g.Expect(err).NotTo(HaveOccurred())
	_, err = Forwarding("absent0")
	g.Expect(err).To(MatchError(ContainSubstring("reading whether absent0 forwards")))
}

func deviceOf(t *testing.T, socket syscall.Conn) (device string) {
	t.Helper()
	g := NewWithT(t)
	raw, err := socket.SyscallConn()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(raw.Control(func(fd uintptr) {
		device, err = unix.GetsockoptString(int(fd), unix.SOL_SOCKET, unix.SO_BINDTODEVICE)
	})).To(Succeed())
	g.Expect(err).NotTo(HaveOccurred())
	return device
}
