//go:build netns

package link

import (
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	"github.com/cldmnky/oooi/internal/testkit/netns"
)

const (
	guestMAC  = "52:54:00:00:00:50"
	clientMAC = "52:54:00:00:00:51"
)

// cable lies between a server and a guest that may or may not be there.
type cable struct {
	*netns.Hosts
	t      *testing.T
	socket *Socket
}

func newCable(t *testing.T) *cable {
	v := &cable{Hosts: netns.New(t, "srv", "guest"), t: t}
	v.Join(netns.End{Host: "srv", Device: "net1", Address: "192.168.77.2/24"}, netns.End{Host: "guest", Device: "net1", MAC: guestMAC, Address: "192.168.77.50/24"})
	v.In("srv", "sysctl", "-qw", "net.ipv4.neigh.net1.delay_first_probe_time=1") // instead of five seconds
	v.Enter("srv", func() {
		var err error
		v.socket, err = Listen(t.Context(), netip.MustParseAddr("192.168.77.2"))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
	})
	t.Cleanup(func() { _ = v.socket.Close() })
	return v
}

func (v *cable) answers() (answers bool, err error) {
	v.Enter("srv", func() {
		answers, err = v.socket.Answers(v.t.Context(), netip.MustParseAddr("192.168.77.50"), clientMAC, true, Wait)
	})
	return answers, err
}

func (v *cable) remembers(mac string) {
	v.In("srv", "ip", "neigh", "replace", "192.168.77.50", "lladdr", mac, "nud", "stale", "dev", "net1")
}

func TestWhoAnswersAProbe(t *testing.T) {
	g, v := NewWithT(t), newCable(t)
	g.Expect(v.answers()).To(BeTrue(), "there, and not known before")
	v.In("guest", "ip", "addr", "flush", "dev", "net1")
	v.In("srv", "ip", "neigh", "flush", "dev", "net1")
	g.Expect(v.answers()).To(BeFalse(), "gone, and forgotten")
}

func TestAnOldNeighbourIsNoAnswer(t *testing.T) {
	g, v := NewWithT(t), newCable(t)
	v.In("guest", "ip", "addr", "flush", "dev", "net1")
	v.remembers(guestMAC)
	_, err := v.answers()
	g.Expect(err).To(MatchError(ErrUndecided), "it had the address once")
	g.Eventually(v.answers, 10*time.Second, time.Second).Should(BeFalse(), "the kernel asked, and nobody answered")
}

func TestAnOldNeighbourThatIsStillThereAnswersInTheEnd(t *testing.T) {
	g, v := NewWithT(t), newCable(t)
	v.remembers(guestMAC)
	g.Eventually(v.answers, 10*time.Second, 2*time.Second).Should(BeTrue())
}

func TestTheClientsOwnAnswerIsNone(t *testing.T) {
	v := newCable(t)
	v.remembers(clientMAC)
	NewWithT(t).Expect(v.answers()).To(BeFalse())
}

// The kernel sends three ARP requests, one a second: a datagram between two of them waits for the next.
func TestWhoTookTheAddressSinceTheLastQuestionIsHeard(t *testing.T) {
	g, v := NewWithT(t), newCable(t)
	v.In("srv", "sysctl", "-qw", "net.ipv4.neigh.net1.retrans_time_ms=4000") // in place of a second
	v.In("guest", "ip", "addr", "flush", "dev", "net1")
	g.Expect(v.answers()).To(BeFalse())
	v.In("guest", "ip", "addr", "add", "192.168.77.50/24", "dev", "net1")
	g.Expect(v.answers()).To(BeTrue(), "between two questions")
}

func TestWhoTookTheAddressSinceTheKernelGaveUpIsHeard(t *testing.T) {
	g, v := NewWithT(t), newCable(t)
	v.In("srv", "sysctl", "-qw", "net.ipv4.neigh.net1.mcast_solicit=1") // instead of three
	v.In("guest", "ip", "addr", "flush", "dev", "net1")
	g.Expect(v.answers()).To(BeFalse())
	v.In("guest", "ip", "addr", "add", "192.168.77.50/24", "dev", "net1")
	g.Expect(v.answers()).To(BeTrue(), "the only question was before")
}

func TestASocketThatCannotAskSaysSo(t *testing.T) {
	v := newCable(t)
	v.In("srv", "ip", "link", "set", "net1", "down")
	_, err := v.answers()
	NewWithT(t).Expect(err).To(And(HaveOccurred(), Not(MatchError(ErrUndecided))))
}

func TestProbesThatNobodyAnswersHoldNoReplyUp(t *testing.T) {
	g, v := NewWithT(t), newCable(t)
	v.Enter("srv", func() { g.Expect(v.socket.ask(netip.MustParseAddr("192.168.77.99"))).To(Succeed()) })
	raw, err := v.socket.conn.SyscallConn()
	g.Expect(err).NotTo(HaveOccurred())
	waiting := -1
	g.Expect(raw.Control(func(fd uintptr) { waiting, err = unix.IoctlGetInt(int(fd), unix.TIOCOUTQ) })).To(Succeed())
	g.Expect([]any{waiting, err}).To(Equal([]any{0, nil}), "octets in the buffer that replies leave by")
}

// A queue of no packets stands for a neighbour table without room, which only a whole machine has: Linux reports both as ENOBUFS, or not at all.
func TestAQuestionThatFindsNoRoomIsNoSilence(t *testing.T) {
	v := newCable(t)
	v.remembers(guestMAC) // or the datagram would wait for an answer first
	v.In("srv", "tc", "qdisc", "add", "dev", "net1", "root", "pfifo", "limit", "0")
	_, err := v.answers()
	NewWithT(t).Expect(err).To(MatchError(unix.ENOBUFS))
}

func TestOfManyProbesOnlyShortOnesAreLeftOut(t *testing.T) {
	g, v := NewWithT(t), newCable(t)
	for range questionsMost {
		g.Expect(v.socket.mayAsk(true)).To(BeTrue())
	}
	v.Enter("srv", func() {
		g.Expect(v.socket.Answers(t.Context(), netip.MustParseAddr("192.168.77.50"), clientMAC, true, WaitAgain)).To(BeFalse(), "nobody was asked")
	})
	began := time.Now()
	g.Expect(v.answers()).To(BeTrue(), "asked, when there was room")
	g.Expect(time.Since(began)).To(BeNumerically(">", questionTime/2))
}

func TestProbesForUnknownClientsLeaveRoomForAKnownOne(t *testing.T) {
	g, s := NewWithT(t), &Socket{}
	for s.mayAsk(false) {
	}
	g.Expect(s.questions).To(HaveLen(questionsOfUnknowns))
	g.Expect(s.mayAsk(true)).To(BeTrue())
}
