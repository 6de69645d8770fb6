package link

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// How long a probe listens and how often it looks. A neighbour on the link answers ARP within a millisecond.
const (
	probeTime = 300 * time.Millisecond
	probeStep = 10 * time.Millisecond
)

// discard is the port of RFC 863: the datagram is only there to make the kernel ask who has the address.
const discard = 9

// ErrUndecided says that the neighbour table has an entry from before the probe: the kernel uses it, and checks only seconds later
// whether it still holds. A probe after that gets an answer.
var ErrUndecided = errors.New("the kernel has not asked yet whether an old neighbour still answers")

// Answers says whether somebody other than the client itself has an address: a datagram makes the kernel resolve it, and the neighbour
// table has the outcome. Unlike ARP or ICMP by hand it needs no capability. Only an answer after the probe counts (after the first, if
// some were undecided), because a host that has left stays in the table for long.
func (s *Socket) Answers(ctx context.Context, ip netip.Addr, client string) (bool, error) {
	asked := s.asks(ip)
	if err := s.Send(nil, netip.AddrPortFrom(ip, discard)); err != nil {
		return false, fmt.Errorf("probing: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	tick := time.NewTicker(probeStep)
	defer tick.Stop()
	for {
		n, err := s.neighbour(ip)
		if err != nil || n.mac == client || n.answered(asked) {
			s.decided(ip)
			return err == nil && n.mac != client, err
		}
		select {
		case <-ctx.Done():
			if n.mac != "" {
				return false, ErrUndecided
			}
			s.decided(ip)
			return false, nil
		case <-tick.C:
		}
	}
}

// forgetTime is longer than the kernel takes to ask an old neighbour: five seconds until it begins, then three attempts.
const forgetTime = 30 * time.Second

// asks notes that somebody wants to know, and says since when.
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

// neighbour is what the kernel knows of an address; the zero one of an address that did not answer, or not yet.
type neighbour struct {
	mac       string
	confirmed time.Time
}

// userTick is the unit in which Linux tells times to programs (USER_HZ).
const userTick = 10 * time.Millisecond

func (n neighbour) answered(since time.Time) bool {
	return n.mac != "" && !n.confirmed.Before(since.Add(-userTick))
}

// unanswered are the states of a neighbour that did not answer, or not yet.
const unanswered = unix.NUD_INCOMPLETE | unix.NUD_FAILED | unix.NUD_NONE

func (s *Socket) neighbour(ip netip.Addr) (neighbour, error) {
	table, err := netlink.NeighList(s.index, netlink.FAMILY_V4)
	if err != nil {
		return neighbour{}, fmt.Errorf("reading the neighbour table: %w", err)
	}
	now := time.Now()
	for _, n := range table {
		if at, ok := netip.AddrFromSlice(n.IP.To4()); ok && at == ip && n.State&^unanswered != 0 && len(n.HardwareAddr) > 0 {
			return neighbour{n.HardwareAddr.String(), now.Add(-time.Duration(n.Confirmed) * userTick)}, nil
		}
	}
	return neighbour{}, nil
}
