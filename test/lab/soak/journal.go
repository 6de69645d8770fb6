// Package soak judges a rehearsal by the packets that its clients sent and received: whatever a server believes, these are what happened.
package soak

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
)

// Journal keeps the frames that say what was promised on a VLAN, and who spoke for which address. Each client's are captured by themselves,
// and may come late: they are judged at the end, in the order in which they were on the wire.
type Journal struct {
	mu     sync.Mutex
	frames []frame
}

type frame struct {
	at time.Time
	// One of both: the packet of ARP, or the message of DHCP.
	arp  []byte
	dhcp *dhcpv4.DHCPv4
}

// judgement goes through the frames.
type judgement struct {
	held     map[netip.Addr]promise  // the last one of each address that was ever leased
	claimed  map[netip.Addr][]string // of each other address: hardware addresses, the last one last
	acks     int
	released int
	faults   []string
}

// promise is an acknowledged lease that was not given back.
type promise struct {
	mac   string
	until time.Time
}

// Faults are what may not happen, with the time of day, and how many leases were acknowledged, and how many were released.
func (j *Journal) Faults() (faults []string, acks, released int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	slices.SortStableFunc(j.frames, func(a, b frame) int { return a.at.Compare(b.at) })
	judge := judgement{held: map[netip.Addr]promise{}, claimed: map[netip.Addr][]string{}}
	for _, f := range j.frames {
		if f.dhcp == nil {
			judge.arp(f.at, f.arp)
		} else {
			judge.dhcp(f.at, f.dhcp)
		}
	}
	return judge.faults, judge.acks, judge.released
}

// Frame takes an Ethernet frame that a client sent or received, and when. Of DHCP, whose replies may be broadcast, a client's own counts
// alone.
func (j *Journal) Frame(at time.Time, own net.HardwareAddr, octets []byte) {
	if len(octets) < 14 {
		return
	}
	f := frame{at: at}
	switch payload := slices.Clone(octets[14:]); binary.BigEndian.Uint16(octets[12:]) {
	case 0x0806:
		f.arp = payload
	case 0x0800:
		if f.dhcp = dhcpMessage(payload); f.dhcp == nil || f.dhcp.ClientHWAddr.String() != own.String() {
			return
		}
	default:
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.frames = append(j.frames, f)
}

func dhcpMessage(packet []byte) *dhcpv4.DHCPv4 {
	if len(packet) < 20 || packet[9] != 17 {
		return nil
	}
	header := int(packet[0]&15) * 4
	if len(packet) < header+8 {
		return nil
	}
	datagram := packet[header:]
	if port := binary.BigEndian.Uint16(datagram[2:]); port != dhcpv4.ServerPort && port != dhcpv4.ClientPort {
		return nil
	}
	m, err := dhcpv4.FromBytes(datagram[8:])
	if err != nil {
		return nil
	}
	return m
}

func (j *judgement) dhcp(at time.Time, m *dhcpv4.DHCPv4) {
	mac := m.ClientHWAddr.String()
	switch m.MessageType() {
	case dhcpv4.MessageTypeAck:
		if a, ok := netip.AddrFromSlice(m.YourIPAddr.To4()); ok && !a.IsUnspecified() {
			j.acknowledged(at, a, promise{mac: mac, until: at.Add(m.IPAddressLeaseTime(0))})
		}
	case dhcpv4.MessageTypeNak:
		if a, p, found := j.leaseOf(at, mac); found {
			j.fault(at, "%s, which holds %s for %s more, was refused: %s", mac, a, p.until.Sub(at).Round(time.Second), m.Message())
		}
	case dhcpv4.MessageTypeRelease:
		if a, ok := netip.AddrFromSlice(m.ClientIPAddr.To4()); ok && j.held[a].mac == mac {
			j.ends(a, at)
			j.released++
		}
	}
}

// ends a lease. The address stays one that is leased.
func (j *judgement) ends(a netip.Addr, at time.Time) {
	j.held[a] = promise{mac: j.held[a].mac, until: at}
}

func (j *judgement) acknowledged(at time.Time, a netip.Addr, p promise) {
	j.acks++
	if before := j.held[a]; before.mac != p.mac && before.until.After(at) {
		j.fault(at, "%s was acknowledged to %s, and %s holds it for %s more", a, p.mac, before.mac, before.until.Sub(at).Round(time.Second))
	}
	if other, _, found := j.leaseOf(at, p.mac); found && other != a {
		j.fault(at, "%s holds %s, and was acknowledged %s", p.mac, other, a)
		j.ends(other, at)
	}
	j.held[a] = p
}

func (j *judgement) leaseOf(at time.Time, mac string) (netip.Addr, promise, bool) {
	for a, p := range j.held {
		if p.mac == mac && p.until.After(at) {
			return a, p, true
		}
	}
	return netip.Addr{}, promise{}, false
}

// arp: who speaks for an address (RFC 826), in a request as in a reply. A leased address is its holder's, and after that whoever has it
// still may speak for it; of any other, as of our pods, a hardware address that another took the place of does not come back, or there are two.
func (j *judgement) arp(at time.Time, packet []byte) {
	if len(packet) < 28 {
		return
	}
	mac, sender := net.HardwareAddr(packet[8:14]).String(), netip.AddrFrom4([4]byte(packet[14:18]))
	if sender.IsUnspecified() { // a probe (RFC 5227 section 2.1.1)
		return
	}
	if p, leased := j.held[sender]; leased {
		if p.mac != mac && p.until.After(at) {
			j.fault(at, "%s speaks for %s, which %s holds", mac, sender, p.mac)
		}
		return
	}
	switch all := j.claimed[sender]; {
	case len(all) > 0 && all[len(all)-1] == mac:
	case slices.Contains(all, mac):
		j.fault(at, "%s and %s speak for %s in turns", all[len(all)-1], mac, sender)
	default:
		j.claimed[sender] = append(all, mac)
	}
}

func (j *judgement) fault(at time.Time, format string, args ...any) {
	j.faults = append(j.faults, at.Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}
