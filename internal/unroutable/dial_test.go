package unroutable_test

import (
	"net"
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cldmnky/oooi/internal/unroutable"
)

func TestWhatANameResolvesToIsNotDialledIfItIsHere(t *testing.T) {
	g := NewWithT(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	g.Expect(err).NotTo(HaveOccurred())
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	g.Expect(err).NotTo(HaveOccurred())
	for _, host := range []string{"localhost", "127.0.0.1", "169.254.169.254", "::1"} {
		_, err := unroutable.DialRoutable(t.Context(), "tcp", net.JoinHostPort(host, port))
		g.Expect(err).To(MatchError(unroutable.ErrUnroutable), host)
	}
	g.Expect(listener.(*net.TCPListener).SetDeadline(time.Now())).To(Succeed())
	_, err = listener.Accept()
	g.Expect(err).To(HaveOccurred(), "nobody came")
}

func TestWhatIsElsewhereIsDialled(t *testing.T) {
	g := NewWithT(t)
	addresses, err := net.InterfaceAddrs()
	g.Expect(err).NotTo(HaveOccurred())
	for _, a := range addresses {
		prefix, err := netip.ParsePrefix(a.String())
		g.Expect(err).NotTo(HaveOccurred())
		if unroutable.Is(prefix.Addr()) {
			continue
		}
		listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: prefix.Addr().AsSlice()})
		if err != nil { // the address is not usable yet
			continue
		}
		defer listener.Close()
		conn, err := unroutable.DialRoutable(t.Context(), "tcp", listener.Addr().String())
		g.Expect(err).NotTo(HaveOccurred())
		conn.Close()
		return
	}
	t.Fatal("this machine has no address but those of its loopback: give it one")
}
