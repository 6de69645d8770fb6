package pool

import "net/netip"

// mustProbe: who does not remember who may sit on an address asks (dhcp-rules.md#lease-12): a young server, and anyone before an
// address changes hands.
func (t *Table) mustProbe(ip netip.Addr, a Ask) bool {
	r, known := t.records[ip]
	young := a.Now.Sub(t.config.Born) < 2*t.config.LeaseTime
	changesHands := known && r.Client != a.Client
	return (!known && young || changesHands) && !t.offers[ip].vacant
}

// probe asks who answers at an address, and says nothing where it was asked in vain: the client has to ask again.
func (t *Table) probe(ip netip.Addr, a Ask) Decision {
	if a.Undecided[ip] {
		return silent("probe-undecided")
	}
	return Decision{Do: Probe, IP: ip, Record: t.records[ip], Why: "fresh"}
}
