package dhcp

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"github.com/cldmnky/oooi/internal/daemon"
	"github.com/cldmnky/oooi/internal/dhcp/link"
)

// aheadWait covers the kernel's three ARP requests, a second apart, and the last reply: a host that takes the address meanwhile is heard.
const aheadWait = 3*time.Second + link.Wait

// aheadEvery is how often ProbeAhead looks for addresses to probe: a fraction of what a probe takes.
const aheadEvery = 100 * time.Millisecond

// ProbeAhead probes addresses for clients to come, until the context ends.
func (s *Server) ProbeAhead(ctx context.Context, port Port) {
	var probing sync.WaitGroup
	defer probing.Wait()
	daemon.Every(ctx, aheadEvery, func() {
		if now, _ := s.Clock.Now(); s.synced.Load() { // the leases are known
			for _, ip := range s.Table.Ahead(now) {
				probing.Go(func() { s.probeAhead(ctx, port, ip) })
			}
		}
	})
}

// probeAhead probes one address. If that fails, the probe for the address's client reports it.
func (s *Server) probeAhead(ctx context.Context, port Port, ip netip.Addr) {
	ctx, cancel := context.WithTimeout(ctx, aheadWait+time.Second)
	defer cancel()
	answers, err := port.Answers(ctx, ip, "", false, aheadWait)
	now, _ := s.Clock.Now()
	switch undecided := errors.Is(err, link.ErrUndecided); {
	case answers:
		s.Happened(Event{Type: AddressInUse, IP: ip})
		s.Table.ProbedAhead(ip, true, now)
	case err == nil || undecided: // undecided: the neighbour table has a host at the address, which may have left
		s.Table.ProbedAhead(ip, undecided, now)
	default:
		s.Log.Debug("address not probed ahead", "ip", ip, "error", err)
	}
}
