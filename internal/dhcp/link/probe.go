package link

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/cldmnky/oooi/internal/vlan"
)

// How long a probe listens: a neighbour on the link answers ARP within a millisecond, a busy one later. WaitAgain is for an address at which
// nobody answered a little while ago: only a host that came since can be heard.
const (
	Wait      = 300 * time.Millisecond
	WaitAgain = 20 * time.Millisecond
)

// questionsMost bounds the addresses that we have the kernel ask for at a time, each for questionTime: its table of neighbours is the node's,
// and has 1,024 by default (net.ipv4.neigh.default.gc_thresh3). A full one costs not only probes: it loses replies, for which the broadcast
// address needs an entry, too. Probes for clients that we do not know, and those ahead, have only a part of them: among those of a flood, which
// come at any rate, a known machine's would wait until it is too late (test/bench/run floods).
const (
	questionsMost       = 512
	questionsOfUnknowns = 384
	questionTime        = 3 * time.Second
)

// looks is how often a probe reads the neighbour table while it listens.
const looks = 5

// discard is the port of RFC 863: the datagram only makes the kernel ask who has the address.
const discard = 9

// ErrUndecided says that the neighbour table has an entry from before the probe: the kernel uses it, and checks it only seconds later. A probe
// after that gets an answer.
var ErrUndecided = errors.New("the kernel has not asked yet whether an old neighbour still answers")

// Answers says whether a host other than the client has an address: a datagram makes the kernel resolve it, and the neighbour table has the
// outcome. Unlike ARP or ICMP by hand, this needs no capability. An answer counts only after the probe began (the first one, if some were
// undecided), because a host that has left stays in the table for long. Silence counts only after an ARP request that was sent since the probe
// began: if the kernel is asking already, its next request may be a second away, and a host that took the address meanwhile hears nothing of a
// queued datagram. While as many are asked for as may be, a probe waits, and a short one is left out: its address was found vacant minutes ago.
func (s *Socket) Answers(ctx context.Context, ip netip.Addr, client string, known bool, wait time.Duration) (bool, error) {
	for !s.mayAsk(known) {
		if wait <= WaitAgain {
			return false, nil
		}
		select {
		case <-ctx.Done():
			return false, fmt.Errorf("asking who has %s: too many others are asked for: %w", ip, ctx.Err())
		case <-time.After(wait / looks):
		}
	}
	since := s.asks(ip)
	before, err := s.neighbour(ip)
	err = errors.Join(err, s.ask(ip))
	var asked time.Time
	tick := time.NewTicker(wait / looks)
	defer tick.Stop()
	for err == nil {
		n, unread := s.neighbour(ip)
		switch {
		case unread != nil:
			return false, unread
		case n.mac != "" && n.mac == client || n.answered(since):
			s.decided(ip)
			return n.mac != client, nil
		case asked.IsZero() && (!before.isAsked || n.questions > before.questions):
			asked, before = time.Now(), n
		case asked.IsZero() && !n.isAsked: // the kernel gave up, and dropped our datagram
			before, err = n, s.ask(ip)
		case !asked.IsZero() && time.Since(asked) >= wait:
			if n.mac != "" {
				return false, ErrUndecided
			}
			s.decided(ip)
			return false, nil
		}
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-tick.C:
		}
	}
	return false, fmt.Errorf("asking who has %s: %w", ip, err)
}

// mayAsk notes a question, unless there are too many.
func (s *Socket) mayAsk(known bool) bool {
	most := questionsOfUnknowns
	if known {
		most = questionsMost
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.questions = slices.DeleteFunc(s.questions, func(at time.Time) bool { return now.Sub(at) > questionTime })
	if len(s.questions) >= most {
		return false
	}
	s.questions = append(s.questions, now)
	return true
}

// ask sends from a socket of its own: if nobody answers, the kernel keeps the datagram for three seconds, and some 280 of them fill the buffer
// of a socket, whose replies would then wait. Without IP_RECVERR, Linux says nothing of a datagram that found no room (net/ipv4/udp.c,
// udp_send_skb), so nobody would be asked, and silence would count.
func (s *Socket) ask(ip netip.Addr) error {
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var set error
		err := raw.Control(func(fd uintptr) { set = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_RECVERR, 1) })
		return errors.Join(vlan.BindToDevice(raw, s.device), err, set)
	}}
	conn, err := config.ListenPacket(context.Background(), "udp4", "0.0.0.0:0")
	if err != nil {
		return fmt.Errorf("opening a socket: %w", err)
	}
	defer func() { _ = conn.Close() }()
	return s.sendBy(conn.(*net.UDPConn), nil, netip.AddrPortFrom(ip, discard))
}

// forgetTime is longer than the kernel takes to check an old neighbour: five seconds until it begins, then three attempts.
const forgetTime = 30 * time.Second

// asks notes the probe of an address, and returns when its first undecided probe began.
func (s *Socket) asks(ip netip.Addr) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(s.asked, func(_ netip.Addr, since time.Time) bool { return now.Sub(since) > forgetTime })
	if _, before := s.asked[ip]; !before {
		s.asked[ip] = now
	}
	return s.asked[ip]
}

func (s *Socket) decided(ip netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.asked, ip)
}

// neighbour is the kernel's entry for an address; zero if there is none.
type neighbour struct {
	mac       string // empty if nobody has answered
	confirmed time.Time
	isAsked   bool   // the kernel waits for an answer
	questions uint32 // sent since the kernel began to ask
}

// userTick is the unit in which Linux tells times to programs (USER_HZ).
const userTick = 10 * time.Millisecond

func (n neighbour) answered(since time.Time) bool {
	return n.mac != "" && !n.confirmed.Before(since.Add(-userTick))
}

// neighbour reads one entry, because the table is the whole node's and may be large.
func (s *Socket) neighbour(ip netip.Addr) (neighbour, error) {
	request := nl.NewNetlinkRequest(unix.RTM_GETNEIGH, 0)
	request.AddData(&netlink.Ndmsg{Family: unix.AF_INET, Index: uint32(s.index)})
	request.AddData(nl.NewRtAttr(unix.NDA_DST, ip.AsSlice()))
	found, err := request.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWNEIGH)
	switch {
	case errors.Is(err, unix.ENOENT) || err == nil && len(found) == 0:
		return neighbour{}, nil
	case err != nil:
		return neighbour{}, fmt.Errorf("reading the neighbour table: %w", err)
	}
	return readNeighbour(found[0])
}

func readNeighbour(message []byte) (neighbour, error) {
	entry, err := netlink.NeighDeserialize(message)
	if err != nil {
		return neighbour{}, fmt.Errorf("reading a neighbour: %w", err)
	}
	n := neighbour{
		mac: entry.HardwareAddr.String(), confirmed: time.Now().Add(-time.Duration(entry.Confirmed) * userTick),
		isAsked: entry.State&unix.NUD_INCOMPLETE != 0,
	}
	attributes, err := nl.ParseRouteAttr(message[new(netlink.Ndmsg).Len():])
	for _, a := range attributes {
		if a.Attr.Type == unix.NDA_PROBES && len(a.Value) >= 4 {
			n.questions = binary.NativeEndian.Uint32(a.Value)
		}
	}
	return n, err
}
