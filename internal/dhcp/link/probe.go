package link

import (
	"context"
	"fmt"
	"net"
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

// Answers says whether somebody other than the client itself has an address: a datagram makes the kernel resolve it, and
// the neighbour table tells the outcome. It needs no capability, as ARP or ICMP by hand would.
func (s *Socket) Answers(ctx context.Context, ip netip.Addr, client string) (bool, error) {
	if err := s.Send(nil, netip.AddrPortFrom(ip, discard)); err != nil {
		return false, fmt.Errorf("probing: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	tick := time.NewTicker(probeStep)
	defer tick.Stop()
	for {
		if mac, err := s.neighbour(ip); err != nil || mac != nil {
			return mac != nil && mac.String() != client, err
		}
		select {
		case <-ctx.Done():
			return false, nil
		case <-tick.C:
		}
	}
}

// unanswered are the states of a neighbour that did not answer, or not yet.
const unanswered = unix.NUD_INCOMPLETE | unix.NUD_FAILED | unix.NUD_NONE

func (s *Socket) neighbour(ip netip.Addr) (net.HardwareAddr, error) {
	table, err := netlink.NeighList(s.index, netlink.FAMILY_V4)
	if err != nil {
		return nil, fmt.Errorf("reading the neighbour table: %w", err)
	}
	for _, n := range table {
		if at, ok := netip.AddrFromSlice(n.IP.To4()); ok && at == ip && n.State&^unanswered != 0 && len(n.HardwareAddr) > 0 {
			return n.HardwareAddr, nil
		}
	}
	return nil, nil
}
