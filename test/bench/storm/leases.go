package main

import (
	"net"
	"net/netip"
	"time"

	"github.com/cldmnky/oooi/internal/dhcp/lease"
)

// leased is an address and the card of who has it.
type leased struct {
	ip       netip.Addr
	hardware net.HardwareAddr
}

// wholePool is leases of all its addresses.
func wholePool() (all []leased) {
	end := netip.MustParseAddr(last)
	for ip := netip.MustParseAddr(first); !end.Less(ip); ip = ip.Next() {
		octets := ip.As4()
		all = append(all, leased{ip, append([]byte{2, 0x18}, octets[:]...)})
	}
	return all
}

// left is how much of each lease is left: so little that its next renewal is written.
const left = 18 * time.Hour

func (l leased) record() lease.Record {
	end := time.Now().Add(left)
	return lease.Record{IP: l.ip, Client: lease.Client{MAC: l.hardware.String()}, State: lease.Bound, Horizon: end, Expires: end}
}
